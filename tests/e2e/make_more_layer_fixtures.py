#!/usr/bin/env python3
"""Writes more_layers.safetensors: layers of shapes, activations, parametrizations, losses as layers and rotary frequencies.

    pip install torch numpy safetensors transformers
    tests/e2e/make_more_layer_fixtures.py [FOLDER]

The names are those of make_layer_fixtures.py. Rotary frequencies are those of Hugging Face's transformers.
"""
import pathlib
import sys

import torch
import torch.nn as nn
from safetensors.torch import save_file
from torch.nn.utils import parametrizations, parametrize
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from make_layer_fixtures import Case

# name: layer, shape of the input
PLAIN = {
    "reflection_pad1d": (lambda: nn.ReflectionPad1d((2, 1)), (2, 3, 5)),
    "reflection_pad2d": (lambda: nn.ReflectionPad2d((2, 1, 0, 3)), (2, 3, 5, 4)),
    "reflection_pad3d": (lambda: nn.ReflectionPad3d(1), (2, 3, 2, 3, 4)),
    "replication_pad1d": (lambda: nn.ReplicationPad1d(3), (3, 5)),
    "replication_pad2d": (lambda: nn.ReplicationPad2d((2, 1, 0, 3)), (2, 1, 3, 4)),
    "replication_pad3d": (lambda: nn.ReplicationPad3d((1, 0, 2, 1, 0, 2)), (1, 2, 2, 3, 2)),
    "circular_pad1d": (lambda: nn.CircularPad1d((2, 1)), (2, 3, 5)),
    "circular_pad2d": (lambda: nn.CircularPad2d(2), (1, 2, 3, 4)),
    "circular_pad3d": (lambda: nn.CircularPad3d((1, 0, 2, 1, 0, 2)), (1, 2, 2, 3, 2)),
    "zero_pad1d": (lambda: nn.ZeroPad1d((1, -1)), (2, 3, 5)),
    "zero_pad2d": (lambda: nn.ZeroPad2d(2), (1, 2, 3, 4)),
    "zero_pad3d": (lambda: nn.ZeroPad3d((1, 0, 2, 1, 0, 2)), (1, 2, 2, 3, 2)),
    "constant_pad1d": (lambda: nn.ConstantPad1d((2, 1), 1.5), (2, 5)),
    "constant_pad2d": (lambda: nn.ConstantPad2d((2, 1, 0, 1), -2.0), (1, 2, 3, 4)),
    "constant_pad3d": (lambda: nn.ConstantPad3d(1, 0.5), (1, 2, 2, 3, 2)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 4)),
    "upsample_size": (lambda: nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), (1, 2, 3, 4)),
    "upsample_linear": (lambda: nn.Upsample(scale_factor=1.5, mode="linear"), (2, 2, 6)),
    "upsample_cubic": (lambda: nn.Upsample(scale_factor=1.7, mode="bicubic"), (1, 2, 5, 4)),
    "rrelu": (lambda: nn.RReLU(0.2, 0.4), (5, 7)),
    "alpha_dropout": (lambda: nn.AlphaDropout(0.3), (5, 7)),
    "feature_alpha_dropout": (lambda: nn.FeatureAlphaDropout(0.3), (2, 3, 4)),
    "upsampling_nearest2d": (lambda: nn.UpsamplingNearest2d(size=(4, 9)), (1, 2, 3, 4)),
    "upsampling_bilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=3), (1, 2, 3, 4)),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), (2, 8, 3, 2)),
    "pixel_unshuffle": (lambda: nn.PixelUnshuffle(3), (2, 1, 6, 9)),
    "channel_shuffle": (lambda: nn.ChannelShuffle(3), (2, 6, 2, 2)),
    "unflatten": (lambda: nn.Unflatten(1, (2, -1)), (2, 6, 3)),
    "unfold": (lambda: nn.Unfold((2, 3), dilation=2, padding=1, stride=(1, 2)), (2, 3, 5, 6)),
    "fold": (lambda: nn.Fold((5, 6), (2, 3), padding=1, stride=2), (2, 12, 9)),
    "tanhshrink": (lambda: nn.Tanhshrink(), (3, 4)),
    "softmax2d": (lambda: nn.Softmax2d(), (2, 3, 2, 4)),
    "softmin": (lambda: nn.Softmin(0), (3, 4)),
    "softshrink": (lambda: nn.Softshrink(0.3), (5, 7)),
    "hardshrink": (lambda: nn.Hardshrink(0.4), (5, 7)),
    "softplus": (lambda: nn.Softplus(2.0, 1.5), (5, 7)),
    "hardtanh": (lambda: nn.Hardtanh(-0.3, 0.8), (5, 7)),
    "threshold": (lambda: nn.Threshold(0.1, -3.0), (5, 7)),
}
PARAMETRIZED = {
    "weight_norm_linear": (lambda: parametrizations.weight_norm(nn.Linear(4, 3)), (5, 4)),
    "weight_norm_all": (lambda: parametrizations.weight_norm(nn.Linear(4, 3), dim=None), (5, 4)),
    "weight_norm_conv": (lambda: parametrizations.weight_norm(nn.Conv2d(2, 3, 3, padding=1), dim=1), (1, 2, 4, 3)),
    "weight_norm_bias": (lambda: parametrizations.weight_norm(nn.Linear(4, 3), "bias"), (5, 4)),
    "spectral_norm_linear": (lambda: parametrizations.spectral_norm(nn.Linear(4, 3)), (5, 4)),
    "spectral_norm_conv": (lambda: parametrizations.spectral_norm(nn.Conv2d(2, 3, 3), n_power_iterations=2), (1, 2, 4, 3)),
    "spectral_norm_transposed": (lambda: parametrizations.spectral_norm(nn.ConvTranspose2d(2, 3, 3), dim=1), (1, 2, 4, 3)),
}
# name: loss, shapes of floating inputs, targets
LOSSES = {
    "hinge_embedding": (nn.HingeEmbeddingLoss(margin=0.5), [(6,)], [torch.tensor([1, -1, 1, -1, -1, 1])]),
    "soft_margin": (nn.SoftMarginLoss(reduction="sum"), [(2, 3)], [torch.tensor([[1, -1, 1], [-1, -1, 1]])]),
    "multi_margin": (nn.MultiMarginLoss(p=2, margin=0.7), [(4, 3)], [torch.tensor([0, 2, 1, 1])]),
    "multi_label_margin": (nn.MultiLabelMarginLoss(), [(2, 4)], [torch.tensor([[3, 0, -1, 1], [2, -1, -1, -1]])]),
    "multi_label_soft_margin": (nn.MultiLabelSoftMarginLoss(), [(2, 4)], [torch.tensor([[1, 0, 0, 1], [0, 1, 1, 1]])]),
    "poisson_nll": (nn.PoissonNLLLoss(full=True), [(6,)], [torch.tensor([0, 1, 2, 5, 3, 1])]),
    "margin_ranking": (nn.MarginRankingLoss(margin=0.3), [(6,), (6,)], [torch.tensor([1, -1, 1, -1, -1, 1])]),
    "cosine_embedding": (nn.CosineEmbeddingLoss(margin=0.2), [(4, 3), (4, 3)], [torch.tensor([1, -1, 1, -1])]),
    "triplet_margin": (nn.TripletMarginLoss(margin=1.5, p=3, swap=True), [(4, 3), (4, 3), (4, 3)], []),
    "triplet_margin_with_distance": (nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.5),
                                     [(4, 3), (4, 3), (4, 3)], []),
    "ctc": (nn.CTCLoss(blank=1, zero_infinity=True), [(7, 2, 4)], [torch.tensor([[0, 2, 2], [3, 0, 1]]), torch.tensor([7, 5]), torch.tensor([3, 2])]),
}


class Distances(nn.Module):
    def __init__(self):
        super().__init__()
        self.cosine, self.distance = nn.CosineSimilarity(dim=-1, eps=1e-3), nn.PairwiseDistance(p=3, eps=1e-2, keepdim=True)


def plain(out):
    for name, (make, shape) in {**PLAIN, **PARAMETRIZED}.items():
        case = Case(out, name, make())
        for key, value in case.layer.named_buffers():  # singular vectors
            case.put("weights/" + key, value)
        case.finish(output=case.layer(case.input("x", *shape)))


def trained_spectral_norm(out):
    """Two calls in training mode: the singular vectors follow the weight."""
    case = Case(out, "spectral_norm_training", parametrizations.spectral_norm(nn.Linear(4, 3), eps=1e-4))
    for key, value in case.layer.named_buffers():
        value.copy_(case.draw(1.0, *value.shape))
        case.put("weights/" + key, value)
    case.layer.train()
    x = case.input("x", 5, 4)
    case.finish(output=case.layer(x))
    case.put("out/second", case.layer(x))
    for key, value in case.layer.named_buffers():
        case.put("out/" + key.rsplit(".", 1)[1], value)


def own_parametrization(out):
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    case = Case(out, "parametrized", layer)
    case.finish(output=case.layer(case.input("x", 5, 3)))


def pairs(out):
    case = Case(out, "distances", Distances())
    a, b = case.input("a", 4, 3), case.input("b", 4, 3)
    case.finish(cosine=case.layer.cosine(a, b), distance=case.layer.distance(a, b))


def bilinear(out):
    for name, options in {"bilinear": {}, "bilinear_plain": {"bias": False}}.items():
        case = Case(out, name, nn.Bilinear(3, 4, 5, **options))
        case.finish(output=case.layer(case.input("a", 2, 6, 3), case.input("b", 2, 6, 4)))


def last_layer(out):
    case = Case(out, "linear_cross_entropy", nn.LinearCrossEntropyLoss(4, 6, bias=True, label_smoothing=0.1))
    target = torch.tensor([0, 5, 2])
    case.put("in/target", target)
    case.finish(output=case.layer(case.input("x", 3, 4), target))


def adaptive(out):
    for name, options in {"adaptive": {}, "adaptive_bias": {"div_value": 2.0, "head_bias": True}}.items():
        case = Case(out, name, nn.AdaptiveLogSoftmaxWithLoss(20, 12, [3, 7], **options))
        x, target = case.input("x", 6, 20), torch.tensor([0, 11, 3, 6, 7, 2])
        case.put("in/target", target)
        output, loss = case.layer(x, target)
        case.finish(output=output, loss=loss, log_prob=case.layer.log_prob(x))


def losses(out):
    for name, (loss, shapes, targets) in LOSSES.items():
        case = Case(out, "loss_" + name, loss)
        given = [case.input(f"x{k}", *shape) for k, shape in enumerate(shapes)]
        for k, target in enumerate(targets):
            case.put(f"in/y{k}", target)
        if name == "ctc":
            given[0] = given[0].log_softmax(-1)
        case.finish(output=case.layer(*given, *targets))
    case = Case(out, "loss_gaussian_nll", nn.GaussianNLLLoss(full=True))
    mean, target, deviation = case.input("x0", 6), case.input("x1", 6), case.input("x2", 6)
    case.finish(output=case.layer(mean, target, deviation.square() + 0.1))


def rotary(out):
    for name, parameters, length in [
        ("linear", {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}, 0),
        ("dynamic", {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}, 100),
        ("dynamic_short", {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}, 10),
        ("yarn", {"rope_type": "yarn", "factor": 8.0, "rope_theta": 10000.0, "original_max_position_embeddings": 64}, 0),
        ("yarn_options", {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5000.0, "original_max_position_embeddings": 64, "beta_fast": 8.0,
                          "beta_slow": 2.0, "attention_factor": 1.5, "truncate": False}, 0),
        ("llama3", {"rope_type": "llama3", "factor": 8.0, "rope_theta": 500000.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 64}, 0),
    ]:
        config = LlamaConfig(hidden_size=64, num_attention_heads=2, max_position_embeddings=64, rope_parameters=parameters)
        frequencies, scale = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, torch.device("cpu"), seq_len=length or None)
        out[f"rotary_{name}/frequencies"] = frequencies.double().contiguous()
        out[f"rotary_{name}/scale"] = torch.tensor(float(scale), dtype=torch.float64)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "fixtures"
    out = {}
    for make in (plain, trained_spectral_norm, own_parametrization, pairs, bilinear, last_layer, adaptive, losses, rotary):
        make(out)
    path = folder / "more_layers.safetensors"
    save_file(out, path, metadata={"made_by": f"tests/e2e/make_more_layer_fixtures.py with PyTorch {torch.__version__.split('+')[0]}"})
    print(f"{path}: {len(out)} tensors, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
