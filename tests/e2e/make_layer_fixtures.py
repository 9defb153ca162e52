#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/recurrent.safetensors: what PyTorch's recurrent layers and cells compute.

    pip install torch numpy safetensors      (PyTorch 2.11 for CPU made the committed files)
    tests/e2e/make_layer_fixtures.py [FOLDER]

Weights and inputs are float32; PyTorch computes with them in float64, and the results are stored rounded to float32.

CASE/weights/NAME  CASE/in/NAME  CASE/out/NAME: a layer's parameters, inputs and results
CASE/g/NAME        what the results are weighted with; CASE/d/NAME: gradients of sum(out * g) by parameters and inputs
"""
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn as nn
from safetensors.torch import save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Case:
    """One layer with drawn weights and inputs; writes all that a test compares."""

    def __init__(self, out, name, layer):
        self.out, self.name, self.layer = out, name, layer.double().eval()
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.inputs = {}
        for key, p in self.layer.named_parameters():
            p.data = self.draw(0.4, *p.shape)
            self.put("weights/" + key, p)

    def draw(self, scale, *shape):
        return torch.from_numpy((scale * self.rng.standard_normal(shape)).astype(np.float32)).double()

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


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures")
    torch.set_num_threads(1)
    save_file(recurrent(), folder / "recurrent.safetensors")
