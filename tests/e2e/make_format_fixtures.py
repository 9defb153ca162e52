#!/usr/bin/env python3
"""Writes fixtures/weights/formats/: small files of NumPy and llama.cpp, and sharded files of Hugging Face: python3 make_format_fixtures.py

    pip install torch safetensors numpy gguf        (gguf 0.19 made the committed files)

expected.safetensors has the values that must be read: npz/NAME, gguf/NAME, parts/NAME. Also checks that NumPy reads ours.npz, which
tests/io/test_formats.cpp compares with what Tenon writes.
"""
import json
import pathlib
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures" / "weights" / "formats"


def arrays():
    table = np.arange(12).reshape(3, 4)
    out = {f"type.{t}": (table % 3 == 0 if t == "bool" else (table - 4).astype(t))
           for t in ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")}
    out.update({"by columns": np.asfortranarray(table.astype("f4")), "swapped": table.astype(">f4"), "scalar": np.float32(2.5),
                "empty": np.zeros((0, 3), "f4"), "folder/name": table.astype("f8"), "\u00fcml\u00e4ut": table.astype("f4")})
    return out


def write_gguf(path):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((5, 64)).astype("f4")
    rows[2, 32:] = 0
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("tiny.count", 7)
    writer.add_float32("tiny.rate", 0.5)
    writer.add_bool("tiny.flag", True)
    writer.add_array("tiny.words", ["a", "bc", ""])
    writer.add_array("tiny.numbers", [1, 2, 3])
    kinds = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16,
             "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}
    expected = {}
    for name, kind in kinds.items():
        packed = gguf.quants.quantize(rows, kind)
        writer.add_tensor(f"blk.0.{name}.weight", packed, raw_dtype=kind)
        if name == "bf16":
            expected[f"blk.0.{name}.weight"] = torch.from_numpy(rows).to(torch.bfloat16)
        elif name == "f16":
            expected[f"blk.0.{name}.weight"] = torch.from_numpy(packed.copy())
        else:
            expected[f"blk.0.{name}.weight"] = torch.from_numpy(gguf.quants.dequantize(packed, kind).reshape(rows.shape).copy())
    writer.add_tensor("bias", rows[0, :3].copy())
    expected["bias"] = torch.from_numpy(rows[0, :3].copy())
    writer.add_tensor("deep", np.arange(24, dtype="i4").reshape(2, 3, 4))
    expected["deep"] = torch.arange(24, dtype=torch.int32).reshape(2, 3, 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def write_parts():
    tensors = {f"h.{i}.weight": torch.arange(6.0).reshape(2, 3) + i for i in range(5)}
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[:2], "model-00002-of-00002.safetensors": names[2:]}
    for file, keys in files.items():
        save_file({k: tensors[k] for k in keys}, FOLDER / file, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 120}, "weight_map": {k: file for file, keys in files.items() for k in keys}}
    (FOLDER / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    return tensors


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    own = arrays()
    np.savez(FOLDER / "stored.npz", **own)
    np.savez_compressed(FOLDER / "deflated.npz", **own)
    np.save(FOLDER / "one.npy", own["by columns"])
    expected = {f"npz/{k}": torch.from_numpy(np.array(v, v.dtype.newbyteorder("="), order="C", copy=True)) for k, v in own.items()}
    expected |= {f"gguf/{k}": v.contiguous() for k, v in write_gguf(FOLDER / "types.gguf").items()}
    expected |= {f"parts/{k}": v for k, v in write_parts().items()}
    save_file(expected, FOLDER / "expected.safetensors")
    ours = FOLDER / "ours.npz"
    if not ours.exists():
        sys.exit("ours.npz is not there: write it with the test, and run this again")
    with np.load(ours) as read:
        assert set(read.files) == set(own), set(read.files) ^ set(own)
        for key, value in own.items():
            assert np.array_equal(read[key], value) and read[key].dtype == value.dtype.newbyteorder("="), key


if __name__ == "__main__":
    main()
