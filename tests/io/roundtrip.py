#!/usr/bin/env python3
"""Exchanges files with the reference implementations: python3 roundtrip.py FOLDER

Checks the files that the C++ test left in FOLDER (ours.*), and writes some for it to read (theirs.*). Exit code 77: the modules
numpy and safetensors are not installed.
"""
import pathlib
import struct
import sys

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError:
    sys.exit(77)

TYPES = {"bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int32": np.int32, "int64": np.int64, "float16": np.float16,
         "float32": np.float32, "float64": np.float64}


def values(dtype):
    """The values of both sides: 0 … 11 in a 3 x 4 table; for bool every third is true."""
    table = np.arange(12).reshape(3, 4)
    return (table % 3 == 0) if dtype == "bool" else table.astype(TYPES[dtype])


def check(name, got, expected):
    if got.dtype != expected.dtype or got.shape != expected.shape or not np.array_equal(got, expected):
        sys.exit(f"{name}: {got.dtype} {got.shape} {got!r} is not {expected!r}")


def read_ours(folder):
    for dtype in TYPES:
        check(f"ours.{dtype}.npy", np.load(folder / f"ours.{dtype}.npy"), values(dtype))
    check("ours.scalar.npy", np.load(folder / "ours.scalar.npy"), np.float32(2.5).reshape(()))
    with safe_open(folder / "ours.safetensors", framework="numpy") as file:
        assert file.metadata() == {"made by": "tenon", "é": "\"\n"}, file.metadata()
        assert set(file.keys()) == {*TYPES, "bfloat16", "scalar", "empty"}, file.keys()
        for dtype in TYPES:
            check(dtype, file.get_tensor(dtype), values(dtype))
        assert file.get_slice("bfloat16").get_dtype() == "BF16"
        assert file.get_tensor("empty").shape == (0, 2)
    raw = (folder / "ours.safetensors").read_bytes()
    header = raw[8:8 + struct.unpack("<Q", raw[:8])[0]].decode()
    assert '"BF16"' in header, header


def write_theirs(folder):
    for dtype in TYPES:
        np.save(folder / f"theirs.{dtype}.npy", values(dtype))
    np.save(folder / "theirs.fortran.npy", np.asfortranarray(values("float64")))
    np.save(folder / "theirs.big.npy", values("float32").astype(">f4"))
    tensors = {dtype: values(dtype) for dtype in TYPES}
    save_file(tensors, folder / "theirs.safetensors", metadata={"made by": "python"})
    half = (np.arange(12, dtype=np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    header = b'{"half":{"dtype":"BF16","shape":[3,4],"data_offsets":[0,24]}}'
    (folder / "theirs.bf16.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + half)


if __name__ == "__main__":
    read_ours(pathlib.Path(sys.argv[1]))
    write_theirs(pathlib.Path(sys.argv[1]))
