"""Weights as a formula of their names, so that fixtures need not contain them."""
import numpy as np
import torch


def values(name, shape):
    """Uniform numbers that are a function of a tensor's name and shape; tests/e2e/fixtures.h has the same."""
    count, seed = int(np.prod(shape)), 0xcbf29ce484222325
    for byte in name.encode():  # FNV-1a
        seed = (seed ^ byte) * 0x100000001b3 % 2**64
    z = np.arange(count, dtype=np.uint64) ^ np.uint64(seed)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    u = ((z >> np.uint64(40)).astype(np.float64) - 2**23) / 2**23  # 24 bits: [-1, 1), exact in both precisions
    if name.endswith("running_var"):
        u = 1 + u / 2
    elif len(shape) == 1:
        u = u / 8 + (1 if name.endswith("weight") else 0)
        if name.endswith("bn3.weight"):
            u = u / 8  # the last convolution of a bottleneck
    else:
        u = u * np.sqrt(6 * shape[0] / count)  # He initialization; the fan-in is the product of all axes except the first
        if name.endswith(".conv2d.weight"):
            u = u / 4  # the last convolution of an Inception-ResNet block
    return torch.from_numpy(u.reshape(shape).astype(np.float32))
