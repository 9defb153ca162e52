#!/usr/bin/env python3
"""Writes splits.json of tests/e2e/fixtures: how scikit-learn divides samples of random classes and groups.

    pip install scikit-learn numpy      (scikit-learn 1.9, numpy 2.4 made the committed file)
    tests/e2e/make_split_fixtures.py [FOLDER]

Each case has the sizes of classes or groups and their counts in scikit-learn's parts. Which samples these are does not matter.
"shares": train_test_split(stratify=classes): [sizes of classes, test samples, test samples of each class].
"folds": StratifiedKFold: [sizes of classes, folds, of each class in each fold].
"groups": GroupKFold: [sizes of groups, folds, samples of each fold].
"times": TimeSeriesSplit: [samples, folds, first test sample and one past the last, for each fold].
"""
import json
import pathlib
import sys

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold, TimeSeriesSplit, train_test_split

CASES = 100


def labels(rng, sizes):
    """Class or group numbers, each as often as its size, in random order."""
    out = np.repeat(np.arange(len(sizes)), sizes)
    rng.shuffle(out)
    return out


def counts(chosen, classes):
    return [int(np.sum(chosen == c)) for c in range(classes)]


def shares(rng):
    sizes = [int(n) for n in rng.integers(2, 120, rng.integers(2, 12))]
    total = sum(sizes)
    test = int(np.clip(round(total * rng.uniform(0.05, 0.6)), len(sizes), total - len(sizes)))
    of = labels(rng, sizes)
    _, held = train_test_split(of, test_size=test, stratify=of, random_state=int(rng.integers(1 << 30)))
    return [sizes, test, counts(held, len(sizes))]


def folds(rng):
    k = int(rng.integers(2, 8))
    sizes = [int(n) for n in rng.integers(k, 90, rng.integers(2, 9))]
    of = labels(rng, sizes)
    split = StratifiedKFold(k, shuffle=True, random_state=int(rng.integers(1 << 30)))
    return [sizes, k, [counts(of[held], len(sizes)) for _, held in split.split(of, of)]]


def groups(rng):
    sizes = [int(n) for n in rng.integers(1, 40, rng.integers(8, 40))]
    k = int(rng.integers(2, 8))
    of = labels(rng, sizes)
    return [sizes, k, [len(held) for _, held in GroupKFold(k).split(of, groups=of)]]


def times(rng):
    k = int(rng.integers(2, 9))
    samples = int(rng.integers(2 * k, 300))
    return [samples, k, [[int(held[0]), int(held[-1]) + 1] for _, held in TimeSeriesSplit(k).split(np.arange(samples))]]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures")
    rng = np.random.default_rng(38)
    made = {make.__name__: [make(rng) for _ in range(CASES)] for make in (shares, folds, groups, times)}
    lines = ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]" for name, cases in made.items())
    (folder / "splits.json").write_text("{" + lines + "}\n")


main()
