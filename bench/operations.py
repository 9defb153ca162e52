#!/usr/bin/env python3
"""Times single CPU operations of bench/operations.cpp and of PyTorch in turn, and prints a table.

    bench/operations.py PROGRAM [--only TEXT;…] [--phase call,train] [--rounds 5] [--budget 0.1] [--threads 2] [--cpu-time] [--out FILE]

A row is timed in rounds: Tenon for `budget` seconds, PyTorch for `budget` seconds, and so on. A figure is the minimum of all calls,
because other load of the machine only adds time; the spread is (maximum - minimum) / minimum of the rounds' minima. The ratio is PyTorch's time over Tenon's: 1 and more means that Tenon is not slower. `train` is the call with the gradient of its first inputs. The
worst row comes first. FILE is a record for bench/tables.py.
"""
import argparse
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from compare import commit, cpu_model  # noqa: E402

R, I = torch.randn, torch.randint


def table():
    return R(1000, 1000)


def near_one():
    return 1 + 0.01 * table()


def positive():
    return 0.5 + 3 * torch.rand(1000, 1000)


def unit():
    return 0.05 + 0.9 * torch.rand(1000, 1000)


def places():
    return I(0, 1000, (1000, 1000))


def matrices():
    return R(64, 32, 32) + 8 * torch.eye(32)


def definite():
    x = R(64, 32, 32)
    return x @ x.mT + torch.eye(32)


def images():
    return R(8, 16, 64, 64)


def put_columns(x, some, values):
    out = x.clone()
    out[:, some] = values
    return out


# name: the inputs, the operation.
ROWS = {
    "gather axis 1 [1000,1000]": (lambda: (table(), places()), lambda x, i: torch.gather(x, 1, i)),
    "gather axis 0 [1000,1000]": (lambda: (table(), places()), lambda x, i: torch.gather(x, 0, i)),
    "index_select columns [1000,500]": (lambda: (table(), I(0, 1000, (500,))), lambda x, i: torch.index_select(x, 1, i)),
    "index_select rows [500,1000]": (lambda: (table(), I(0, 1000, (500,))), lambda x, i: torch.index_select(x, 0, i)),
    "scatter_add axis 1 [1000,1000]": (lambda: (table(), places()), lambda x, i: torch.scatter_add(x, 1, i, x)),
    "scatter_add axis 0 [1000,1000]": (lambda: (table(), places()), lambda x, i: torch.scatter_add(x, 0, i, x)),
    "scatter axis 1 [1000,1000]": (lambda: (table(), places()), lambda x, i: torch.scatter(x, 1, i, x)),
    "scatter_reduce amax [1000,1000]": (lambda: (table(), table(), places()),
                                        lambda x, u, i: torch.scatter_reduce(x, 1, i, u, "amax")),
    "scatter_reduce amin axis 0 [1000,1000]": (lambda: (table(), table(), places()),
                                               lambda x, u, i: torch.scatter_reduce(x, 0, i, u, "amin")),
    "scatter_reduce prod [1000,1000]": (lambda: (near_one(), near_one(), places()),
                                        lambda x, u, i: torch.scatter_reduce(x, 1, i, u, "prod")),
    "scatter_reduce mean [1000,1000]": (lambda: (table(), table(), places()),
                                        lambda x, u, i: torch.scatter_reduce(x, 1, i, u, "mean")),
    "index_add rows [1000,1000] of 500": (lambda: (table(), I(0, 1000, (500,))), lambda x, i: torch.index_add(x, 0, i, x[:500])),
    "index_put of 1,000,000 places": (lambda: (R(1000000), I(0, 1000000, (1000000,)), R(1000000)),
                                      lambda x, i, u: x.index_put((i,), u)),
    "index_put columns [1000,500]": (lambda: (table(), I(0, 1000, (500,)), R(1000, 500)), put_columns),
    "embedding [100000,256] of 256": (lambda: (R(100000, 256), I(0, 100000, (256,))), lambda w, i: F.embedding(i, w)),
    "embedding_bag [10000,64] of 512 x 16": (lambda: (R(10000, 64), I(0, 10000, (512, 16))), lambda w, i: F.embedding_bag(i, w)),
    "masked selection [1000,1000]": (lambda: (table(), table() > 0), lambda x, m: x[m]),
    "nonzero [1000,1000]": (lambda: (table() > 0,), torch.nonzero),
    "flip axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.flip(x, (0,))),
    "flip axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.flip(x, (1,))),
    "roll both [1000,1000]": (lambda: (table(),), lambda x: torch.roll(x, (5, 7), (0, 1))),
    "repeat [1000,1000] of [1000,500]": (lambda: (R(1000, 500),), lambda x: x.repeat(1, 2)),
    "repeat_interleave axis 1 [1000,1000]": (lambda: (R(1000, 500),), lambda x: torch.repeat_interleave(x, 2, 1)),
    "pad [32,384]": (lambda: (R(32, 384),), lambda x: F.pad(x, (1, 1, 1, 1))),
    "pad [1000,1000] by 3": (lambda: (table(),), lambda x: F.pad(x, (3, 3, 3, 3))),
    "pad reflected [8,16,64,64] by 3": (lambda: (images(),), lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect")),
    "transposed copy [1000,1000]": (lambda: (table(),), lambda x: x.T.contiguous()),
    "permuted copy [100,100,100]": (lambda: (R(100, 100, 100),), lambda x: x.permute(2, 0, 1).contiguous()),
    "tril [1000,1000]": (lambda: (table(),), torch.tril),
    "diag_embed [256,64]": (lambda: (R(256, 64),), torch.diag_embed),
    "concat axis 1 [1000,1000]": (lambda: (R(1000, 500),), lambda x: torch.cat((x, x), 1)),
    "where [1000,1000]": (lambda: (table(), R(1000), table() > 0), lambda x, y, m: torch.where(m, x, y)),
    "one_hot [1000] of 1,000": (lambda: (I(0, 1000, (1000,)),), lambda i: F.one_hot(i, 1000)),
    "unfold 3 x 3 [8,16,64,64]": (lambda: (images(),), lambda x: F.unfold(x, 3, padding=1)),
    "fold 3 x 3 [8,16,64,64]": (lambda: (R(8, 144, 4096),), lambda x: F.fold(x, 64, 3, padding=1)),
    "pixel_shuffle [8,16,64,64]": (lambda: (images(),), lambda x: F.pixel_shuffle(x, 2)),
    "kron [32,32] x [32,32]": (lambda: (R(32, 32), R(32, 32)), torch.kron),
    # Reductions, cumulative operations, sorting, statistics, normalisation.
    "softmax axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.softmax(x, 0)),
    "softmax axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.softmax(x, 1)),
    "argmax axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.argmax(x, 0)),
    "argmax axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.argmax(x, 1)),
    "sum axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.sum(x, 0)),
    "sum axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.sum(x, 1)),
    "sum axes 0, 2, 3 [8,16,64,64]": (lambda: (images(),), lambda x: torch.sum(x, (0, 2, 3))),
    "sum int64 axis 0 [1000,1000]": (lambda: (places(),), lambda x: torch.sum(x, 0)),
    "amax axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.amax(x, 0)),
    "var axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.var(x, 0)),
    "logsumexp axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.logsumexp(x, 0)),
    "prod axis 1 [1000,1000]": (lambda: (near_one(),), lambda x: torch.prod(x, 1)),
    "prod axis 0 [1000,1000]": (lambda: (near_one(),), lambda x: torch.prod(x, 0)),
    "prod of 1,000,000": (lambda: (near_one(),), torch.prod),
    "norm p = 3 axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.linalg.vector_norm(x, 3, 1)),
    "cumsum axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.cumsum(x, 0)),
    "cumsum axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.cumsum(x, 1)),
    "cumsum int64 axis 1 [1000,1000]": (lambda: (places(),), lambda x: torch.cumsum(x, 1)),
    "cumsum of 1,000,000": (lambda: (R(1000000),), lambda x: torch.cumsum(x, 0)),
    "cumprod axis 0 [1000,1000]": (lambda: (near_one(),), lambda x: torch.cumprod(x, 0)),
    "cumprod axis 1 [1000,1000]": (lambda: (near_one(),), lambda x: torch.cumprod(x, 1)),
    "cummax axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.cummax(x, 1).values),
    "cummax axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.cummax(x, 0).values),
    "logcumsumexp axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.logcumsumexp(x, 1)),
    "sort axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.sort(x, 1).values),
    "sort axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.sort(x, 0).values),
    "argsort of 1,000,000": (lambda: (R(1000000),), lambda x: torch.argsort(x, stable=True)),
    "topk 5 of axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.topk(x, 5, 1).values),
    "topk 5 of axis 0 [1000,1000]": (lambda: (table(),), lambda x: torch.topk(x, 5, 0).values),
    "topk 100 of 1,000,000": (lambda: (R(1000000),), lambda x: torch.topk(x, 100).values),
    "median axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.median(x, 1).values),
    "median of 1,000,000": (lambda: (table(),), torch.median),
    "kthvalue 100 axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.kthvalue(x, 100, 1).values),
    "quantile axis 1 [1000,1000]": (lambda: (table(),), lambda x: torch.quantile(x, 0.3, 1)),
    "quantile of 1,000,000": (lambda: (table(),), lambda x: torch.quantile(x, 0.3)),
    "mode axis 1 [1000,1000]": (lambda: (I(0, 50, (1000, 1000)),), lambda x: torch.mode(x, 1).values),
    "unique of 1,000,000 int64": (lambda: (I(0, 1000, (1000000,)),), lambda x: torch.unique(x, return_inverse=True, return_counts=True)),
    "unique of 1,000,000": (lambda: (R(1000000),), lambda x: torch.unique(x, return_inverse=True, return_counts=True)),
    "searchsorted 1,000,000 in 1,000": (lambda: (R(1000).sort().values, R(1000000)), torch.searchsorted),
    "bincount of 1,000,000": (lambda: (I(0, 1000, (1000000,)),), torch.bincount),
    "histc of 1,000,000": (lambda: (R(1000000),), lambda x: torch.histc(x, 100, -3, 3)),
    "cdist [500,64]": (lambda: (R(500, 64), R(500, 64)), torch.cdist),
    "cdist p = 1 [500,64]": (lambda: (R(500, 64), R(500, 64)), lambda a, b: torch.cdist(a, b, 1)),
    "cov [64,4096]": (lambda: (R(64, 4096),), torch.cov),
    "layer_norm [1000,1000]": (lambda: (table(), R(1000), R(1000)), lambda x, w, b: F.layer_norm(x, (1000,), w, b)),
    "group_norm [8,16,64,64]": (lambda: (images(), R(16), R(16)), lambda x, w, b: F.group_norm(x, 4, w, b)),
    # Element-wise operations.
    "remainder [1000,1000]": (lambda: (100 * table(), positive()), torch.remainder),
    "remainder by 3 [1000,1000]": (lambda: (100 * table(),), lambda x: torch.remainder(x, 3)),
    "remainder float64 [512,512]": (lambda: (100 * R(512, 512).double(), R(512, 512).double()), torch.remainder),
    "remainder int64 [1000,1000]": (lambda: (places(), places() + 1), torch.remainder),
    "fmod [1000,1000]": (lambda: (100 * table(), positive()), torch.fmod),
    "floor_divide [1000,1000]": (lambda: (100 * table(), positive()), torch.floor_divide),
    "floor_divide int64 [1000,1000]": (lambda: (places(), places() + 1), torch.floor_divide),
    "exp float64 [512,512]": (lambda: (R(512, 512).double(),), torch.exp),
    "tanh float64 [512,512]": (lambda: (R(512, 512).double(),), torch.tanh),
    "pow [1000,1000]": (lambda: (positive(), positive()), torch.pow),
    "lerp [1000,1000]": (lambda: (table(), table(), unit()), torch.lerp),
    "hypot [1000,1000]": (lambda: (table(), table()), torch.hypot),
    "logaddexp [1000,1000]": (lambda: (table(), table()), torch.logaddexp),
    "xlogy [1000,1000]": (lambda: (table(), positive()), torch.xlogy),
    "gelu [1000,1000]": (lambda: (table(),), F.gelu),
    "softplus [1000,1000]": (lambda: (table(),), F.softplus),
    "masked_fill [1000,1000]": (lambda: (table(), table() > 0), lambda x, m: x.masked_fill(m, 0)),
    "nan_to_num [1000,1000]": (lambda: (table(),), torch.nan_to_num),
    "isin [1000000] of 100": (lambda: (I(0, 1000, (1000000,)), I(0, 1000, (100,))), torch.isin),
    "gcd int64 [1000,1000]": (lambda: (places(), places()), torch.gcd),
    "erfc [1000,1000]": (lambda: (table(),), torch.erfc),
    "erfinv [1000,1000]": (lambda: (unit(),), torch.erfinv),
    "lgamma [1000,1000]": (lambda: (positive(),), torch.lgamma),
    "digamma [1000,1000]": (lambda: (positive(),), torch.digamma),
    "polygamma 1 [1000,1000]": (lambda: (positive(),), lambda x: torch.polygamma(1, x)),
    "igamma [1000,1000]": (lambda: (positive(), positive()), torch.igamma),
    "i0 [1000,1000]": (lambda: (table(),), torch.i0),
    "i1e [1000,1000]": (lambda: (table(),), torch.special.i1e),
    "bessel_j0 [1000,1000]": (lambda: (positive(),), torch.special.bessel_j0),
    "sinc [1000,1000]": (lambda: (table(),), torch.sinc),
    "ndtri [1000,1000]": (lambda: (unit(),), torch.special.ndtri),
    "zeta [1000,1000]": (lambda: (1 + positive(), positive()), torch.special.zeta),
    # Creation.
    "arange of 1,000,000": (tuple, lambda: torch.arange(1000000)),
    "linspace of 1,000,000": (tuple, lambda: torch.linspace(0, 1, 1000000)),
    "eye 1000": (tuple, lambda: torch.eye(1000)),
    "rand of 1,000,000": (tuple, lambda: torch.rand(1000000)),
    "randn of 1,000,000": (tuple, lambda: torch.randn(1000000)),
    "randint of 1,000,000": (tuple, lambda: I(0, 1000, (1000000,))),
    "randperm of 1,000,000": (tuple, lambda: torch.randperm(1000000)),
    "bernoulli [1000,1000]": (lambda: (unit(),), torch.bernoulli),
    "exponential of 1,000,000": (tuple, lambda: torch.empty(1000000).exponential_()),
    "multinomial 10,000 of 1,000": (lambda: (torch.rand(1000),), lambda w: torch.multinomial(w, 10000, True)),
    # Products, linear algebra, Fourier transforms.
    "matmul float64 512": (lambda: (R(512, 512).double(), R(512, 512).double()), torch.matmul),
    "matmul float64 512 transposed": (lambda: (R(512, 512).double(), R(512, 512).double()), lambda a, b: a @ b.T),
    "matmul float32 512": (lambda: (R(512, 512), R(512, 512)), torch.matmul),
    "matrix times vector 2048": (lambda: (R(2048, 2048), R(2048)), torch.matmul),
    "vector times matrix 2048": (lambda: (R(2048, 2048), R(2048)), lambda a, x: x @ a),
    "matrix times vector float64 1024": (lambda: (R(1024, 1024).double(), R(1024).double()), torch.matmul),
    "products [1024,8,8]": (lambda: (R(1024, 8, 8), R(1024, 8, 8)), torch.matmul),
    "products [4096,4,4]": (lambda: (R(4096, 4, 4), R(4096, 4, 4)), torch.matmul),
    "products [256,32,32]": (lambda: (R(256, 32, 32), R(256, 32, 32)), torch.matmul),
    "products float64 [256,16,16]": (lambda: (R(256, 16, 16).double(), R(256, 16, 16).double()), torch.matmul),
    "einsum bhqd,bhkd->bhqk [8,8,128,64]": (lambda: (R(8, 8, 128, 64), R(8, 8, 128, 64)),
                                            lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b)),
    "einsum ij,ij->i [1000,1000]": (lambda: (table(), table()), lambda a, b: torch.einsum("ij,ij->i", a, b)),
    "outer [1000] x [1000]": (lambda: (R(1000), R(1000)), torch.outer),
    "bilinear [256,64] x [256,64]": (lambda: (R(256, 64), R(256, 64), R(32, 64, 64)), F.bilinear),
    "linalg.solve [64,32,32]": (lambda: (matrices(), R(64, 32, 8)), torch.linalg.solve),
    "linalg.inv [64,32,32]": (lambda: (matrices(),), torch.linalg.inv),
    "linalg.det [64,32,32]": (lambda: (matrices(),), torch.linalg.det),
    "linalg.cholesky [64,32,32]": (lambda: (definite(),), torch.linalg.cholesky),
    "linalg.qr [64,32,32]": (lambda: (matrices(),), lambda a: torch.linalg.qr(a).Q),
    "linalg.eigh [64,32,32]": (lambda: (definite(),), lambda a: torch.linalg.eigh(a).eigenvalues),
    "linalg.svd [64,32,32]": (lambda: (matrices(),), lambda a: torch.linalg.svd(a, False).S),
    "linalg.solve 512": (lambda: (R(512, 512) + 30 * torch.eye(512), R(512, 8)), torch.linalg.solve),
    "linalg.eigh 256": (lambda: (R(256, 256),), lambda a: torch.linalg.eigh(a).eigenvalues),
    "matrix_exp [64,32,32]": (lambda: (0.1 * matrices(),), torch.linalg.matrix_exp),
    "fft [1000,1024]": (lambda: (R(1000, 1024),), lambda x: torch.fft.fft(x).real),
    "rfft [1000,1024]": (lambda: (R(1000, 1024),), lambda x: torch.fft.rfft(x).real),
    "rfft [1000,1000]": (lambda: (table(),), lambda x: torch.fft.rfft(x).real),
    "fft [100,1009]": (lambda: (R(100, 1009),), lambda x: torch.fft.fft(x).real),
    "fft2 [16,256,256]": (lambda: (R(16, 256, 256),), lambda x: torch.fft.fft2(x).real),
    "irfft of rfft [1000,1024]": (lambda: (R(1000, 1024),), lambda x: torch.fft.irfft(torch.fft.rfft(x))),
    "stft 400 of [4,16000]": (lambda: (R(4, 16000), torch.ones(400)),
                              lambda x, w: torch.stft(x, 400, 160, window=w, return_complex=True).real),
    # Images.
    "conv2d 3 x 3 [8,16,64,64]": (lambda: (images(), R(32, 16, 3, 3)), lambda x, w: F.conv2d(x, w, padding=1)),
    "conv2d 2 x 2 stride 2 [8,16,64,64]": (lambda: (images(), R(32, 16, 2, 2)), lambda x, w: F.conv2d(x, w, stride=2)),
    "conv2d 4 x 4 stride 4 [8,16,64,64]": (lambda: (images(), R(32, 16, 4, 4)), lambda x, w: F.conv2d(x, w, stride=4)),
    "conv2d 16 x 16 stride 16 [8,3,224,224]": (lambda: (R(8, 3, 224, 224), R(192, 3, 16, 16)), lambda x, w: F.conv2d(x, w, stride=16)),
    "conv2d depthwise 3 x 3 [32,256,2,2]": (lambda: (R(32, 256, 2, 2), R(256, 1, 3, 3)),
                                            lambda x, w: F.conv2d(x, w, padding=1, groups=256)),
    "conv2d depthwise 3 x 3 [32,256,4,4]": (lambda: (R(32, 256, 4, 4), R(256, 1, 3, 3)),
                                            lambda x, w: F.conv2d(x, w, padding=1, groups=256)),
    "conv2d depthwise 3 x 3 [8,64,56,56]": (lambda: (R(8, 64, 56, 56), R(64, 1, 3, 3)),
                                            lambda x, w: F.conv2d(x, w, padding=1, groups=64)),
    "conv1d 9 [8,64,1000]": (lambda: (R(8, 64, 1000), R(64, 64, 9)), lambda x, w: F.conv1d(x, w, padding=4)),
    "conv3d 3 [2,8,16,32,32]": (lambda: (R(2, 8, 16, 32, 32), R(16, 8, 3, 3, 3)), lambda x, w: F.conv3d(x, w, padding=1)),
    "conv_transpose2d 2 x 2 stride 2 [8,16,64,64]": (lambda: (images(), R(16, 16, 2, 2)),
                                                     lambda x, w: F.conv_transpose2d(x, w, stride=2)),
    "interpolate bilinear [8,16,64,64] to 128": (lambda: (images(),), lambda x: F.interpolate(x, (128, 128), mode="bilinear")),
    "interpolate bicubic [8,16,64,64] to 128": (lambda: (images(),), lambda x: F.interpolate(x, (128, 128), mode="bicubic")),
    "interpolate nearest [8,16,64,64] to 128": (lambda: (images(),), lambda x: F.interpolate(x, (128, 128))),
    "interpolate area [8,16,64,64] to 24": (lambda: (images(),), lambda x: F.interpolate(x, (24, 24), mode="area")),
    "grid_sample [8,16,64,64]": (lambda: (images(), 2 * torch.rand(8, 64, 64, 2) - 1), lambda x, g: F.grid_sample(x, g, align_corners=False)),
    "affine_grid [8,64,64]": (lambda: (R(8, 2, 3),), lambda t: F.affine_grid(t, (8, 3, 64, 64), align_corners=False)),
    "max_pool1d 3 [8,64,1000]": (lambda: (R(8, 64, 1000),), lambda x: F.max_pool1d(x, 3, 2)),
    "max_pool3d 2 [2,8,16,32,32]": (lambda: (R(2, 8, 16, 32, 32),), lambda x: F.max_pool3d(x, 2)),
    "avg_pool3d 2 [2,8,16,32,32]": (lambda: (R(2, 8, 16, 32, 32),), lambda x: F.avg_pool3d(x, 2)),
    "adaptive_avg_pool2d 7 [8,64,32,32]": (lambda: (R(8, 64, 32, 32),), lambda x: F.adaptive_avg_pool2d(x, 7)),
    "adaptive_max_pool2d 7 [8,64,32,32]": (lambda: (R(8, 64, 32, 32),), lambda x: F.adaptive_max_pool2d(x, 7)),
    "lp_pool2d 2 [8,16,64,64]": (lambda: (images(),), lambda x: F.lp_pool2d(x, 2, 2)),
    "max_unpool2d 2 [8,16,32,32]": (lambda: F.max_pool2d(images(), 2, return_indices=True), lambda x, i: F.max_unpool2d(x, i, 2)),
    # Losses.
    "cross_entropy [1000,1000]": (lambda: (table(), I(0, 1000, (1000,))), F.cross_entropy),
    "nll_loss [1000,1000]": (lambda: (table().log_softmax(1), I(0, 1000, (1000,))), F.nll_loss),
    "binary_cross_entropy_with_logits [1000,1000]": (lambda: (table(), unit()), F.binary_cross_entropy_with_logits),
    "huber_loss [1000,1000]": (lambda: (table(), table()), F.huber_loss),
    "kl_div [1000,1000]": (lambda: (table().log_softmax(1), table().softmax(1)), F.kl_div),
    "ctc_loss [100,16,32]": (lambda: (R(100, 16, 32).log_softmax(2), I(1, 32, (16, 20)), torch.full((16,), 100), torch.full((16,), 20)),
                             F.ctc_loss),
    "triplet_margin_loss [1000,256]": (lambda: (R(1000, 256), R(1000, 256), R(1000, 256)), F.triplet_margin_loss),
    "cosine_embedding_loss [1000,256]": (lambda: (R(1000, 256), R(1000, 256), 2.0 * (R(1000) > 0) - 1), F.cosine_embedding_loss),
    "multi_margin_loss [1000,100]": (lambda: (R(1000, 100), I(0, 100, (1000,))), F.multi_margin_loss),
    "cosine_similarity [1000,1000]": (lambda: (table(), table()), F.cosine_similarity),
}


class Ours:
    def __init__(self, program, threads, clock):
        self.process = subprocess.Popen([program, str(threads), *(["cpu"] if clock is time.process_time else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = {}
        for line in iter(self.process.stdout.readline, "\n"):
            name, phase = line.rstrip("\n").split("\t")
            self.rows[name] = phase == "train"

    def least(self, name, phase, seconds):
        print(name, phase, seconds, sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"operations.py: the program ended at {name}, {phase}")
        return float(answer.split("\t")[1])


def trained_inputs(name, tensors):
    """How many of the first inputs have a gradient: as in bench/operations.cpp, all that are floating unless the row is in FIXED."""
    return [x for x in tensors if x.is_floating_point()][:FIXED.get(name, len(tensors))]


# Rows with floating inputs behind those that have a gradient.
FIXED = {"huber_loss [1000,1000]": 1, "kl_div [1000,1000]": 1, "binary_cross_entropy_with_logits [1000,1000]": 1,
         "where [1000,1000]": 1, "cosine_embedding_loss [1000,256]": 2}


def peer_call(name, phase):
    inputs, operation = ROWS[name]
    tensors = inputs()
    if phase == "call":
        return lambda: operation(*tensors)
    wanted = trained_inputs(name, tensors)
    for x in wanted:
        x.requires_grad_()

    def train():
        y = operation(*tensors)
        return y, torch.autograd.grad(y, wanted, y.detach())
    return train


def peer_least(call, seconds, clock):
    times = []
    for _ in range(2):
        call()
    end = clock() + seconds
    while clock() < end or len(times) < 3:
        start = clock()
        call()
        times.append(1e6 * (clock() - start))
    return min(times)


def spread(minima):
    return round((max(minima) - min(minima)) / min(minima), 3)


def compare(ours, name, phase, options):
    call, mine, theirs = peer_call(name, phase), [], []
    for _ in range(options.rounds):
        mine.append(ours.least(name, phase, options.budget))
        theirs.append(peer_least(call, options.budget, options.clock))
    precision = "float64" if "float64" in name else "int64" if "int64" in name else "fp32"
    return dict(workload=name, phase=phase, precision=precision, tenon_ms=round(min(mine) / 1e3, 5), spread=spread(mine),
                peer="PyTorch", peer_ms=round(min(theirs) / 1e3, 5), peer_spread=spread(theirs))


def print_row(row):
    ratio = row["peer_ms"] / row["tenon_ms"]
    print(f"{row['workload']:46} {row['phase']:6} {1e3 * row['tenon_ms']:10.1f} {row['spread']:6.0%} {1e3 * row['peer_ms']:10.1f}"
          f" {row['peer_spread']:6.0%} {ratio:7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="rows whose names contain one of these texts, separated by ';'")
    parser.add_argument("--phase", default="call,train")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of a slice")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu-time", dest="clock", action="store_const", const=time.process_time, default=time.perf_counter,
                        help="count the time of the processor, for one thread on a busy machine")
    parser.add_argument("--commit", default="", help="of the program; default: that of this checkout")
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours = Ours(options.program, options.threads, options.clock)
    if set(ours.rows) != set(ROWS):
        sys.exit(f"operations.py: rows of one side only: {sorted(set(ours.rows) ^ set(ROWS))}")
    rows = []
    for name in ROWS:
        if not any(text in name for text in options.only.split(";")):
            continue
        for phase in options.phase.split(","):
            if phase == "call" or ours.rows[name]:
                rows.append(compare(ours, name, phase, options))
                print_row(rows[-1])
    rows.sort(key=lambda row: row["peer_ms"] / row["tenon_ms"])
    mean = math.exp(statistics.fmean(math.log(row["peer_ms"] / row["tenon_ms"]) for row in rows))
    timed = ", time of the processor" if options.clock is time.process_time else ""
    date, head = datetime.date.today().isoformat(), options.commit or commit()
    print(f"\n{cpu_model()}, {options.threads} threads{timed}, PyTorch {torch.__version__}, commit {head[:8]}, {date}. Microseconds of Tenon and"
          " PyTorch with their spreads, PyTorch's time over Tenon's.\n")
    for row in rows:
        print_row(row)
        row["commit"], row["date"] = head[:8], date
    slow = sum(row["tenon_ms"] > 1.2 * row["peer_ms"] for row in rows)
    print(f"\nGeometric mean of {len(rows)} ratios: {mean:.2f}. Slower than 1.2 times PyTorch: {slow}.")
    if options.out:
        record = dict(question="Single operations", machine=f"{cpu_model()}, {options.threads} threads{timed}",
                      peers={"PyTorch": torch.__version__.split("+")[0]}, geometric_mean=round(mean, 3), notes=[],
                      method=f"bench/operations.py: both sides in turn, {options.rounds} rounds of {options.budget} s; minimum of all calls",
                      rows=rows)
        head = json.dumps({key: value for key, value in record.items() if key != "rows"}, indent=1)[:-2]
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        pathlib.Path(options.out).write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
