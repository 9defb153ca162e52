"""Adapters (adapters.py) of operations that Tenon composes from others: creation, order statistics, windows, einsum."""
import torch

from adapters import adapter, axes, need, no_dtype, number, pair


# ---- Creating

@adapter("eye")
def _eye(n, m=None, *, dtype=None, **_):
    need(dtype is not None, "a dtype of PyTorch's choice")
    return "eye", [], {"rows": n, "columns": n if m is None else m, "dtype": str(dtype).removeprefix("torch.")}


@adapter("full_like")
def _full_like(x, value, *, dtype=None, **_):
    no_dtype(dtype)
    need(not isinstance(value, bool) and (x.dtype != torch.bool or value in (0, 1)), "a fill that is no bool")
    return "full_like", [x], {"value": number(value)}


# ---- Order statistics and counts

@adapter("median", "nanmedian")
def _median(x, dim=None, keepdim=False):
    need(not x.isnan().any(), "the index of NaN")
    if dim is None:
        return "median", [x], {}
    sorted_ = x.sort(dim).values if x.dim() else x
    need(not x.dim() or not bool((sorted_.diff(dim=dim) == 0).any()), "equal elements: PyTorch leaves open whose index is given")
    return "median", [x], {"axis": dim, "keepdim": int(keepdim)}


@adapter("quantile")
def _quantile(x, q, dim=None, keepdim=False, *, interpolation="linear"):
    operands = [x, q] if isinstance(q, torch.Tensor) else [x]
    return "quantile", operands, ({} if isinstance(q, torch.Tensor) else {"q": number(float(q))}) | {
        "axes": axes(dim), "keepdim": int(keepdim), "mode": ["linear", "lower", "higher", "nearest", "midpoint"].index(interpolation)}


@adapter("histc")
def _histc(x, bins=100, min=0, max=0):
    return "histc", [x], {"bins": bins, "low": number(float(min)), "high": number(float(max))}


@adapter("bincount")
def _bincount(x, weights=None, minlength=0):
    need(weights is None or weights.dtype in (torch.float32, torch.float64), "weights of integers, which PyTorch turns into float64")
    return "bincount", [x] + ([] if weights is None else [weights]), {"length": minlength}


@adapter("searchsorted")
def _searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    need(sorter is None and not out_int32, "a sorter, or int32")
    need(isinstance(values, torch.Tensor), "a number")
    return "searchsorted", [sorted_sequence, values], {"right": int(right or side == "right")}


@adapter("bucketize")
def _bucketize(x, boundaries, *, out_int32=False, right=False):
    need(not out_int32 and isinstance(x, torch.Tensor), "int32, or a number")
    return "searchsorted", [boundaries, x], {"right": int(right)}


def running(name):
    def adapt(x, dim):
        return name, [x], {"axis": dim}
    return adapt


for _name in ("cummax", "cummin", "logcumsumexp"):
    adapter(_name)(running(_name))


@adapter("diff")
def _diff(x, n=1, dim=-1, prepend=None, append=None):
    need(prepend is None and append is None, "prepend and append: concat says that")
    return "diff", [x], {"n": n, "axis": dim}


@adapter("trapezoid", "trapz")
def _trapezoid(y, x=None, *, dx=1, dim=-1):
    if x is None:
        return "trapezoid", [y], {"dx": number(float(dx)), "axis": dim}
    need(x.dim() in (1, y.dim()), "places of another rank")
    return "trapezoid", [y, x], {"axis": dim}


@adapter("nn.functional.normalize")
def _normalize(x, p=2.0, dim=1, eps=1e-12, out=None):
    return "normalize", [x], {"p": number(float(p)), "axis": dim, "eps": number(eps)}


@adapter("cdist")
def _cdist(a, b, p=2.0, compute_mode=None):
    return "cdist", [a, b], {"p": number(float(p))}


# ---- Products

@adapter("einsum")
def _einsum(operands, equation):
    return "einsum", list(operands), {"equation": equation}


@adapter("tensordot")
def _tensordot(a, b, dims=2, out=None):
    if isinstance(dims, int):
        return "tensordot", [a, b], {"count": dims}
    return "tensordot", [a, b], {"axes_a": list(dims[0]), "axes_b": list(dims[1])}


def plain(name):
    def adapt(*tensors, out=None):
        return name, list(tensors), {}
    return adapt


for _name in ("outer", "kron", "trace"):
    adapter(_name)(plain(_name))
adapter("ger")(plain("outer"))


@adapter("diagonal")
def _diagonal(x, offset=0, dim1=0, dim2=1):
    return "diagonal", [x], {"offset": offset, "a": dim1, "b": dim2}


@adapter("diag_embed")
def _diag_embed(x, offset=0, dim1=-2, dim2=-1):
    need((dim1, dim2) == (-2, -1), "other axes of the matrices: permute says that")
    return "diag_embed", [x], {"offset": offset}


# ---- Windows, borders, selections

def windows(kernel_size, dilation=1, padding=0, stride=1):
    return {"kernel": pair(kernel_size), "dilation": pair(dilation), "padding": pair(padding), "stride": pair(stride)}


@adapter("nn.functional.unfold")
def _unfold(x, *given, **named):
    return "unfold", [x], windows(*given, **named)


@adapter("nn.functional.fold")
def _fold(x, output_size, *given, **named):
    return "fold", [x], windows(*given, **named) | {"output": pair(output_size)}


def bordered(x, pad, mode="constant", value=None):
    return "pad_mode", [x], {"padding": list(pad), "mode": ["reflect", "replicate", "circular"].index(mode)}


for _name in ("reflect", "circular", "replicate", "replicate_negative"):
    adapter("nn.functional.pad", variant=_name)(bordered)


def by(name):
    def adapt(x, *factor, **named):
        return name, [x], {"by": [*factor, *named.values()][0]}
    return adapt


adapter("nn.functional.pixel_shuffle")(by("pixel_shuffle"))
adapter("nn.functional.pixel_unshuffle")(by("pixel_unshuffle"))
adapter("nn.functional.channel_shuffle")(by("channel_shuffle"))


@adapter("masked_select")
def _masked_select(x, mask):
    return "masked_select", [x, mask], {}


@adapter("masked_scatter")
def _masked_scatter(x, mask, source):
    need(mask.dim() <= x.dim() and list(torch.broadcast_shapes(x.shape, mask.shape)) == list(x.shape), "x that broadcasts to the mask")
    return "masked_scatter", [x, mask, source], {}


@adapter("nonzero", "argwhere")
def _nonzero(x, as_tuple=False):
    need(not as_tuple, "one vector for each axis")
    return "nonzero", [x], {}


@adapter("unique")
def _unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    need(dim is None and sorted, "slices, or any order")
    need(return_inverse and return_counts, "the values alone: part of the other results")
    return "unique", [x], {}


# ---- Losses

def how(size_average, reduce, reduction):
    need(size_average is None and reduce is None, "size_average and reduce")
    return {"reduction": reduction}


@adapter("nn.functional.margin_ranking_loss")
def _margin_ranking(a, b, y, margin=0, size_average=None, reduce=None, reduction="mean"):
    need(a.shape == b.shape == y.shape, "losses that broadcast")
    return "margin_ranking_loss", [a, b, y], how(size_average, reduce, reduction) | {"margin": number(float(margin))}


@adapter("nn.functional.hinge_embedding_loss")
def _hinge_embedding(x, y, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    need(x.shape == y.shape, "losses that broadcast")
    return "hinge_embedding_loss", [x, y], how(size_average, reduce, reduction) | {"margin": number(float(margin))}


@adapter("nn.functional.soft_margin_loss")
def _soft_margin(x, y, size_average=None, reduce=None, reduction="mean"):
    need(x.shape == y.shape, "losses that broadcast")
    return "soft_margin_loss", [x, y], how(size_average, reduce, reduction)


@adapter("nn.functional.multi_margin_loss")
def _multi_margin(x, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    need(weight is None, "weights of classes")
    need(target.dim() == x.dim() - 1, "a batch of one target for a single sample")
    return "multi_margin_loss", [x, target], how(size_average, reduce, reduction) | {"p": int(p), "margin": number(float(margin))}


@adapter("nn.functional.cosine_embedding_loss")
def _cosine_embedding(a, b, y, margin=0, size_average=None, reduce=None, reduction="mean"):
    need(a.shape == b.shape and a.is_floating_point(), "losses that broadcast, or integers")
    return "cosine_embedding_loss", [a, b, y], how(size_average, reduce, reduction) | {"margin": number(float(margin))}


@adapter("nn.functional.triplet_margin_loss")
def _triplet(a, p, n, margin=1.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean", **given):
    need(a.shape == p.shape == n.shape and a.is_floating_point(), "losses that broadcast, or integers")
    return "triplet_margin_loss", [a, p, n], how(size_average, reduce, reduction) | {
        "margin": number(float(margin)), "p": number(float(given.get("p", 2))), "eps": number(eps), "swap": int(swap)}


@adapter("nn.functional.poisson_nll_loss")
def _poisson(x, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    need(x.is_floating_point() and x.shape == target.shape, "integers, or losses that broadcast")
    return "poisson_nll_loss", [x, target], how(size_average, reduce, reduction) | {
        "log_input": int(log_input), "full": int(full), "eps": number(eps)}


@adapter("nn.functional.gaussian_nll_loss")
def _gaussian(x, target, var, full=False, eps=1e-6, reduction="mean"):
    need(x.shape == target.shape, "losses that broadcast")
    return "gaussian_nll_loss", [x, target, var], {"reduction": reduction, "full": int(full), "eps": number(eps)}


@adapter("nn.functional.multilabel_soft_margin_loss")
def _multilabel_soft(x, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    return "multilabel_soft_margin_loss", [x, target] + ([] if weight is None else [weight]), how(size_average, reduce, reduction)


@adapter("nn.functional.multilabel_margin_loss")
def _multilabel_margin(x, target, size_average=None, reduce=None, reduction="mean"):
    return "multilabel_margin_loss", [x, target], how(size_average, reduce, reduction)


@adapter("nn.functional.ctc_loss")
def _ctc(logp, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    lengths = [torch.as_tensor(t, dtype=torch.int64) for t in (input_lengths, target_lengths)]
    need(targets.dim() == 2 and logp.dim() == 3, "targets one after the other, or a single sequence")
    return "ctc_loss", [logp, targets, *lengths], {"reduction": reduction, "blank": blank, "zero_infinity": int(zero_infinity)}
