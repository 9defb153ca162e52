"""Translates calls of PyTorch into calls of Tenon. Each op of OpInfo has a function with the same parameters. It returns the name
of Tenon's op, its operands (tensors and numbers) and its other arguments as JSON, or raises Skip with the reason."""
import math

import numpy as np
import torch


class Skip(Exception):
    """A call that Tenon cannot express."""


CASTS = {"cast"}  # the rounding itself is tested, so float64 is not the reference
OPINFO = {}  # (name, variant): adapter


def adapter(*names, variant=""):
    def register(function):
        for name in names:
            OPINFO[name, variant] = function
        return function
    return register


def number(value):
    """A number in a JSON form that keeps every bit."""
    if isinstance(value, bool):
        raise Skip("a Python bool as a number")
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise Skip("a whole number beyond int64")
        return {"i": value}
    if isinstance(value, complex):
        raise Skip("complex numbers")
    return {"f": value.hex() if math.isfinite(value) else repr(value)}


def plain_number(value):
    return number(value.item() if isinstance(value, torch.Tensor) else value)


def need(condition, reason):
    if not condition:
        raise Skip(reason)


def tensors_or_numbers(*values):
    for v in values:
        need(isinstance(v, (torch.Tensor, int, float)) and not isinstance(v, bool), "an operand that is neither tensor nor number")
    need(any(isinstance(v, torch.Tensor) for v in values), "numbers alone")
    return list(values)


def axes(dim):
    if dim is None:
        return []
    return list(dim) if isinstance(dim, (tuple, list)) else [dim]


def no_dtype(dtype):
    need(dtype is None, "a dtype argument: cast says that")


def pair(value):
    if isinstance(value, int):
        return [value, value]
    value = list(value)
    return value * 2 if len(value) == 1 else value


# ---- Element by element

UNARY = """neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal square sin cos tanh sigmoid erf floor ceil round trunc logical_not
isnan isinf isfinite log2 log10 exp2 tan sinh cosh asin acos atan""".split()
UNARY_FUNCTIONAL = "relu silu softsign mish relu6 hardsigmoid hardswish selu logsigmoid".split()
BINARY = """add sub mul div pow maximum minimum remainder floor_divide eq ne lt le gt ge logical_and logical_or logical_xor
atan2 logaddexp""".split()
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()


def unary(name):
    def adapt(x, inplace=False, **rest):
        need(not inplace and not rest.get("out"), "in place")
        return name, [x], {}
    return adapt


def binary(name, swap=False):
    def adapt(a, b, *, alpha=1, **_):
        need(alpha == 1, "alpha")
        return name, tensors_or_numbers(b, a) if swap else tensors_or_numbers(a, b), {}
    return adapt


for _name in UNARY:
    OPINFO[_name, ""] = unary(_name)
for _name in UNARY_FUNCTIONAL:
    OPINFO["nn.functional." + _name, ""] = unary(_name)
for _name in BINARY:
    OPINFO[_name, ""] = binary(_name)
OPINFO["true_divide", ""] = binary("div")
OPINFO["div", "no_rounding_mode"] = binary("div")
for _name, _of in [("add", "radd"), ("mul", "rmul"), ("sub", "rsub"), ("div", "rdiv"), ("pow", "rpow"), ("remainder", "rmod"),
                   ("matmul", "rmatmul")]:
    OPINFO[f"__{_of}__", ""] = binary(_name, swap=True)
OPINFO["rsub", ""] = binary("sub", swap=True)
OPINFO["max", "binary"] = binary("maximum")
OPINFO["min", "binary"] = binary("minimum")


@adapter("div", variant="floor_rounding")
def _floor_divide(a, b, rounding_mode=None):
    return "floor_divide", tensors_or_numbers(a, b), {}


@adapter("nn.functional.hardtanh")
def _hardtanh(x, min_val=-1.0, max_val=1.0, inplace=False):
    need((min_val, max_val) == (-1, 1), "hardtanh between other ends: clamp says that")
    return "hardtanh", [x], {}


@adapter("nn.functional.gelu")
def _gelu(x, approximate="none"):
    return "gelu", [x], {"tanh": int(approximate == "tanh")}


@adapter("nn.functional.leaky_relu")
def _leaky_relu(x, negative_slope=0.01, inplace=False):
    return "leaky_relu", [x], {"slope": number(float(negative_slope))}


@adapter("nn.functional.elu")
def _elu(x, alpha=1.0, inplace=False):
    return "elu", [x], {"alpha": number(float(alpha))}


@adapter("nn.functional.softplus")
def _softplus(x, beta=1.0, threshold=20.0):
    return "softplus", [x], {"beta": number(float(beta)), "threshold": number(float(threshold))}


@adapter("clamp")
def _clamp(x, min=None, max=None):
    need(not isinstance(min, torch.Tensor) and not isinstance(max, torch.Tensor), "clamp by tensors: maximum and minimum say that")
    need(min is not None and max is not None, "clamp at one end")
    return "clamp", [x], {"low": number(min), "high": number(max)}


@adapter("where")  # OpInfo's first argument is the first choice
def _where(a, condition, b):
    return where(condition, a, b)


def where(condition, a, b):
    need(condition.dtype == torch.bool, "a condition that is not bool")
    return "where", [condition, *tensors_or_numbers(a, b)], {}


def cast(dtype):
    def adapt(x, memory_format=None, **_):
        return "cast", [x], {"dtype": dtype}
    return adapt


for _name, _dtype in {"bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "char": "int8", "double": "float64", "float": "float32",
                      "half": "float16", "int": "int32", "long": "int64"}.items():
    OPINFO[_name, ""] = cast(_dtype)


@adapter("isclose")
def _isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return "isclose", [a, b], {"rtol": number(float(rtol)), "atol": number(float(atol)), "equal_nan": int(equal_nan)}


# ---- Reductions

def reduction(name):
    def adapt(x, dim=None, keepdim=False, *, dtype=None, **rest):
        no_dtype(dtype)
        need(dim is None or isinstance(dim, int) or len(dim) > 0, "an empty list of axes")
        return name, [x], {"axes": axes(dim), "keepdim": int(keepdim)}
    return adapt


for _name in "sum prod mean amax amin all any logsumexp".split():
    OPINFO[_name, ""] = reduction(_name)


def no_dim(name):
    def adapt(x, *rest, **_):
        return name, [x], {"axes": [], "keepdim": 0}
    return adapt


OPINFO["max", "reduction_no_dim"] = no_dim("amax")
OPINFO["min", "reduction_no_dim"] = no_dim("amin")


def spread(name):
    def adapt(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
        _, operands, given = _var(x, dim, unbiased, keepdim, correction=correction)
        return name, operands, given
    return adapt


OPINFO["std", ""] = OPINFO["std", "unbiased"] = spread("stddev")


@adapter("var")
@adapter("var", variant="unbiased")
def _var(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = (1 if unbiased else 0) if correction is None else correction
    need(dim is None or isinstance(dim, int) or len(dim) > 0, "an empty list of axes")
    return "var", [x], {"axes": axes(dim), "keepdim": int(keepdim), "correction": number(float(correction))}


def arg(name):
    def adapt(x, dim=None, keepdim=False):
        need(dim is not None or x.dim() <= 1, "the index of all elements: flatten says that")
        return name, [x], {"axis": -1 if dim is None else dim, "keepdim": int(keepdim and dim is not None)}
    return adapt


OPINFO["argmax", ""], OPINFO["argmin", ""] = arg("argmax"), arg("argmin")


@adapter("linalg.vector_norm")
def _norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    no_dtype(dtype)
    need(isinstance(ord, (int, float)), "a norm with a name")
    return "vector_norm", [x], {"p": number(float(ord)), "axes": axes(dim), "keepdim": int(keepdim)}


def along(name):
    def adapt(x, dim, dtype=None, **_):
        no_dtype(dtype)
        return name, [x], {"axis": dim}
    return adapt


OPINFO["softmax", ""], OPINFO["log_softmax", ""] = along("softmax"), along("log_softmax")


# ---- Shape

def sizes_of(args):
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list, torch.Size)) else list(args)


@adapter("reshape", "view")
def _reshape(x, *shape):
    need(not (shape and isinstance(shape[0], torch.dtype)), "reinterpreting bits")
    return "reshape", [x], {"sizes": sizes_of(shape)}


@adapter("reshape_as", "view_as")
def _reshape_as(x, other):
    return "reshape", [x], {"sizes": list(other.shape)}


@adapter("flatten")
def _flatten(x, start_dim=0, end_dim=-1):
    return "flatten", [x], {"start": start_dim, "end": end_dim}


@adapter("permute")
def _permute(x, *dims):
    return "permute", [x], {"axes": sizes_of(dims)}


@adapter("transpose")
def _transpose(x, a, b):
    return "transpose", [x], {"a": a, "b": b}


@adapter("expand")
def _expand(x, *sizes):
    return "expand", [x], {"sizes": sizes_of(sizes)}


@adapter("broadcast_to", "expand_as")
def _broadcast_to(x, shape):
    return "broadcast_to", [x], {"sizes": list(shape.shape if isinstance(shape, torch.Tensor) else shape)}


@adapter("squeeze")
def _squeeze(x, dim=None):
    need(dim is not None, "squeeze of all axes")
    need(x.dim() == 0 or x.shape[dim] == 1, "squeeze of an axis that is not 1")
    return "squeeze", [x], {"axis": dim}


@adapter("unsqueeze")
def _unsqueeze(x, dim):
    return "unsqueeze", [x], {"axis": dim}


@adapter("narrow")
def _narrow(x, dim, start, length):
    start = int(start)
    n = x.shape[dim]
    begin = start + n if start < 0 else start
    return "slice", [x], {"axis": dim, "start": begin, "end": begin + length, "step": 1}


@adapter("select")
def _select(x, dim, index):
    return "select", [x], {"axis": dim, "index": int(index)}


@adapter("flip")
def _flip(x, *dims, **given):
    dims = list(given.get("dims", sizes_of(dims)))
    need(dims, "an empty list of axes")
    return "flip", [x], {"axes": dims}


@adapter("fliplr")
def _fliplr(x):
    return "flip", [x], {"axes": [1]}


@adapter("flipud")
def _flipud(x):
    return "flip", [x], {"axes": [0]}


@adapter("cat")
def _cat(tensors, dim=0, **_):
    need(all(t.dim() == tensors[0].dim() for t in tensors), "concat with PyTorch's empty tensor of one axis")
    return "concat", list(tensors), {"axis": dim}


@adapter("stack")
def _stack(tensors, dim=0):
    return "stack", list(tensors), {"axis": dim}


@adapter("split")
def _split(x, size, dim=0):
    need(isinstance(size, int), "split into a list of sizes")
    return "split", [x], {"size": size, "axis": dim}


@adapter("chunk")
def _chunk(x, count, dim=0):
    return "chunk", [x], {"count": count, "axis": dim}


@adapter("unbind")
def _unbind(x, dim=0):
    return "unbind", [x], {"axis": dim}


@adapter("meshgrid", variant="list_of_tensors")
def _meshgrid(tensors, indexing="ij"):
    need(all(t.dim() == 1 for t in tensors), "numbers as vectors")
    return "meshgrid", list(tensors), {"columns_first": int(indexing == "xy")}


@adapter("nn.functional.pad", variant="constant")
def _pad(x, pad, mode="constant", value=None):
    need(x.dtype != torch.bool or value in (None, 0, 1), "a fill that is no bool")
    need(all(p >= 0 for p in pad), "negative padding: slice says that")
    return "pad", [x], {"padding": list(pad), "value": number(0 if value is None else value)}


@adapter("gather")
def _gather(x, dim, index, sparse_grad=False):
    need(index.dtype in (torch.int32, torch.int64), "an index of uint8")
    need(x.dim() == index.dim(), "an empty index of another rank")
    return "gather", [x, index], {"axis": dim}


@adapter("scatter_add")
def _scatter_add(x, dim, index, source):
    need(x.dim() == 0 or index.shape == source.shape, "scatter_add of a part of the updates")
    return "scatter_add", [x, index, source], {"axis": dim}


@adapter("scatter")
def _scatter(x, dim, index, source, reduce=None):
    need(reduce is None, "a scatter that reduces: scatter_add says that")
    need(index.dim() == x.dim(), "an empty index of another rank")
    if x.dim():
        ordered = torch.sort(index, dim).values
        need(not bool((ordered.diff(dim=dim) == 0).any()), "places named twice: PyTorch leaves open which counts")
    return "scatter", [x, index, source], {"axis": dim}


def indices(key, operands):
    """The parts of x[key] as JSON; tensors go to the operands."""
    parts = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (list, np.ndarray)):
            part = torch.tensor(part)
        if isinstance(part, torch.Tensor):
            parts.append(["tensor", len(operands)])
            operands.append(part)
        elif isinstance(part, slice):
            parts.append(["slice", part.start, part.stop, 1 if part.step is None else part.step])
        elif isinstance(part, int) and not isinstance(part, bool):
            parts.append(["number", part])
        else:
            need(part is None or part is Ellipsis, "a bool as an index")
            parts.append(["new axis" if part is None else "rest"])
    return parts


@adapter("__getitem__")
def _index(x, key):
    operands = [x]
    parts = indices(key, operands)
    need(all(t.dtype in (torch.int32, torch.int64) for t in operands[1:]), "a mask, which is read as the call is made")
    return "index", operands, {"parts": parts}


@adapter("index_put")
def _index_put(x, key, values, accumulate=False):
    operands = [x, values]
    parts = indices(tuple(key), operands)
    need(not accumulate or all(t.dtype != torch.bool for t in operands[2:]), "a mask, which is read as the call is made")
    return "index_put", operands, {"parts": parts, "accumulate": int(accumulate)}


@adapter("nn.functional.embedding")
def _embedding(weight, index, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    return "embedding", [weight, index], rows_of(weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


def rows_of(weight, padding_idx, max_norm, norm_type, scale_grad_by_freq):
    options = {} if padding_idx is None else {"padding": padding_idx % weight.shape[0]}
    if max_norm is not None:
        options |= {"most": number(float(max_norm)), "p": number(float(norm_type))}
    return options | ({"shares": 1} if scale_grad_by_freq else {})


@adapter("nn.functional.embedding_bag")
def _embedding_bag(weight, index, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                   per_sample_weights=None, include_last_offset=False, padding_idx=None):
    options = rows_of(weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    operands = [weight, index] + [t for t in (offsets, per_sample_weights) if t is not None]
    return "embedding_bag", operands, options | {"mode": mode, "offsets": int(offsets is not None), "last": int(include_last_offset),
                                                 "weights": int(per_sample_weights is not None)}


@adapter("index_select")
def _index_select(x, dim, index):
    return "index_select", [x, index], {"axis": dim}


@adapter("nn.functional.one_hot")
def _one_hot(index, num_classes=-1):
    need(num_classes > 0, "a number of classes that is read from the data")
    return "one_hot", [index], {"classes": num_classes}


# ---- Contractions and pooling

@adapter("matmul", "mm", "bmm", "mv", "dot")
def _matmul(a, b, **_):
    return "matmul", [a, b], {}


@adapter("nn.functional.linear")
def _linear(x, weight, bias=None):
    need(weight.dim() == 2, "a weight that is a vector")
    return "linear", [x, weight] + ([] if bias is None else [bias]), {}


@adapter("nn.functional.conv2d")
def _conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    stride, dilation = pair(stride), pair(dilation)
    if padding == "valid":
        padding = 0
    if padding == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        need(all(p % 2 == 0 for p in whole), "padding that is not the same on both sides")
        padding = [p // 2 for p in whole]
    return "conv2d", [x, weight] + ([] if bias is None else [bias]), {
        "stride": stride, "padding": pair(padding), "dilation": dilation, "groups": groups}


def max_pooling(count):
    def adapt(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return f"max_pool{count}d" + ("_with_indices" if return_indices else ""), [x], {"kernel": many(kernel_size, count), "stride": many(stride or kernel_size, count),
                                          "padding": many(padding, count), "dilation": many(dilation, count), "ceil": int(ceil_mode)}
    return adapt


def average_pooling(count):
    def adapt(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        divisor = {"divisor": divisor_override} if divisor_override else {}
        return f"avg_pool{count}d", [x], {"kernel": many(kernel_size, count), "stride": many(stride or kernel_size, count),
                                          "padding": many(padding, count), "ceil": int(ceil_mode),
                                          "count_pad": int(count_include_pad)} | divisor
    return adapt


def unpooling(count):
    def adapt(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        return f"max_unpool{count}d", [x, indices], {
            "kernel": many(kernel_size, count), "stride": many(stride or kernel_size, count), "padding": many(padding, count),
            "ceil": 0} | ({} if output_size is None else {"sizes": list(output_size)[-count:]})
    return adapt


def many(value, count):
    value = [value] if isinstance(value, int) else list(value)
    return value * count if len(value) == 1 else value


for _count in 1, 2, 3:
    OPINFO[f"nn.functional.max_pool{_count}d", ""] = max_pooling(_count)
    OPINFO[f"nn.functional.avg_pool{_count}d", ""] = average_pooling(_count)
    OPINFO[f"nn.functional.max_unpool{_count}d", ""] = OPINFO[f"nn.functional.max_unpool{_count}d", "grad"] = unpooling(_count)


# ---- Losses

def loss(name, extra=None):
    def adapt(x, target, *args, reduction="mean", **kwargs):
        for key, value in kwargs.items():
            need(key == extra or value is None, f"the argument {key}")
        need(not args, "positional weights")
        given = {extra: number(float(kwargs[extra]))} if extra in kwargs else {}
        return name, [x, target], {"reduction": reduction, **given}
    return adapt


OPINFO["nn.functional.mse_loss", ""] = loss("mse_loss")
OPINFO["nn.functional.l1_loss", ""] = loss("l1_loss")
OPINFO["nn.functional.smooth_l1_loss", ""] = loss("smooth_l1_loss", "beta")
OPINFO["nn.functional.huber_loss", ""] = loss("huber_loss", "delta")
OPINFO["nn.functional.binary_cross_entropy_with_logits", ""] = loss("binary_cross_entropy_with_logits")


def of_classes(target, weight, ignore_index):
    """The ignored class, if any, and the class weights."""
    ignored = not target.is_floating_point() and bool((target == ignore_index).any())
    return given(weight), {"ignore": ignore_index} if ignored else {}


@adapter("nn.functional.cross_entropy")
def _cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    weights, ignored = of_classes(target, weight, ignore_index)
    return "cross_entropy", [x, target, *weights], {"reduction": reduction, "smoothing": number(float(label_smoothing))} | ignored


@adapter("nn.functional.nll_loss")
def _nll_loss(x, target, weight=None, ignore_index=-100, reduction="mean"):
    weights, ignored = of_classes(target, weight, ignore_index)
    return "nll_loss", [x, target, *weights], {"reduction": reduction} | ignored


@adapter("nn.functional.kl_div")
def _kl_div(x, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    batch = {"batch": x.shape[0]} if reduction == "batchmean" else {}
    return "kl_div", [x, target], {"reduction": "sum" if batch else reduction, "log": int(log_target)} | batch


@adapter("nn.functional.binary_cross_entropy")
def _binary_cross_entropy(x, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    return "binary_cross_entropy", [x, target, *given(weight)], {"reduction": reduction}


# ---- Activations and arithmetic with arguments

@adapter("nn.functional.celu")
def _celu(x, alpha=1.0, inplace=False):
    return "celu", [x], {"alpha": number(float(alpha))}


@adapter("nn.functional.glu")
def _glu(x, dim=-1):
    return "glu", [x], {"axis": dim}


@adapter("nn.functional.prelu")
def _prelu(x, weight):
    return "prelu", [x, weight], {}


@adapter("lerp")
def _lerp(a, b, weight):
    need(isinstance(weight, torch.Tensor), "a weight that is a number")
    return "lerp", [a, b, weight], {}


@adapter("nn.functional.cosine_similarity")
def _cosine_similarity(a, b, dim=1, eps=1e-8):
    return "cosine_similarity", [a, b], {"axis": dim, "eps": number(float(eps))}


# ---- Norms

def given(*tensors):
    """The operands after the first. None may follow a missing one."""
    need(all(later is None or now is not None for now, later in zip(tensors, tensors[1:])), "a bias without a weight")
    return [t for t in tensors if t is not None]


@adapter("nn.functional.layer_norm")
def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    return "layer_norm", [x, *given(weight, bias)], {"sizes": list(shape), "eps": number(float(eps))}


@adapter("nn.functional.rms_norm")
def _rms_norm(x, shape, weight=None, eps=None):
    return "rms_norm", [x, *given(weight)], {"sizes": list(shape)} | ({} if eps is None else {"eps": number(float(eps))})


@adapter("nn.functional.group_norm")
def _group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    return "group_norm", [x, *given(weight, bias)], {"groups": groups, "eps": number(float(eps))}


@adapter("nn.functional.batch_norm")
def _batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    need(x.dim() > 1, "an input without channels")
    if training:
        return "batch_norm_of_the_batch", [x, *given(weight, bias)], {"eps": number(float(eps))}
    return "batch_norm", [x, mean, var, *given(weight, bias)], {"eps": number(float(eps))}


@adapter("nn.functional.instance_norm")
def _instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    need(use_input_stats, "running statistics: batch_norm has them")
    return "instance_norm", [x, *given(weight, bias)], {"eps": number(float(eps))}


@adapter("nn.functional.local_response_norm")
def _local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    return "local_response_norm", [x], {"size": size, "alpha": number(float(alpha)), "beta": number(float(beta)), "k": number(float(k))}


@adapter("nn.functional.scaled_dot_product_attention")
def _attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    need(dropout_p == 0, "dropout")
    return "scaled_dot_product_attention", [q, k, v, *given(attn_mask)], {
        "causal": int(is_causal), "scale": number(float(scale or 0)), "grouped": int(enable_gqa)}


# ---- Orders, running sums, rearranging

def all_different(x, dim):
    """Raises Skip if elements are equal: PyTorch does not define their order unless the sort is stable."""
    if x.dim() and x.shape[dim] > 1:
        ordered = torch.sort(x.detach(), dim).values
        need(not bool((ordered.narrow(dim, 1, x.shape[dim] - 1) == ordered.narrow(dim, 0, x.shape[dim] - 1)).any()), "equal elements in any order")


@adapter("sort")
def _sort(x, dim=-1, descending=False, stable=False):
    if not stable:
        all_different(x, dim)
    return "sort", [x], {"axis": dim, "descending": int(descending)}


@adapter("argsort")
def _argsort(x, dim=-1, descending=False, stable=False):
    if not stable:
        all_different(x, dim)
    return "argsort", [x], {"axis": dim, "descending": int(descending)}


@adapter("topk")
def _topk(x, k, dim=-1, largest=True, sorted=True):
    need(sorted, "in any order")
    all_different(x, dim)
    return "topk", [x], {"count": k, "axis": dim, "largest": int(largest)}


def extremum(name):
    def adapt(x, dim, keepdim=False):
        return name, [x], {"axis": dim, "keepdim": int(keepdim)}
    return adapt


OPINFO["max", "reduction_with_dim"], OPINFO["min", "reduction_with_dim"] = extremum("max"), extremum("min")


def running(name):
    def adapt(x, dim, dtype=None, **_):
        return name, [x], {"axis": dim} | ({} if dtype is None else {"dtype": str(dtype).removeprefix("torch.")})
    return adapt


OPINFO["cumsum", ""], OPINFO["cumprod", ""] = running("cumsum"), running("cumprod")


@adapter("roll")
def _roll(x, shifts, dims=()):
    return "roll", [x], {"shifts": axes(shifts), "axes": axes(dims)}


@adapter("repeat", "tile")
def _repeat(x, *counts):
    counts = sizes_of(counts)
    return "repeat", [x], {"sizes": [1] * (x.dim() - len(counts)) + counts}


@adapter("repeat_interleave")
def _repeat_interleave(x, count, dim=None, output_size=None):
    need(isinstance(count, int) and dim is not None, "counts for each element, or of all elements in a row")
    return "repeat_interleave", [x], {"count": count, "axis": dim}


@adapter("tril")
def _tril(x, diagonal=0):
    return "tril", [x], {"diagonal": diagonal}


@adapter("triu")
def _triu(x, diagonal=0):
    return "triu", [x], {"diagonal": diagonal}


@adapter("masked_fill")
def _masked_fill(x, mask, value):
    need(not isinstance(value, torch.Tensor), "a value that is a tensor")
    return "masked_fill", [x, mask], {"value": number(value)}


@adapter("index_add")
def _index_add(x, dim, index, source, alpha=1):
    need(source.dim() == x.dim() and x.dim() > 0, "no axes")
    return "index_add", [x, index, source], {"axis": dim, "alpha": number(int(alpha) if isinstance(alpha, bool) else alpha)}


# ---- More convolutions and windows

def convolution(name, count, transposed):
    def adapt(x, weight, bias=None, stride=1, padding=0, *rest, dilation=1, groups=1, output_padding=0):
        if transposed:
            output_padding, groups, dilation = [*rest, *[output_padding, groups, dilation][len(rest):]]
        else:
            dilation, groups = [*rest, *[dilation, groups][len(rest):]]
        need(not isinstance(padding, str), "padding with a name")
        extra = {"output_padding": many(output_padding, count)} if transposed else {}
        return name, [x, weight] + given(bias), {"stride": many(stride, count), "padding": many(padding, count),
                                                 "dilation": many(dilation, count), "groups": groups} | extra
    return adapt


OPINFO["nn.functional.conv1d", ""] = convolution("conv1d", 1, False)
OPINFO["nn.functional.conv3d", ""] = convolution("conv3d", 3, False)
for _count in 1, 2, 3:
    OPINFO[f"nn.functional.conv_transpose{_count}d", ""] = convolution(f"conv_transpose{_count}d", _count, True)


def adaptive(name, count):
    def adapt(x, output_size, return_indices=False):
        sizes = [now if size is None else size for size, now in zip(many(output_size, count), x.shape[-count:])]
        return name + ("_with_indices" if return_indices else ""), [x], {"sizes": sizes}
    return adapt


for _kind in "avg", "max":
    for _count in 1, 2, 3:
        OPINFO[f"nn.functional.adaptive_{_kind}_pool{_count}d", ""] = adaptive(f"adaptive_{_kind}_pool{_count}d", _count)


# ---- Making tensors

def like(name):
    def adapt(x, **rest):
        need(not rest, "a dtype argument: cast says that")
        return name, [x], {}
    return adapt


OPINFO["zeros_like", ""], OPINFO["ones_like", ""] = like("zeros_like"), like("ones_like")


@adapter("full")
def _full(shape, value, *, dtype=None, device=None, **_):
    need(dtype is not None, "a default dtype")
    return "full", [], {"sizes": list(shape), "value": number(value), "dtype": str(dtype).removeprefix("torch.")}


@adapter("arange")
def _arange(*args, dtype=None, device=None, **named):
    args = [*args, *named.values()]
    start, end, step = {1: (0, *args, 1), 2: (*args, 1), 3: args}[len(args)]
    need(dtype is not None, "a default dtype")
    whole = isinstance(start, int) and isinstance(step, int)
    need(dtype.is_floating_point or whole, "an integer range of fractional steps")
    return "arange", [], {"start": number(start), "end": number(end), "step": number(step),
                          "dtype": str(dtype).removeprefix("torch.")}
