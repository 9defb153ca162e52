#!/usr/bin/env python3
"""Prints the tables of special functions that are no published ones.

Of src/ops/composed/special_tables.h: coefficients of lgamma near 2 and of erfcx. Of src/scalar/special.h, for float32: polynomials for
erfc, erfinv and lgamma, fitted by least squares whose weights approach the smallest largest relative error.

    pip install mpmath numpy
    tools/special_tables.py
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 60


def chebyshev(f, count, low, high):
    """The first `count` coefficients of the Chebyshev expansion of f on [low, high]."""
    points = 2 * count  # even, so that 0 is none of them
    angles = [mp.pi * (k + mp.mpf(1) / 2) / points for k in range(points)]
    values = [f((high - low) / 2 * mp.cos(a) + (low + high) / 2) for a in angles]
    terms = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles)) / points for j in range(count)]
    return [terms[0] / 2, *terms[1:]]


def monomials(series):
    """The coefficients of the powers of t, for a Chebyshev expansion in t."""
    before, current = [mp.mpf(0)], [mp.mpf(1)]
    out = [mp.mpf(0)] * len(series)
    for j, factor in enumerate(series):
        for i, c in enumerate(current):
            out[i] += factor * c
        following = [mp.mpf(0), *(c if j == 0 else 2 * c for c in current)]
        for i, c in enumerate(before if j else []):
            following[i] -= c
        before, current = current, following
    return out


def log_gamma_without_zeros(t):
    """lgamma(2 + t) / (t (1 + t))"""
    return mp.loggamma(2 + t) / (t * (1 + t))


def scaled_erfc(t):
    """erfcx(x) / t for t = 3 / (3 + x)"""
    x = 3 / t - 3
    if x < 40:
        return mp.exp(x * x) * mp.erfc(x) / t
    term = total = 1 / (x * mp.sqrt(mp.pi))
    for k in range(1, 60):
        term *= -mp.mpf(2 * k - 1) / (2 * x * x)
        total += term
    return total / t


def fitted(f, low, high, degree, centre=0.0, points=400, steps=80):
    """The coefficients in x - centre, highest power first, of a polynomial with a small largest relative error on [low, high]."""
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(points) + 0.5) / points)
    y = np.array([float(f(mp.mpf(float(t)))) for t in x])
    matrix = np.vander(x - centre, degree + 1) / y[:, None]
    weights, least, best = np.ones(points) / points, np.inf, None
    for _ in range(steps):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(matrix * root[:, None], root, rcond=None)[0]
        errors = np.abs(matrix @ found - 1)
        if errors.max() < least:
            least, best = errors.max(), found
        weights = weights * (errors + 1e-30)
        weights /= weights.sum()
    return best


def erfinv_over_x(w):
    """erfinv(x) / x for w = -log(1 - x²)"""
    if w < 1e-12:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def show(name, values):
    print(f"{name}:\n    " + ", ".join(mp.nstr(v, 20) for v in values))


if __name__ == "__main__":
    show("kLogGamma", reversed(monomials(chebyshev(log_gamma_without_zeros, 29, mp.mpf(-1), mp.mpf(1)))))
    series = chebyshev(scaled_erfc, 27, mp.mpf(0), mp.mpf(1))
    show("kErfcx", reversed([2 * series[0], *series[1:]]))
    show("erfc, of t - 0.6125", fitted(scaled_erfc, 0.225, 1, 11, centre=0.6125))
    show("erfinv, of w - 2.5", fitted(erfinv_over_x, 0, 5, 9, centre=2.5))
    show("erfinv, of sqrt(w) - 3.1", fitted(lambda root: erfinv_over_x(root * root), 5**0.5, 4.12, 9, centre=3.1))
    show("lgamma, of z - 2", fitted(log_gamma_without_zeros, -0.9999999, 0.9999999, 14))
