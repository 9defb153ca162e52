#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/published.safetensors: results of torchvision's, timm's and Hugging Face's networks with random weights.

    pip install torch torchvision timm transformers safetensors (2.11, 0.26, 1.0.31 and 5.23 made the committed file)
    tests/e2e/make_published_fixtures.py [FOLDER]               narrow networks, whose weights are a formula (values())
    tests/e2e/make_published_fixtures.py --full FOLDER [NAME..] the networks as published, which take minutes and 1.5 GB;
                                                                TENON_PUBLISHED=FOLDER has the tests compare them instead

PyTorch computes in float64, results are rounded to float32. NETWORK is a name that Tenon's models::create() takes.

NETWORK/shape/KEY       shapes of state_dict(); with --full, NETWORK.weights.safetensors has the values
NETWORK/input           shape of a batch of images (a formula too), or tokens (BERT's with their types); NETWORK/y: classes
NETWORK/logits          in evaluation mode
NETWORK/grad/KEY        for each gradient of training: its norm, then about 16 of its elements, evenly spaced
NETWORK/losses          of ten steps: SGD (lr 3e-4, momentum 0.9, weight decay 1e-4), for GPT-2 and BERT AdamW (lr 1e-3, weight decay 0.1)
NETWORK/trained         logits in evaluation mode after them
NETWORK/rounding/KIND   how far PyTorch's own float32 (of RUNS runs the furthest) is from these logits, losses, trained, and at most from a gradient

Dropout is off, because its random numbers differ between libraries. Learning rates and weights are small, so that rounding errors
do not grow: a network with batch norm and a small batch amplifies small differences.
"""
import pathlib
import sys

import numpy as np
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.models
from safetensors.torch import save_file
from transformers import (BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification, GPT2Config,
                          GPT2LMHeadModel)

from fixture_values import values

KEPT = 16  # elements of a gradient
RUNS = 4  # runs of PyTorch's float32; the one furthest from float64 counts, because a ReLU near 0 can flip either way


def narrow(module, divisor, classes):
    """Divides all widths except those of input and output."""
    less = lambda n: n if n in (3, classes) else n // divisor
    for name, child in module.named_children():
        narrow(child, divisor, classes)
        if isinstance(child, nn.Conv2d):
            setattr(module, name, nn.Conv2d(less(child.in_channels), less(child.out_channels), child.kernel_size, child.stride,
                                            child.padding, bias=child.bias is not None))
        elif isinstance(child, nn.BatchNorm2d):
            setattr(module, name, type(child)(less(child.num_features), eps=child.eps))
        elif isinstance(child, nn.Linear):
            setattr(module, name, nn.Linear(less(child.in_features), less(child.out_features)))
    return module


def images(name, side, batch, width=64, classes=10):
    return narrow(getattr(torchvision.models, name)(num_classes=classes), 64 // width, classes), (batch, 3, side, side), classes


def inception(side, batch, width=32, classes=10):
    return narrow(timm.create_model("inception_resnet_v2", num_classes=classes), 32 // width, classes), (batch, 3, side, side), classes


def gpt2(batch, length, vocabulary=50257, **sizes):
    config = GPT2Config(vocab_size=vocabulary, bos_token_id=0, eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager", **sizes)
    return GPT2LMHeadModel(config), (batch, length), vocabulary


def bert(kind, batch, length, classes, **sizes):
    """Inputs are tokens, padded with 0, and their types: [batch, 2, length]."""
    return kind(BertConfig(num_labels=2 if kind is BertForQuestionAnswering else classes, attention_probs_dropout_prob=0,
                           attn_implementation="eager", **sizes)), (batch, 2, length), classes


SMALL_BERT = dict(vocab_size=61, num_hidden_layers=2, num_attention_heads=2, hidden_size=16, intermediate_size=24, max_position_embeddings=16)
NAMED_SMALL = "layers=2,heads=2,width=16,hidden=24,context=16"

NARROW = {
    "resnet18:width=4": lambda: images("resnet18", 64, 8, width=4),
    "resnet50:width=4": lambda: images("resnet50", 64, 8, width=4),
    "vgg16:width=2": lambda: images("vgg16", 32, 3, width=2),
    "vgg16_bn:width=2": lambda: images("vgg16_bn", 64, 8, width=2),
    "alexnet:width=4": lambda: images("alexnet", 64, 3, width=4),
    "inception_resnet_v2:width=2": lambda: inception(139, 8, width=2),
    "gpt2:layers=2,heads=2,width=16,context=16":
        lambda: gpt2(2, 16, vocabulary=61, n_layer=2, n_head=2, n_embd=16, n_positions=16),
    "bert:" + NAMED_SMALL: lambda: bert(BertForMaskedLM, 4, 13, 61, **SMALL_BERT),
    f"bert_classifier:{NAMED_SMALL},vocabulary=61": lambda: bert(BertForSequenceClassification, 4, 13, 5, **SMALL_BERT),
    f"bert_spans:{NAMED_SMALL},vocabulary=61": lambda: bert(BertForQuestionAnswering, 4, 13, 13, **SMALL_BERT),
}
FULL = {
    name: lambda name=name: images(name, 224, 2, classes=1000)
    for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "vgg16", "vgg16_bn", "alexnet")
} | {
    "inception_resnet_v2": lambda: inception(299, 2, classes=1000),
    "gpt2": lambda: gpt2(2, 64),
    "bert": lambda: bert(BertForMaskedLM, 2, 64, 30522),
    "bert_classifier": lambda: bert(BertForSequenceClassification, 2, 64, 2),
    "bert_spans": lambda: bert(BertForQuestionAnswering, 2, 64, 64),
}


def nudged(value):
    return value * (1 + 2**-24 * torch.randn_like(value)) if value.is_floating_point() else value


def state_of(net):
    """The network's file: tied tensors once, as save_pretrained() writes them."""
    tied = ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    return {key: value for key, value in net.state_dict().items() if key not in tied}


def texts(net, shape, classes):
    """Pairs of texts of different lengths, padded, and the targets of the task."""
    batch, _, length = shape
    lengths = length - torch.arange(batch)
    places = torch.arange(length)[None]
    tokens = torch.where(places < lengths[:, None], torch.randint(1, net.config.vocab_size, (batch, length)), 0)
    types = ((places >= 5) & (places < lengths[:, None])).long()
    if isinstance(net, BertForMaskedLM):
        y = torch.where((torch.rand(batch, length) < 0.3) & (tokens > 0), torch.randint(classes, (batch, length)), -100)
    else:
        y = torch.randint(classes, (batch, 2) if isinstance(net, BertForQuestionAnswering) else (batch,))
    return torch.stack([tokens, types], 1), y


def answers(net, x, y):
    """Logits in Tenon's layout, and the loss that transformers computes."""
    given = {"input_ids": x[:, 0], "token_type_ids": x[:, 1], "attention_mask": (x[:, 0] > 0).long()}
    if isinstance(net, BertForQuestionAnswering):
        out = net(**given, start_positions=y[:, 0], end_positions=y[:, 1])
        return torch.stack([out.start_logits, out.end_logits], 1), out.loss
    out = net(**given, labels=y)
    return out.logits, out.loss


def inputs(shape, classes, net=None):
    if len(shape) == 3:
        return texts(net, shape, classes)
    if len(shape) == 2:
        return torch.randint(classes, shape), torch.randint(classes, shape)
    count = int(np.prod(shape))
    return 8 * values("input", (count,)).reshape(shape), torch.randint(classes, shape[:1])


def train_mode(net, on):
    net.train(on)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.eval()


def run(net, x, y):
    of_bert, tokens = x.dim() == 3, not x.is_floating_point()
    if of_bert:
        call = lambda: answers(net, x, y)[0]
    else:
        call = (lambda: net(x).logits) if tokens else (lambda: net(x.to(next(net.parameters()).dtype)))
    train_mode(net, False)
    with torch.no_grad():
        out = {"logits": call()}
    optimizer = (torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1) if tokens
                 else torch.optim.SGD(net.parameters(), lr=3e-4, momentum=0.9, weight_decay=1e-4))
    train_mode(net, True)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        loss = answers(net, x, y)[1] if of_bert else F.cross_entropy(call().flatten(0, -2), y.flatten())
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for key, p in net.named_parameters():
                some = p.grad.flatten()[::max(1, p.numel() // KEPT)]
                out["grad/" + key] = torch.cat([p.grad.norm()[None], some])
        optimizer.step()
    train_mode(net, False)
    with torch.no_grad():
        out["trained"] = call()
    return out | {"losses": torch.tensor(losses, dtype=torch.float64)}


def rounding(truth, rounded):
    """Relative differences as in the test; relative to all gradients for a gradient that is zero."""
    norm = lambda t: torch.linalg.vector_norm(t.double()).item()
    total = sum(truth[key][0].item() ** 2 for key in truth if key.startswith("grad/")) ** 0.5
    scale = lambda key: total if key.startswith("grad/") and truth[key][0] < 1e-9 * total else norm(truth[key])
    apart = {key: norm(rounded[key].double() - truth[key].double()) / scale(key) for key in truth}
    apart["losses"] = ((rounded["losses"] - truth["losses"]) / truth["losses"]).abs().max().item()
    apart["grad"] = max(value for key, value in apart.items() if key.startswith("grad/"))
    return {f"rounding/{key}": torch.tensor(apart[key], dtype=torch.float64) for key in ("logits", "grad", "losses", "trained")}


def fixture(name, build, folder, full):
    torch.manual_seed(5)
    net, shape, classes = build()
    x, y = inputs(shape, classes, net)
    state = state_of(net)
    if full:
        last = "bn3.weight" if any(key.endswith("bn3.weight") for key in state) else ".bn2.weight"
        for key, value in state.items():
            if key.endswith(last):
                value.fill_(1 / 8)  # the last layer of a residual block, as in values()
        save_file(state, folder / f"{name}.weights.safetensors", metadata={"format": "pt"})
    else:
        for key, value in state.items():
            if value.is_floating_point():
                value.copy_(values(key, tuple(value.shape)))
    out = {f"shape/{key}": torch.tensor(value.shape, dtype=torch.int64) for key, value in state.items()}
    out |= {"input": torch.tensor(x.shape, dtype=torch.int64) if x.is_floating_point() else x, "y": y}
    state = {key: value.clone() for key, value in state.items()}
    rounded = []
    for k in range(1 if full else RUNS):  # the first unchanged, the others from weights changed by a rounding
        net.load_state_dict({key: nudged(value) if k > 0 else value for key, value in state.items()}, strict=False)
        rounded.append(run(net, x, y))
    net.load_state_dict(state, strict=False)
    truth = run(net.double(), x, y)
    own = [rounding(truth, one) for one in rounded]
    out |= {key: value if key == "losses" else value.float() for key, value in truth.items()} | {key: max(one[key] for one in own) for key in own[0]}
    return {f"{name}/{key}": value.detach().contiguous().clone() for key, value in out.items()}


def main():
    torch.set_num_threads(1)
    full = "--full" in sys.argv[1:]
    arguments = [a for a in sys.argv[1:] if a != "--full"]
    if full and not arguments:
        sys.exit("make_published_fixtures.py: --full needs a folder, outside of the repository")
    folder = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent / "fixtures"
    folder.mkdir(parents=True, exist_ok=True)
    networks = {name: build for name, build in (FULL if full else NARROW).items() if name in arguments[1:] or not arguments[1:]}
    tensors = {}
    for name, build in networks.items():
        tensors |= fixture(name, build, folder, full)
        own = ", ".join(f"{kind} {tensors[f'{name}/rounding/{kind}']:.1e}" for kind in ("logits", "grad", "losses", "trained"))
        print(f"{name}: losses {tensors[name + '/losses'][0]:.4f} to {tensors[name + '/losses'][-1]:.4f}; rounding: {own}", flush=True)
    path = folder / "published.safetensors"
    save_file(tensors, path, metadata={"made_by": f"tests/e2e/make_published_fixtures.py with PyTorch {torch.__version__.split('+')[0]}"})
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
