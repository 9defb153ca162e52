#!/usr/bin/env python3
"""Writes fixtures/weights/foreign/: checkpoints of training scripts, which contain more than tensors.

    pip install torch numpy safetensors (2.15, 2.4 and 0.8 made the committed files)
    tests/e2e/make_foreign_fixtures.py

objects.pt, objects4.pt, objects_legacy.pt   a state dict and objects of every kind, in three formats
types.pt, types.safetensors                  every element type that Tenon lacks; expected.safetensors has the values of
                                             those that another type represents
whole.pt                                     a module, pickled as a whole
norms.pt                                     weights that weight norm stores as two tensors, by both of PyTorch's functions
wrapped.pt                                   names of compiled, distributed and checkpointed parts; expected.safetensors: without
"""
import argparse
import collections
import datetime
import decimal
import enum
import pathlib
import warnings

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.utils import parametrizations

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures" / "weights" / "foreign"
EXACT = {"int16": torch.int32, "uint16": torch.int32, "uint32": torch.int64, "float8_e4m3fn": torch.float32, "float8_e5m2": torch.float32,
         "float8_e4m3fnuz": torch.float32, "float8_e5m2fnuz": torch.float32, "float8_e8m0fnu": torch.float32}


class Colour(enum.Enum):
    RED = 1


class Own:
    def __init__(self):
        self.tensor = torch.ones(3)
        self.settings = {"lr": 0.1}


class Slots:
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1


class Dictionary(dict):
    pass


class Runs:
    """Code that must never run: it would create a file."""

    def __reduce__(self):
        return open, ("/tmp/tenon_was_run", "w")


def objects():
    odd = collections.defaultdict(list)
    odd["inside"] = [torch.full((2,), 5.0)]
    return {
        "state_dict": collections.OrderedDict(w=torch.arange(6.0).reshape(2, 3), b=torch.tensor([1, 2])),
        "args": argparse.Namespace(lr=0.1, layers=[1, 2]), "scalar": np.float64(2.5), "array": np.arange(4), "path": pathlib.PurePosixPath("/a/b"),
        "set": {1, 2}, "frozen": frozenset({3}), "odd": odd, "bytes": b"abc", "mutable": bytearray(b"abc"),
        "when": datetime.datetime(2024, 1, 2, 3, 4), "day": datetime.date(2024, 1, 2), "colour": Colour.RED, "own": Own(), "slots": Slots(),
        "dictionary": Dictionary(a=1), "counter": collections.Counter("aab"), "complex": 1 + 2j, "decimal": decimal.Decimal("1.5"),
        "class": Own, "function": torch.nn.functional.relu, "range": range(3), "slice": slice(1, 2), "large": 2**80, "none": None,
        "dtype": torch.float16, "device": torch.device("cpu"), "size": torch.Size([1, 2]), "runs": Runs(), "epoch": 7, "name": "tiny", "rate": 0.5,
        (1, 2): torch.ones(2), 0.5: torch.full((1,), 4.0), "rng": torch.get_rng_state()[:4].clone(),
        "sparse": torch.eye(2).to_sparse(), "complex_tensor": torch.ones(2, dtype=torch.complex64),
    }


def codes(dtype):
    """All 256 codes of an 8-bit type; the limits of other types."""
    size = dtype.itemsize
    if size == 1:
        return torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)
    table = np.array([0, 1, 2, 2**(8 * size - 1) - 1, 2**(8 * size - 1), 2**(8 * size) - 1], dtype=np.uint64)
    return torch.from_numpy(table.astype(f"uint{8 * size}")).view(dtype)


def types():
    out = {name: codes(getattr(torch, name)) for name in EXACT}
    out |= {"uint64": codes(torch.uint64), "complex64": torch.ones(2, dtype=torch.complex64), "complex128": torch.ones(2, dtype=torch.complex128),
            "float32": torch.arange(3.0)}
    out["permuted"] = out["float8_e4m3fn"].reshape(16, 16).T
    return out


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)


def norms():
    torch.manual_seed(3)
    conv = parametrizations.weight_norm(torch.nn.Conv1d(3, 4, 2))
    permuted = parametrizations.weight_norm(torch.nn.Linear(3, 4), dim=1)
    whole = parametrizations.weight_norm(torch.nn.Linear(3, 4), dim=None)
    half = parametrizations.weight_norm(torch.nn.Linear(3, 4)).half()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        older = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    spectral = parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    parts = {"conv": conv, "permuted": permuted, "whole": whole, "half": half, "older": older, "spectral": spectral}
    state, weights = {}, {}
    with torch.no_grad():
        for name, part in parts.items():
            for p in part.parameters():
                p.mul_(1.5)
            state |= {f"{name}.{key}": value for key, value in part.state_dict().items()}
            if name == "older":
                part(torch.zeros(1, 3))
            weights[f"{name}.weight"] = part.weight.float()
            weights[f"{name}.bias"] = part.bias.float()
    return state, weights


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.save(objects(), FOLDER / "objects.pt")
    torch.save(objects(), FOLDER / "objects4.pt", pickle_protocol=4)
    torch.save(objects(), FOLDER / "objects_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(types() | {"quantised": quantised()}, FOLDER / "types.pt")
    kept = types()
    save_file({k: v.contiguous() for k, v in kept.items() if k != "complex128"}, FOLDER / "types.safetensors")
    torch.save(Own(), FOLDER / "whole.pt")
    state, weights = norms()
    torch.save(state, FOLDER / "norms.pt")
    plain = {"encoder.0.weight": torch.full((2, 2), 3.0), "encoder.0.bias": torch.arange(2.0), "head.weight": torch.ones(1, 2)}
    wrapped = {"_fsdp_wrapped_module.encoder._orig_mod.0._checkpoint_wrapped_module.weight": plain["encoder.0.weight"],
               "_fsdp_wrapped_module.encoder.module.0._fsdp_wrapped_module.bias": plain["encoder.0.bias"],
               "_fsdp_wrapped_module.head._orig_mod.weight": plain["head.weight"]}
    torch.save(wrapped, FOLDER / "wrapped.pt")
    # On some machines float() does not support 8-bit powers of two beyond float32's normal numbers: these are computed.
    powers = torch.tensor([2.0 ** (code - 127) if code < 255 else float("nan") for code in range(256)], dtype=torch.float64).float()
    expected = {f"types/{k}": v.to(EXACT[k]) for k, v in kept.items() if k in EXACT and k != "float8_e8m0fnu"}
    expected |= {"types/float8_e8m0fnu": powers, "types/float32": kept["float32"], "types/permuted": kept["permuted"].float()}
    expected |= {f"norms/{k}": v.detach().contiguous().clone() for k, v in weights.items()}
    expected |= {f"wrapped/{k}": v for k, v in plain.items()}
    save_file({k: v.contiguous().clone() for k, v in expected.items()}, FOLDER / "expected.safetensors")


if __name__ == "__main__":
    main()
