"""Random calls: for each op, arguments, shapes and values that follow from a seed.

OpInfo and fuzz.py give the same calls each time; here each seed gives others: numbers of every magnitude, empty axes,
windows larger than the input, fully masked rows, duplicate indices, numbers instead of tensors."""
import math
import random

import torch
import torch.nn.functional as F

from adapters import BINARY, OPINFO, UNARY, UNARY_FUNCTIONAL

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
WHOLE = [torch.uint8, torch.int8, torch.int32, torch.int64]


def number_of(rng):
    """A number, mostly near 1, sometimes of any magnitude."""
    if rng.random() < 0.7:
        return rng.uniform(-3, 3)
    return rng.choice([-1, 1]) * 10.0 ** rng.uniform(-6, 4)


def tensor(rng, shape, dtype, grad=True, wide=False):
    count = math.prod(shape)
    if dtype.is_floating_point:
        draw = (lambda: number_of(rng)) if wide else (lambda: rng.uniform(-2, 2))
        return torch.tensor([draw() for _ in range(count)], dtype=torch.float64).reshape(shape).to(dtype).requires_grad_(grad)
    if dtype == torch.bool:
        return torch.tensor([rng.random() < 0.5 for _ in range(count)], dtype=dtype).reshape(shape)
    info = torch.iinfo(dtype)
    low, high = (max(info.min, -2**40), min(info.max, 2**40)) if wide else (max(info.min, -9), 9)
    return torch.tensor([rng.randint(low, high) for _ in range(count)], dtype=torch.int64).reshape(shape).to(dtype)


def size(rng, empty=True):
    return rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31]) if not empty or rng.random() < 0.97 else 0


def shape_of(rng, low=0, high=4, most=600):
    while True:
        shape = [size(rng) for _ in range(rng.randint(low, high))]
        if math.prod(shape) <= most:
            return shape


def any_dtype(rng, floats=0.7):
    return rng.choice(FLOATS) if rng.random() < floats else rng.choice(WHOLE)


def functional(name):
    return getattr(F, name) if hasattr(F, name) and not hasattr(torch, name) else getattr(torch, name)


def adapt(name, variant=""):
    return OPINFO.get((name, variant)) or OPINFO["nn.functional." + name, variant]


def call(name, args, kwargs=None, variant="", second=True, function=None):
    floating = any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
    return name, (function or functional(name), args, kwargs or {}, adapt(name, variant), floating, floating and second)


def one_number(rng):
    name = rng.choice([*UNARY, *UNARY_FUNCTIONAL, "gelu", "leaky_relu", "elu", "celu", "softplus", "hardtanh"])
    dtype = rng.choice(FLOATS)
    x = tensor(rng, shape_of(rng), dtype, name not in ("logical_not", "isnan", "isinf", "isfinite"), wide=True)
    kwargs = {"gelu": lambda: {"approximate": rng.choice(["none", "tanh"])}, "leaky_relu": lambda: {"negative_slope": rng.uniform(-1, 1)},
              "elu": lambda: {"alpha": rng.uniform(-2, 2)}, "celu": lambda: {"alpha": rng.uniform(0.1, 2)},
              "softplus": lambda: {"beta": rng.uniform(0.1, 4), "threshold": rng.choice([20.0, 3.0])}}.get(name, dict)()
    function = getattr(F, name) if hasattr(F, name) and name not in UNARY else getattr(torch, name)
    return call(name, (x,), kwargs, function=function, second=name != "hardsigmoid")


def two_numbers(rng):
    name, dtype = rng.choice(BINARY), any_dtype(rng)
    grads = name not in "eq ne lt le gt ge logical_and logical_or logical_xor floor_divide".split()
    shape = shape_of(rng)
    a = tensor(rng, shape, dtype, grads)
    if rng.random() < 0.5:
        whole = rng.random() < 0.5 or not dtype.is_floating_point
        number = rng.randint(1, 7) if whole else round(rng.uniform(0.1, 3), rng.choice([1, 5]))
        if name == "pow" and not dtype.is_floating_point:
            number = rng.randint(0, 5)
        if name in ("atan2", "logaddexp", "maximum", "minimum", "logical_and", "logical_or", "logical_xor"):
            b = torch.full([], number, dtype=torch.float64).to(dtype)
            return call(name, (a, b))
        return call(name, (a, number))
    b = tensor(rng, [1 if rng.random() < 0.3 else n for n in shape[rng.randint(0, len(shape)):]], dtype, grads)
    if name in ("div", "remainder", "floor_divide", "pow"):
        b = (b.detach().abs() + 1).requires_grad_(b.requires_grad)
        if name == "pow" and dtype.is_floating_point:
            a = (a.detach().abs() + 0.1).requires_grad_(grads)
    return call(name, (a, b))


def reduction(rng):
    name = rng.choice("sum prod mean amax amin all any logsumexp var std linalg.vector_norm argmax argmin softmax log_softmax cumsum cumprod max min".split())
    floats = name in "mean logsumexp var std linalg.vector_norm softmax log_softmax".split()
    dtype = rng.choice(FLOATS) if floats else any_dtype(rng)
    shape = shape_of(rng, 1)
    x = tensor(rng, shape, dtype, name not in ("argmax", "argmin", "all", "any"), wide=dtype.is_floating_point and name in ("sum", "mean", "logsumexp"))
    axis = rng.randrange(-len(shape), len(shape))
    one = {"dim": axis}
    if name in ("argmax", "argmin"):
        return call(name, (x,), one | {"keepdim": rng.random() < 0.5})
    if name in ("max", "min"):
        return call(name, (torch.randperm(x.numel()).reshape(shape).to(dtype).requires_grad_(dtype.is_floating_point),), one, "reduction_with_dim")
    if name in ("softmax", "log_softmax"):
        return call(name, (x, axis))
    if name in ("cumsum", "cumprod"):
        to = rng.choice([None, None, torch.int32, torch.float32])
        return call(name, (x.detach() if to == torch.int32 else x, axis), {} if to is None else {"dtype": to})
    some = [a for a in range(len(shape)) if rng.random() < 0.5] or [axis % len(shape)]
    kwargs = {"dim": some[0] if name in ("prod", "all", "any") else some, "keepdim": rng.random() < 0.5}
    if name in ("var", "std"):
        kwargs["correction"] = rng.choice([0, 1, 0.5])
    function = torch.linalg.vector_norm if name == "linalg.vector_norm" else None
    if function:
        kwargs["ord"] = rng.choice([1, 2, 3, 0.5, math.inf, -math.inf, 0])
    return call(name, (x,), kwargs, function=function)


def rearranged(rng):
    name = rng.choice("repeat roll tril triu repeat_interleave chunk pad cat stack flip masked_fill index_add gather scatter_add sort topk one_hot".split())
    dtype = any_dtype(rng)
    shape = shape_of(rng, 2 if name in ("tril", "triu") else 1, 4, 200)
    x = tensor(rng, shape, dtype)
    axis = rng.randrange(len(shape))
    if name == "repeat":
        counts = [rng.choice([1, 1, 2, 3, 0]) for _ in range(len(shape) + rng.randint(0, 2))]
        return call(name, (x, *counts), function=lambda t, *c: t.repeat(*c))
    if name == "roll":
        return call(name, (x, rng.randint(-9, 9), axis))
    if name in ("tril", "triu"):
        return call(name, (x, rng.randint(-5, 5)))
    if name == "repeat_interleave":
        return call(name, (x, rng.randint(0, 3)), {"dim": axis})
    if name == "chunk":
        return call(name, (x, rng.randint(1, 6), axis))
    if name == "pad":
        padding = [rng.randint(0, 3) for _ in range(2 * rng.randint(1, len(shape)))]
        value = rng.choice([0, 3, 1.5]) if dtype.is_floating_point else rng.randint(0, 100)
        return call(name, (x, padding), {"value": value}, "constant", function=lambda t, p, value: F.pad(t, p, "constant", value))
    if name in ("cat", "stack"):
        others = [tensor(rng, [size(rng) if name == "cat" and a == axis else n for a, n in enumerate(shape)], dtype) for _ in range(rng.randint(0, 3))]
        return name, (lambda *t: getattr(torch, name)(t, axis), (x, *others), {}, lambda *t: ("concat" if name == "cat" else "stack", list(t), {"axis": axis}),
                      dtype.is_floating_point, dtype.is_floating_point)
    if name == "flip":
        return call(name, (x, [axis]))
    if name == "masked_fill":
        mask = tensor(rng, [1 if rng.random() < 0.3 else n for n in shape], torch.bool)
        return call(name, (x, mask, rng.choice([0, 2, -1 if dtype != torch.uint8 else 1])), function=lambda t, m, v: t.masked_fill(m, v))
    if name == "index_add":
        count = rng.randint(0, 6) if shape[axis] else 0
        index = torch.tensor([rng.randrange(shape[axis]) for _ in range(count)], dtype=torch.int64)
        updates = tensor(rng, [count if a == axis else n for a, n in enumerate(shape)], dtype)
        return call(name, (x, axis, index, updates), {"alpha": rng.choice([1, 2])})
    if name in ("gather", "scatter_add"):
        wanted = [rng.randint(0, 5) if a == axis and n else rng.randint(0, n) for a, n in enumerate(shape)]
        index = torch.tensor([rng.randrange(max(shape[axis], 1)) for _ in range(math.prod(wanted))], dtype=torch.int64).reshape(wanted)
        if shape[axis] == 0:
            index = torch.zeros([0] * len(shape), dtype=torch.int64)
        return call(name, (x, axis, index) + ((tensor(rng, list(index.shape), dtype),) if name == "scatter_add" else ()))
    if name == "one_hot":
        return call(name, (tensor(rng, shape, torch.uint8).long() % 6,), {"num_classes": rng.randint(6, 9)}, function=F.one_hot)
    different = torch.randperm(x.numel()).reshape(shape).to(dtype).requires_grad_(dtype.is_floating_point)
    if name == "sort":
        return call(name, (different, axis), {"descending": rng.random() < 0.5})
    return call(name, (different, rng.randint(0, shape[axis]), axis), {"largest": rng.random() < 0.5})


def attention(rng):
    dtype = rng.choice([torch.float16, torch.bfloat16, torch.bfloat16, torch.float32, torch.float64])
    batch, heads, queries, keys = rng.randint(1, 2), rng.choice([1, 2, 4]), rng.choice([1, 2, 3, 5, 17, 65]), rng.choice([1, 2, 6, 9, 33, 130, 200])
    width, values = rng.choice([1, 2, 3, 8, 16, 20]), rng.choice([1, 4, 8, 17])
    grouped = rng.random() < 0.2 and heads > 1
    wide = rng.random() < 0.3
    q = tensor(rng, [batch, heads, queries, width], dtype)
    if wide:
        q = (q.detach() * 8).requires_grad_(True)
    k, v = (tensor(rng, [batch, 1 if grouped else heads, keys, n], dtype) for n in (width, values))
    kwargs = {"enable_gqa": True} if grouped else {}
    kind = rng.choice(["none", "none", "causal", "bool", "added"])
    if kind == "causal":
        kwargs["is_causal"] = True
    if kind in ("bool", "added"):
        mask = torch.tensor([rng.random() < 0.6 for _ in range(queries * keys)]).reshape(queries, keys)
        if rng.random() < 0.5:
            mask[rng.randrange(queries)] = False
        kwargs["attn_mask"] = mask if kind == "bool" else torch.zeros(queries, keys, dtype=dtype).masked_fill(~mask, -math.inf)
    if rng.random() < 0.3:
        kwargs["scale"] = rng.uniform(0.05, 1.5)
    return call("scaled_dot_product_attention", (q, k, v), kwargs, second=kind == "bool", function=F.scaled_dot_product_attention)


def windows(rng, axes, low, high):
    return [rng.randint(low, high) for _ in range(axes)]


def convolution(rng):
    axes = rng.randint(1, 3)
    transposed = rng.random() < 0.4
    name = f"conv_transpose{axes}d" if transposed else f"conv{axes}d"
    dtype = rng.choice(FLOATS)
    groups = rng.choice([1, 1, 2, 3])
    ins, outs = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    kernel = windows(rng, axes, 1, 3)
    # Tenon refuses a result without positions; PyTorch returns one for an empty batch.
    x = tensor(rng, [rng.choice([1, 2, 3] if transposed else [0, 1, 2, 3]), ins, *windows(rng, axes, 3, 7)], dtype)
    w = tensor(rng, [ins if transposed else outs, (outs if transposed else ins) // groups, *kernel], dtype)
    bias = tensor(rng, [outs], dtype) if rng.random() < 0.5 else None
    stride = windows(rng, axes, 1, 3)
    kwargs = {"stride": stride, "padding": windows(rng, axes, 0, 2), "groups": groups, "dilation": windows(rng, axes, 1, 2)}
    if transposed:
        kwargs["output_padding"] = [rng.randrange(max(s, d)) for s, d in zip(stride, kwargs["dilation"])]
    return call(name, (x, w, bias) if bias is not None else (x, w), kwargs)


def pooling(rng):
    axes, dtype = rng.randint(1, 3), rng.choice(FLOATS)
    x = tensor(rng, [rng.choice([0, 1, 2]), rng.randint(1, 3), *windows(rng, axes, 4, 8)], dtype)
    kind = rng.choice(["max", "avg", "adaptive_avg", "adaptive_max", "unpool", "interpolate"])
    if kind == "interpolate":
        mode = rng.choice(["nearest", ["linear", "bilinear", "trilinear"][axes - 1]])
        kwargs = {"size": windows(rng, axes, 1, 13), "mode": mode} | ({} if mode == "nearest" else {"align_corners": rng.random() < 0.5})
        return call("interpolate", (x,), kwargs, mode, function=F.interpolate)
    if kind.startswith("adaptive"):
        return call(f"{kind}_pool{axes}d", (x,), {"output_size": windows(rng, axes, 1, 9)}, function=getattr(F, f"{kind}_pool{axes}d"))
    if kind == "unpool":
        small = tensor(rng, [1, 2, *windows(rng, axes, 2, 3)], dtype)
        plane = math.prod(n * 2 for n in small.shape[2:])
        index = torch.tensor([rng.randrange(plane) for _ in range(small.numel())]).reshape(small.shape)
        return call(f"max_unpool{axes}d", (small, index), {"kernel_size": 2}, function=getattr(F, f"max_unpool{axes}d"))
    kernel = windows(rng, axes, 1, 3)
    kwargs = {"kernel_size": kernel, "stride": windows(rng, axes, 1, 3), "padding": [rng.randint(0, k // 2) for k in kernel],
              "ceil_mode": rng.random() < 0.5}
    if kind == "avg":
        kwargs["count_include_pad"] = rng.random() < 0.5
    else:
        kwargs |= {"dilation": windows(rng, axes, 1, 2), "return_indices": rng.random() < 0.3}
    return call(f"{kind}_pool{axes}d", (x,), kwargs, function=getattr(F, f"{kind}_pool{axes}d"))


def normalisation(rng):
    name, dtype = rng.choice("layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm".split()), rng.choice(FLOATS)
    channels = rng.choice([2, 4, 6])
    shape = [rng.choice([0, 1, 2, 5]), channels, *windows(rng, rng.randint(1, 2), 2, 6)]
    x = tensor(rng, shape, dtype)
    if rng.random() < 0.3:
        x = (x.detach() + 10).requires_grad_(True)
    weight, bias = (tensor(rng, [channels], dtype) for _ in range(2))
    affine = rng.random() < 0.6
    given = {"weight": weight, "bias": bias} if affine else {}
    if name in ("layer_norm", "rms_norm"):
        last = shape[-rng.randint(1, 2):]
        w, b = tensor(rng, last, dtype), tensor(rng, last, dtype)
        args = (x, last) + (((w, b) if name == "layer_norm" else (w,)) if affine else ())
        return call(name, args, {"eps": rng.choice([1e-5, 1e-3])}, function=getattr(F, name))
    if name == "group_norm":
        return call(name, (x, rng.choice([1, 2])) + ((weight, bias) if affine else ()), function=F.group_norm)
    if name == "batch_norm":
        mean, var = torch.zeros(channels, dtype=dtype), torch.ones(channels, dtype=dtype)
        return call(name, (x, mean, var) + ((weight, bias) if affine else ()), {"training": rng.random() < 0.7}, function=F.batch_norm)
    if name == "instance_norm":
        return call(name, (x,), given, function=F.instance_norm)
    return call(name, (x, rng.randint(1, 5)), {"alpha": rng.uniform(1e-4, 1), "beta": rng.uniform(0.3, 1), "k": rng.uniform(0.5, 2)}, function=F.local_response_norm)


def loss(rng):
    name, dtype = rng.choice("""mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits binary_cross_entropy kl_div cross_entropy
    nll_loss""".split()), rng.choice(FLOATS)
    kwargs = {"reduction": rng.choice(["none", "mean", "sum"])}
    if name in ("cross_entropy", "nll_loss"):
        classes = rng.randint(2, 9)
        shape = [rng.randint(1, 5), classes, *windows(rng, rng.choice([0, 0, 1, 2]), 1, 4)]
        x = tensor(rng, shape, dtype, wide=rng.random() < 0.3)
        target = torch.tensor([rng.randrange(classes) for _ in range(math.prod(shape) // classes)]).reshape(shape[:1] + shape[2:])
        if rng.random() < 0.3:
            target[rng.randrange(shape[0])] = -100
        if rng.random() < 0.4:
            kwargs["weight"] = tensor(rng, [classes], dtype, grad=False).abs() + 0.1
        if name == "cross_entropy" and rng.random() < 0.4:
            kwargs["label_smoothing"] = rng.uniform(0, 0.5)
        return call(name, (x, target), kwargs, function=getattr(F, name))
    shape = shape_of(rng)
    x, target = tensor(rng, shape, dtype), tensor(rng, shape, dtype, grad=name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
    if name.startswith("binary"):
        target = torch.rand(shape).to(dtype)
        if name == "binary_cross_entropy":
            x = (torch.rand(shape) * 0.9 + 0.05).to(dtype).requires_grad_(True)
    if name == "kl_div":
        x, target = F.log_softmax(torch.randn(shape), -1).to(dtype).requires_grad_(True) if shape else x, torch.rand(shape).to(dtype)
    if name == "smooth_l1_loss":
        kwargs["beta"] = rng.uniform(0.2, 2)
    if name == "huber_loss":
        kwargs["delta"] = rng.uniform(0.2, 2)
    return call(name, (x, target), kwargs, function=getattr(F, name))


def product(rng):
    dtype = rng.choice(FLOATS + [torch.int64])
    batch = shape_of(rng, 0, 2, 12)
    m, n, k = (rng.choice([1, 2, 5, 9, 17, 33]) for _ in range(3))
    if rng.random() < 0.3 and dtype.is_floating_point:
        args = (tensor(rng, batch + [k], dtype), tensor(rng, [n, k], dtype)) + ((tensor(rng, [n], dtype),) if rng.random() < 0.5 else ())
        return call("linear", args, function=F.linear)
    return call("matmul", (tensor(rng, batch + [m, k], dtype), tensor(rng, [1 if rng.random() < 0.3 else b for b in batch] + [k, n], dtype)))


def indexing(rng):
    dtype = any_dtype(rng)
    shape = shape_of(rng, 1, 4, 300)
    key = []
    joint = shape_of(rng, 0, 2, 9)
    for n in shape[: rng.randint(1, len(shape))]:
        kind = rng.choice(["slice", "number", "tensor", "new axis"])
        if kind == "new axis":
            key.append(None)
            kind = "slice"
        if kind == "number" and n:
            key.append(rng.randrange(-n, n))
        elif kind == "tensor" and n:
            key.append(torch.tensor([rng.randrange(-n, n) for _ in range(math.prod(joint))], dtype=torch.int64).reshape(joint))
        else:
            ends = sorted(rng.randint(0, n) for _ in range(2))
            key.append(slice(ends[0], ends[1], rng.randint(1, 2)))
    return call("__getitem__", (tensor(rng, shape, dtype), tuple(key)), function=lambda x, k: x[k])


KINDS = [one_number, two_numbers, reduction, rearranged, attention, convolution, pooling, normalisation, loss, product, indexing]


def random_samples(seed, count, kinds=()):
    """`count` calls of each kind as arguments of Case, with the name of each op."""
    for kind in KINDS:
        if kinds and kind.__name__ not in kinds:
            continue
        rng = random.Random(f"{seed} {kind.__name__}")
        torch.manual_seed(seed)
        for _ in range(count):
            yield kind.__name__, *kind(rng)
