// The table of weight families, and the application of a rule.
#include "models/weights/weight_families.h"

#include <charconv>
#include <map>

#include "base/digit.h"
#include "base/str.h"
#include "models/weights/unsupported_families.h"

namespace tenon::models {
namespace {

using Change = WeightChange;
using Sign = WeightFamily::SignShape;

constexpr RenameRule kGpt2[] = {
    {"lm_head.weight", "transformer.wte.weight", Change::SameAs},
    {"transformer.h.{a}.attn.bias", "masks", Change::LeftOut},
    {"transformer.h.{a}.attn.masked_bias", "masks", Change::LeftOut},
    {"h.{a}.attn.bias", "masks", Change::LeftOut},
    {"h.{a}.attn.masked_bias", "masks", Change::LeftOut},
    {"h.*", "transformer.h.*"},
    {"wte.*", "transformer.wte.*"},
    {"wpe.*", "transformer.wpe.*"},
    {"ln_f.*", "transformer.ln_f.*"},
};

// nn.Linear stores [out, in]; Hugging Face's Conv1D and Tenon store [in, out].
constexpr RenameRule kGpt2Linear[] = {
    {"lm_head.weight", "transformer.wte.weight", Change::SameAs},
    {"transformer.h.{a}.attn.bias", "masks", Change::LeftOut},
    {"transformer.h.{a}.attn.c_attn.weight", "transformer.h.{a}.attn.c_attn.weight",
     Change::Transposed},
    {"transformer.h.{a}.attn.c_proj.weight", "transformer.h.{a}.attn.c_proj.weight",
     Change::Transposed},
    {"transformer.h.{a}.mlp.c_fc.weight", "transformer.h.{a}.mlp.c_fc.weight", Change::Transposed},
    {"transformer.h.{a}.mlp.c_proj.weight", "transformer.h.{a}.mlp.c_proj.weight",
     Change::Transposed},
};

constexpr RenameRule kGpt2OfLlamaCpp[] = {
    {"token_embd.*", "transformer.wte.*"},
    {"position_embd.*", "transformer.wpe.*"},
    {"output_norm.*", "transformer.ln_f.*"},
    {"output.weight", "transformer.wte.weight", Change::SameAs},
    {"blk.{a}.attn_norm.*", "transformer.h.{a}.ln_1.*"},
    {"blk.{a}.ffn_norm.*", "transformer.h.{a}.ln_2.*"},
    {"blk.{a}.attn_qkv.weight", "transformer.h.{a}.attn.c_attn.weight", Change::Transposed},
    {"blk.{a}.attn_qkv.bias", "transformer.h.{a}.attn.c_attn.bias"},
    {"blk.{a}.attn_output.weight", "transformer.h.{a}.attn.c_proj.weight", Change::Transposed},
    {"blk.{a}.attn_output.bias", "transformer.h.{a}.attn.c_proj.bias"},
    {"blk.{a}.ffn_up.weight", "transformer.h.{a}.mlp.c_fc.weight", Change::Transposed},
    {"blk.{a}.ffn_up.bias", "transformer.h.{a}.mlp.c_fc.bias"},
    {"blk.{a}.ffn_down.weight", "transformer.h.{a}.mlp.c_proj.weight", Change::Transposed},
    {"blk.{a}.ffn_down.bias", "transformer.h.{a}.mlp.c_proj.bias"},
};

constexpr RenameRule kResNetOfHuggingFace[] = {
    {"resnet.embedder.embedder.convolution.*", "conv1.*"},
    {"resnet.embedder.embedder.normalization.*", "bn1.*"},
    {"resnet.encoder.stages.{a}.layers.{b}.shortcut.convolution.*",
     "layer{a+1}.{b}.downsample.0.*"},
    {"resnet.encoder.stages.{a}.layers.{b}.shortcut.normalization.*",
     "layer{a+1}.{b}.downsample.1.*"},
    {"resnet.encoder.stages.{a}.layers.{b}.layer.{c}.convolution.*", "layer{a+1}.{b}.conv{c+1}.*"},
    {"resnet.encoder.stages.{a}.layers.{b}.layer.{c}.normalization.*", "layer{a+1}.{b}.bn{c+1}.*"},
    {"classifier.1.*", "fc.*"},
};

constexpr std::string_view kWordMatrix = "bert.embeddings.word_embeddings.weight";

// Files of 2018 use TensorFlow's names of a normalization's weight and bias: gamma and beta.
constexpr RenameRule kBert[] = {
    {"bert.embeddings.position_ids", "position numbers", Change::LeftOut},
    {"bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"},
    {"bert.embeddings.LayerNorm.beta", "bert.embeddings.LayerNorm.bias"},
    {"bert.encoder.layer.{a}.attention.output.LayerNorm.gamma",
     "bert.encoder.layer.{a}.attention.output.LayerNorm.weight"},
    {"bert.encoder.layer.{a}.attention.output.LayerNorm.beta",
     "bert.encoder.layer.{a}.attention.output.LayerNorm.bias"},
    {"bert.encoder.layer.{a}.output.LayerNorm.gamma",
     "bert.encoder.layer.{a}.output.LayerNorm.weight"},
    {"bert.encoder.layer.{a}.output.LayerNorm.beta",
     "bert.encoder.layer.{a}.output.LayerNorm.bias"},
    {"bert.pooler.*", "bert.pooler.*", Change::OneTasks},
    {"cls.predictions.decoder.weight", kWordMatrix, Change::SameAs},
    {"cls.predictions.decoder.bias", "cls.predictions.bias", Change::SameAs},
    {"cls.predictions.transform.LayerNorm.gamma", "cls.predictions.transform.LayerNorm.weight",
     Change::OneTasks},
    {"cls.predictions.transform.LayerNorm.beta", "cls.predictions.transform.LayerNorm.bias",
     Change::OneTasks},
    {"cls.*", "cls.*", Change::OneTasks},
    {"classifier.*", "classifier.*", Change::OneTasks},
    {"qa_outputs.*", "qa_outputs.*", Change::OneTasks},
};
// BertModel, without a head.
constexpr RenameRule kBertBody[] = {
    {"embeddings.position_ids", "position numbers", Change::LeftOut},
    {"embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"},
    {"embeddings.LayerNorm.beta", "bert.embeddings.LayerNorm.bias"},
    {"encoder.layer.{a}.attention.output.LayerNorm.gamma",
     "bert.encoder.layer.{a}.attention.output.LayerNorm.weight"},
    {"encoder.layer.{a}.attention.output.LayerNorm.beta",
     "bert.encoder.layer.{a}.attention.output.LayerNorm.bias"},
    {"encoder.layer.{a}.output.LayerNorm.gamma", "bert.encoder.layer.{a}.output.LayerNorm.weight"},
    {"encoder.layer.{a}.output.LayerNorm.beta", "bert.encoder.layer.{a}.output.LayerNorm.bias"},
    {"embeddings.*", "bert.embeddings.*"},
    {"encoder.*", "bert.encoder.*"},
    {"pooler.*", "bert.pooler.*", Change::OneTasks},
};

// timm's weights come from Cadene's pretrained-models, which named the classifier last_linear.
constexpr RenameRule kInceptionResNet[] = {{"last_linear.*", "classif.*"}};

constexpr std::string_view kImageNet = "imagenet", kHalves = "0.5,0.5,0.5/0.5,0.5,0.5";

// A family that Tenon does not support, with the reason from the table of such families.
constexpr WeightFamily unsupported(std::string_view type, std::string_view sign,
                                   Sign shape = Sign::Any, std::string_view name = {}) {
  const UnsupportedFamily& family = *unsupported_family(type);
  return {name.empty() ? family.name : name, sign, shape, {}, {}, family.why};
}

constexpr WeightFamily kWeightFamilies[] = {
    unsupported("roberta", "roberta.embeddings.word_embeddings.weight"),
    unsupported("roberta", "embeddings.token_type_embeddings.weight", Sign::OneRow),
    unsupported("distilbert", "distilbert.embeddings.word_embeddings.weight"),
    unsupported("distilbert", "transformer.layer.0.attention.q_lin.weight"),
    unsupported("albert", "albert.embeddings.word_embeddings.weight"),
    unsupported("electra", "electra.embeddings.word_embeddings.weight"),
    unsupported("deberta", "deberta.embeddings.word_embeddings.weight"),
    unsupported("mpnet", "mpnet.embeddings.word_embeddings.weight"),
    unsupported("gpt_neox", "gpt_neox.embed_in.weight"),
    unsupported("gpt_neo", "transformer.h.0.attn.attention.q_proj.weight"),
    unsupported("opt", "model.decoder.embed_positions.weight"),
    unsupported("opt", "decoder.embed_positions.weight"),
    unsupported("bloom", "transformer.word_embeddings_layernorm.weight"),
    unsupported("llama", "layers.0.self_attn.q_proj.weight", Sign::Any,
                "Llama or one of its relatives"),
    {"GPT-2 with linear layers", "transformer.h.0.attn.c_attn.weight", Sign::Tall, kGpt2Linear},
    {"Hugging Face GPT-2", "transformer.h.0.attn.c_attn.weight", Sign::Wide, kGpt2},
    {"Hugging Face GPT-2", "h.0.attn.c_attn.weight", Sign::Wide, kGpt2},
    {"llama.cpp GPT-2", "position_embd.weight", Sign::Any, kGpt2OfLlamaCpp},
    {"Hugging Face ResNet", "resnet.embedder.embedder.convolution.weight", Sign::Any,
     kResNetOfHuggingFace, kImageNet},
    {"torchvision ResNet", "layer1.0.conv1.weight", Sign::Any, {}, kImageNet},
    {"Hugging Face BERT", kWordMatrix, Sign::Any, kBert},
    {"Hugging Face BERT", "embeddings.word_embeddings.weight", Sign::Any, kBertBody},
    {"timm Inception-ResNet-v2", "mixed_5b.branch0.conv.weight", Sign::Any, kInceptionResNet,
     kHalves},
    {"torchvision Inception v3",
     "Mixed_5b.branch1x1.conv.weight",
     Sign::Any,
     {},
     kImageNet,
     "Tenon has no such network; the most similar one is inception_resnet_v2"},
    {"torchvision GoogLeNet",
     "inception3a.branch1.conv.weight",
     Sign::Any,
     {},
     kImageNet,
     "Tenon has no such network; the most similar one is inception_resnet_v2"},
    {"torchvision AlexNet or VGG", "features.0.weight", Sign::Any, {}, kImageNet},
};

constexpr std::string_view kWrappers[] = {
    "state_dict.",           "model_state_dict.", "module.", "_orig_mod.",
    "_fsdp_wrapped_module.", "_forward_module.",  "model.",  "net."};
constexpr std::string_view kPathWrappers[] = {"_orig_mod", "_fsdp_wrapped_module",
                                              "_checkpoint_wrapped_module", "module"};

struct Captures {
  std::map<char, std::string_view> numbers;
  std::string_view rest;
};

bool match(std::string_view pattern, std::string_view name, Captures& found) {
  while (!pattern.empty()) {
    if (pattern == "*") {
      found.rest = name;
      return true;
    }
    if (pattern[0] == '{') {
      std::size_t digits = 0;
      while (digits < name.size() && is_digit(name[digits])) ++digits;
      if (digits == 0) return false;
      found.numbers[pattern[1]] = name.substr(0, digits);
      pattern.remove_prefix(3);
      name.remove_prefix(digits);
    } else {
      if (name.empty() || pattern[0] != name[0]) return false;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    }
  }
  return name.empty();
}

}  // namespace

std::span<const WeightFamily> weight_families() { return kWeightFamilies; }
std::span<const std::string_view> weight_wrappers() { return kWrappers; }
std::span<const std::string_view> weight_path_wrappers() { return kPathWrappers; }

std::optional<std::string> renamed(const RenameRule& rule, std::string_view name) {
  Captures found;
  if (!match(rule.from, name, found)) return std::nullopt;
  std::string out;
  for (std::string_view to = rule.to; !to.empty();) {
    if (to == "*") {
      out += found.rest;
      break;
    }
    if (to[0] != '{') {
      out += to[0];
      to.remove_prefix(1);
      continue;
    }
    const std::string_view digits = found.numbers[to[1]];
    const bool next = to[2] == '+';
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (next)
      out += cat(number + 1);
    else
      out += digits;
    to.remove_prefix(to.find('}') + 1);
  }
  return out;
}

}  // namespace tenon::models
