#!/usr/bin/env python3
"""Writes fixtures/weights/, small weight files of other libraries: python3 make_weights_fixtures.py

Needs torch and safetensors. expected.safetensors has the values that must be read. Also checks that torch.load(weights_only=True)
reads ours.pt, which tests/io/test_pt.cpp compares with what Tenon writes. legacy.pt differs
each time, because its storages are named by their addresses.
"""
import argparse
import io
import pathlib
import pickle
import struct
import sys
import zipfile

import torch
from safetensors.torch import load_file, save_file

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures" / "weights"
TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64]


def values(dtype):
    table = torch.arange(12).reshape(3, 4)
    return table % 3 == 0 if dtype == torch.bool else (table - 4).to(dtype)


def state_dict():
    base = torch.arange(60, dtype=torch.float32)
    tied = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    out = {f"type.{str(dtype)[6:]}": values(dtype) for dtype in TYPES}
    out.update({
        "tied.a": tied, "tied.b": tied, "parameter": torch.nn.Parameter(tied[1:3].clone()),
        "view.offset": base[7:19], "view.transposed": base.reshape(5, 12).t(), "view.stepped": base[3:40:4],
        "view.permuted": base.reshape(3, 4, 5).permute(2, 0, 1), "view.repeated": base[5:8].expand(4, 3), "view.half": values(torch.bfloat16).t(),
        "view.column": base.reshape(5, 12)[:, 2:3], "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "one": torch.ones(1, 1, 1),
    })
    return out


def checkpoint():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.25 + i)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    net(torch.arange(6.0).reshape(2, 3)).square().sum().backward()
    optimizer.step()
    return {"epoch": 3, "best": 0.5, "arch": "tiny", "done": False, "state_dict": net.state_dict(), "optimizer": optimizer.state_dict()}


def flat(part, prefix=""):
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, (list, tuple)) else []
    out = {}
    for key, value in items:
        name = f"{prefix}{key}"
        out.update({name: value.detach()} if isinstance(value, torch.Tensor) else flat(value, f"{name}."))
    return out


def rezipped(path, change, method=zipfile.ZIP_STORED):
    """The archive with changed entries: change(name, bytes) returns the new bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", method) as new:
        for entry in old.infolist():
            new.writestr(zipfile.ZipInfo(entry.filename), change(entry.filename, old.read(entry)), method)
    return out.getvalue()


def big_endian(path, tensors):
    """The bytes of a machine with the other byte order."""
    storages = {str(i): t for i, t in enumerate(tensors)}

    def change(name, content):
        last = name.rsplit("/", 1)[-1]
        if name.endswith("byteorder"):
            return b"big"
        if "/data/" not in name:
            return content
        size = storages[last].element_size()
        return b"".join(content[i:i + size][::-1] for i in range(0, len(content), size))
    return rezipped(path, change)


def stretches():
    """A storage in two parts, as PyTorch before 0.4 wrote views: the storages' ids name the parts."""
    class Part:
        def __init__(self, *id_):
            self.id = id_

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return obj.id if isinstance(obj, Part) else None

    class View:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return torch._utils._rebuild_tensor, self.arguments

    out = io.BytesIO()
    for value in (torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION,
                  {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}):
        pickle.dump(value, out, protocol=2)

    def part(*view):
        return Part("storage", torch.FloatStorage, "7", "cpu", 6, view)
    Pickler(out, 2).dump({"left": View(part("8", 0, 2), 0, (2,), (1,)), "right": View(part("9", 2, 4), 1, (3,), (1,))})
    pickle.dump(["7"], out, protocol=2)
    out.write(struct.pack("<q6f", 6, *range(6)))
    return out.getvalue()


class Runs:
    def __reduce__(self):
        return eval, ("1 + 1",)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tensors = state_dict()
    torch.save(tensors, FOLDER / "zip.pt")
    torch.save(tensors, FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(tensors, FOLDER / "protocol4.pt", pickle_protocol=4)
    torch.save(checkpoint(), FOLDER / "checkpoint.pt")
    torch.save(values(torch.float32), FOLDER / "tensor.pt")
    few = {"a": values(torch.float32), "b": values(torch.float16), "c": values(torch.int64)}
    torch.save(few, FOLDER / "few.pt")
    torch.serialization.set_crc32_options(False)
    torch.save(few, FOLDER / "no_checksums.pt")
    torch.serialization.set_crc32_options(True)
    (FOLDER / "big_endian.pt").write_bytes(big_endian(FOLDER / "few.pt", list(few.values())))
    (FOLDER / "deflated.pt").write_bytes(rezipped(FOLDER / "few.pt", lambda name, content: content, zipfile.ZIP_DEFLATED))
    (FOLDER / "stretches.pt").write_bytes(stretches())
    torch.save({"w": values(torch.float32), "args": argparse.Namespace(lr=0.1)}, FOLDER / "foreign.pt")
    torch.save({"w": values(torch.float32), "run": Runs()}, FOLDER / "runs.pt")
    torch.save({"layer.w": values(torch.float32).to(torch.float8_e4m3fn)}, FOLDER / "float8.pt")
    torch.save({"layer.w": values(torch.complex64)}, FOLDER / "complex.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(FOLDER / "script.pt")

    expected = {f"all/{k}": (v.to(torch.int32) if v.dtype == torch.int16 else v).detach().contiguous().clone() for k, v in tensors.items()}
    expected.update({f"checkpoint/{k}": v.contiguous().clone() for k, v in flat(torch.load(FOLDER / "checkpoint.pt")).items()})
    expected.update({f"few/{k}": v for k, v in few.items()})
    for key, value in torch.load(FOLDER / "stretches.pt").items():
        expected[f"stretches/{key}"] = value.clone()
    for file in ("zip", "legacy", "protocol4"):
        for key, value in torch.load(FOLDER / f"{file}.pt", weights_only=file != "protocol4").items():
            assert torch.equal(value, tensors[key]), (file, key)
    save_file(expected, FOLDER / "expected.safetensors")

    ours = FOLDER / "ours.pt"
    if ours.exists():
        read = torch.load(ours, weights_only=True)
        theirs = {k[4:]: v for k, v in load_file(FOLDER / "expected.safetensors").items() if k.startswith("all/")}
        assert read.keys() == theirs.keys(), read.keys() ^ theirs.keys()
        for key, value in theirs.items():
            assert read[key].dtype == value.dtype and torch.equal(read[key], value), key
        assert read["tied.a"].data_ptr() == read["tied.b"].data_ptr()
    else:
        print("ours.pt is not there: write it with the test, and run this again", file=sys.stderr)


if __name__ == "__main__":
    main()
