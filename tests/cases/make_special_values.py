#!/usr/bin/env python3
"""Writes tests/cases/special_values.inc: values of special functions with 40 digits of arithmetic, rounded to float64.

    pip install mpmath
    tests/cases/make_special_values.py
"""
import pathlib

import mpmath as mp

mp.mp.dps = 40
SQRT2 = mp.sqrt(2)
REAL = [-20.5, -7.25, -3.7, -2.5, -1.2, -0.75, -0.3, -1e-3, 1e-6, 0.02, 0.3, 0.8, 1.25, 1.75, 2.5, 4.9, 5.1, 7.9, 8.5, 14.25, 26.5, 103.5, 950.75]
POSITIVE = [x for x in REAL if x > 0]
UNIT = [-0.999999, -0.9, -0.4, -1e-5, 1e-12, 0.1, 0.6, 0.95, 1 - 2**-40]


def scaled_erfc(x):
    return mp.exp(mp.mpf(x) ** 2) * mp.erfc(x)


def log_ndtr(x):
    return mp.log(mp.erfc(-mp.mpf(x) / SQRT2) / 2)



ONE = {
    "erfc": (mp.erfc, [x for x in REAL if x < 26]), "erfcx": (scaled_erfc, [x for x in REAL if x > -20]), "erfinv": (mp.erfinv, UNIT),
    "ndtri": (lambda p: SQRT2 * mp.erfinv(2 * mp.mpf(p) - 1), [1e-15, 1e-5, 0.01, 0.3, 0.7, 0.99]),
    "log_ndtr": (log_ndtr, [x for x in REAL if x < 30]), "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), REAL),
    "digamma": (mp.digamma, REAL), "sinc": (lambda x: mp.sincpi(x), REAL),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(mp.mpf(x))), REAL), "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(mp.mpf(x))), REAL),
    "i0": (lambda x: mp.besseli(0, x), [x for x in REAL if abs(x) < 100]), "i1": (lambda x: mp.besseli(1, x), [x for x in REAL if abs(x) < 100]),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), [x for x in POSITIVE if x < 200]),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), [x for x in POSITIVE if x < 200]),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), POSITIVE),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), POSITIVE),
    "bessel_j0": (lambda x: mp.besselj(0, x), REAL), "bessel_j1": (lambda x: mp.besselj(1, x), REAL),
    "bessel_y0": (lambda x: mp.bessely(0, x), POSITIVE), "bessel_y1": (lambda x: mp.bessely(1, x), POSITIVE),
    "airy_ai": (mp.airyai, [x for x in REAL if abs(x) < 30]), "spherical_bessel_j0": (lambda x: mp.sin(x) / x, REAL),
    "acosh": (mp.acosh, [x for x in POSITIVE if x > 1] + [1 + 1e-9]), "asinh": (mp.asinh, REAL), "atanh": (mp.atanh, UNIT),
}
TWO = {
    "zeta": (lambda s, q: mp.zeta(s, q), [(1.5, 0.3), (2, 7.5), (4.25, 1), (30, 2.5), (1.001, 3), (2, 1e4)]),
    "igamma": (lambda a, x: mp.gammainc(a, 0, x, regularized=True),
               [(0.01, 0.5), (0.5, 1.5), (3, 0.1), (3, 2.5), (19, 30), (50, 49), (64.5, 70), (100, 80), (1000, 1010), (5000, 4900)]),
    "igammac": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
                [(0.01, 0.5), (0.5, 1.5), (3, 0.1), (3, 2.5), (19, 30), (50, 49), (64.5, 70), (100, 130), (1000, 1010), (5000, 4900)]),
    "polygamma": (lambda n, x: mp.psi(int(n), x), [(1, 0.3), (1, 12.5), (1, -3.7), (2, 0.8), (2, -0.3), (3, -2.4), (4, 5), (7, 1.25)]),
}


def main():
    lines = ["// Written by make_special_values.py: the name of a function, its arguments and its value. clang-format off"]
    for name, (f, points) in ONE.items():
        lines += [f"TENON_VALUE({name}, {float(x).hex()}, {float(f(mp.mpf(x))).hex()})" for x in points]
    for name, (f, points) in TWO.items():
        lines += [f"TENON_VALUE_OF_TWO({name}, {float(a).hex()}, {float(x).hex()}, {float(f(mp.mpf(a), mp.mpf(x))).hex()})" for a, x in points]
    (pathlib.Path(__file__).parent / "special_values.inc").write_text("\n".join(lines) + "\n")
    print(len(lines) - 1, "values")


if __name__ == "__main__":
    main()
