#!/usr/bin/env python3
"""Writes fixtures/metrics.safetensors: metrics of random cases by scikit-learn, torchmetrics and PyTorch: python3 make_metric_fixtures.py

    pip install numpy scikit-learn torch torchmetrics safetensors

Classification: "shapes" [cases, 2] are samples and classes of each case, "scores" and "targets" all of them one after another,
"weights" the class weights, "expected" [cases, len(METRICS)]. Targets of -100 are ignored. NaN in "expected" is a metric that is
not compared: one that is not defined, or the two libraries break ties in another order. Where scikit-learn and torchmetrics both
have a metric they must agree here. Regression: "columns" [cases, 2], "predicted", "truth", "errors" [cases, 3]: MAE, MSE, R2.
"""
import pathlib
import warnings

import numpy as np
import torch
import torchmetrics.functional.classification as tm
from safetensors.numpy import save_file
from sklearn import metrics as sk

METRICS = ["accuracy", "top3", "top5", "macro_precision", "macro_recall", "macro_f1", "weighted_f1", "balanced_accuracy", "matthews",
           "log_loss", "roc_auc", "average_precision", "cross_entropy"]
NAN = float("nan")


def probabilities(scores):
    """Softmax whose sum does not depend on the order of the classes: equal probabilities stay equal."""
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / np.sort(e, 1).cumsum(1)[:, -1:]


def same(a, b, what):
    assert abs(a - b) < 1e-5 or (np.isnan(a) and np.isnan(b)), (what, a, b)
    return a


def over_classes(figure, p, y, needs_others):
    values = [figure(y == c, p[:, c]) for c in range(p.shape[1]) if (y == c).any() and ((y != c).any() or not needs_others)]
    return np.mean(values) if values else NAN


def classification(draw, case):
    n, c = int(draw.integers(1, 31)), int(draw.choice([2, 2, 3, 4, 6, 9]))
    ties = case % 2 == 0
    scores = draw.integers(-4, 5, (n, c)) / 2 if ties else draw.normal(size=(n, c)) * 2
    scores = scores.astype(np.float32)
    present = draw.permutation(c)[: int(draw.integers(1, c + 1))]
    targets = draw.choice(present, n)
    if case % 3 == 0:
        targets = np.where(draw.random(n) < 0.3, -100, targets)
    if (targets < 0).all():
        targets[0] = present[0]
    weights = draw.choice([0.1, 0.5, 1, 5], c).astype(np.float32)
    kept = targets >= 0
    s, y = scores[kept].astype(np.float64), targets[kept]
    p, guess, classes = probabilities(s), s.argmax(1), list(range(c))
    usual = dict(average="macro", zero_division=0)
    st, yt = torch.tensor(p), torch.tensor(y)
    mine = {"accuracy": sk.accuracy_score(y, guess), "top3": NAN, "top5": NAN}
    for k in (3, 5):
        if not ties and c > k:
            mine[f"top{k}"] = sk.top_k_accuracy_score(y, s, k=k, labels=classes)
    mine["macro_precision"] = same(sk.precision_score(y, guess, **usual),
                                   tm.multiclass_precision(torch.tensor(guess), yt, c, average="macro").item(), "precision")
    mine["macro_recall"] = same(sk.recall_score(y, guess, **usual),
                                tm.multiclass_recall(torch.tensor(guess), yt, c, average="macro").item(), "recall")
    mine["macro_f1"] = same(sk.f1_score(y, guess, **usual), tm.multiclass_f1_score(torch.tensor(guess), yt, c, average="macro").item(), "f1")
    mine["weighted_f1"] = sk.f1_score(y, guess, average="weighted", zero_division=0)
    mine["balanced_accuracy"] = sk.balanced_accuracy_score(y, guess)
    mine["matthews"] = sk.matthews_corrcoef(y, guess)
    mine["log_loss"] = sk.log_loss(y, p, labels=classes)
    if c == 2:
        mine["roc_auc"] = sk.roc_auc_score(y, p[:, 1]) if len(set(y)) == 2 else NAN
        mine["average_precision"] = sk.average_precision_score(y, p[:, 1]) if (y == 1).any() else NAN
    else:
        mine["roc_auc"] = over_classes(sk.roc_auc_score, p, y, True)
        mine["average_precision"] = over_classes(sk.average_precision_score, p, y, False)
        if len(set(y)) == c:  # there a class without samples counts as 0; here it is ignored, as in the other means
            same(mine["average_precision"], tm.multiclass_average_precision(st, yt, c, average="macro").item(), "AP")
    mine["cross_entropy"] = torch.nn.functional.cross_entropy(
        torch.tensor(scores).double(), torch.tensor(targets), weight=torch.tensor(weights).double(), ignore_index=-100).item()
    return (n, c), scores.ravel(), targets, weights, [mine[name] for name in METRICS]


def regression(draw, case):
    n, k = int(draw.integers(2, 31)), int(draw.integers(1, 4))
    truth = draw.normal(size=(n, k)) * draw.choice([0.01, 1, 100]) + draw.choice([0, 0, 1e6])
    if case % 3 == 0:
        truth[:, 0] = truth[0, 0]
    truth = truth.astype(np.float32)
    predicted = (truth if case % 7 == 0 else truth + draw.normal(size=(n, k))).astype(np.float32)
    y, q = truth.astype(np.float64), predicted.astype(np.float64)
    return (n, k), predicted.ravel(), truth.ravel(), [sk.mean_absolute_error(y, q), sk.mean_squared_error(y, q), sk.r2_score(y, q)]


def main():
    warnings.filterwarnings("ignore")
    draw = np.random.default_rng(38)
    shapes, scores, targets, weights, expected = zip(*(classification(draw, case) for case in range(400)))
    columns, predicted, truth, errors = zip(*(regression(draw, case) for case in range(100)))
    save_file({"shapes": np.array(shapes, np.int64), "scores": np.concatenate(scores), "targets": np.concatenate(targets).astype(np.int64),
               "weights": np.concatenate(weights), "expected": np.array(expected, np.float64), "columns": np.array(columns, np.int64),
               "predicted": np.concatenate(predicted), "truth": np.concatenate(truth), "errors": np.array(errors, np.float64)},
              str(pathlib.Path(__file__).resolve().parent / "fixtures" / "metrics.safetensors"))


if __name__ == "__main__":
    main()
