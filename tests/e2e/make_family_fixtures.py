#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/families.safetensors and weights/names.txt: the names that other libraries give to the tensors of their networks.

    pip install torch torchvision timm transformers safetensors (2.11, 0.26, 1.0.31 and 5.23 made the committed files)
    tests/e2e/make_family_fixtures.py

families.safetensors: narrow networks whose weights are a formula of their names in the file (fixture_values.py).
NETWORK is a name for Tenon's models::create(), CASE the origin of the tensor names.

CASE@NETWORK/shape/KEY  shapes of the tensors in the weight file, by their names
CASE@NETWORK/input      shape of a batch of images (a formula too), or tokens
CASE@NETWORK/logits     in evaluation mode, computed in float64

names.txt: the networks as published, "CASE@NETWORK" and a line "KEY SIZES" for each tensor, as 64,3,7,7.
"""
import pathlib

import timm
import torch
import torchvision.models
from safetensors.torch import save_file
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel, GPT2Config, GPT2LMHeadModel,
                          ResNetConfig, ResNetForImageClassification)

from fixture_values import values
from make_published_fixtures import NAMED_SMALL, SMALL_BERT, gpt2, inputs, images

SMALL_GPT2 = "gpt2:layers=2,heads=2,width=16,context=16"


def hf_resnet(layers, bottleneck, width, classes):
    widths = [width * 2**k * (4 if bottleneck else 1) for k in range(4)]
    return ResNetForImageClassification(ResNetConfig(embedding_size=width, hidden_sizes=widths, depths=layers, num_labels=classes,
                                                     layer_type="bottleneck" if bottleneck else "basic"))


def small_gpt2():
    return gpt2(2, 16, vocabulary=61, n_layer=2, n_head=2, n_embd=16, n_positions=16)[0]


def with_masks(state, layers=2, context=16):
    """Files of 2019 contain each layer's causal mask, and lack the prefix 'transformer.'."""
    out = {key.removeprefix("transformer."): value for key, value in state.items() if key != "lm_head.weight"}
    for layer in range(layers):
        out[f"h.{layer}.attn.bias"] = torch.ones(1, 1, context, context).tril()
        out[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return out


MATRICES = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def linear(state):
    """Trainers with nn.Linear instead of Conv1D: a compiled module in a checkpoint, with a tied head."""
    return {"model._orig_mod." + key: value.T if key.endswith(MATRICES) else value for key, value in state.items()}


def of_2018(state):
    """Files of pre-training in 2018: TensorFlow's names of normalisations, positions as numbers, tied tensors twice."""
    out = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value for key, value in state.items()}
    return out | {"bert.embeddings.position_ids": torch.arange(state["bert.embeddings.position_embeddings.weight"].shape[0])[None]}


def small_bert(kind=BertForPreTraining):
    return kind(BertConfig(num_labels=5, attn_implementation="eager", **SMALL_BERT))


OF_LLAMA_CPP = (("transformer.wte.", "token_embd."), ("transformer.wpe.", "position_embd."), ("transformer.ln_f.", "output_norm."),
                ("lm_head.", "output."), ("transformer.h.", "blk."), (".ln_1.", ".attn_norm."), (".ln_2.", ".ffn_norm."),
                ("attn.c_attn.", "attn_qkv."), ("attn.c_proj.", "attn_output."), ("mlp.c_fc.", "ffn_up."), ("mlp.c_proj.", "ffn_down."))


def llama_cpp(state):
    """The names of convert_hf_to_gguf.py, and its transposes."""
    out = {}
    for key, value in state.items():
        name = key
        for theirs, ours in OF_LLAMA_CPP:
            name = name.replace(theirs, ours)
        out[name] = value.T if key.endswith(MATRICES) else value
    return out


def old_torchvision(state):
    """Files before 0.4.1 have no num_batches_tracked; DataParallel adds the prefix 'module.'."""
    return {"state_dict.module." + key: value for key, value in state.items() if not key.endswith("num_batches_tracked")}


# CASE: network of Tenon, network, conversion of a state dict to the file, and back
NARROW = {
    "hf": [("resnet18:width=4", lambda: hf_resnet([2, 2, 2, 2], False, 4, 10), dict),
           ("resnet50:width=4", lambda: hf_resnet([3, 4, 6, 3], True, 4, 10), dict)],
    "hf_base": [(SMALL_GPT2, small_gpt2, with_masks)],
    "2018": [("bert:" + NAMED_SMALL, small_bert, of_2018)],
    "tasks": [(f"bert_classifier:{NAMED_SMALL},vocabulary=61", lambda: small_bert(BertForSequenceClassification), dict)],
    "linear": [(SMALL_GPT2, small_gpt2, linear)],
    "llama_cpp": [(SMALL_GPT2, small_gpt2, llama_cpp)],
    "wrapped": [("resnet18:width=4", lambda: images("resnet18", 64, 8, width=4)[0], old_torchvision)],
}


def published():
    for name in ("alexnet", "vgg16", "vgg16_bn", "resnet18", "resnet50"):
        yield f"torchvision@{name}", getattr(torchvision.models, name)().state_dict()
    inception = timm.create_model("inception_resnet_v2").state_dict()
    yield "timm@inception_resnet_v2", inception
    yield "cadene@inception_resnet_v2", {key.replace("classif.", "last_linear."): value for key, value in inception.items()}
    yield "hf@resnet18", hf_resnet([2, 2, 2, 2], False, 64, 1000).state_dict()
    yield "hf@resnet50", hf_resnet([3, 4, 6, 3], True, 64, 1000).state_dict()
    for kind, name in ((BertForMaskedLM, "bert"), (BertForSequenceClassification, "bert_classifier")):
        yield f"hf@{name}", kind(BertConfig()).state_dict()
    yield "2018@bert", of_2018(BertForPreTraining(BertConfig()).state_dict())
    small = GPT2LMHeadModel(GPT2Config()).state_dict()
    yield "hf@gpt2", small
    yield "hf_base@gpt2", with_masks(small, 12, 1024)
    yield "linear@gpt2", linear(small)


def fill(net, change):
    """Sets the weights to the values that the test computes from the file's names; returns the file's shapes."""
    with torch.no_grad():
        state = net.state_dict()
        file = change(state)
        for key, value in file.items():
            if key.endswith(("lm_head.weight", "predictions.decoder.weight", "predictions.decoder.bias")) or key == "output.weight":
                continue  # tied: the test sets it to the tensor that it is tied to
            if value.is_floating_point() and not key.endswith((".attn.bias", ".masked_bias")):
                value.copy_(values(key, tuple(value.shape)))
    return {key: torch.tensor(value.shape, dtype=torch.int64) for key, value in file.items()}


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).resolve().parent / "fixtures"
    tensors = {}
    for case, rows in NARROW.items():
        for name, build, change in rows:
            torch.manual_seed(5)
            net = build().eval()
            shapes = fill(net, change)
            tokens = name.startswith(("gpt2", "bert"))
            x, _ = inputs((2, 16) if tokens else (4, 3, 64, 64), 61 if tokens else 10)
            with torch.no_grad():
                net = net.double()
                out = net(x if tokens else x.double())
            logits = out if isinstance(out, torch.Tensor) else out.prediction_logits if "prediction_logits" in out else out.logits
            own = {f"shape/{key}": value for key, value in shapes.items()}
            own |= {"input": x if tokens else torch.tensor(x.shape, dtype=torch.int64), "logits": logits.float()}
            tensors |= {f"{case}@{name}/{key}": value.contiguous().clone() for key, value in own.items()}
            print(case, name, len(shapes), "tensors, logits", [round(v, 4) for v in logits.flatten()[:3].tolist()])
    save_file(tensors, folder / "families.safetensors", metadata={"made_by": "tests/e2e/make_family_fixtures.py"})
    lines = []
    with torch.device("meta"):
        for title, state in published():
            lines.append(title)
            lines += [f"{key} {','.join(map(str, value.shape))}" for key, value in state.items()]
    (folder / "weights" / "names.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
