"""The numbers of the zoo test: every parameter and input by its name, its shape and a seed.

tests/zoo/rule.c computes the same bits; README.md states the rule. Every intermediate value is exact or rounded once in
double precision, so no compiler and no processor can differ.
"""
import math

import numpy as np

STEP = 0x9E3779B97F4A7C15
CHUNK = 1 << 20

# Ending of the name: centre, radius. Radii are powers of two: the product with u is exact.
ROLES = (
    ("_gamma", 1.0, 0.125),
    ("_beta", 0.0, 0.125),
    ("_bias", 0.0, 0.125),
    ("_running_mean", 0.0, 0.125),
    ("_running_var", 1.0, 0.25),
    ("data", 0.0, 2.0),
    ("head", 0.0, 1.0),
)


def key_of(name, seed):
    """FNV-1a over the name, then the seed."""
    key = 0xCBF29CE484222325
    for byte in name.encode("utf-8"):
        key = ((key ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (key + seed * STEP) & 0xFFFFFFFFFFFFFFFF


def weight_gain(shape):
    """6: after ReLU the variance stays. Less for the output layer and for what a residual sum adds to."""
    if len(shape) == 2:
        return 3.0
    if shape[0] == 4 * shape[1] >= 256 and tuple(shape[2:]) == (1, 1):
        return 1.5
    return 6.0


def scale_of(name, shape):
    """(centre, radius) of a parameter or input."""
    if name.endswith("_weight"):
        return 0.0, math.sqrt(weight_gain(shape) / math.prod(shape[1:]))
    for ending, centre, radius in ROLES:
        if name.endswith(ending):
            return centre, radius
    raise ValueError("%s: the rule knows no such ending" % name)


def numbers(name, shape, seed=1):
    """The values, float32, row-major."""
    centre, radius = scale_of(name, shape)
    key, count = np.uint64(key_of(name, seed)), math.prod(shape)
    out = np.empty(count, np.float32)
    with np.errstate(over="ignore"):
        for begin in range(0, count, CHUNK):
            end = min(count, begin + CHUNK)
            z = np.arange(begin + 1, end + 1, dtype=np.uint64) * np.uint64(STEP) + key
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
            u = (z >> np.uint64(40)).astype(np.float64) / 8388608.0 - 1.0
            out[begin:end] = (centre + radius * u).astype(np.float32)
    return out.reshape(shape)
