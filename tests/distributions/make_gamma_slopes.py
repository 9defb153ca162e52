#!/usr/bin/env python3
"""Writes tests/distributions/gamma_slopes.inc: d log(x) / da at a fixed P(a, x), for log(x) as given, with 40 digits of arithmetic.

    pip install mpmath
    tests/distributions/make_gamma_slopes.py
"""
import pathlib

import mpmath as mp

mp.mp.dps = 40


def slope(a, x):
    """The integral of t^(a - 1) e^-t (log(t) - digamma(a)) from the nearer end to x, divided by x times the density."""
    psi = mp.digamma(a)
    spread = mp.sqrt(a) + 1
    low = [-(mp.mpf(60) + x) / a * (1 - mp.mpf(k) / 24) for k in range(25)] if x < a else None
    if x < a:
        points = sorted(set(low + [-10 / spread, -3 / spread, -1 / spread]))
        f = lambda r: mp.exp(a * r - x * mp.expm1(r)) * (r + mp.log(x) - psi)
        return -mp.quad(f, [p for p in points if p <= 0])
    end = mp.log1p(120 / x) if x < 20 else mp.mpf(14) / mp.sqrt(x) + 30 / x
    f = lambda r: mp.exp(a * r - x * mp.expm1(r)) * (r + mp.log(x) - psi)
    return mp.quad(f, mp.linspace(0, end, 25))


rows = []
for a in (0.001, 0.02, 0.3, 0.9, 1.0, 2.5, 9.0, 30.0, 63.0, 200.0, 1e4, 1e6, 1e9):
    spread = mp.sqrt(a)
    if a < 1:
        points = [mp.mpf(10) ** -k for k in (200, 40, 8, 3, 1)] + [mp.mpf(a) * mp.mpf("0.999"), mp.mpf(a) * mp.mpf("1.001"), mp.mpf(1), mp.mpf(12)]
    else:
        points = [mp.mpf(a) + mp.mpf(z) * spread for z in (-5, -2, -1, -0.01, 0, 0.01, 1, 3, 6)]
        points = [p for p in points if p > 0] + [mp.mpf(a) / 100]
    for x in points:
        y = mp.mpf(float(mp.log(x)))  # the argument is the rounded logarithm
        rows.append(f"{{{float(a)!r}, {float(y)!r}, {float(slope(mp.mpf(a), mp.exp(y)))!r}}},")
path = pathlib.Path(__file__).with_name("gamma_slopes.inc")
path.write_text("// Made by make_gamma_slopes.py: a, log(x), d log(x) / da\n" + "\n".join(rows) + "\n", encoding="utf-8")
