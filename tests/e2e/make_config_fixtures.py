#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/configs.json: 200 variations of config.json and the results of transformers for each.

    pip install torch transformers (2.15 and 5.24 made the committed file)
    tests/e2e/make_config_fixtures.py

Networks are narrow, and their weights are a formula of their names (fixture_values.py), so the file contains only configs and
a few numbers. Each row has:

network  the network's name in Tenon: gpt2, bert, bert_classifier, bert_spans or resnet18
config   config.json as transformers writes it, with fields left out, renamed or added
shapes   of the tensors of the weight file
tokens   a batch of tokens; the images of resnet18 are a formula
shape    of the logits
logits   32 of them, evenly spaced
says     if Tenon must refuse the config: a word of the error
differs  for a refused config: the largest change of the logits by the refused fields; null if transformers also refuses
         the config or ignores the field
"""
import copy
import json
import pathlib
import random

import torch
from transformers import (BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification, GPT2Config,
                          GPT2LMHeadModel, ResNetConfig, ResNetForImageClassification)

from fixture_values import values

ACTIVATIONS = ["gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "gelu_accurate", "quick_gelu", "relu", "relu6", "silu",
               "swish", "mish", "tanh", "sigmoid", "linear"]
FOREIGN_ACTIVATIONS = ["relu2", "leaky_relu", "gelu_10", "hardswish", "laplace"]
KINDS = {"gpt2": (GPT2Config, GPT2LMHeadModel), "bert": (BertConfig, BertForMaskedLM),
         "bert_classifier": (BertConfig, BertForSequenceClassification), "bert_spans": (BertConfig, BertForQuestionAnswering),
         "resnet18": (ResNetConfig, ResNetForImageClassification)}
# Fields that do not change the results.
IRRELEVANT = [("use_cache", False), ("torch_dtype", "float16"), ("task_specific_params", {"text-generation": {"do_sample": True}}),
              ("gradient_checkpointing", True), ("output_attentions", False), ("initializer_range", 0.5), ("bos_token_id", 3),
              ("transformers_version", "4.1.0"), ("_name_or_path", "somebody/else")]


def gpt2_config(draw):
    heads, size = draw.choice([1, 2, 3, 4]), draw.choice([4, 6, 8])
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": draw.randint(20, 60), "n_embd": heads * size,
              "n_head": heads, "n_layer": draw.randint(1, 3), "n_positions": draw.choice([8, 12, 16]),
              "activation_function": draw.choice(ACTIVATIONS), "layer_norm_epsilon": draw.choice([1e-5, 1e-6, 1e-3, 0.1, 1e-12]),
              "resid_pdrop": draw.choice([0.0, 0.1, 0.25]), "embd_pdrop": draw.choice([0.0, 0.1]), "attn_pdrop": draw.choice([0.0, 0.1, 0.3])}
    if draw.random() < 0.4:
        config["n_inner"] = draw.choice([None, 7, 24, 4 * heads * size])
    return config


def bert_config(draw):
    heads, size = draw.choice([1, 2, 3, 4]), draw.choice([4, 6, 8])
    config = {"model_type": "bert", "vocab_size": draw.randint(20, 60), "hidden_size": heads * size, "num_attention_heads": heads,
              "num_hidden_layers": draw.randint(1, 3), "intermediate_size": draw.choice([11, 32, 4 * heads * size]),
              "max_position_embeddings": draw.choice([8, 12, 16]), "hidden_act": draw.choice(ACTIVATIONS),
              "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-3, 0.1]), "hidden_dropout_prob": draw.choice([0.0, 0.1, 0.2]),
              "attention_probs_dropout_prob": draw.choice([0.0, 0.1]), "type_vocab_size": 2, "pad_token_id": 0}
    if draw.random() < 0.5:
        config["classifier_dropout"] = draw.choice([None, 0.0, 0.3])
    return config


def resnet_config(draw):
    width = draw.choice([4, 6, 8])
    return {"model_type": "resnet", "embedding_size": width, "hidden_sizes": [width * 2**k for k in range(4)], "depths": [2, 2, 2, 2],
            "layer_type": "basic", "hidden_act": "relu"}


# Fields that Tenon refuses by name: for each the value, and a word of the error.
REFUSED = {
    "gpt2": [("scale_attn_weights", False), ("scale_attn_by_inverse_layer_idx", True), ("reorder_and_upcast_attn", True),
             ("tie_word_embeddings", False), ("add_cross_attention", True), ("activation_function", FOREIGN_ACTIVATIONS),
             ("quantization_config", {"quant_method": "gptq"}), ("auto_map", {"AutoModel": "model.Model"}), ("pruned_heads", {"0": [0]})],
    "bert": [("position_embedding_type", "relative_key"), ("is_decoder", True), ("type_vocab_size", 3), ("pad_token_id", 1),
             ("hidden_act", FOREIGN_ACTIVATIONS), ("tie_word_embeddings", False), ("add_cross_attention", True)],
    "resnet18": [("downsample_in_first_stage", True), ("hidden_act", "gelu")],
}


def labels(config, draw, count):
    names = draw.choice([None, ["cat", "dog", "eel", "fox", "gnu", "hen"]])
    config["id2label"] = {str(k): names[k] if names else f"LABEL_{k}" for k in range(count)}
    config["label2id"] = {name: int(k) for k, name in config["id2label"].items()}


def built(network, config):
    """The network of a config, with the same weights as in the test."""
    config_class, network_class = KINDS[network]
    own = {key: value for key, value in config.items() if key not in ("quantization_config", "auto_map", "pruned_heads")}
    torch.manual_seed(0)
    net = network_class(config_class.from_dict(own)).eval()
    net.set_attn_implementation("eager") if network != "resnet18" else None
    with torch.no_grad():
        for key, value in net.state_dict().items():
            tied = key in ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
            if value.is_floating_point() and not (tied and config.get("tie_word_embeddings", True)):
                value.copy_(values(key, tuple(value.shape)))
    return net


def logits_of(network, net, tokens):
    with torch.no_grad():
        net = net.double()
        if network == "resnet18":
            return net(values("input", (2, 3, 64, 64)).double()).logits
        given = torch.tensor(tokens)
        out = net(given) if network == "gpt2" else net(given, attention_mask=(given != 0).long())
        return torch.stack([out.start_logits, out.end_logits], 1) if network == "bert_spans" else out.logits


def row_of(network, draw, refused):
    config = gpt2_config(draw) if network == "gpt2" else resnet_config(draw) if network == "resnet18" else bert_config(draw)
    if network in ("bert_classifier", "resnet18"):
        labels(config, draw, draw.randint(2, 6))
    for key, value in draw.sample(IRRELEVANT, draw.randint(0, 4)):
        config[key] = copy.deepcopy(value)
    if network == "gpt2" and draw.random() < 0.3:
        config["n_ctx"] = config["n_positions"]
    if network == "gpt2" and draw.random() < 0.2:  # names of other families
        for own, alias in (("n_embd", "hidden_size"), ("n_head", "num_attention_heads"), ("n_layer", "num_hidden_layers")):
            config[alias] = config.pop(own)
    row = {"network": network, "config": config}
    context = config.get("n_positions") or config.get("max_position_embeddings")
    tokens = [[draw.randint(1, config["vocab_size"] - 1) for _ in range(context)] for _ in range(2)] if context else None
    if network.startswith("bert"):
        tokens[1][-3:] = [0, 0, 0]  # padded
    if refused is not None:
        key, value = refused
        plain = logits_of(network, built(network, config), tokens)
        config[key] = draw.choice(value) if isinstance(value, list) and value is FOREIGN_ACTIVATIONS else copy.deepcopy(value)
        row["says"] = key
        try:
            changed = logits_of(network, built(network, config), tokens)
            row["differs"] = float((changed - plain).abs().max()) if changed.shape == plain.shape else None
        except Exception:  # transformers also refuses it
            row["differs"] = None
        return row
    net = built(network, config)
    logits = logits_of(network, net, tokens)
    row["shapes"] = {key: list(value.shape) for key, value in net.state_dict().items()}
    flat = logits.flatten()
    picks = [i * flat.numel() // 32 for i in range(32)] if flat.numel() > 32 else list(range(flat.numel()))
    row |= {"tokens": tokens, "shape": list(logits.shape), "logits": [round(flat[i].item(), 6) for i in picks]}
    return row


def main():
    torch.set_num_threads(1)
    draw = random.Random(38)
    rows = []
    counts = {"gpt2": 70, "bert": 35, "bert_classifier": 35, "bert_spans": 20, "resnet18": 6}
    for network, count in counts.items():
        rows += [row_of(network, draw, None) for _ in range(count)]
    refusals = [(network, field) for network, fields in REFUSED.items() for field in fields]
    while len(rows) < 200:
        network, field = refusals[len(rows) % len(refusals)]
        rows.append(row_of(network, draw, field))
    for row in rows:  # one line for each row keeps the file small
        if "shapes" in row:
            row["shapes"] = " ".join(f"{key}:{','.join(map(str, size))}" for key, size in row["shapes"].items())
    path = pathlib.Path(__file__).resolve().parent / "fixtures" / "configs.json"
    path.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")
    print(len(rows), "rows,", path.stat().st_size, "bytes; refused:", sum("says" in row for row in rows))
    for row in rows:
        if "says" in row:
            print(row["network"], row["says"], row["config"][row["says"]], row["differs"])


if __name__ == "__main__":
    main()
