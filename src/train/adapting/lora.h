// Low-rank adapters (Hu et al., "LoRA: low-rank adaptation of large language models", 2021): a
// layer computes with W + alpha / rank · B A, where W is frozen and A and B are trained.
//
// An adapted network is the graph of the network with this sum in place of W, whichever operation
// reads W: a linear layer, the joint projection of attention, Hugging Face's Conv1D. Embedding
// weights and weights tied to them get no adapters.
#pragma once

#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::train {

struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 8;
  std::vector<std::string> targets{};  // layer names; empty: all layers that can have adapters
  std::vector<std::string> learn{};    // layers trained in full, without adapters
};

/// Parses "rank=8,alpha=16,targets=c_attn+c_proj,learn=classifier.6"; the default of alpha is the
/// rank. Throws ValueError.
LoraOptions parse_lora(const std::string& text);

/// The network with adapters, initialized with the context's generator: A like PyTorch's linear
/// layers, B with zeros, so the output is unchanged at first. All parameters of the network are
/// frozen, except those of `learn`. Adapters are parameters "lora.<weight's name>.A" [rank, in] and
/// ".B" [out, rank]. Throws ValueError with similar names for a target or layer that does not
/// exist.
nn::AnyModule with_adapters(const nn::AnyModule& net, const LoraOptions& options);

/// Merges the adapters of a with_adapters() network: values for the network without adapters that
/// give the same results.
StateDict merged_state(const nn::AnyModule& adapted);

/// The adapters of a with_adapters() network alone, under peft's names.
StateDict adapter_state(const nn::AnyModule& adapted);

/// Whether a state dict belongs to an adapted network.
bool has_adapters(const StateDict& state);

/// Text such as "learning: 294,912 parameters of adapters and 1,290 others; 124,439,808 are
/// frozen".
std::string trainable_summary(const nn::AnyModule& net);

}  // namespace tenon::train
