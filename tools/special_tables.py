#!/usr/bin/env python3
"""Prints the two tables of src/ops/special_tables.h that are no published ones: coefficients of lgamma near 2 and of erfcx.

    pip install mpmath
    tools/special_tables.py
"""
import mpmath as mp

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


def show(name, values):
    print(f"inline constexpr double {name}[] = {{\n    " + ", ".join(mp.nstr(v, 20) for v in values) + "};")


if __name__ == "__main__":
    show("kLogGamma", reversed(monomials(chebyshev(log_gamma_without_zeros, 29, mp.mpf(-1), mp.mpf(1)))))
    series = chebyshev(scaled_erfc, 27, mp.mpf(0), mp.mpf(1))
    show("kErfcx", reversed([2 * series[0], *series[1:]]))
