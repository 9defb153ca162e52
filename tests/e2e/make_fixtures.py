#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/*.safetensors: results of PyTorch for the tests to compare with.

    pip install torch numpy safetensors      (PyTorch 2.11 for CPU made the committed files)
    tests/e2e/make_fixtures.py [FOLDER]

Inputs are float32. PyTorch computes with them in float64, and the results are stored rounded to float32: so they
are more exact than a float32 computation. Only special values and bfloat16 autocast are results of PyTorch's float32.

ops.safetensors      CASE/in0.. CASE/out, and for floating results CASE/g (weights of the output), CASE/d0.. (gradients
                     of sum(out * g)); with second derivatives CASE/h0.. (weights of d0..) and CASE/dd0.. (gradients of their sum)
special.safetensors  CASE/in0 CASE/out: functions of zeros, infinities, NaN and large numbers
optim.safetensors    optimizers: given gradients, parameters and states after each step; schedules: factors by step
batch_norm.safetensors  NAME/x, NAME/target: fifty batches; NAME/losses; NAME/scale, NAME/layer/KEY: the state after fifty steps;
                     NAME/evaluated: the first batch in evaluation mode
models.safetensors   networks: weights under PyTorch's names, input, targets, activations, gradients (every seventh element
                     of the large ones), ten losses by optimizer
"""
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

SECOND = set()  # cases that also get second derivatives
CASES = {}  # name: (function, inputs)


def draw(*shape, low=-2.0, high=2.0):
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def normal(*shape, scale=1.0):
    return lambda rng: (scale * rng.standard_normal(shape)).astype(np.float32)


def ties(*shape):
    """Integers, so that maxima and comparisons have ties."""
    return lambda rng: rng.integers(-3, 4, shape).astype(np.float32)


def ints(high, *shape, low=0, dtype=np.int64):
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def case(name, function, *inputs, second=False):
    assert name not in CASES, name
    CASES[name] = (function, inputs)
    if second:
        SECOND.add(name)


def unary_cases():
    wide = draw(3, 37, low=-4)
    positive = draw(5, 23, low=0.05, high=5.0)
    for name in ["neg", "abs", "exp", "expm1", "square", "sin", "cos", "tanh", "sigmoid", "relu", "erf", "sign", "floor", "ceil",
                 "round", "trunc", "exp2", "sinh", "cosh"]:
        case(name, getattr(torch, name), wide, second=name in ("exp", "tanh", "sigmoid", "sin", "square", "erf"))
    for name in ["log", "log1p", "sqrt", "rsqrt", "reciprocal", "log2", "log10"]:
        case(name, getattr(torch, name), positive, second=name in ("log", "sqrt", "reciprocal"))
    case("tan", torch.tan, draw(41, low=-1.2, high=1.2))
    for name in ["silu", "softsign", "mish", "hardtanh", "relu6", "hardsigmoid"]:
        case(name, getattr(F, name), draw(4, 29, low=-8, high=8), second=name in ("silu", "mish"))
    case("gelu", F.gelu, wide, second=True)
    case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), wide, second=True)
    case("leaky_relu", lambda x: F.leaky_relu(x, 0.2), wide)
    case("elu", lambda x: F.elu(x, 1.5), wide)
    case("softplus", lambda x: F.softplus(x, 2.0, 5.0), wide)
    case("clamp", lambda x: x.clamp(-1.0, 1.5), wide)
    case("detach", lambda x: x * x.detach(), wide)


def binary_cases():
    a, b = draw(3, 1, 5), draw(7, 1)
    for name in ["add", "sub", "mul"]:
        case(name, getattr(torch, name), a, b)
    case("div", torch.div, a, draw(7, 1, low=0.5), second=True)
    case("pow", torch.pow, draw(3, 1, 5, low=0.2), b, second=True)
    case("pow_scalar", lambda x: x**3, a)
    case("scalar_minus", lambda x: 2.5 - x, a)
    case("scalar_over", lambda x: 2.5 / x, draw(13, low=0.4))
    for name in ["maximum", "minimum"]:
        case(name, getattr(torch, name), draw(4, 9), draw(4, 9))
        case(name + "_ties", getattr(torch, name), ties(4, 9), ties(4, 9))
    case("remainder", torch.remainder, draw(5, 11, low=-9, high=9), draw(11, low=0.7, high=3))
    case("remainder_negative", torch.remainder, draw(5, 11, low=-9, high=9), draw(11, low=-3, high=-0.7))
    case("floor_divide", lambda a, b: torch.floor_divide(a.detach(), b.detach()), draw(5, 11, low=-9, high=9), draw(11, low=0.7, high=3))
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        case(name, getattr(torch, name), ties(6, 7), ties(7))
    for name in ["logical_and", "logical_or", "logical_xor"]:
        case(name, getattr(torch, name), ties(6, 7), ties(6, 1))
    case("logical_not", torch.logical_not, ties(17))
    case("where", lambda c, x, y: torch.where(c > 0, x, y), ties(4, 5), draw(4, 1), draw(5))
    case("where_scalar", lambda c, x: torch.where(c > 0, x, torch.tensor(0.5, dtype=x.dtype)), ties(4, 5), draw(4, 5))
    case("int_remainder", torch.remainder, ints(9, 40, low=-9), ints(9, 40, low=1))
    case("int_floor_divide", torch.floor_divide, ints(9, 40, low=-9), ints(9, 40, low=1))
    case("int_floor_divide_negative", torch.floor_divide, ints(9, 40, low=-9), ints(0, 40, low=-9))
    case("int_div", torch.div, ints(9, 40, low=-9, dtype=np.int32), ints(9, 40, low=1, dtype=np.int32))
    case("uint8_add", torch.add, ints(256, 40, dtype=np.uint8), ints(256, 40, dtype=np.uint8))
    case("int8_mul", torch.mul, ints(128, 40, low=-128, dtype=np.int8), ints(128, 40, low=-128, dtype=np.int8))
    case("int_with_float", torch.mul, ints(9, 4, 1, low=-9), draw(5))
    case("to_int32", lambda x: x.to(torch.int32), draw(40, low=-1000, high=1000))
    case("to_uint8", lambda x: x.to(torch.uint8), draw(40, low=0, high=255))
    case("to_float16", lambda x: x.to(torch.float32).to(torch.float16), normal(64, scale=20))
    case("to_bfloat16", lambda x: x.to(torch.float32).to(torch.bfloat16), normal(64, scale=20))


def reduction_cases():
    x = draw(4, 5, 7)
    for name in ["sum", "mean", "logsumexp", "amax", "amin"]:
        for axes, tag in [((0,), "0"), ((2,), "2"), ((0, 2), "02"), ((0, 1, 2), "all")]:
            case(f"{name}_{tag}", lambda v, f=getattr(torch, name), a=axes: f(v, dim=a), x)
        case(f"{name}_keepdim", lambda v, f=getattr(torch, name): f(v, dim=(1,), keepdim=True), x)
    case("amax_ties", lambda v: torch.amax(v, dim=(1,)), ties(6, 9))
    case("prod_1", lambda v: torch.prod(v, 1), x)
    case("prod_all", torch.prod, draw(11, low=-1.5, high=1.5))
    case("var", lambda v: torch.var(v, dim=(1, 2)), x, second=True)
    case("var_population", lambda v: torch.var(v, dim=(0,), correction=0), x)
    case("norm", torch.linalg.vector_norm, x)
    case("norm_axis", lambda v: torch.linalg.vector_norm(v, dim=1), x)
    case("all", lambda v: torch.all(v > -1.9, dim=1), x)
    case("any", lambda v: torch.any(v > 1.9, dim=1), x)
    for name in ["argmax", "argmin"]:
        case(name, lambda v, f=getattr(np, name): torch.from_numpy(np.ascontiguousarray(f(v.numpy(), axis=-1))), ties(6, 9))
        case(name + "_0", lambda v, f=getattr(np, name): torch.from_numpy(np.ascontiguousarray(f(v.numpy(), axis=0))), ties(6, 9))
    case("sum_int8", torch.sum, ints(128, 300, low=-128, dtype=np.int8))
    case("sum_long", lambda v: torch.sum(v, dim=(0,)), normal(1200, 3))
    for name in ["softmax", "log_softmax"]:
        case(name, lambda v, f=getattr(torch, name): f(v, dim=-1), normal(5, 13, scale=3), second=True)
        case(name + "_1", lambda v, f=getattr(torch, name): f(v, dim=1), normal(3, 10, 4, scale=3))


def shape_cases():
    x = draw(3, 4, 5)
    case("reshape", lambda v: v.reshape(6, -1), x)
    case("permute_reshape", lambda v: v.permute(2, 0, 1).reshape(10, 6), x)
    case("flatten", lambda v: v.flatten(1), x)
    case("permute", lambda v: v.permute(2, 0, 1), x)
    case("transpose", lambda v: v.transpose(0, 2), x)
    case("expand", lambda v: v.expand(4, 3, 5), draw(3, 1))
    case("squeeze", lambda v: v.squeeze(1), draw(3, 1, 5))
    case("unsqueeze", lambda v: v.unsqueeze(-1), x)
    case("slice", lambda v: v[:, 1:4:2], x)
    case("slice_negative", lambda v: v[:, :, -4:-1], x)
    case("select", lambda v: v.select(1, -2), x)
    case("flip", lambda v: v.flip(0, 2), x)
    case("concat", lambda a, b, c: torch.cat([a, b, c], 1), draw(3, 4), draw(3, 1), draw(3, 7))
    case("stack", lambda a, b: torch.stack([a, b], 1), draw(3, 4), draw(3, 4))
    case("split", lambda v: torch.cat(torch.split(v, 3, 1)[::-1], 1), draw(2, 8))
    case("pad", lambda v: F.pad(v, (1, 2, 0, 3), value=0.5), x)
    case("gather_0", lambda v, i: torch.gather(v, 0, i), draw(6, 5), ints(6, 3, 5))
    case("gather_1", lambda v, i: torch.gather(v, 1, i), draw(6, 5), ints(5, 6, 7))
    case("gather_squared", lambda v, i: torch.gather(v, 1, i) ** 2, draw(6, 5), ints(5, 6, 7), second=True)
    case("scatter_add", lambda v, i, u: v.scatter_add(1, i, u), draw(6, 5), ints(5, 6, 7), draw(6, 7))
    case("index_select", lambda v, i: torch.index_select(v, 1, i), x, ints(4, 9))
    case("one_hot", lambda i: F.one_hot(i, 7), ints(7, 4, 3))


def contraction_cases():
    case("matmul", torch.matmul, draw(7, 13), draw(13, 9), second=True)
    case("matmul_batched", torch.matmul, draw(2, 3, 5, 4), draw(2, 3, 4, 6))
    case("matmul_broadcast", torch.matmul, draw(3, 1, 5, 4), draw(2, 4, 6))
    case("matmul_vector", torch.matmul, draw(6, 11), draw(11))
    case("vector_matmul", torch.matmul, draw(6), draw(6, 11))
    case("dot", torch.matmul, draw(17), draw(17))
    case("matmul_transposed", lambda a, b: torch.matmul(a.transpose(0, 1), b.transpose(0, 1)), draw(13, 7), draw(9, 13))
    case("matmul_long", torch.matmul, draw(3, 700), draw(700, 5))
    case("linear", F.linear, draw(4, 3, 11), draw(6, 11), draw(6))
    case("linear_no_bias", F.linear, draw(5, 11), draw(6, 11))
    conv = lambda **options: (lambda x, w, *b: F.conv2d(x, w, *b, **options))
    case("conv2d", conv(), draw(2, 3, 8, 7), draw(5, 3, 3, 3), draw(5), second=True)
    case("conv2d_padding", conv(padding=(2, 1)), draw(2, 3, 6, 9), draw(4, 3, 5, 3), draw(4))
    case("conv2d_stride", conv(stride=(2, 3), padding=1), draw(2, 3, 9, 11), draw(4, 3, 3, 3))
    case("conv2d_dilation", conv(dilation=(2, 3), padding=(2, 1)), draw(1, 2, 9, 10), draw(3, 2, 3, 2), draw(3))
    case("conv2d_groups", conv(groups=3, padding=1), draw(2, 6, 5, 5), draw(9, 2, 3, 3), draw(9), second=True)
    case("conv2d_depthwise", conv(groups=4, stride=2), draw(2, 4, 7, 7), draw(4, 1, 3, 3), draw(4))
    case("conv2d_1x1", conv(), draw(3, 5, 4, 3), draw(7, 5, 1, 1), draw(7))
    case("conv2d_stride_gap", conv(stride=3), draw(1, 2, 10, 11), draw(3, 2, 2, 2))
    case("conv2d_all", conv(stride=2, padding=2, dilation=2, groups=2), draw(2, 4, 9, 8), draw(6, 2, 3, 3), draw(6), second=True)


def pooling_cases():
    pool = lambda f, *a, **options: (lambda x: f(x, *a, **options))
    case("max_pool2d", pool(F.max_pool2d, 2), normal(2, 3, 6, 8))
    case("max_pool2d_squared", lambda x: F.max_pool2d(x, 3, 2) ** 2, normal(2, 3, 7, 8), second=True)
    case("max_pool2d_overlap", pool(F.max_pool2d, 3, 2), normal(2, 3, 9, 7))
    case("max_pool2d_padding", pool(F.max_pool2d, (3, 2), (2, 1), (1, 1)), normal(2, 2, 7, 6))
    case("max_pool2d_ceil", pool(F.max_pool2d, 3, 2, ceil_mode=True), normal(1, 2, 8, 10))
    case("max_pool2d_dilation", pool(F.max_pool2d, 2, 1, dilation=(2, 3)), normal(1, 2, 7, 8))
    case("max_pool2d_ties", pool(F.max_pool2d, 3, 1, 1), ties(1, 2, 7, 8))
    case("avg_pool2d", pool(F.avg_pool2d, 2), normal(2, 3, 6, 8))
    case("avg_pool2d_squared", lambda x: F.avg_pool2d(x, 3, 2) ** 2, normal(2, 3, 7, 8), second=True)
    case("avg_pool2d_padding", pool(F.avg_pool2d, 3, 2, 1), normal(2, 2, 7, 6))
    case("avg_pool2d_no_pad_count", pool(F.avg_pool2d, 3, 2, 1, count_include_pad=False), normal(2, 2, 7, 6))
    case("avg_pool2d_ceil", pool(F.avg_pool2d, 3, 2, 1, ceil_mode=True), normal(1, 2, 8, 10))
    case("avg_pool2d_ceil_no_pad_count", pool(F.avg_pool2d, 3, 2, 1, ceil_mode=True, count_include_pad=False), normal(1, 2, 8, 10))
    case("avg_pool2d_uneven", pool(F.avg_pool2d, (1, 4), (2, 3)), normal(1, 2, 5, 11))


def loss_cases():
    logits, target = normal(7, 10, scale=3), ints(10, 7)
    for reduction in ["mean", "sum", "none"]:
        case(f"cross_entropy_{reduction}", lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r), logits, target)
    case("cross_entropy_smoothing", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), logits, target, second=True)
    case("cross_entropy_spatial", F.cross_entropy, normal(2, 5, 3, 4), ints(5, 2, 3, 4))
    case("cross_entropy_probabilities", lambda x, t: F.cross_entropy(x, torch.softmax(t, 1)), logits, normal(7, 10))
    case("nll_loss", lambda x, t: F.nll_loss(torch.log_softmax(x, 1), t), logits, target)
    a, b = normal(5, 9, scale=2), normal(5, 9, scale=2)
    case("mse_loss", F.mse_loss, a, b)
    case("mse_loss_none", lambda x, t: F.mse_loss(x, t, reduction="none"), a, b)
    case("l1_loss", F.l1_loss, a, b)
    case("smooth_l1_loss", lambda x, t: F.smooth_l1_loss(x, t, beta=0.7), a, b)
    case("huber_loss", lambda x, t: F.huber_loss(x, t, delta=1.3, reduction="sum"), a, b)
    case("bce_with_logits", lambda x, t: F.binary_cross_entropy_with_logits(x, torch.sigmoid(t)), normal(5, 9, scale=8), b)


def norm_cases():
    x, channel, scale = draw(4, 3, 5, low=-1.0, high=3.0), draw(3), draw(3, low=0.5)
    case("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, channel, draw(3), second=True)
    case("batch_norm_given", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, eps=1e-3), x, channel, scale, draw(3), draw(3))
    case("layer_norm", lambda x, w, b: F.layer_norm(x, (3, 5), w, b), x, draw(3, 5), draw(3, 5), second=True)
    case("layer_norm_plain", lambda x: F.layer_norm(x, (5,), eps=1e-2), x)
    case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), draw(3, 4, 5), draw(4), draw(4), second=True)


def rounded(t):
    return t.detach().to(torch.float32) if t.dtype == torch.float64 else t.detach()


def run_case(name, function, inputs):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    given = [torch.from_numpy(np.ascontiguousarray(make(rng))) for make in inputs]
    args = [t.double().requires_grad_() if t.is_floating_point() else t for t in given]
    with torch.enable_grad():
        try:
            out = function(*args)
        except RuntimeError:  # NumPy's functions do not accept tensors that require gradients
            out = function(*(t.detach() for t in args))
    result = {f"in{k}": t for k, t in enumerate(given)} | {"out": rounded(out)}
    wanted = [(k, t) for k, t in enumerate(args) if t.is_floating_point()]
    if out.requires_grad and out.dtype == torch.float64:
        g = torch.from_numpy(np.asarray(rng.uniform(-1, 1, out.shape), dtype=np.float32))
        grads = torch.autograd.grad((out * g.double()).sum(), [t for _, t in wanted], create_graph=True, materialize_grads=True)
        result |= {"g": g} | {f"d{k}": rounded(d) for (k, _), d in zip(wanted, grads)}
        if name in SECOND:
            weights = [torch.from_numpy(np.asarray(rng.uniform(-1, 1, d.shape), dtype=np.float32)) for d in grads]
            total = sum((d * h.double()).sum() for d, h in zip(grads, weights))
            again = torch.autograd.grad(total, [t for _, t in wanted], materialize_grads=True)
            result |= {f"h{k}": h for (k, _), h in zip(wanted, weights)}
            result |= {f"dd{k}": rounded(d) for (k, _), d in zip(wanted, again)}
    return {f"{name}/{key}": value.contiguous().clone() for key, value in result.items()}


def op_fixtures():
    for add in (unary_cases, binary_cases, reduction_cases, shape_cases, contraction_cases, pooling_cases, loss_cases, norm_cases):
        add()
    out = {}
    for name, (function, inputs) in CASES.items():
        out |= run_case(name, function, inputs)
    return out


def special_fixtures():
    x = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, -1e-6, 1e-30,
                      30.0, -30.0, 88.0, -88.0, 100.0, -100.0, 3e4, -3e4, 1e10, -1e10, 3e38, -3e38])
    names = ["neg", "abs", "sign", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "square", "tanh", "sigmoid", "relu",
             "erf", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite"]
    out = {}
    for name in names:
        out |= {f"{name}/in0": x.clone(), f"{name}/out": getattr(torch, name)(x)}
    for name in ["silu", "softplus", "mish"]:
        out |= {f"{name}/in0": x.clone(), f"{name}/out": getattr(F, name)(x)}
    a, b = (t.flatten().contiguous() for t in torch.meshgrid(x[:12], x[:12], indexing="ij"))
    for name in ["maximum", "minimum", "div", "pow", "remainder", "eq", "lt", "ge"]:
        out |= {f"{name}/in0": a.clone(), f"{name}/in1": b.clone(), f"{name}/out": getattr(torch, name)(a, b)}
    rows = torch.stack([x[5:14].roll(k) for k in range(4)])
    rows[1, 3] = float("nan")
    rows[2, 0] = float("inf")
    rows[3] = -float("inf")
    for name, f in {"amax": lambda v: v.amax(1), "amin": lambda v: v.amin(1), "argmax": lambda v: v.argmax(1), "sum": lambda v: v.sum(1),
                    "softmax": lambda v: v.softmax(1), "logsumexp": lambda v: v.logsumexp(1)}.items():
        out |= {f"{name}/in0": rows.clone(), f"{name}/out": f(rows)}
    return out


# ---- Optimizers and schedules -----------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, dampening=0.3)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "adam": (torch.optim.Adam, dict(lr=0.02)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.02, betas=(0.8, 0.95), eps=1e-5, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(lr=0.02, weight_decay=0.1)),
    "sgd_maximize": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01, maximize=True)),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.02, betas=(0.8, 0.7), weight_decay=0.1, amsgrad=True)),
    "adamw_maximize": (torch.optim.AdamW, dict(lr=0.02, betas=(0.8, 0.7), weight_decay=0.1, amsgrad=True, maximize=True)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.01)),
    "rmsprop_maximize": (torch.optim.RMSprop, dict(lr=0.01, maximize=True)),
    "rmsprop_centered": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.9, eps=1e-4, momentum=0.5, centered=True, weight_decay=0.01)),
}


def optimizer_fixtures(steps=6):
    rng = np.random.default_rng(11)
    start, grads = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in [(3, 5), (steps, 3, 5)])
    out = {"start": start, "grads": grads}
    for name, (kind, options) in OPTIMIZERS.items():
        p = nn.Parameter(start.double().clone())
        optimizer = kind([p], **options)
        trail = []
        for k in range(steps):
            p.grad = grads[k].double().clone()
            optimizer.step()
            state = {key: v.clone() for key, v in optimizer.state[p].items() if torch.is_tensor(v) and v.shape == p.shape}
            trail.append({"parameter": p.detach().clone()} | state)
        for key in trail[-1]:
            out[f"{name}/{key}"] = torch.stack([t[key] for t in trail]).to(torch.float32)
    norms = [nn.Parameter(start.double()), nn.Parameter(start.double()[0])]
    norms[0].grad, norms[1].grad = grads[0].double(), grads[1, 0].double()
    out["clip_norm/norm"] = torch.nn.utils.clip_grad_norm_(norms, 1.5).float()
    out["clip_norm/0"], out["clip_norm/1"] = norms[0].grad.float(), norms[1].grad.float()
    return out


def curve(make, steps, figures=None):
    p = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    schedule = make(optimizer)
    values = []
    for k in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step(*([] if figures is None else [figures[k]]))
    return torch.tensor(values, dtype=torch.float64)


def schedule_fixtures():
    s = torch.optim.lr_scheduler
    warm = lambda o: s.SequentialLR(o, [s.LinearLR(o, 1 / 6, 1.0, 5), s.CosineAnnealingLR(o, 20, 0.1)], [5])
    figures = torch.tensor([5, 4, 3, 3, 3, 3, 3, 2.9, 2.9, 2.9, 2.9, 2.9, 2.9, 1, 1, 1, 1, 1, 1, 1], dtype=torch.float64)
    return {
        "schedule/step": curve(lambda o: s.StepLR(o, 3, 0.5), 12),
        "schedule/multistep": curve(lambda o: s.MultiStepLR(o, [2, 5, 9], 0.3), 12),
        "schedule/exponential": curve(lambda o: s.ExponentialLR(o, 0.8), 12),
        "schedule/cosine": curve(lambda o: s.CosineAnnealingLR(o, 15, 0.05), 16),
        "schedule/linear": curve(lambda o: s.LinearLR(o, 1.0, 0.2, 10), 14),
        "schedule/polynomial": curve(lambda o: s.PolynomialLR(o, 10, 2.5), 14),
        "schedule/cosine_restarts": curve(lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.1), 24),
        "schedule/cosine_repeated": curve(lambda o: s.CosineAnnealingWarmRestarts(o, 4), 14),
        "schedule/warmup_cosine": curve(warm, 26),
        "schedule/one_cycle": curve(lambda o: s.OneCycleLR(o, 1.0, 20, cycle_momentum=False), 20),
        "schedule/plateau": curve(lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2, min_lr=0.1), 20, figures.tolist()),
        "schedule/plateau_figures": figures,
    }


# ---- Networks ---------------------------------------------------------------------------------------------------------------

def lenet5():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Conv2d(16, 120, 5), nn.Tanh(), nn.Flatten(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def keras_cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 23), nn.Sigmoid(), nn.Linear(23, 17), nn.Sigmoid(), nn.Linear(17, 10))


RECIPES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.05),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=3e-4),
}


def load(build, state, dtype):
    net = build()
    net.load_state_dict(state)
    return net.to(dtype)


def thinned(t):
    """All of a small tensor, every seventh element of a large one: the files stay small."""
    return t.float().flatten()[:: 7 if t.numel() > 10000 else 1]


def model_fixtures(name, build, batch, stored):
    torch.manual_seed(5)
    # The stored values are rounded to their dtype first; all computations start from these.
    state = {key: v.detach().to(stored) for key, v in build().state_dict().items()}
    x, y = torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))
    flat = (lambda t: t.flatten(1)) if name == "mlp" else (lambda t: t)
    out = {f"{name}/weights/{key}": v for key, v in state.items()} | {f"{name}/x": x, f"{name}/y": y}

    net, h = load(build, state, torch.float64), flat(x.double())
    for index, layer in enumerate(net):
        h = layer(h)
        if batch * h[0].numel() < 30000 or isinstance(layer, (nn.MaxPool2d, nn.AvgPool2d)):
            out[f"{name}/activation/{index}"] = h.detach().float()
    loss = F.cross_entropy(h, y)
    loss.backward()
    truth = {key: p.grad.clone() for key, p in net.named_parameters()}
    out |= {f"{name}/loss": loss.detach().double()} | {f"{name}/grad/{key}": thinned(g) for key, g in truth.items()}

    net = load(build, state, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        logits = net(flat(x))
    F.cross_entropy(logits.float(), y).backward()
    error = lambda a, b: ((a.double() - b).norm() / b.norm()).detach().double()
    out[f"{name}/autocast_error/logits"] = error(logits, h)
    for key, p in net.named_parameters():
        out[f"{name}/autocast_error/{key}"] = error(p.grad, truth[key])

    for recipe, make in RECIPES.items():
        net = load(build, state, torch.float64)
        optimizer, losses = make(net.parameters()), []
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(flat(x.double())), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        out[f"{name}/losses/{recipe}"] = torch.tensor(losses, dtype=torch.float64)
        out[f"{name}/trained/{recipe}"] = net[-1].weight.detach().float()
    return {key: v.contiguous().clone() for key, v in out.items()}


BATCH_NORMS = {  # name: (layer, shape of a batch)
    "1d": (lambda: nn.BatchNorm1d(4), (6, 4)),
    "1d_cumulative": (lambda: nn.BatchNorm1d(3, momentum=None), (4, 3, 5)),
    "2d": (lambda: nn.BatchNorm2d(3), (4, 3, 3, 2)),
    "2d_plain": (lambda: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3, affine=False), (4, 3, 2, 2)),
    "2d_untracked": (lambda: nn.BatchNorm2d(2, track_running_stats=False), (4, 2, 2, 2)),
    "3d": (lambda: nn.BatchNorm3d(2), (3, 2, 2, 1, 2)),
}


def batch_norm_fixtures(steps=50):
    """A linear map, batch norm and a target, trained by SGD: losses, and the layer's state at the end."""
    rng, out = np.random.default_rng(23), {}
    for name, (build, shape) in BATCH_NORMS.items():
        x, target = (torch.from_numpy(rng.standard_normal((steps, *shape)).astype(np.float32)) for _ in range(2))
        layer, scale = build().double(), nn.Parameter(torch.ones(shape[1:], dtype=torch.float64))
        optimizer = torch.optim.SGD([scale, *layer.parameters()], lr=0.1)
        losses = []
        for k in range(steps):
            optimizer.zero_grad()
            loss = F.mse_loss(layer(x[k].double() * scale), target[k].double())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        layer.eval()
        out |= {f"{name}/x": x, f"{name}/target": target, f"{name}/losses": torch.tensor(losses, dtype=torch.float64),
                f"{name}/scale": rounded(scale.detach()), f"{name}/evaluated": rounded(layer(x[0].double()))}
        out |= {f"{name}/layer/{key}": rounded(value) for key, value in layer.state_dict().items()}
    return {key: v.contiguous().clone() for key, v in out.items()}


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "fixtures"
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "ops": op_fixtures(),
        "special": special_fixtures(),
        "batch_norm": batch_norm_fixtures(),
        "optim": optimizer_fixtures() | schedule_fixtures(),
        "models": model_fixtures("lenet5", lenet5, 5, torch.float32) | model_fixtures("keras_cnn", keras_cnn, 3, torch.bfloat16)
                  | model_fixtures("mlp", mlp, 7, torch.float32),
    }
    total = 0
    for name, tensors in files.items():
        path = folder / f"{name}.safetensors"
        save_file(tensors, path, metadata={"made_by": f"tests/e2e/make_fixtures.py with PyTorch {torch.__version__.split('+')[0]}"})
        total += path.stat().st_size
        print(f"{path}: {len(tensors)} tensors, {path.stat().st_size:,} bytes")
    if total > 2_000_000:
        sys.exit(f"make_fixtures.py: {total:,} bytes are too many to commit (2,000,000)")


if __name__ == "__main__":
    main()
