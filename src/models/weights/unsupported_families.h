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
        "its positions are counted from 2 over tokens that are not filled up, token 1 fills up, "
        "and there are no types of texts",
    kRotary = "it has rotary positions, RMS norms and gated layers",
    kRelativePositions = "its attention counts relative positions";

inline constexpr UnsupportedFamily kUnsupportedFamilies[] = {
    {"roberta", "RoBERTa", kOffsetPositions},
    {"xlm-roberta", "XLM-RoBERTa", kOffsetPositions},
    {"camembert", "CamemBERT", kOffsetPositions},
    {"distilbert", "DistilBERT",
     "it has no types of texts, and its classes are told by a head of two layers"},
    {"albert", "ALBERT",
     "its layers share their weights, and its embeddings have fewer features than its layers"},
    {"electra", "ELECTRA",
     "its embeddings are projected, and its head tells which tokens were replaced"},
    {"deberta", "DeBERTa", kRelativePositions},
    {"deberta-v2", "DeBERTa", kRelativePositions},
    {"mpnet", "MPNet", "its attention has a bias of relative positions"},
    {"modernbert", "ModernBERT", "it has rotary positions and gated layers"},
    {"nomic_bert", "Nomic BERT", "it has rotary positions and gated layers"},
    {"mobilebert", "MobileBERT", "its layers have bottlenecks"},
    {"openai-gpt", "GPT", "its normalisations stand behind each sum"},
    {"gpt_neo", "GPT-Neo",
     "every second layer of it sees a window of tokens, and its scores are not scaled"},
    {"gpt_neox", "GPT-NeoX",
     "it has rotary positions, and its attention and its layers' sums run in parallel"},
    {"gptj", "GPT-J", "it has rotary positions"},
    {"gpt_bigcode", "GPT-BigCode", "its heads share one key and one value"},
    {"opt", "OPT", "its positions begin at 2, and its names and layers are others"},
    {"bloom", "BLOOM", "its attention has a bias of distances in place of positions"},
    {"llama", "Llama", kRotary},
    {"mistral", "Mistral", kRotary},
    {"qwen2", "Qwen2", kRotary},
    {"qwen3", "Qwen3", kRotary},
    {"gemma", "Gemma", kRotary},
    {"phi", "Phi", "it has rotary positions"},
    {"t5", "T5", "it is an encoder and a decoder with relative positions"},
    {"bart", "BART", "it is an encoder and a decoder whose positions begin at 2"},
    {"vit", "ViT", "Tenon has no network of patches of images"},
};

/// The family of this type; null: none of the table.
constexpr const UnsupportedFamily* unsupported_family(std::string_view type) {
  for (const UnsupportedFamily& family : kUnsupportedFamilies)
    if (family.type == type) return &family;
  return nullptr;
}

}  // namespace tenon::models
