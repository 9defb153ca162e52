"""Adapters (adapters.py) of linear algebra. Vectors whose signs an implementation may choose are compared without them."""
import torch

from adapters import AFTER, BEFORE, adapter, axes, need, no_dtype, number


def with_info(name, flag=None):
    def adapt(a, *, check_errors=False, **rest):
        return name, [a], {} if flag is None else {flag: int(rest.get(flag, False))}
    return adapt


adapter("linalg.inv", "inverse")(lambda a: ("linalg.inv", [a], {}))
adapter("linalg.inv_ex")(with_info("linalg.inv_ex"))
adapter("linalg.det")(lambda a: ("linalg.det", [a], {}))
adapter("linalg.det", variant="singular")(lambda a: ("linalg.det", [a], {}))
adapter("linalg.slogdet")(lambda a: ("linalg.slogdet", [a], {}))
adapter("logdet")(lambda a: ("linalg.logdet", [a], {}))
adapter("matrix_exp")(lambda a: ("linalg.matrix_exp", [a], {}))
adapter("geqrf")(lambda a: ("linalg.geqrf", [a], {}))
adapter("linalg.svdvals")(lambda a: ("linalg.svdvals", [a], {}))
adapter("linalg.householder_product")(lambda a, tau: ("linalg.householder_product", [a, tau], {}))
adapter("linalg.polar")(lambda a, **_: ("linalg.polar", [a], {}))
adapter("linalg.matrix_sqrth")(lambda a, **_: ("linalg.matrix_sqrth", [a], {}))

# Called with x + xᵀ: the gradient of a symmetric matrix is defined up to a skew one.
for name in ("linalg.eigh", "linalg.eigvalsh", "linalg.matrix_sqrth"):
    BEFORE[name] = lambda a: a + a.mT


@adapter("linalg.cholesky")
def _cholesky(a, *, upper=False):
    return "linalg.cholesky", [a], {"upper": int(upper)}


adapter("linalg.cholesky_ex")(with_info("linalg.cholesky_ex", "upper"))


def without_gradient(factor):
    """PyTorch's gradient of a factor has the triangle too that is not read."""
    return factor.detach()


@adapter("cholesky_solve")
def _cholesky_solve(b, factor, upper=False):
    return "linalg.cholesky_solve", [b, without_gradient(factor)], {"upper": int(upper)}


@adapter("cholesky_inverse")
def _cholesky_inverse(factor, upper=False):
    return "linalg.cholesky_inverse", [without_gradient(factor)], {"upper": int(upper)}


@adapter("linalg.solve")
def _solve(a, b, *, left=True):
    return "linalg.solve", [a, b], {"left": int(left)}


@adapter("linalg.solve_ex")
def _solve_ex(a, b, *, left=True, check_errors=False):
    return "linalg.solve_ex", [a, b], {"left": int(left)}


@adapter("linalg.solve_triangular")
def _solve_triangular(a, b, *, upper, left=True, unitriangular=False):
    return "linalg.solve_triangular", [a, b], {"upper": int(upper), "left": int(left), "unit": int(unitriangular)}


@adapter("triangular_solve")
def _triangular_solve(b, a, upper=True, transpose=False, unitriangular=False):
    need(not transpose, "the system of the transposed matrix: transpose() it")
    return "linalg.solve_triangular", [a, b], {"upper": int(upper), "left": 1, "unit": int(unitriangular)}


AFTER["triangular_solve"] = lambda out: out.solution


@adapter("linalg.lu")
def _lu(a, *, pivot=True):
    need(pivot, "no pivoting")
    return "linalg.lu", [a], {}


@adapter("linalg.lu_factor")
def _lu_factor(a, *, pivot=True):
    need(pivot, "no pivoting")
    return "linalg.lu_factor", [a], {}


@adapter("linalg.lu_factor_ex")
def _lu_factor_ex(a, *, pivot=True, check_errors=False):
    need(pivot, "no pivoting")
    return "linalg.lu_factor", [a], {}


AFTER["linalg.lu_factor_ex"] = lambda out: (out.LU, out.pivots)


@adapter("linalg.lu_solve")
def _lu_solve(factors, pivots, b, *, left=True, adjoint=False):
    return "linalg.lu_solve", [factors, pivots, b], {"left": int(left), "transposed": int(adjoint)}


@adapter("lu_solve")
def _old_lu_solve(b, factors, pivots):
    return "linalg.lu_solve", [factors, pivots, b], {"left": 1, "transposed": 0}


@adapter("lu_unpack")
def _lu_unpack(factors, pivots, *, unpack_data=True, unpack_pivots=True):
    need(unpack_data and unpack_pivots, "only some of the factors")
    return "linalg.lu_unpack", [factors, pivots], {}


@adapter("linalg.qr")
def _qr(a, mode="reduced"):
    need(mode != "r", "r alone")
    need(mode == "reduced" or not a.requires_grad or a.size(-2) <= a.size(-1), "PyTorch has no gradient either")
    return "linalg.qr", [a], {"complete": int(mode == "complete")}


@adapter("qr")
def _old_qr(a, some=True):
    return _qr(a, "reduced" if some else "complete")


@adapter("ormqr")
def _ormqr(packed, tau, other, left=True, transpose=False):
    need(packed.size(-1) == tau.size(-1) <= packed.size(-2), "reflectors that are not those of a QR factor")
    return "linalg.ormqr", [packed, tau, other], {"left": int(left), "transposed": int(transpose)}


@adapter("linalg.svd")
def _svd(a, full_matrices=True, *, driver=None):
    need(not full_matrices or a.size(-1) == a.size(-2) or not a.requires_grad, "PyTorch drops the gradient of the further vectors")
    return "linalg.svd", [a], {"full": int(full_matrices)}


AFTER["linalg.svd"] = lambda out: (out.U.abs(), out.S, out.Vh.abs())


@adapter("svd")
def _old_svd(a, some=True, compute_uv=True):
    need(compute_uv, "no vectors")
    return _svd(a, not some)


AFTER["svd"] = lambda out: (out.U.abs(), out.S, out.V.mH.abs())


@adapter("linalg.eigh")
def _eigh(a, UPLO="L"):
    return "linalg.eigh", [a], {"upper": int(UPLO == "U")}


AFTER["linalg.eigh"] = lambda out: (out.eigenvalues, out.eigenvectors.abs())


@adapter("linalg.eigvalsh")
def _eigvalsh(a, UPLO="L"):
    return "linalg.eigvalsh", [a], {"upper": int(UPLO == "U")}


@adapter("linalg.lstsq")
def _lstsq(a, b, rcond=None, *, driver=None):
    need(b.dim() == a.dim(), "vectors")
    need(rcond is None, "a limit")
    return "linalg.lstsq", [a, b], {}


adapter("linalg.lstsq", variant="grad_oriented")(_lstsq)
AFTER["linalg.lstsq"] = lambda out: out if isinstance(out, torch.Tensor) else out[0]


@adapter("linalg.pinv", "pinverse")
def _pinv(a, rcond=None, *, atol=None, rtol=None, hermitian=False):
    need(not isinstance(rcond, torch.Tensor) and not isinstance(atol, torch.Tensor) and not isinstance(rtol, torch.Tensor), "a tensor of limits")
    rtol = rcond if rtol is None else rtol
    return "linalg.pinv", [a], {key: float(value).hex() for key, value in (("atol", atol), ("rtol", rtol)) if value is not None}


@adapter("linalg.matrix_rank")
def _matrix_rank(a, tol=None, *, atol=None, rtol=None, hermitian=False):
    need(tol is None and not isinstance(atol, torch.Tensor) and not isinstance(rtol, torch.Tensor), "a tensor of limits")
    return "linalg.matrix_rank", [a], {key: float(value).hex() for key, value in (("atol", atol), ("rtol", rtol)) if value is not None}


def order(p):
    """The argument of a norm of matrices: a name or a number."""
    return {"norm": p} if isinstance(p, str) else {"p": number(float(p))}


@adapter("linalg.cond")
def _cond(a, p=None):
    return "linalg.cond", [a], order(2 if p is None else p)


@adapter("linalg.matrix_norm")
def _matrix_norm(a, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    no_dtype(dtype)
    return "linalg.matrix_norm", [a], {"axes": list(dim), "keepdim": int(keepdim)} | order(ord)


@adapter("linalg.norm")
def _norm(a, ord=None, dim=None, keepdim=False, dtype=None):
    no_dtype(dtype)
    if ord is None and dim is None or a.dim() == 1 or len(axes(dim)) == 1:
        return "vector_norm", [a], {"p": number(float(2 if ord is None else ord)), "axes": axes(dim), "keepdim": int(keepdim)}
    return _matrix_norm(a, "fro" if ord is None else ord, tuple(axes(dim)) or (-2, -1), keepdim)


@adapter("linalg.matrix_power")
def _matrix_power(a, n):
    return "linalg.matrix_power", [a], {"n": n}


@adapter("linalg.ldl_factor")
def _ldl_factor(a, *, hermitian=False):
    return "linalg.ldl_factor", [a], {}


@adapter("linalg.ldl_factor_ex")
def _ldl_factor_ex(a, *, hermitian=False, check_errors=False):
    return "linalg.ldl_factor_ex", [a], {}


@adapter("linalg.ldl_solve")
def _ldl_solve(factors, pivots, b, *, hermitian=False):
    return "linalg.ldl_solve", [factors, pivots, b], {}


@adapter("lu")
def _old_lu(a, pivot=True, get_infos=False):
    need(pivot, "no pivoting")
    return "linalg.lu_factor", [a], {}


AFTER["lu"] = lambda out: (out[0], out[1])


@adapter("linalg.tensorinv")
def _tensorinv(a, ind=2):
    return "linalg.tensorinv", [a], {"axes": ind}


@adapter("linalg.tensorsolve")
def _tensorsolve(a, b, dims=None):
    return "linalg.tensorsolve", [a, b], {"moved": list(dims or [])}
