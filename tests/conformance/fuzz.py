"""Samples in addition to OpInfo's: extremes of every dtype, random shapes that broadcast, random chains of views.

Each function yields (name, dtype, function that yields (PyTorch's function, args, kwargs, adapter, autograd, second))."""
import math
import random

import torch
import torch.nn.functional as F

from adapters import BINARY, OPINFO, UNARY, UNARY_FUNCTIONAL, where

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
WHOLE = [torch.uint8, torch.int8, torch.int32, torch.int64]
NAN, INF = math.nan, math.inf
COMPARE = "eq ne lt le gt ge logical_and logical_or logical_xor".split()


def values(dtype, few=False):
    """Values that often go wrong: the limits of a type, zeros of both signs, subnormals, halves, arguments near overflow."""
    if dtype == torch.bool:
        return torch.tensor([False, True, True])
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    if not dtype.is_floating_point:
        wide = [2**24 + 1, 2**31 - 1, -2**31, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -2**53 - 1, 2**62 + 1, 2**63 - 1, -2**63 + 1, -2**63]
        some = [0, 1, 2, 3, 7, 100, 127, 128, 255, -1, -2, -3, -7, -100, -128, *wide]
        return torch.tensor([v for v in some if info.min <= v <= info.max], dtype=dtype)
    plain = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, INF, -INF, NAN, info.max, info.min, info.tiny, info.tiny * info.eps, 3.0]
    if not few:
        plain += [-0.5, 1.5, 2.5, -1.5, 0.1, -0.1, -info.tiny, info.tiny / 2, -info.tiny * info.eps, info.eps, 1 - info.eps / 2, 1e-4,
                  -1e-4, 4.0, -4.0, 5.5, -5.5, 6.0, 7.0, -7.0, 9.5, -9.5, 10.0, -10.0, 11.0, -11.5, 16.0, -16.0, 17.5, 20.0, -20.0, 30.0,
                  -30.0, 65504.0, 70000.0, 80.0, -80.0, 88.5, -88.5, 89.2, -89.2, 90.0, -100.0, -103.0, 127.5, -126.5, -140.0, 128.0,
                  710.1, -745.0, 1e4, -1e4, 1e6, 1234567.0, 3.140625, 1.5703125, 100.5]
    return torch.tensor(plain, dtype=torch.float64).to(dtype)


def torch_unary(name):
    return getattr(F, name) if name in UNARY_FUNCTIONAL else getattr(torch, name)


def adapter_of(name):
    return OPINFO.get((name, ""), None) or OPINFO["nn.functional." + name, ""]


def extreme_samples(dtypes):
    for dtype in dtypes:
        floating = dtype.is_floating_point
        for name in [*UNARY, *UNARY_FUNCTIONAL, "gelu", "leaky_relu", "elu", "softplus", "hardtanh"]:
            function = getattr(F, name) if hasattr(F, name) and name not in UNARY else getattr(torch, name)
            yield name, dtype, lambda f=function, name=name, dtype=dtype, floating=floating: unary_extremes(f, name, dtype, floating)
        for name in BINARY:
            yield name, dtype, lambda name=name, dtype=dtype, floating=floating: binary_extremes(name, dtype, floating)
        yield "clamp", dtype, lambda dtype=dtype: clamp_extremes(dtype)
        yield "where", dtype, lambda dtype=dtype: where_extremes(dtype)
        yield "cast", dtype, lambda dtype=dtype: cast_extremes(dtype, dtypes)
        yield "full", dtype, lambda dtype=dtype: full_extremes(dtype)
        for name in "sum prod mean amax amin all any logsumexp var norm argmax argmin softmax log_softmax".split():
            yield name, dtype, lambda name=name, dtype=dtype: reduction_extremes(name, dtype)
    for dtype in [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32]:
        yield "arange", dtype, lambda dtype=dtype: arange_extremes(dtype)


def unary_extremes(function, name, dtype, floating):
    yield function, (values(dtype).requires_grad_(floating),), {}, adapter_of(name), floating, False
    if name == "gelu":
        yield (lambda x: F.gelu(x, approximate="tanh")), (values(dtype).requires_grad_(floating),), {}, \
            lambda x: ("gelu", [x], {"tanh": 1}), floating, floating


def binary_extremes(name, dtype, floating):
    function, adapter = getattr(torch, name), adapter_of(name)
    grads = floating and name not in COMPARE and name != "floor_divide"
    v = values(dtype, few=True)
    yield function, (v.reshape(-1, 1).clone().requires_grad_(floating), v.clone().requires_grad_(floating)), {}, adapter, grads, False
    numbers = [3, -2, 0]
    if floating:
        numbers += [-0.0, 0.5, 2.0, INF, NAN, 70000.0, 1e-8, 0.1, 3e38]
    elif dtype != torch.bool:
        numbers += [0.5, *(n for n in [2**53 + 1, 2**63 - 1, -2**63, 2**62 + 1] if dtype == torch.int64)]
    for n in numbers:
        if n == 1e-8 and name in ("remainder", "floor_divide"):
            continue  # after subtracting so many 1e-8 from 1, the rest is the rounding error of 1e-8
        x = values(dtype, few=True).requires_grad_(floating)
        yield function, (x, n), {}, adapter, grads, False
        if name in ("sub", "div", "pow", "remainder", "floor_divide"):
            swapped = {"sub": lambda a, b: b - a, "div": lambda a, b: b / a, "pow": lambda a, b: b**a, "remainder": lambda a, b: b % a,
                       "floor_divide": lambda a, b: b // a}[name]
            yield swapped, (x, n), {}, (lambda a, b, name=name: (name, [b, a], {})), grads, False


def clamp_extremes(dtype):
    ends = [(-2, 3), (0, 2**53 + 1 if dtype == torch.int64 else 100)]
    if dtype.is_floating_point:
        ends += [(-0.1, 0.1), (-INF, 1.0), (NAN, 1.0)]
    for low, high in ends:
        yield torch.clamp, (values(dtype).requires_grad_(dtype.is_floating_point), low, high), {}, adapter_of("clamp"), \
            dtype.is_floating_point, False


def where_extremes(dtype):
    x = values(dtype)
    condition = torch.arange(x.numel()) % 2 == 0
    numbers = [3, -1] + ([0.5, -0.0, NAN] if dtype.is_floating_point else []) + ([2**53 + 1, 2**63 - 1, -2**63] if dtype == torch.int64 else [])
    for n in numbers:
        grads = dtype.is_floating_point
        yield torch.where, (condition, x.clone().requires_grad_(grads), n), {}, where, grads, False
        yield torch.where, (condition, n, x.clone().requires_grad_(grads)), {}, where, grads, False


def cast_extremes(dtype, dtypes):
    for to in dtypes:
        x = values(dtype)
        if dtype.is_floating_point and not to.is_floating_point and to != torch.bool:
            info = torch.iinfo(to)  # C++ does not define the result beyond the limits
            x = x[(x.double() > max(info.min, -2**62)) & (x.double() < min(info.max, 2**62))]
        name = str(to).removeprefix("torch.")
        yield (lambda v, to=to: v.to(to)), (x,), {}, (lambda v, name=name: ("cast", [v], {"dtype": name})), False, False


def full_extremes(dtype):
    numbers = [0, 1] + ([-0.0, NAN, -INF, 0.1, 65504.0] if dtype.is_floating_point else [])
    numbers += [2**53 + 1, 2**63 - 1, -2**63, -2**53 - 1] if dtype == torch.int64 else []
    for n in numbers:
        yield torch.full, ((2, 3), n), {"dtype": dtype}, adapter_of("full"), False, False


def arange_extremes(dtype):
    calls = [(5,), (3, 17, 4), (0,), (9, 1, -3), (7, -1 if dtype != torch.uint8 else 0, -1)]
    calls += [(2**53 + 1, 2**53 + 9, 3), (2**63 - 5, 2**63 - 1), (-2**63, -2**63 + 7, 2)] if dtype == torch.int64 else []
    calls += [(0.5, 3.0, 0.75), (1, 0, -0.125)] if dtype.is_floating_point else []
    for call in calls:
        yield torch.arange, call, {"dtype": dtype}, adapter_of("arange"), False, False


def reduction_extremes(name, dtype):
    floating = dtype.is_floating_point
    function = torch.linalg.vector_norm if name == "norm" else getattr(torch, name)
    adapter = adapter_of("linalg.vector_norm" if name == "norm" else name)
    if floating:
        info = torch.finfo(dtype)
        rows = [[1, 2, NAN, 3], [INF, 1, 2, 2], [-INF, 1, 2, 0], [INF, -INF, 1, 0], [0.0, -0.0, 0, -0.0], [info.max, info.max, -info.max, 1],
                [-INF] * 4, [INF] * 4, [info.tiny, info.tiny * info.eps, 0, info.tiny], [3, 3, 3, 1], [1, 1e-3, 5, -2]]
    elif dtype == torch.bool:
        rows = [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1]]
    else:
        info = torch.iinfo(dtype)
        rows = [[info.max, info.max, 1, 2], [info.min, -1 if info.min < 0 else 1, 0, 3], [3, 3, 1, 3]]
    x = torch.tensor(rows, dtype=torch.float64 if floating else torch.int64).to(dtype)
    grads = floating and name not in ("argmax", "argmin", "all", "any")
    for axis in (1, 0):
        yield function, (x.clone().requires_grad_(floating),), {"dim": axis, **({"correction": 0} if name == "var" else {})}, adapter, grads, False


# ---- Slopes: activations and functions of one number, twice differentiated, from the least numbers to the largest

SLOPES_OF = {"elu": [{}, {"alpha": 0.3}, {"alpha": -1.5}], "celu": [{}, {"alpha": 0.3}, {"alpha": -1.5}], "leaky_relu": [{}, {"negative_slope": -2.0}],
             "softplus": [{}, {"beta": 3.0, "threshold": 5.0}, {"beta": 0.1}], "gelu": [{}, {"approximate": "tanh"}]}
STEPS = "floor ceil round trunc logical_not isnan isinf isfinite".split()  # no derivative, or NaN


def slope_values(dtype):
    info = torch.finfo(dtype)
    least = info.tiny * info.eps  # the least subnormal
    above = [0.0, least, info.tiny, info.eps, 1e-4, 0.01, 0.1, 0.5, 1 - info.eps, 1.0, 1.5, 2.5, 3.0, 3.25, 4.0, 5.0, 6.0, 7.5, 9.5, 11.0, 14.0, 17.5, 20.0,
             25.0, 30.0, 40.0, 60.0, 88.5, 90.0, 104.0, 128.0, 350.0, 700.0, 745.0, 1e4, 3e4, 1e10, 1e19, 1e30, 1e154, 1e300, info.max / 2, info.max, INF]
    above = [v for v in above if v == INF or v <= info.max]
    both = [NAN] + above + [-v for v in above]
    # Whole vectors only: PyTorch computes the remainder by other code, with other gradients at NaN.
    return torch.tensor(both + [1.0] * (-len(both) % 64), dtype=torch.float64).to(dtype)


def smooth_truth(name, given):
    """A smooth function and its first two derivatives, computed with 800 digits; None for other functions."""
    import mpmath
    import sympy
    x = sympy.symbols("x")
    one, two = sympy.Integer(1), sympy.Integer(2)
    if name == "gelu":
        name += given.get("approximate", "none")
    f = {"gelunone": x * (one + sympy.erf(x / sympy.sqrt(2))) / two,
         "gelutanh": x / (one + sympy.exp(-two * sympy.sqrt(two / sympy.pi) * (x + sympy.Rational(44715, 10**6) * x**3))),
         "silu": x / (one + sympy.exp(-x)), "mish": x * sympy.tanh(sympy.log(one + sympy.exp(x))), "sigmoid": one / (one + sympy.exp(-x)),
         "logsigmoid": -sympy.log(one + sympy.exp(-x)), "tanh": sympy.tanh(x), "erf": sympy.erf(x)}.get(name)
    if f is None:
        return None

    def evaluated(expression):
        function = sympy.lambdify(x, expression, "mpmath")

        def at(v):
            with mpmath.workdps(800):
                # An infinity's value is the limit; beyond 1e4 all of these are lines or constants.
                if math.isnan(v):
                    return NAN
                many = mpmath.mpf(v) if abs(v) <= 1e4 else mpmath.sign(v) * 10**4
                got = function(many)
                if abs(v) > 1e4 and expression is f and abs(got) > 100:  # a line: x + c
                    got = v if math.isinf(v) else mpmath.mpf(v) + (got - many)
                return float(got)
        return at
    return [evaluated(e) for e in (f, sympy.diff(f, x), sympy.diff(f, x, 2))]


def slope_samples():
    for dtype in FLOATS:
        for name in sorted({*UNARY, *UNARY_FUNCTIONAL, *SLOPES_OF, "hardtanh"} - {*STEPS}):
            yield name, dtype, lambda name=name, dtype=dtype: unary_slopes(name, dtype)
        for name in "logaddexp maximum minimum prelu".split():
            yield name, dtype, lambda name=name, dtype=dtype: binary_slopes(name, dtype)


def unary_slopes(name, dtype):
    function = getattr(F, name) if hasattr(F, name) and name not in UNARY else getattr(torch, name)
    adapt = adapter_of(name)
    for given in SLOPES_OF.get(name, [{}]):
        yield function, (slope_values(dtype).requires_grad_(True),), given, adapt, True, True


def binary_slopes(name, dtype):
    v = slope_values(dtype)
    v = v[:: 4] if name != "prelu" else v
    if name == "prelu":
        yield F.prelu, (v.requires_grad_(True), torch.tensor([0.25], dtype=dtype).requires_grad_(True)), {}, adapter_of(name), True, True
        return
    a, b = (t.reshape(-1).clone().requires_grad_(True) for t in torch.broadcast_tensors(v.reshape(-1, 1), v))
    yield getattr(torch, name), (a, b), {}, adapter_of(name), True, True


# ---- Fuzz

def rand_tensor(rng, shape, dtype):
    if dtype.is_floating_point:
        return (torch.tensor([rng.uniform(-2, 2) for _ in range(math.prod(shape))]).reshape(shape)).to(dtype).requires_grad_(True)
    low, high = (0, 1) if dtype == torch.bool else (0, 9) if dtype == torch.uint8 else (-9, 9)
    return torch.tensor([rng.randint(low, high) for _ in range(math.prod(shape))]).reshape(shape).to(dtype)


def rand_shape(rng, most=4):
    return [rng.choice([1, 2, 3, 5, 7, 8] if rng.random() < 0.95 else [0, 33]) for _ in range(rng.randint(0, most))]


def rand_broadcast(rng, shape):
    """A shape that broadcasts with this one."""
    kept = shape[rng.randint(0, len(shape)):] if rng.random() < 0.5 else shape
    return [1 if rng.random() < 0.4 else n for n in kept]


def fuzz_samples(dtypes):
    for dtype in dtypes:
        for name in BINARY:
            yield name, dtype, lambda name=name, dtype=dtype: fuzz_binary(name, dtype)
        for name in "sum prod mean amax amin all any logsumexp var norm softmax argmax".split():
            yield name, dtype, lambda name=name, dtype=dtype: fuzz_reduction(name, dtype)
        yield "views", dtype, lambda dtype=dtype: fuzz_views(dtype)
    for dtype in [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64]:
        yield "matmul", dtype, lambda dtype=dtype: fuzz_matmul(dtype)
    for dtype in [torch.float16, torch.float32]:
        yield "long", dtype, lambda dtype=dtype: long_sums(dtype)


def fuzz_binary(name, dtype):
    rng = random.Random(f"{name}{dtype}")
    grads = dtype.is_floating_point and name not in COMPARE and name != "floor_divide"
    for _ in range(8):
        shape = rand_shape(rng)
        a, b = rand_tensor(rng, shape, dtype), rand_tensor(rng, rand_broadcast(rng, shape), dtype)
        if name == "pow" and dtype.is_floating_point:
            a = (a.detach().abs() + 0.1).requires_grad_(True)
        if rng.random() < 0.5:
            a, b = b, a
        if name in ("div", "remainder", "floor_divide", "pow") and dtype != torch.bool:  # away from the jumps of quotients, and from zero
            b = torch.where(b.detach() == 0, torch.ones_like(b), b.detach()).abs().requires_grad_(b.requires_grad)
        yield getattr(torch, name), (a, b), {}, adapter_of(name), grads, grads


def fuzz_reduction(name, dtype):
    rng = random.Random(f"{name}{dtype}")
    function = torch.linalg.vector_norm if name == "norm" else getattr(torch, name)
    adapter = adapter_of("linalg.vector_norm" if name == "norm" else name)
    grads = dtype.is_floating_point and name not in ("argmax", "all", "any")
    for _ in range(8):
        shape = rand_shape(rng) + [rng.choice([1, 4, 9, 70])]
        many = [a for a in range(len(shape)) if rng.random() < 0.5] or [len(shape) - 1]
        one = name in ("prod", "argmax", "softmax", "all", "any")
        kwargs = {"dim": many[0] if one else many} | ({} if name == "softmax" else {"keepdim": rng.random() < 0.5})
        yield function, (rand_tensor(rng, shape, dtype),), kwargs, adapter, grads, grads


def fuzz_matmul(dtype):
    rng = random.Random(f"matmul{dtype}")
    for _ in range(16):
        batch = rand_shape(rng, 2)
        m, n, k = (rng.choice([1, 2, 5, 9, 17, 33]) for _ in range(3))
        a = rand_tensor(rng, batch + [m, k], dtype)
        b = rand_tensor(rng, rand_broadcast(rng, batch) + [k, n], dtype)
        yield torch.matmul, (a, b), {}, adapter_of("matmul"), dtype.is_floating_point, dtype.is_floating_point


def long_sums(dtype):
    """Sums for which a plain accumulator is too inexact: 10^6 float32, float16 exponentials with a sum above 65504."""
    generator = torch.Generator().manual_seed(7)
    if dtype == torch.float32:
        a, b = (torch.rand(10**6, generator=generator) for _ in range(2))
        yield torch.matmul, (a, b), {}, adapter_of("matmul"), False, False
        yield torch.sum, (a,), {}, adapter_of("sum"), False, False
    else:
        x = torch.zeros(2, 70000, dtype=dtype).requires_grad_(True)
        yield torch.softmax, (x, 1), {}, adapter_of("softmax"), True, False
        yield torch.log_softmax, (x, 1), {}, adapter_of("log_softmax"), True, False
        yield torch.mean, (torch.ones(1, 70000, dtype=dtype), 1), {}, adapter_of("mean"), False, False
        yield torch.softmax, (torch.zeros(70000, 2, dtype=dtype), 0), {}, adapter_of("softmax"), False, False


def rand_step(rng, shape):
    """One view of a tensor of this shape, as a list for both libraries."""
    rank = len(shape)
    kind = rng.choice(["permute", "slice", "flip", "expand", "select", "unsqueeze", "reshape"])
    axis = rng.randrange(rank) if rank else 0
    if kind == "permute":
        return [kind, rng.sample(range(rank), rank)]
    if kind == "slice" and rank and shape[axis]:
        start = rng.randrange(shape[axis])
        return [kind, axis, start, rng.randint(start + 1, shape[axis]), rng.randint(1, 3)]
    if kind == "flip" and rank:
        return [kind, [axis]]
    if kind == "expand" and rank < 5:
        return [kind, [rng.randint(1, 3)] + [3 if n == 1 and rng.random() < 0.7 else n for n in shape]]
    if kind == "select" and rank > 1 and shape[axis]:
        return [kind, axis, rng.randrange(shape[axis])]
    if kind == "unsqueeze" and rank < 5:
        return [kind, rng.randrange(rank + 1)]
    if kind == "reshape" and rank > 1:
        return [kind, shape[:-2] + [shape[-2] * shape[-1]]]
    return ["square"]


def step(x, what):
    kind, *rest = what
    if kind == "slice":
        axis, start, end, by = rest
        return x[(slice(None),) * axis + (slice(start, end, by),)]
    if kind == "square":
        return x & x if x.dtype == torch.bool else x * x
    return getattr(x, kind)(*rest)


def fuzz_views(dtype):
    rng = random.Random(f"views{dtype}")
    for _ in range(40):
        shape = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4))]
        x = rand_tensor(rng, shape, dtype)
        steps, y = [], x.detach()
        for _ in range(rng.randint(2, 6)):
            what = rand_step(rng, list(y.shape))
            if math.prod(y.shape) > 400 and what[0] == "expand":
                continue
            steps.append(what)
            y = step(y, what)
        steps.append(["square"])

        def run(v, steps=steps):
            for what in steps:
                v = step(v, what)
            return v
        yield run, (x,), {}, (lambda v, steps=steps: ("views", [v], {"steps": steps})), dtype.is_floating_point, dtype.is_floating_point
