#!/usr/bin/env python3
"""Trains PyTorch's version of `keras_rnn` or `lstm` on the words of a text, as `tenon train` does, and prints the perplexity of the last tenth.

    peer_language.py TEXT keras_rnn|lstm [epochs] [seed]    TORCH_THREADS: threads (default 2), TORCH_DEVICE: cpu or cuda
    tenon train keras_rnn --data text:TEXT,by=words,words=1000,length=20 --epochs EPOCHS --set keep_best=false --out RUN && tenon eval RUN

Tokens, windows, model, initial distributions and recipe equal Tenon's. The order of windows and the drawn weights differ.
"""
import collections
import math
import os
import re
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

WORD = rb"[A-Za-z0-9'\x80-\xff]+|[^ \t\r]"


class Recurrent(nn.Module):
    def __init__(self, words, embedding, units, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, embedding)
        self.lstm = nn.LSTM(embedding, units, layers, batch_first=True)
        self.linear = nn.Linear(units, words)

    def forward(self, tokens):
        return self.linear(self.lstm(self.embedding(tokens))[0])


def keras_rnn():
    net = Recurrent(1000, 128, 128, 1)
    nn.init.zeros_(net.lstm.bias_hh_l0)
    net.lstm.bias_hh_l0.requires_grad_(False)
    learnt = [p for p in net.parameters() if p.requires_grad]
    return net, torch.optim.Adam(learnt, 1e-3), {"words": 1000, "length": 20, "batch": 64, "clip": math.inf}


def lstm():
    net = Recurrent(10_000, 256, 256, 2)
    for p in net.parameters():
        nn.init.uniform_(p, -0.1, 0.1)
    return net, torch.optim.SGD(net.parameters(), 0.1), {"words": 10_000, "length": 32, "batch": 128, "clip": 5}


def windows(path, words, length):
    """Inputs and targets of both parts. The last tenth is the test part. The most common words of the rest have indices; 0 is any other word."""
    text = open(path, "rb").read()
    middle = len(text) - len(text) // 10
    while middle < len(text) and text[middle] & 0xc0 == 0x80:
        middle += 1
    parts = [re.findall(WORD, part, re.DOTALL) for part in (text[:middle], text[middle:])]
    common = sorted(collections.Counter(parts[0]).items(), key=lambda item: (-item[1], item[0]))[: words - 1]
    number = {word: k + 1 for k, (word, _) in enumerate(common)}
    for part in parts:
        tokens = torch.tensor([number.get(word, 0) for word in part])
        count = (len(tokens) - 1) // length
        yield tokens[: count * length].view(count, length), tokens[1: count * length + 1].view(count, length)


def main():
    path, name = sys.argv[1:3]
    epochs, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 10, int(sys.argv[4]) if len(sys.argv) > 4 else 0
    torch.set_num_threads(int(os.environ.get("TORCH_THREADS", "2")))
    torch.manual_seed(seed)
    net, optimizer, recipe = {"keras_rnn": keras_rnn, "lstm": lstm}[name]()
    device = os.environ.get("TORCH_DEVICE", "cpu")
    net.to(device)  # as optimizers keep the parameters, whose place alone changes
    (x, y), (test_x, test_y) = ([t.to(device) for t in part] for part in windows(path, recipe["words"], recipe["length"]))
    print(f"{name}: {len(x)} and {len(test_x)} windows", flush=True)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).to(device).split(recipe["batch"]):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]).flatten(0, 1), y[rows].flatten()).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), recipe["clip"])
            optimizer.step()
        with torch.no_grad():
            total = sum(F.cross_entropy(net(a).flatten(0, 1), b.flatten(), reduction="sum").item()
                        for a, b in zip(test_x.split(256), test_y.split(256)))
        print(f"epoch {epoch + 1}: test perplexity {math.exp(total / test_y.numel()):.2f}", flush=True)


if __name__ == "__main__":
    main()
