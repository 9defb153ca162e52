// Networks that resemble Tenon's and compute something else, and why, as the end of a sentence.
#pragma once

#include <string_view>

namespace tenon::models {

struct UnsupportedFamily {
  std::string_view type;  ///< `model_type` in a config.json of Hugging Face
  std::string_view name, why;
};

inline constexpr std::string_view
    kOffsetPositions =
        "its positions count from 2 and skip padding, its padding token is 1, and it has no token "
        "types",
    kRotary = "it has rotary position embeddings, RMS normalization and gated layers",
    kRelativePositions = "its attention uses relative positions";

inline constexpr UnsupportedFamily kUnsupportedFamilies[] = {
    {"roberta", "RoBERTa", kOffsetPositions},
    {"xlm-roberta", "XLM-RoBERTa", kOffsetPositions},
    {"camembert", "CamemBERT", kOffsetPositions},
    {"distilbert", "DistilBERT",
     "it has no token types, and its classification head has two layers"},
    {"albert", "ALBERT",
     "its layers share their weights, and its embeddings are smaller than its layers"},
    {"electra", "ELECTRA", "its embeddings are projected, and its head detects replaced tokens"},
    {"deberta", "DeBERTa", kRelativePositions},
    {"deberta-v2", "DeBERTa", kRelativePositions},
    {"mpnet", "MPNet", "its attention adds a bias of relative positions"},
    {"modernbert", "ModernBERT", "it has rotary position embeddings and gated layers"},
    {"nomic_bert", "Nomic BERT", "it has rotary position embeddings and gated layers"},
    {"mobilebert", "MobileBERT", "its layers have bottlenecks"},
    {"openai-gpt", "GPT", "its layers normalize after each residual addition"},
    {"gpt_neo", "GPT-Neo",
     "every second layer attends to a window of tokens, and its scores are not scaled"},
    {"gpt_neox", "GPT-NeoX",
     "it has rotary position embeddings, and its attention and feed-forward layers run in "
     "parallel"},
    {"gptj", "GPT-J", "it has rotary position embeddings"},
    {"gpt_bigcode", "GPT-BigCode", "its heads share one key and one value"},
    {"opt", "OPT", "its positions begin at 2, and its names and layers differ"},
    {"bloom", "BLOOM",
     "its attention adds a bias of distances (ALiBi) instead of position embeddings"},
    {"llama", "Llama", kRotary},
    {"mistral", "Mistral", kRotary},
    {"qwen2", "Qwen2", kRotary},
    {"qwen3", "Qwen3", kRotary},
    {"gemma", "Gemma", kRotary},
    {"phi", "Phi", "it has rotary position embeddings"},
    {"t5", "T5", "it is an encoder and a decoder with relative positions"},
    {"bart", "BART", "it is an encoder and a decoder whose positions begin at 2"},
    {"vit", "ViT", "Tenon has no vision transformer"},
};

/// The family of this type; null if the table does not have it.
constexpr const UnsupportedFamily* unsupported_family(std::string_view type) {
  for (const UnsupportedFamily& family : kUnsupportedFamilies)
    if (family.type == type) return &family;
  return nullptr;
}

}  // namespace tenon::models
