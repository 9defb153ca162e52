#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/{recurrent,transformer,layers}.safetensors: results of PyTorch's layers of these kinds.

    pip install torch numpy safetensors      (PyTorch 2.11 for CPU made the committed files)
    tests/e2e/make_layer_fixtures.py [FOLDER]      (PyTorch 2.15 made layers.safetensors)

Weights and inputs are float32; PyTorch computes with them in float64, and the results are stored rounded to float32.

CASE/weights/NAME  CASE/in/NAME  CASE/out/NAME: a layer's parameters, inputs and results
CASE/g/NAME        weights of the results; CASE/d/NAME: gradients of sum(out * g) by parameters and inputs
"""
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Case:
    """One layer with random weights and inputs; writes everything that a test compares."""

    def __init__(self, out, name, layer):
        self.out, self.name, self.layer = out, name, layer.double().eval()
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.inputs = {}
        for key, p in self.layer.named_parameters():
            p.data = self.draw(0.4, *p.shape)
            self.put("weights/" + key, p)

    def draw(self, scale, *shape):
        return torch.from_numpy(np.asarray(scale * self.rng.standard_normal(shape), np.float32)).double()

    def put(self, key, tensor):
        if tensor.is_floating_point():
            tensor = tensor.float()
        self.out[f"{self.name}/{key}"] = tensor.detach().contiguous().clone()

    def input(self, key, *shape, scale=1.0):
        self.inputs[key] = self.draw(scale, *shape).requires_grad_()
        self.put("in/" + key, self.inputs[key])
        return self.inputs[key]

    def finish(self, **results):
        total = 0
        for key, result in results.items():
            weight = self.draw(1.0, *result.shape)
            self.put("out/" + key, result)
            self.put("g/" + key, weight)
            total = total + (result * weight).sum()
        wanted = {**dict(self.layer.named_parameters()), **self.inputs}
        gradients = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
        for key, gradient in zip(wanted, gradients):
            self.put("d/" + key, torch.zeros_like(wanted[key]) if gradient is None else gradient)


def recurrent_layer(out, name, kind, state=True, lengths=None, batched=True, **options):
    steps, batch, width, hidden = 6, 3, 5, 4
    case = Case(out, name, kind(width, hidden, **options))
    first = options.get("batch_first", False)
    x = case.input("x", *((batch, steps, width) if first else (steps, batch, width) if batched else (steps, width)))
    stack = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    rows = (batch,) if batched else ()
    initial = None
    if state:
        h = case.input("hidden", stack, *rows, options.get("proj_size") or hidden)
        initial = (h, case.input("cell", stack, *rows, hidden)) if kind is nn.LSTM else h
    given = x
    if lengths is not None:
        case.put("in/lengths", torch.tensor(lengths))
        given = pack_padded_sequence(x, torch.tensor(lengths), batch_first=first, enforce_sorted=False)
    output, last = case.layer(given, initial)
    if lengths is not None:
        output, _ = pad_packed_sequence(output, batch_first=first, total_length=steps)
    if kind is nn.LSTM:
        case.finish(output=output, hidden=last[0], cell=last[1])
    else:
        case.finish(output=output, hidden=last)


def recurrent_cell(out, name, kind, state=True, **options):
    case = Case(out, name, kind(5, 4, **options))
    x = case.input("x", 3, 5)
    if kind is nn.LSTMCell:
        given = (case.input("hidden", 3, 4), case.input("cell", 3, 4)) if state else None
        h, c = case.layer(x, given)
        case.finish(hidden=h, cell=c)
    else:
        case.finish(hidden=case.layer(x, case.input("hidden", 3, 4) if state else None))


def recurrent():
    out = {}
    for label, kind in [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)]:
        recurrent_layer(out, label, kind)
        recurrent_layer(out, label + "_plain", kind, state=False, bias=False)
        recurrent_layer(out, label + "_deep", kind, num_layers=2, batch_first=True)
        recurrent_layer(out, label + "_both", kind, num_layers=2, bidirectional=True)
        recurrent_layer(out, label + "_lengths", kind, lengths=[4, 6, 1])
        recurrent_layer(out, label + "_both_lengths", kind, num_layers=2, bidirectional=True, batch_first=True,
                        lengths=[2, 5, 6])
        recurrent_layer(out, label + "_unbatched", kind, batched=False, bidirectional=True)
    recurrent_layer(out, "rnn_relu", nn.RNN, nonlinearity="relu")
    recurrent_layer(out, "lstm_proj", nn.LSTM, num_layers=2, bidirectional=True, proj_size=3)
    recurrent_layer(out, "lstm_proj_lengths", nn.LSTM, proj_size=2, lengths=[3, 1, 6])
    for label, kind in [("rnn_cell", nn.RNNCell), ("gru_cell", nn.GRUCell), ("lstm_cell", nn.LSTMCell)]:
        recurrent_cell(out, label, kind)
        recurrent_cell(out, label + "_plain", kind, state=False, bias=False)
    recurrent_cell(out, "rnn_cell_relu", nn.RNNCell, nonlinearity="relu")
    return out


class Attention(nn.Module):
    """PyTorch's attention called with a case's masks."""

    def __init__(self, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, **options)

    def named_parameters(self, *args, **kwargs):
        return self.inner.named_parameters(*args, **kwargs)


class Grouped(nn.Module):
    """Two heads of keys and values for four heads of queries."""

    def __init__(self):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(16, 8))
        self.in_proj_bias = nn.Parameter(torch.empty(16))
        self.out_proj = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).split([8, 4, 4], -1)
        parts = [t.reshape(2, 5, -1, 2).transpose(1, 2) for t in (q, k, v)]
        y = F.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).reshape(2, 5, 8))


def attention(out, name, mask=None, padding=None, kdim=None, **options):
    first = options.get("batch_first", False)
    case = Case(out, name, Attention(kdim=kdim, vdim=kdim, **options))
    rows = lambda length: (2, length) if first else (length, 2)
    q = case.input("query", *rows(4), 8)
    k, v = case.input("key", *rows(5), kdim or 8), case.input("value", *rows(5), kdim or 8)
    if mask is not None:
        mask = mask(case)
        case.put("in/mask", mask)
    if padding is not None:
        padding = torch.tensor(padding)
        case.put("in/key_padding", padding)
    if mask is not None and padding is not None and mask.dtype != padding.dtype:
        padding = torch.zeros(padding.shape, dtype=mask.dtype).masked_fill_(padding, float("-inf"))
    y, _ = case.layer.inner(q, k, v, attn_mask=mask, key_padding_mask=padding, need_weights=False)
    case.finish(output=y)


def transformer_layer(out, name, kind, **options):
    first = options.get("batch_first", False)
    case = Case(out, name, kind(8, 2, dim_feedforward=12, dropout=0.0, **options))
    rows = lambda length: (2, length) if first else (length, 2)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    case.put("in/key_padding", padding)
    if kind is nn.TransformerEncoderLayer:
        case.finish(output=case.layer(case.input("src", *rows(5), 8), src_key_padding_mask=padding))
    else:
        causal = torch.ones(4, 4).triu(1).bool()
        case.finish(output=case.layer(case.input("tgt", *rows(4), 8), case.input("memory", *rows(5), 8),
                                      tgt_mask=causal, memory_key_padding_mask=padding))


def permuted(x, interleaved):
    """Rotary positions, written out pair by pair."""
    half = x.shape[-1] // 2
    parts = []
    for place in range(x.shape[-2]):
        row = x[..., place, :]
        new = [None] * (2 * half)
        for k in range(half):
            a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + half)
            angle = place * 10000.0 ** (-k / half)
            c, s = np.cos(angle), np.sin(angle)
            new[a] = row[..., a] * c - row[..., b] * s
            new[b] = row[..., b] * c + row[..., a] * s
        parts.append(torch.stack(new, -1))
    return torch.stack(parts, -2)


def transformer():
    out = {}
    hidden = [[False] * 5, [False, False, False, False, True]]
    attention(out, "attention")
    attention(out, "attention_first_plain", batch_first=True, bias=False)
    attention(out, "attention_widths", kdim=6)
    attention(out, "attention_mask", mask=lambda c: torch.ones(4, 5).triu(2).bool())
    attention(out, "attention_mask_added", mask=lambda c: c.draw(1.0, 4, 5))
    attention(out, "attention_mask_of_heads", mask=lambda c: c.draw(1.0, 4, 4, 5))
    attention(out, "attention_padding", padding=hidden)
    attention(out, "attention_both", padding=hidden, mask=lambda c: torch.ones(4, 5).triu(2).bool())
    attention(out, "attention_both_added", padding=hidden, mask=lambda c: c.draw(1.0, 4, 5))
    case = Case(out, "attention_grouped", Grouped())
    case.finish(output=case.layer(case.input("query", 2, 5, 8)))
    for label, kind in [("encoder", nn.TransformerEncoderLayer), ("decoder", nn.TransformerDecoderLayer)]:
        transformer_layer(out, label, kind)
        transformer_layer(out, label + "_norm_first", kind, norm_first=True, activation="gelu", batch_first=True)
        transformer_layer(out, label + "_plain", kind, bias=False)
    case = Case(out, "whole", nn.Transformer(8, 2, 2, 2, 12, dropout=0.0))
    causal = torch.ones(4, 4).triu(1).bool()
    case.finish(output=case.layer(case.input("src", 5, 2, 8), case.input("tgt", 4, 2, 8), tgt_mask=causal))
    case = Case(out, "rms", nn.RMSNorm([3, 4], eps=1e-5))
    case.finish(output=case.layer(case.input("x", 2, 3, 4)))
    case = Case(out, "rms_plain", nn.RMSNorm(7, eps=torch.finfo(torch.float32).eps, elementwise_affine=False))
    case.finish(output=case.layer(case.input("x", 5, 7)))
    for label, interleaved in [("rotary", False), ("rotary_interleaved", True)]:
        case = Case(out, label, nn.Identity())
        case.finish(output=permuted(case.input("x", 2, 3, 5, 6), interleaved))
    return out


class Weighed(Attention):
    """Attention that also returns its weights."""

    def forward(self, q, k, v, each, **masks):
        return self.inner(q, k, v, need_weights=True, average_attn_weights=not each, **masks)


def weighed(out, name, each=False, mask=None, padding=None, batched=True, **options):
    case = Case(out, name, Weighed(**options))
    rows = lambda length: (length, 2) if batched else (length,)
    q, k, v = case.input("query", *rows(4), 8), case.input("key", *rows(5), 8), case.input("value", *rows(5), 8)
    masks = {}
    if mask is not None:
        masks["attn_mask"] = mask(case)
        case.put("in/mask", masks["attn_mask"])
    if padding is not None:
        masks["key_padding_mask"] = torch.tensor(padding)
        case.put("in/key_padding", masks["key_padding_mask"])
    y, weights = case.layer(q, k, v, each, **masks)
    case.finish(output=y, weights=weights)


def tables(out):
    """Embedding rows whose gradients are scaled, padded or shared, and embedding bags."""
    index = torch.tensor([[0, 3, 3], [5, 2, 3]])
    for label, options in [("embedding_padding", dict(padding_idx=3)), ("embedding_most", dict(max_norm=1.0)),
                           ("embedding_most_of_sums", dict(max_norm=1.5, norm_type=1.0)), ("embedding_shares", dict(scale_grad_by_freq=True))]:
        case = Case(out, label, nn.Embedding(6, 4, **options))
        case.put("in/index", index)
        case.finish(output=case.layer(index))
    for mode in "sum", "mean", "max":
        case = Case(out, f"bag_{mode}", nn.EmbeddingBag(6, 4, mode=mode, padding_idx=2))
        flat, offsets = torch.tensor([0, 3, 3, 5, 2, 3, 2]), torch.tensor([0, 3, 3, 6])
        case.put("in/index", flat)
        case.put("in/offsets", offsets)
        case.finish(output=case.layer(flat, offsets))


def norms(out):
    """Instance norm of a batch while training, and afterwards in evaluation."""
    for label, options in [("instance", dict()), ("instance_affine", dict(affine=True, eps=1e-3)),
                           ("instance_tracked", dict(affine=True, track_running_stats=True, momentum=0.3))]:
        case = Case(out, label, nn.InstanceNorm2d(3, **options))
        case.layer.train()
        y = case.layer(case.input("x", 2, 3, 4, 5))
        results = {"output": y}
        if options.get("track_running_stats"):
            results |= {"running_mean": case.layer.running_mean, "running_var": case.layer.running_var}
            case.layer.eval()
            results["evaluated"] = case.layer(case.inputs["x"])
        case.finish(**results)


def layers():
    out = {}
    hidden = [[False] * 5, [False, False, False, False, True]]
    weighed(out, "weights")
    weighed(out, "weights_each", each=True, padding=hidden)
    weighed(out, "weights_bias_kv", add_bias_kv=True, mask=lambda c: torch.ones(4, 5).triu(2).bool(), padding=hidden)
    weighed(out, "weights_zero_attn_each", each=True, add_zero_attn=True, mask=lambda c: c.draw(1.0, 4, 5))
    weighed(out, "weights_bias_kv_zero_attn", add_bias_kv=True, add_zero_attn=True, bias=False)
    weighed(out, "weights_alone", batched=False, mask=lambda c: torch.ones(4, 5).triu(2).bool(), padding=hidden[1])
    tables(out)
    norms(out)
    for label, layer, shape in [
            ("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), (2, 4, 9)),
            ("conv3d", nn.Conv3d(2, 3, (2, 1, 3), stride=(1, 2, 1), padding=(1, 0, 1), bias=False), (1, 2, 3, 4, 4)),
            ("conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=3, padding=1, output_padding=2, groups=2), (2, 4, 5)),
            ("conv_transpose2d", nn.ConvTranspose2d(2, 3, (2, 3), stride=(2, 1)), (1, 2, 3, 4)),
            ("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, stride=2, bias=False), (1, 2, 2, 3, 2)),
            ("prelu", nn.PReLU(3), (2, 3, 4)), ("celu", nn.CELU(1.5), (3, 4)), ("glu", nn.GLU(1), (2, 4, 3)),
            ("lp_pool1d", nn.LPPool1d(4, 3, stride=2, ceil_mode=True), (2, 2, 8)), ("lp_pool2d", nn.LPPool2d(2, (2, 3)), (2, 1, 5, 7)),
            ("lp_pool3d", nn.LPPool3d(2, 2, stride=1), (1, 2, 3, 3, 3))]:
        case = Case(out, label, layer)
        case.finish(output=case.layer(case.input("x", *shape)))
    return out


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures")
    torch.set_num_threads(1)
    for make in (recurrent, transformer, layers):
        save_file(make(), folder / f"{make.__name__}.safetensors")
