"""Adapters (adapters.py) of Fourier transforms and complex numbers. Complex results are compared as pairs of real numbers."""
import torch

from adapters import AFTER, adapter, axes, need

NORMS = [None, "ortho", "forward"]


def as_real(out):
    return torch.view_as_real(out.resolve_conj()).contiguous() if out.is_complex() else out


def one_axis(name):
    def adapt(x, n=None, dim=-1, norm=None):
        return "fft.one", [x], {"name": name, "n": -1 if n is None else n, "axis": dim, "norm": 0 if norm == "backward" else NORMS.index(norm)}
    adapter("fft." + name)(adapt)
    AFTER["fft." + name] = as_real


def several_axes(name, default):
    def adapt(x, s=None, dim=default, norm=None):
        need(dim != (), "no axes")
        return "fft.several", [x], {"name": name.replace("2", "n"), "sizes": [] if s is None else list(s), "axes": axes(dim),
                                    "norm": 0 if norm == "backward" else NORMS.index(norm)}
    adapter("fft." + name)(adapt)
    AFTER["fft." + name] = as_real


for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    one_axis(kind)
    several_axes(kind + "n", None)
    several_axes(kind + "2", (-2, -1))


@adapter("fft.fftshift")
def _fftshift(x, dim=None):
    return "fft.fftshift", [x], {"axes": axes(dim)}


@adapter("fft.ifftshift")
def _ifftshift(x, dim=None):
    return "fft.ifftshift", [x], {"axes": axes(dim)}


@adapter("stft")
def _stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None):
    need(win_length is None or window is not None, "a window of ones with a length of its own")
    need(pad_mode in ("reflect", "constant"), "another border")
    return "stft", [x] + ([] if window is None else [window]), {
        "size": n_fft, "hop": hop_length or 0, "center": int(center), "reflect": int(pad_mode == "reflect"), "normalized": int(normalized),
        "onesided": int(onesided is not False)}


AFTER["stft"] = as_real


@adapter("angle")
def _angle(x):
    need(not x.isnan().any(), "the angle of NaN")
    return "angle", [x], {}


@adapter("complex")
def _complex(real, imaginary):
    return "complex", [real, imaginary], {}


@adapter("polar")
def _polar(absolute, angle):
    return "polar", [absolute, angle], {}


@adapter("view_as_complex")
def _view_as_complex(pairs):
    return "view_as_complex", [pairs], {}


for kind in ("complex", "polar", "view_as_complex"):
    AFTER[kind] = as_real
