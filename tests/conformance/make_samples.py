#!/usr/bin/env python3
"""Writes PyTorch's results for every op of Tenon: for PyTorch's samples (OpInfo), extremes, random shapes and views.

    pip install torch numpy safetensors expecttest hypothesis      (PyTorch 2.11 for CPU made the committed files, 2.15 those of convolutions, pooling, places of maxima, bags, instance norm losses of classes, slopes and random calls)
    tests/conformance/make_samples.py --committed     the part that CI runs: tests/conformance/samples.{json,safetensors}
    tests/conformance/make_samples.py --committed --only OP…     renews the samples of these ops only
    tests/conformance/make_samples.py --slopes        tests/conformance/slopes.{json,safetensors}: functions of one number and
                                                      their first and second derivatives, from the least numbers to infinity
    tests/conformance/make_samples.py FOLDER          all samples, a pair of files for each op
    tests/conformance/make_samples.py FOLDER OP…      only these ops of Tenon
    tests/conformance/make_samples.py --committed --random 1 --count 60      tests/conformance/random.{json,safetensors}
    tests/conformance/make_samples.py FOLDER --random SEED [--count N] [KIND…]     random calls (random_calls.py), a pair of
                                                      files for each kind, with N calls; kinds: one_number, attention, …

A .safetensors file has one flat tensor for each dtype. Its .json has the position of each tensor of a sample in it:
[dtype, offset, shape]. A sample has inputs ("in": tensors, or numbers {"i": whole} or {"f": C99 hexadecimal}), arguments,
outputs as PyTorch computes them in the dtype ("out") and in float64 ("out64"), weights of the outputs "g", gradients of
sum(out * g) to inputs number "wrt" ("d", "d64"), weights "h" of those and the gradients of their sum ("dd", "dd64").
"""
import argparse
import json
import math
import pathlib
import random
import warnings
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import composed_adapters  # noqa: F401: registers its adapters
import more_adapters  # noqa: F401
import special_adapters  # noqa: F401
from adapters import CASTS, OPINFO, Skip, plain_number
from fuzz import extreme_samples, fuzz_samples, slope_samples, smooth_truth
from random_calls import random_samples

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
TENSORS = {"in", "out", "out64", "g", "d", "d64", "h", "dd", "dd64"}  # keys of a sample whose values are tensors
TWICE = {"slopes", "each", "random"}  # sources for which PyTorch's second derivatives in the dtype are stored too
COMMITTED_ELEMENTS = 130  # of all inputs of a committed sample
LARGE_ELEMENTS = 1500  # of an op without smaller samples: one for each dtype
RANDOM_ELEMENTS = 500  # of a committed random call
COMMITTED_SAMPLES = {torch.float32: 6, torch.float16: 2, torch.bfloat16: 2, torch.float64: 1}  # of an op; others 1
warnings.filterwarnings("ignore")


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


class Pool:
    """One flat tensor for each dtype; equal tensors are stored once."""

    def __init__(self):
        self.parts, self.sizes, self.places = {}, {}, {}

    def put(self, tensor):
        flat = tensor.detach().contiguous().reshape(-1).clone()
        name = dtype_name(flat.dtype)
        bits = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        if (name, bits) not in self.places:
            self.places[name, bits] = self.sizes.get(name, 0)
            self.sizes[name] = self.places[name, bits] + flat.numel()
            self.parts.setdefault(name, []).append(flat)
        return [name, self.places[name, bits], list(tensor.shape)]

    def save(self, path):
        save_file({name: torch.cat(parts) for name, parts in sorted(self.parts.items())}, str(path))


def weights(tensors, seed, dtype=None):
    """Multiples of 1/8 in [-2, 2]: exact in every floating dtype."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randint(-16, 17, t.shape, generator=generator).double() / 8).to(dtype or t.dtype) for t in tensors]


def ones(tensors, seed, dtype=None):
    return [torch.ones_like(t, dtype=dtype or t.dtype) for t in tensors]


def in_float64(value, integers=False):
    """The same argument in float64; everything except tensors is unchanged."""
    if not isinstance(value, torch.Tensor):
        if isinstance(value, (list, tuple)):
            return type(value)(in_float64(v, integers) for v in value)
        return value
    if value.is_floating_point() or integers:
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


class Case:
    """One call: a PyTorch function with its arguments, and the equivalent op of Tenon with operands and arguments."""

    def __init__(self, name, source, function, args, kwargs, adapter, autograd=False, second=False):
        self.name, self.source, self.function, self.args, self.kwargs = name, source, function, args, kwargs
        self.adapter, self.autograd, self.second = adapter, autograd, second

    def run(self, args, kwargs, seed, second):
        op, operands, attributes = self.adapter(*args, **kwargs)
        out = self.function(*args, **kwargs)
        out = [out] if isinstance(out, torch.Tensor) else list(out)
        wrt = [k for k, t in enumerate(operands) if isinstance(t, torch.Tensor) and t.requires_grad] if self.autograd else []
        if len({id(t) for t in operands if isinstance(t, torch.Tensor)}) < sum(isinstance(t, torch.Tensor) for t in operands):
            wrt = []
        result = {"op": op, "operands": operands, "attributes": attributes, "out": out, "wrt": wrt}
        if not wrt or not any(t.requires_grad for t in out):
            result["wrt"] = []
            return result
        leaves = [operands[k] for k in wrt]
        weigh = ones if self.source in ("slopes", "each") else weights  # no weight of 0 beside an infinity
        g = weigh(out, seed)
        loss = sum((t * w).sum() for t, w in zip(out, g) if t.requires_grad)
        d = torch.autograd.grad(loss, leaves, create_graph=second, allow_unused=True)
        d = [torch.zeros_like(leaf) if t is None else t for t, leaf in zip(d, leaves)]
        result |= {"g": g, "d": d}
        if second:
            h = weigh(d, seed + 1)
            loss = sum((t * w).sum() for t, w in zip(d, h))
            dd = torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * len(leaves)
            result |= {"h": h, "dd": [torch.zeros_like(leaf) if t is None else t for t, leaf in zip(dd, leaves)]}
        return result

    def exact(self, truth):
        """Corrects results for which PyTorch's float64 is inexact or overflows."""
        found = smooth_truth(self.name, self.kwargs) if self.source == "slopes" else None
        if found is None:
            return
        x = truth["operands"][0].detach()
        truth["out"][0], truth["d"][0], truth["dd"][0] = (torch.tensor([f(v) for v in x.tolist()], dtype=torch.float64) for f in found)

    def record(self, pool, number):
        """The sample as JSON; its tensors go into the pool."""
        seed = zlib.crc32(f"{self.name}{self.source}{number}".encode())
        before = [t.detach().clone() if isinstance(t, torch.Tensor) else t for t in self.adapter(*self.args, **self.kwargs)[1]]
        plain = self.run(self.args, self.kwargs, seed, self.source in TWICE and self.second)
        dtypes = {t.dtype for t in plain["operands"] + plain["out"] if isinstance(t, torch.Tensor)}
        if not dtypes <= set(DTYPES):
            raise Skip("a dtype that Tenon lacks")
        check_promotion(plain["operands"])
        floating = any(t.is_floating_point() for t in plain["out"])
        truth = plain
        if floating and plain["op"] not in CASTS:
            some = any(isinstance(t, torch.Tensor) and t.is_floating_point() for t in plain["operands"])
            args, kwargs = in_float64(self.args, not some), {k: in_float64(v, not some) for k, v in self.kwargs.items()}
            truth = self.run(args, kwargs, seed, self.second)
            self.exact(truth)
        sample = {"op": plain["op"], "id": f"{self.name}/{self.source}/{number}"}
        # The values before the call: some functions write to an operand.
        sample["in"] = [pool.put(t) if isinstance(t, torch.Tensor) else plain_number(t) for t in before]
        if plain["attributes"]:
            sample["args"] = plain["attributes"]
        sample["out"] = [pool.put(t) for t in plain["out"]]
        if truth is not plain:
            sample["out64"] = [pool.put(t) for t in truth["out"]]
        if plain["wrt"]:
            sample |= {"wrt": plain["wrt"], "g": [pool.put(t) for t in plain["g"]], "d": [pool.put(t) for t in plain["d"]]}
            if truth is not plain:
                sample["d64"] = [pool.put(t) for t in truth["d"]]
            if "dd" in truth:
                h = [w.to(d.dtype) for w, d in zip(truth["h"], plain["d"])]
                sample |= {"h": [pool.put(t) for t in h], "dd64": [pool.put(t) for t in truth["dd"]]}
                if "dd" in plain:
                    sample["dd"] = [pool.put(t) for t in plain["dd"]]
        return sample


def check_promotion(operands):
    """In type promotion PyTorch treats a tensor without axes as a number. Tenon treats it as a tensor, like the array API."""
    tensors = [t for t in operands if isinstance(t, torch.Tensor)]
    dtypes = {t.dtype for t in tensors}
    if len(dtypes) > 1 and any(t.dim() == 0 for t in tensors):
        raise Skip("promotion of a 0-d tensor: the array API's, not PyTorch's")
    if torch.uint8 in dtypes and torch.int8 in dtypes:
        raise Skip("uint8 with int8 gives int32: there is no int16")


def opinfo_cases(op, dtype, seed):
    """Cases of PyTorch's own samples. A case that Tenon cannot express raises Skip when it is recorded."""
    adapter = OPINFO[op.name, op.variant_test_name]
    autograd = dtype.is_floating_point and op.supports_autograd
    torch.manual_seed(zlib.crc32(op.name.encode()) + seed)
    random.seed(seed)
    np.random.seed(seed)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=autograd):
        yield Case(op.name, "opinfo" + ("." + op.variant_test_name if op.variant_test_name else ""), op.op, (sample.input, *sample.args), dict(sample.kwargs), adapter, autograd,
                   autograd and op.supports_gradgrad)


def all_cases(seed):
    """(name, dtype, function that makes the cases)."""
    from torch.testing._internal.common_methods_invocations import op_db
    for op in op_db:
        if (op.name, op.variant_test_name) in OPINFO:
            for dtype in DTYPES:
                if dtype in op.dtypes:
                    yield op.name, dtype, lambda op=op, dtype=dtype: opinfo_cases(op, dtype, seed)
    for make, source in [(extreme_samples, "extreme"), (fuzz_samples, "fuzz")]:
        for name, dtype, calls in make(DTYPES):
            yield name, dtype, lambda name=name, calls=calls, source=source: (
                Case(name, source, *call) for call in calls())


def slope_cases():
    for name, dtype, calls in slope_samples():
        yield name, dtype, lambda name=name, calls=calls: (Case(name, "slopes", *call) for call in calls())


def inputs_size(case):
    tensors = [a for a in (*case.args, *case.kwargs.values()) if isinstance(a, torch.Tensor)]
    return sum(t.numel() for t in tensors)


def committed_but(ops, pool):
    """The committed samples of all other ops, with their tensors added to the pool, and the skipped ones."""
    text = json.loads((HERE / "samples.json").read_text())
    flat = load_file(HERE / "samples.safetensors")

    def moved(part):
        if not isinstance(part, list):
            return part
        name, offset, shape = part
        return pool.put(flat[name][offset:offset + math.prod(shape)].reshape(shape))

    samples = [s for s in text["samples"] if s["id"].split("/")[0] not in ops]
    for sample in samples:
        for key in TENSORS & sample.keys():
            sample[key] = [moved(part) for part in sample[key]]
    return samples, {tuple(key): count for *key, count in text["skipped"] if key[0] not in ops}


def write(stem, samples, skipped, pool):
    text = "[\n" + ",\n".join(json.dumps(s, separators=(",", ":")) for s in samples) + "\n]"
    reasons = json.dumps([[*key, count] for key, count in sorted(skipped.items())], separators=(",", ":"))
    pathlib.Path(f"{stem}.json").write_text(f'{{"samples":{text},\n"skipped":{reasons}}}\n')
    pool.save(f"{stem}.safetensors")


def record_all(cases, pool, samples, skipped, name, dtype, most, elements, first=0):
    taken, shapes = 0, set()
    for number, case in enumerate(cases, first):
        small = case.source in ("extreme", "slopes") or inputs_size(case) <= elements
        look = tuple(str(a.dim()) if isinstance(a, torch.Tensor) else str(a) if isinstance(a, bool) else type(a).__name__ for a in case.args)
        look += (*case.kwargs, str(case.kwargs.get("return_indices")))
        if taken >= most or not small or (most < math.inf and case.source.startswith("opinfo") and look in shapes):
            continue
        try:
            samples.append(case.record(pool, f"{dtype_name(dtype)}/{number}") | {"dtype": dtype_name(dtype)})
        except Skip as reason:
            key = (name, dtype_name(dtype), str(reason))
            skipped[key] = skipped.get(key, 0) + 1
            continue
        except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError) as error:
            key = (name, dtype_name(dtype), "PyTorch refuses: " + str(error).splitlines()[0][:80])
            skipped[key] = skipped.get(key, 0) + 1
            continue
        shapes.add(look)
        taken += 1


def write_random(options):
    kinds = {}
    for kind, name, parts in random_samples(options.random, options.count, options.ops):
        source = "each" if kind in ("one_number", "two_numbers") else "random"
        kinds.setdefault(kind, []).append((name, Case(name, source, *parts)))
    pool, samples, skipped = Pool(), [], {}
    for kind, cases in kinds.items():
        for number, (name, case) in enumerate(cases):
            tensors = [a for a in case.args if isinstance(a, torch.Tensor)]
            record_all([case], pool, samples, skipped, name, tensors[0].dtype, math.inf, RANDOM_ELEMENTS if options.committed else math.inf, number)
        if options.folder:
            write(options.folder / kind, samples, skipped, pool)
            print(f"{kind}: {len(samples)} samples", flush=True)
            pool, samples, skipped = Pool(), [], {}
    if options.committed:
        write(HERE / "random", samples, skipped, pool)
        print(f"{len(samples)} samples")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--committed", action="store_true")
    parser.add_argument("--slopes", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="other numbers in OpInfo's samples")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--only", nargs="+", default=[], metavar="OP")
    options = parser.parse_intermixed_args()
    if options.committed + options.slopes + bool(options.folder) != 1:
        parser.error("give a folder, --committed or --slopes")
    options.ops += options.only
    torch.set_num_threads(1)
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    if options.random is not None:
        return write_random(options)
    grouped = {}
    for name, dtype, make in slope_cases() if options.slopes else all_cases(options.seed):
        grouped.setdefault(name, []).append((dtype, make))
    pool, samples, skipped = Pool(), [], {}
    if options.only:
        samples, skipped = committed_but(options.only, pool)
    for name, parts in sorted(grouped.items()):
        if options.ops and name not in options.ops:
            continue
        before = len(samples)
        for dtype, make in parts:
            most = COMMITTED_SAMPLES.get(dtype, 1) if options.committed else math.inf
            record_all(make(), pool, samples, skipped, name, dtype, most, COMMITTED_ELEMENTS if options.committed else math.inf)
        if options.committed and len(samples) == before:  # all samples of the op are large
            for dtype, make in parts:
                record_all(make(), pool, samples, skipped, name, dtype, 1, LARGE_ELEMENTS)
        if options.folder and samples:
            write(options.folder / name, samples, skipped, pool)
            print(f"{name}: {len(samples)} samples", flush=True)
            pool, samples, skipped = Pool(), [], {}
    if options.committed or options.slopes:
        write(HERE / ("slopes" if options.slopes else "samples"), samples, skipped, pool)
        print(f"{len(samples)} samples")


if __name__ == "__main__":
    main()
