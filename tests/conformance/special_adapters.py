"""Adapters (adapters.py) of special functions, scattering that reduces, resampling, masked reductions, windows and matrices."""
import torch

from adapters import OPINFO, adapter, axes, many, need, no_dtype, number
from more_adapters import call, of_both, real

# ---- Special functions

for _name in "erfc erfinv lgamma digamma i0 sinc acosh asinh atanh signbit".split():
    adapter(_name)(call(_name))
for _name in """erfcx ndtri log_ndtr i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1
scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai""".split():
    adapter("special." + _name)(call(_name))
adapter("special.modified_bessel_i0")(call("i0"))
adapter("special.modified_bessel_i1")(call("i1"))
POLYNOMIALS = [*(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"),
               "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
for _name in POLYNOMIALS:
    adapter("special." + _name)(of_both(_name))
adapter("special.zeta")(of_both("zeta"))
for _name in "igamma igammac hypot nextafter gcd lcm bitwise_left_shift bitwise_right_shift".split():
    adapter(_name)(of_both(_name))


def _polygamma(x, n):
    return "polygamma", [x], {"n": n}


for _n in range(5):
    OPINFO["polygamma", f"polygamma_n_{_n}"] = _polygamma
OPINFO["special.polygamma", "special_polygamma_n_0"] = _polygamma
for _p in 1, 3, 5:
    OPINFO["mvlgamma", f"mvlgamma_p_{_p}"] = call("mvlgamma", ("p", None, "p", int))


@adapter("copysign")
def _copysign(x, sign, **_):
    need(isinstance(sign, torch.Tensor), "a number")
    return "copysign", [x, sign], {}


adapter("frexp")(call("frexp"))


# ---- Scattering that reduces

REDUCTIONS = {"sum": 0, "prod": 1, "mean": 2, "amax": 3, "amin": 4, "max": 3, "min": 4}


def reducing(name):
    def adapt(x, dim, index, source, reduce, *, include_self=True):
        need(x.dtype != torch.bool and x.dtype == source.dtype, "sums of bool, or two dtypes")
        return name, [x, index, source], {"axis": dim, "reduction": REDUCTIONS[reduce], "self": int(include_self)}
    return adapt


for _kind in "sum", "prod", "mean", "amax", "amin":
    OPINFO["scatter_reduce", _kind] = reducing("scatter_reduce")
    OPINFO["index_reduce", _kind] = reducing("index_reduce")


def _segments(x, reduce, *, lengths=None, offsets=None, axis=0, unsafe=False, initial=None):
    lengths = offsets.diff() if lengths is None else lengths
    need(lengths.dim() == 1, "segments that differ from row to row")
    need(lengths.sum() == x.shape[axis], "segments that do not fill the axis")
    need(initial is None or reduce != "mean", "a mean that counts what it starts with")
    return "segment_reduce", [x, lengths], {"axis": axis, "reduction": REDUCTIONS[reduce]} | (
        {} if initial is None else {"initial": number(float(initial))})


OPINFO["_segment_reduce", "lengths"] = OPINFO["_segment_reduce", "offsets"] = _segments


# ---- Resampling

MODES = {"nearest": 0, "linear": 1, "bilinear": 1, "trilinear": 1, "nearest-exact": 2, "bicubic": 3, "area": 4}


def interpolation(mode):
    def adapt(x, size=None, scale_factor=None, mode=mode, align_corners=None, recompute_scale_factor=None, antialias=False):
        need(not recompute_scale_factor, "a scale that is computed again: the sizes say that")
        count = x.dim() - 2
        factors = [] if scale_factor is None else [number(float(f)) for f in (many(scale_factor, count) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count)]
        return "interpolate", [x], {"sizes": [] if size is None else many(size, count), "factors": factors, "mode": MODES[mode],
                                    "corners": int(bool(align_corners)), "antialias": int(antialias)}
    return adapt


for _mode in MODES:
    OPINFO["nn.functional.interpolate", _mode] = interpolation(_mode)


@adapter("_upsample_bilinear2d_aa")
def _antialiased(x, output_size, align_corners=False, scale_factors=None, **rest):
    need(x.is_floating_point() and not rest and scale_factors is None, "integers, or sizes with factors")
    return interpolation("bilinear")(x, output_size, align_corners=align_corners, antialias=True)


@adapter("nn.functional.grid_sample")
def _grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    return "grid_sample", [x, grid], {"mode": ["bilinear", "nearest", "bicubic"].index(mode), "corners": int(bool(align_corners)),
                                      "padding": ["zeros", "border", "reflection"].index(padding_mode)}


@adapter("grid_sampler_2d")
def _grid_sampler(x, grid, mode, padding, corners):
    return "grid_sample", [x, grid], {"mode": mode, "padding": padding, "corners": int(corners)}


# ---- Masked

def masked(name, *parameters):
    def adapt(x, *given, mask=None, dtype=None, **named):
        no_dtype(dtype)
        dim, rest = named.pop("dim", None), list(given)
        values = {}
        for parameter, otherwise in parameters:  # those before dim
            values[parameter] = number(float(rest.pop(0) if rest else named.pop(parameter, otherwise)))
        dim = rest.pop(0) if rest else dim
        for parameter in "correction", "eps":
            given_value = named.pop(parameter, None)
            if given_value is not None:
                values[parameter] = number(float(given_value))
        if "unbiased" in named:
            values["correction"] = number(float(named.pop("unbiased") is not False))
        keepdim = int(bool(named.pop("keepdim", False)))
        need(not rest and not named, f"{sorted(named)} given")
        need(mask is None or (mask.dim() <= x.dim() and list(torch.broadcast_shapes(x.shape, mask.shape)) == list(x.shape)), "a larger mask")
        need(x.is_floating_point() or name not in "cumsum cumprod logsumexp", "integers, whose dtype torch.masked keeps")
        need(x.dtype != torch.bool, "bool")
        need(x.dim() or not axes(dim) or mask is None, "an axis of a scalar")
        return "masked_" + name, [x] + ([] if mask is None else [mask]), values | {"axes": axes(dim), "keepdim": keepdim}
    return adapt


for _name in "sum prod mean amax amin logsumexp var std median cumsum cumprod softmax log_softmax softmin".split():
    adapter("masked." + _name)(masked(_name))
adapter("masked.norm")(masked("norm", ("ord", 2)))
adapter("masked.normalize")(masked("normalize", ("ord", 2)))


@adapter("masked.logaddexp")
def _masked_logaddexp(a, b, dtype=None, input_mask=None, other_mask=None):
    no_dtype(dtype)
    need((input_mask is None) == (other_mask is None), "one mask")
    return "masked_logaddexp", [a, b] + ([] if input_mask is None else [input_mask, other_mask]), {}


# ---- Windows of signals

def window(name, *parameters):
    def adapt(count, *, sym=True, dtype=None, device=None, requires_grad=False, **named):
        values = {key: number(float(named.pop(key, otherwise))) for key, otherwise in parameters}
        if name == "general_cosine":
            values["factors"] = [number(float(f)) for f in named.pop("a")]
        need(not named and dtype is not None, f"{sorted(named)} given")
        return "window", [], values | {"name": name, "count": count, "symmetric": int(sym), "dtype": str(dtype).removeprefix("torch.")}
    return adapt


for _name in "bartlett blackman cosine hamming hann nuttall general_cosine".split():
    if _name == "hamming":
        continue
    adapter("signal.windows." + _name)(window(_name))


@adapter("signal.windows.hamming")
def _hamming(count, *, alpha=0.54, **named):
    return window("general_hamming", ("alpha", 0.54))(count, alpha=alpha, **named)


@adapter("signal.windows.exponential")
def _exponential(count, *, center=None, **named):
    need(center is None, "another center")
    return window("exponential", ("tau", 1.0))(count, **named)


adapter("signal.windows.gaussian")(window("gaussian", ("std", 1.0)))
adapter("signal.windows.general_hamming")(window("general_hamming", ("alpha", 0.54)))
adapter("signal.windows.kaiser")(window("kaiser", ("beta", 12.0)))


# ---- Matrices

adapter("linalg.vecdot")(call("vecdot", ("dim", -1, "axis", int), tensors=2))
adapter("renorm")(call("renorm", ("p", None, "p", real), ("dim", None, "axis", int), ("maxnorm", None, "most", real)))
adapter("linalg.vander")(call("vander", ("N", None, "count", int)))


@adapter("linalg.multi_dot")
def _multi_dot(matrices):
    return "multi_dot", list(matrices), {}


@adapter("linalg.diagonal")
def _linalg_diagonal(x, *, offset=0, dim1=-2, dim2=-1):
    return "diagonal", [x], {"offset": offset, "a": dim1, "b": dim2}


@adapter("nn.functional.bilinear")
def _bilinear(a, b, weight, bias=None):
    need(a.is_floating_point(), "integers")
    return "bilinear", [a, b, weight] + ([] if bias is None else [bias]), {}


# ---- Statistics

@adapter("mode")
def _mode(x, dim=-1, keepdim=False):
    need(x.numel() < 1000, "long rows: PyTorch leaves open whose index is given")
    return "mode", [x], {"axis": dim, "keepdim": int(keepdim)}


@adapter("nanquantile")
def _nanquantile(x, q, dim=None, keepdim=False, *, interpolation="linear"):
    operands = [x, q] if isinstance(q, torch.Tensor) else [x]
    return "nanquantile", operands, ({} if isinstance(q, torch.Tensor) else {"q": number(float(q))}) | {
        "axes": axes(dim), "keepdim": int(keepdim), "mode": ["linear", "lower", "higher", "nearest", "midpoint"].index(interpolation)}


@adapter("unique_consecutive")
def _unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    need(dim is None and return_inverse and return_counts, "slices, or some of the results")
    return "unique_consecutive", [x], {}


@adapter("histogram")
def _histogram(x, bins, *, range=None, weight=None, density=False):
    edges = [bins] if isinstance(bins, torch.Tensor) else []
    return "histogram", [x, *edges] + ([] if weight is None else [weight]), {
        "bins": [] if edges else [bins], "ends": [] if range is None else [number(float(v)) for v in range],
        "weighted": int(weight is not None), "density": int(bool(density))}


@adapter("gradient")
def _gradient(x, *, spacing=None, dim=None, edge_order=1):
    along = range(x.dim()) if dim is None else axes(dim)
    need(len(along) == 1 or not isinstance(spacing, (list, tuple)) or len(spacing) == len(along), "other spacings")
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [1.0 if spacing is None else spacing] * len(along)
    need(len(spacings) == len(along) and len({isinstance(s, torch.Tensor) for s in spacings}) == 1, "mixed spacings")
    places = [s for s in spacings if isinstance(s, torch.Tensor)]
    return "gradient", [x, *places], {"axes": list(along), "order": edge_order, "spacings": [] if places else [
        number(float(s)) for s in spacings]}


adapter("nn.functional.pdist")(call("pdist", ("p", 2.0, "p", real)))


# ---- Joining and selecting

def several(name):
    def adapt(*tensors, **_):
        tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
        return name, list(tensors), {}
    return adapt


for _name in "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors":
    adapter(_name)(several(_name))
adapter("combinations")(call("combinations", ("r", 2, "count", int), ("with_replacement", False, "again", int)))
adapter("nonzero_static")(call("nonzero_static", ("size", None, "count", int), ("fill_value", -1, "fill", int)))


@adapter("unravel_index")
def _unravel_index(index, shape):
    need(isinstance(shape, (tuple, list)) and all(n < 2**40 for n in shape), "a size alone, or one that no tensor has")
    return "unravel_index", [index], {"sizes": list(shape)}


@adapter("put")
def _put(x, index, source, accumulate=False):
    need(x.dtype != torch.bool or not accumulate, "sums of bool")
    need(accumulate or index.numel() == index.remainder(max(x.numel(), 1)).unique().numel(), "equal indices, whose order is open")
    return "put", [x, index, source], {"accumulate": int(accumulate)}


adapter("diagonal_scatter")(call("diagonal_scatter", ("offset", 0, "offset", int), ("dim1", 0, "a", int), ("dim2", 1, "b", int), tensors=2))
adapter("unfold", "unfold_copy")(call("unfold_axis", ("dimension", None, "axis", int), ("size", None, "size", int), ("step", None, "step", int)))


# ---- Copies of what are views in PyTorch, and functions that only skip its checks

COPIES = {"expand_copy": "expand", "narrow_copy": "narrow", "permute_copy": "permute", "diagonal_copy": "diagonal", "unsafe_split": "split",
          "squeeze_copy": "squeeze", "transpose_copy": "transpose", "unbind_copy": "unbind", "unsqueeze_copy": "unsqueeze",
          "view_copy": "view", "unsafe_chunk": "chunk"}
for _copy, _name in COPIES.items():
    if (_name, "") in OPINFO:
        OPINFO[_copy, ""] = OPINFO[_name, ""]


# ---- Losses and pooling

@adapter("nn.functional.triplet_margin_with_distance_loss")
def _triplet(a, p, n, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    need(a.is_floating_point() and a.shape == p.shape == n.shape, "integers, or losses that broadcast")
    need(distance_function is None or isinstance(distance_function, torch.nn.PairwiseDistance), "another distance")
    return "triplet_margin_with_distance_loss", [a, p, n], {"reduction": reduction, "margin": number(float(margin)), "swap": int(swap)}


def _linear_cross_entropy(x, linear_weight, target, *, linear_bias=None, reduction="mean", ignore_index=-100, label_smoothing=0.0, options=None,
                          weight=None, **rest):
    need(not rest and weight is None and linear_weight.dim() == 2 and x.dim() <= 2, "weights of classes, or several targets for a sample")
    need(x.dtype in (torch.float32, torch.float64), "16-bit logits, which PyTorch's chunks do not round")
    need(not target.is_floating_point() and ignore_index < 0 and target.numel(), "probabilities, an ignored class, or no targets")
    return "linear_cross_entropy", [x, linear_weight, target] + ([] if linear_bias is None else [linear_bias]), {
        "reduction": reduction, "smoothing": number(float(label_smoothing))}


OPINFO["nn.functional.linear_cross_entropy", ""] = _linear_cross_entropy  # PyTorch's chunked form has no second derivatives


@adapter("nn.functional.rrelu")
def _rrelu(x, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    need(not training and not inplace, "random slopes")
    return "rrelu", [x], {"lower": number(float(lower)), "upper": number(float(upper))}
