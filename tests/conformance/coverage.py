#!/usr/bin/env python3
"""Writes docs/operations.md: which of PyTorch's operations (OpInfo's names) Tenon has, and why it lacks the others.

    pip install torch numpy safetensors expecttest hypothesis
    tests/conformance/coverage.py
"""
import pathlib
import re

import torch
from torch.testing._internal.common_methods_invocations import op_db

import composed_adapters  # noqa: F401: registers its adapters
import fft_adapters  # noqa: F401
import linalg_adapters  # noqa: F401
import more_adapters  # noqa: F401
import special_adapters  # noqa: F401
from adapters import OPINFO

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "operations.md"
COMPLEX = {torch.complex32, torch.complex64, torch.complex128}

# Operations that make_samples.py has no adapter for, and Tenon's function. Their tests are elsewhere.
OTHERWISE = {
    "linspace": "linspace", "logspace": "logspace", "multinomial": "multinomial", "bernoulli": "bernoulli", "rand_like": "rand_like",
    "randn": "randn", "randn_like": "randn_like", "randint": "randint", "zeros": "zeros", "ones": "ones", "to": "to",
    "slice": "slice", "equal": "equal", "clone": "clone", "cross": "cross", "allclose": "allclose", "nn.functional.dropout": "dropout", "norm": "norm",
    "bitwise_and": "operator&", "bitwise_or": "operator|", "bitwise_xor": "operator^", "bitwise_not": "operator~", "__rand__": "operator&",
    "__ror__": "operator|", "__rxor__": "operator^", "inner": "einsum", "vdot": "matmul", "t": "transpose", "T": "transpose", "mT": "transpose",
    "ravel": "flatten", "item": "item", "split_with_sizes": "split", "hsplit": "tensor_split", "vsplit": "tensor_split", "dsplit": "tensor_split",
    "scalar_tensor": "scalar", "nn.functional.upsample_nearest": "interpolate",
    "nn.functional.upsample_bilinear": "interpolate", "new_full": "full", "new_ones": "ones", "new_zeros": "zeros", "zero_": "zeros_like", "fill": "full_like",
    "constant_pad_nd": "pad", "nn.functional.dropout2d": "nn::Dropout2d", "nn.functional.dropout3d": "nn::Dropout3d",
    "nn.functional.multi_head_attention_forward": "nn::MultiheadAttention", "broadcast_shapes": "broadcast_shapes", "sum_to_size": "sum",
    "real": "Complex::real", "imag": "Complex::imaginary", "conj": "conj", "conj_physical": "conj",
    "linalg.eig": "linalg::eig", "linalg.eigvals": "linalg::eig", "svd_lowrank": "linalg::svd_lowrank", "pca_lowrank": "linalg::pca_lowrank",
    "histogramdd": "histogramdd", "nn.functional.fractional_max_pool2d": "fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d": "fractional_max_pool3d", "grid_sampler_3d": "grid_sample", "masked.argmax": "masked::argmax", "masked.argmin": "masked::argmin", "randint_like": "randint_like", "normal": "normal", "uniform": "uniform", "exponential": "exponential",
    "geometric": "geometric", "cauchy": "cauchy", "log_normal": "log_normal", "nn.functional.alpha_dropout": "alpha_dropout",
    "nn.functional.feature_alpha_dropout": "feature_alpha_dropout", "t_copy": "transpose", "split_with_sizes_copy": "split",
}
# Tenon's function of a tested operation whose name differs from PyTorch's. The namespaces are written where PyTorch has none or another one.
ALIASES = {
    "__getitem__": "Tensor::index", "__radd__": "operator+", "__rdiv__": "operator/", "__rmatmul__": "matmul", "__rmod__": "operator%",
    "__rmul__": "operator*", "__rpow__": "pow", "__rsub__": "operator-", "_segment_reduce": "segment_reduce", "_upsample_bilinear2d_aa": "interpolate",
    "argwhere": "nonzero", "bmm": "matmul", "mm": "matmul", "mv": "matmul", "dot": "matmul", "cat": "concat", "complex": "Complex",
    "diagflat": "diag", "fft.hfft2": "fft::hfftn", "fft.ihfft2": "fft::ihfftn", "fliplr": "flip", "flipud": "flip", "grid_sampler_2d": "grid_sample",
    "linalg.norm": "linalg::matrix_norm", "linalg.lu_factor_ex": "linalg::lu_factor", "lu": "linalg::lu_factor", "masked.std": "masked::stddev", "std": "stddev", "pinverse": "linalg::pinv",
    "reshape_as": "reshape", "view_as": "view", "expand_as": "expand", "rsub": "sub", "special.modified_bessel_i0": "i0", "special.modified_bessel_i1": "i1",
    "take_along_dim": "gather", "tile": "repeat", "trapz": "trapezoid", "triangular_solve": "linalg::solve_triangular", "true_divide": "div",
    "unsafe_chunk": "chunk", "unsafe_split": "split",
    **{name: "cast" for name in ("bool", "byte", "char", "int", "long", "half", "bfloat16", "float", "double")},
    **{name: f"linalg::{name}" for name in ("cholesky_inverse", "cholesky_solve", "geqrf", "logdet", "lu_solve", "lu_unpack", "matrix_exp", "ormqr", "svd")},
    **{f"linalg.{name}": name for name in ("cross", "diagonal", "multi_dot", "vander", "vecdot", "vector_norm")},
    **{f"{name}_copy": name for name in ("diagonal", "expand", "narrow", "permute", "squeeze", "transpose", "unbind", "unfold", "unsqueeze", "view")},
}
# (pattern of names, reason), the first that fits.
MISSING = [
    (r"(sparse\..*|to_sparse|.*sparse.*)", "a class of its own: [Sparse tensors](sparse.md)"),
    (r"(complex|real|imag|angle|polar|conj.*|resolve_.*|view_as_.*|cfloat|cdouble|chalf|isreal|H|mH|sgn)", "complex numbers"),
    (r"(.*_copy|as_strided.*|resize_.*|set_|empty.*|new_empty.*|contiguous|positive)", "views of memory and changes in place: tensors are values"),
    (r"(jiterator.*|_.*|torch\..*|native_.*|.*_backward|unsafe_.*|hash_tensor|short|grid_sampler_.*)", "internals of PyTorch"),
]


def reason_of(name):
    for pattern, reason in MISSING:
        if re.fullmatch(pattern, name):
            return reason
    return "not built yet"


def entry(name, tested):
    """The operation as the page lists it: PyTorch's name, Tenon's if it differs, and a dot if samples test it."""
    own = (ALIASES if tested else OTHERWISE).get(name, name)
    return f"`{name}`" + (f" (`{own}`)" if own != name else "") + (" ·" if tested else "")


def main():
    dtypes = {}
    for op in op_db:
        dtypes.setdefault(op.name, set()).update(op.dtypes)
    names = sorted(n for n, d in dtypes.items() if d - COMPLEX)
    tested = {name for name, _ in OPINFO}
    have = [n for n in names if n in tested or n in OTHERWISE]
    missing = {}
    for n in names:
        if n not in tested and n not in OTHERWISE:
            missing.setdefault(reason_of(n), []).append(n)
    lines = ["# Operations", "",
             "Which of PyTorch's operations Tenon has, by the names in PyTorch's own test database (OpInfo, "
             f"PyTorch {torch.__version__.split('+')[0]}). Operations that PyTorch has for complex numbers only are not counted.", "",
             f"Tenon has {len(have)} of {len(names)}. Those marked with a dot (·) are compared with PyTorch's samples in every dtype that Tenon has for them: values,",
             "gradients and second derivatives, on data, views and results of other operations, and in compiled functions ([how](numerics.md)).", "",
             "A name in parentheses is Tenon's; the other names are the same in both. `linalg.`, `fft.`, `masked.` and `signal.windows.` are the namespaces `linalg`, `fft`,",
             "`masked` and `windows`; functions of `special.` and `nn.functional.` are in `tenon` itself. The functions are declared in `<tenon/ops.h>`, `<tenon/functional.h>`, `<tenon/creation.h>`, `<tenon/elementwise.h>`,",
             "`<tenon/joining.h>`, `<tenon/rearrange.h>`, `<tenon/statistics.h>`, `<tenon/losses.h>`, `<tenon/pooling.h>`, `<tenon/special.h>`,",
             "`<tenon/scattering.h>`, `<tenon/resampling.h>`, `<tenon/masked.h>`, `<tenon/signal_windows.h>`, `<tenon/linalg.h>`, `<tenon/complex.h>` and `<tenon/fft.h>`.", "", "## Available", ""]
    lines.append(", ".join(entry(n, n in tested) for n in have) + ".")
    lines += ["", "## Missing", "", "| reason | names |", "| --- | --- |"]
    for reason, some in sorted(missing.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {reason} | {', '.join(f'`{n}`' for n in some)} |")
    lines += ["", "## Related pages", "", "[Layers, losses and optimizers](nn.md) · [Linear algebra](linalg.md) · [Fourier transforms](fft.md) · [Coming from PyTorch](pytorch.md)"]
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"{len(have)} of {len(names)}")


if __name__ == "__main__":
    main()
