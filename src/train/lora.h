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
  std::vector<std::string> targets{};  // names of layers; none: all that can have adapters
  std::vector<std::string> learn{};    // parts that learn as they are, without adapters
};

/// "rank=8,alpha=16,targets=c_attn+c_proj,learn=classifier.6"; alpha is the rank unless it is
/// given. Throws ValueError.
LoraOptions parse_lora(const std::string& text);

/// The network with adapters, drawn from the context's generator: A as PyTorch draws linear layers,
/// B zeros, so that nothing changes yet. Parameters of the network do not learn from then on, but
/// for `learn`. Adapters are parameters "lora.<weight's name>.A" [rank, in] and ".B" [out, rank].
/// Throws ValueError with near names for a target or part that it does not have.
nn::AnyModule with_adapters(const nn::AnyModule& net, const LoraOptions& options);

/// Of with_adapters()'s network: values of the network without adapters that computes the same.
StateDict merged_state(const nn::AnyModule& adapted);

/// Of with_adapters()'s network: the adapters alone, under the names that peft gives them.
StateDict adapter_state(const nn::AnyModule& adapted);

/// Whether these are values of an adapted network.
bool has_adapters(const StateDict& state);

/// "learning: 294,912 numbers of adapters and 1,290 others; 124,439,808 stay".
std::string what_learns(const nn::AnyModule& net);

}  // namespace tenon::train
