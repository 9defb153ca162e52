"""Adapters (adapters.py) of element-wise operations, joining and splitting, named as PyTorch's."""
import torch

from adapters import OPINFO, adapter, axes, need, no_dtype, number, tensors_or_numbers


def call(name, *parameters, tensors=1):
    """An op whose operands come first; `parameters` are (PyTorch's name, its default, key, kind)."""
    def adapt(*given, **named):
        named.pop("out", None), named.pop("inplace", None)
        given = list(given)
        need(len(given) >= tensors and all(isinstance(t, torch.Tensor) for t in given[:tensors]), "an operand that is no tensor")
        values = {}
        for k, (parameter, default, key, kind) in enumerate(parameters):
            value = given[tensors + k] if len(given) > tensors + k else named.pop(parameter, default)
            if value is not None:
                values[key] = kind(value)
        need(not named, f"{sorted(named)} given")
        return name, given[:tensors], values
    return adapt


def real(value):
    need(not isinstance(value, torch.Tensor), "a tensor as a number")
    return number(float(value))


def plain(value):
    need(not isinstance(value, torch.Tensor), "a tensor as a number")
    return number(value)


def of_both(name):
    """Two operands, both tensors."""
    return call(name, tensors=2)


PLAIN = {"frac": "frac", "rad2deg": "rad2deg", "deg2rad": "deg2rad", "special.entr": "entr", "special.ndtr": "ndtr", "isposinf": "isposinf",
         "isneginf": "isneginf", "nn.functional.tanhshrink": "tanhshrink", "corrcoef": "corrcoef"}
for _name, _op in PLAIN.items():
    adapter(_name)(call(_op))
for _name in "fmax fmin fmod heaviside ldexp logaddexp2".split():
    adapter(_name)(of_both(_name))
adapter("xlogy")(of_both("xlogy"))
adapter("special.xlog1py")(of_both("xlog1py"))
adapter("float_power")(of_both("float_power"))
adapter("clamp_min")(call("clamp_min", ("min", None, "low", plain)))
adapter("clamp_max")(call("clamp_max", ("max", None, "high", plain)))
adapter("logit")(call("logit", ("eps", None, "eps", real)))
adapter("nan_to_num")(call("nan_to_num", ("nan", 0, "nan", real), ("posinf", None, "positive", real), ("neginf", None, "negative", real)))
adapter("nn.functional.softshrink")(call("softshrink", ("lambd", 0.5, "lambd", real)))
adapter("nn.functional.hardshrink")(call("hardshrink", ("lambd", 0.5, "lambd", real)))
adapter("nn.functional.threshold")(call("threshold", ("threshold", 0, "threshold", plain), ("value", 0, "value", plain)))


@adapter("nn.functional.softmin")
def _softmin(x, dim=None, dtype=None, **_):
    no_dtype(dtype)
    return "softmin", [x], {"axis": dim}


@adapter("isin")
def _isin(x, test, *, assume_unique=False, invert=False):
    need(isinstance(x, torch.Tensor) and isinstance(test, torch.Tensor), "a number")
    return "isin", [x, test], {"invert": int(invert)}


for _name, _value in (("addcmul", "value"), ("addcdiv", "value")):
    adapter(_name)(call(_name, (_value, 1, "value", plain), tensors=3))


def with_addend(name):
    adapt = call(name, ("beta", 1, "beta", plain), ("alpha", 1, "alpha", plain), tensors=3)

    def checked(x, *given, beta=1, alpha=1, **named):
        need(x.is_floating_point() or (isinstance(beta, int) and isinstance(alpha, int) and x.dtype != torch.bool),
             "factors that PyTorch casts to integers, or sums of bool")
        return adapt(x, *given, beta=beta, alpha=alpha, **named)
    return checked


for _name in "addmm addmv addr baddbmm addbmm".split():
    adapter(_name)(with_addend(_name))
adapter("addmm", variant="decomposed")(with_addend("addmm"))
adapter("dist")(call("dist", ("p", 2, "p", real), tensors=2))
adapter("nn.functional.pairwise_distance")(call("pairwise_distance", ("p", 2, "p", real), ("eps", 1e-6, "eps", real), ("keepdim", False, "keepdim", int), tensors=2))
adapter("linalg.cross")(call("cross", ("dim", -1, "axis", int), tensors=2))

# ---- Joining and splitting

for _name in "hstack vstack dstack column_stack".split():
    adapter(_name)(lambda tensors, _name=_name, out=None: (_name, list(tensors), {}))
adapter("block_diag")(lambda *tensors: ("block_diag", list(tensors), {}))
adapter("cartesian_prod")(lambda *tensors: ("cartesian_prod", list(tensors), {}))


@adapter("tensor_split")
def _tensor_split(x, parts, dim=0):
    if isinstance(parts, torch.Tensor):
        parts = parts.tolist()
    return "tensor_split", [x], {"axis": dim} | ({"count": parts} if isinstance(parts, int) else {"places": list(parts)})


@adapter("movedim")
def _movedim(x, source, destination):
    return "movedim", [x], {"from": axes(source), "to": axes(destination)}


@adapter("rot90")
def _rot90(x, k=1, dims=(0, 1)):
    return "rot90", [x], {"times": k, "a": dims[0], "b": dims[1]}


@adapter("unflatten")
def _unflatten(x, dim, sizes):
    return "unflatten", [x], {"axis": dim, "sizes": list(sizes)}


adapter("take")(call("take", tensors=2))


@adapter("take_along_dim")
def _take_along(x, index, dim=None):
    need(dim is not None and bool((index >= 0).all()), "the flattened tensor, or negative indices")
    need(all(a == b for k, (a, b) in enumerate(zip(x.shape, index.shape)) if k != dim % x.dim()), "indices that broadcast")
    return "gather", [x, index], {"axis": dim}


@adapter("index_copy")
def _index_copy(x, dim, index, updates):
    need(x.dim() > 0 and len(set(index.tolist())) == index.numel(), "a tensor without axes, or a place named twice")
    return "index_copy", [x, index, updates], {"axis": dim}


@adapter("index_fill")
def _index_fill(x, dim, index, value):
    need(x.dim() > 0 and not isinstance(value, (torch.Tensor, bool)) and (x.dtype != torch.bool or value in (0, 1)), "a tensor without axes, or as the value")
    return "index_fill", [x, index], {"axis": dim, "value": number(value)}


@adapter("select_scatter")
def _select_scatter(x, part, dim, index):
    return "select_scatter", [x, part], {"axis": dim, "index": index}


@adapter("slice_scatter")
def _slice_scatter(x, part, dim=0, start=None, end=None, step=1):
    return "slice_scatter", [x, part], {"axis": dim, "start": 0 if start is None else start, "end": x.shape[dim] if end is None else end, "step": step}


@adapter("diag")
def _diag(x, diagonal=0):
    return "diag", [x], {"offset": diagonal}


@adapter("diagflat")
def _diagflat(x, offset=0):
    need(x.dim() == 1, "a tensor that is no vector: flatten says that")
    return "diag", [x], {"offset": offset}


for _name in ("tril_indices", "triu_indices"):
    adapter(_name)(lambda rows, columns, offset=0, *, _name=_name, dtype=None, **_: (
        need(dtype in (None, torch.int64), "another dtype") or _name, [], {"rows": rows, "columns": columns, "offset": offset}))

# ---- Statistics

@adapter("aminmax")
def _aminmax(x, *, dim=None, keepdim=False):
    need(x.numel() > 0, "no elements")
    return "aminmax", [x], {"axes": axes(dim), "keepdim": int(keepdim)}


def spread(name):
    def adapt(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        need(dim is None or isinstance(dim, int) or len(dim) > 0, "an empty list of axes")
        correction = int(unbiased) if correction is None else correction
        return name, [x], {"axes": axes(dim), "keepdim": int(keepdim), "correction": number(float(correction))}
    return adapt


for _name in ("var_mean", "std_mean"):
    OPINFO[_name, ""] = OPINFO[_name, "unbiased"] = spread(_name)


@adapter("count_nonzero")
def _count_nonzero(x, dim=None):
    need(dim is None or isinstance(dim, int) or len(dim) > 0, "an empty list of axes")
    return "count_nonzero", [x], {"axes": axes(dim)}


def without_nan(name):
    def adapt(x, dim=None, keepdim=False, *, dtype=None):
        no_dtype(dtype)
        need(dim is None or isinstance(dim, int) or len(dim) > 0, "an empty list of axes")
        return name, [x], {"axes": axes(dim), "keepdim": int(keepdim)}
    return adapt


for _name in ("nansum", "nanmean"):
    adapter(_name)(without_nan(_name))


@adapter("msort")
def _msort(x):
    need(not x.dim() or not bool((x.sort(0).values.diff(dim=0) == 0).any()), "equal elements: PyTorch leaves open which has the gradient")
    return "msort", [x], {}


@adapter("kthvalue")
def _kthvalue(x, k, dim=-1, keepdim=False):
    need(not x.dim() or not bool((x.sort(dim).values.diff(dim=dim) == 0).any()), "equal elements: PyTorch leaves open whose index is given")
    return "kthvalue", [x], {"k": k, "axis": dim, "keepdim": int(keepdim)}


@adapter("cov")
def _cov(x, *, correction=1, fweights=None, aweights=None):
    need(fweights is None and aweights is None, "weights of observations")
    return "cov", [x], {"correction": number(float(correction))}


@adapter("cumulative_trapezoid")
def _cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    need(x is None, "places")
    return "cumulative_trapezoid", [y], {"dx": number(float(dx)), "axis": dim}
