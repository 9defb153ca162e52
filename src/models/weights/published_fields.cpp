// Typed access to fields with range checks, and detection of contradictions between two network
// names.
#include "models/weights/published_fields.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::models {
namespace {

using io::Json;

constexpr std::int64_t kLargest = 1 << 24;

// Fields that do not change what the network computes from its inputs: names, token numbers,
// initialization, options of text generation, output formats, heads that Tenon does not build.
constexpr std::string_view kIrrelevant[] = {"_attn_implementation",
                                            "_attn_implementation_autoset",
                                            "_name_or_path",
                                            "_num_labels",
                                            "architectures",
                                            "attn_implementation",
                                            "bad_words_ids",
                                            "begin_suppress_tokens",
                                            "bos_token_id",
                                            "chunk_size_feed_forward",
                                            "cls_token_id",
                                            "cross_attention_hidden_size",
                                            "decoder_start_token_id",
                                            "directionality",
                                            "diversity_penalty",
                                            "do_sample",
                                            "dtype",
                                            "early_stopping",
                                            "encoder_no_repeat_ngram_size",
                                            "eos_token_id",
                                            "exponential_decay_length_penalty",
                                            "finetuning_task",
                                            "forced_bos_token_id",
                                            "forced_eos_token_id",
                                            "gradient_checkpointing",
                                            "id2label",
                                            "initializer_range",
                                            "is_encoder_decoder",
                                            "keys_to_ignore_at_inference",
                                            "label2id",
                                            "length_penalty",
                                            "mask_token_id",
                                            "max_length",
                                            "min_length",
                                            "model_type",
                                            "n_ctx",
                                            "n_special",
                                            "no_repeat_ngram_size",
                                            "num_beam_groups",
                                            "num_beams",
                                            "num_labels",
                                            "num_return_sequences",
                                            "out_features",
                                            "out_indices",
                                            "output_attentions",
                                            "output_hidden_states",
                                            "output_past",
                                            "output_scores",
                                            "pooler_fc_size",
                                            "pooler_num_attention_heads",
                                            "pooler_num_fc_layers",
                                            "pooler_size_per_head",
                                            "pooler_type",
                                            "predict_special_tokens",
                                            "prefix",
                                            "remove_invalid_values",
                                            "repetition_penalty",
                                            "return_dict",
                                            "return_dict_in_generate",
                                            "sep_token_id",
                                            "stage_names",
                                            "summary_activation",
                                            "summary_first_dropout",
                                            "summary_proj_to_labels",
                                            "summary_type",
                                            "summary_use_proj",
                                            "suppress_tokens",
                                            "task_specific_params",
                                            "temperature",
                                            "tf_legacy_loss",
                                            "tie_encoder_decoder",
                                            "tokenizer_class",
                                            "top_k",
                                            "top_p",
                                            "torch_dtype",
                                            "torchscript",
                                            "transformers_version",
                                            "typical_p",
                                            "use_bfloat16",
                                            "use_cache"};

bool is_size(const Json& value) {
  if (!value.is_number_integer()) return false;
  const auto size = value.get<double>();
  return size >= 1 && size <= static_cast<double>(kLargest);
}

bool is_decimal(const std::string& text) {
  return !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
}

}  // namespace

PublishedFields::PublishedFields(const Json& json, std::string path)
    : json_(json), path_(std::move(path)) {}

const Json* PublishedFields::find(const char* key) {
  asked_.insert(key);
  const Json* found = json_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Json* PublishedFields::find(const char* key, const char* alias) {
  const Json *first = find(key), *second = alias[0] == '\0' ? nullptr : find(alias);
  if (first != nullptr && second != nullptr && *first != *second)
    refuse_format(cat("'", key, "' and '", alias, "' differ, but are two names of the same field"));
  return first != nullptr ? first : second;
}

std::int64_t PublishedFields::whole(const char* key, std::int64_t fallback, const char* alias) {
  const Json* value = find(key, alias);
  if (value == nullptr) return fallback;
  if (!is_size(*value))
    refuse_format(cat("'", key, "' must be a whole number from 1 to ", kLargest));
  return value->get<std::int64_t>();
}

double PublishedFields::number(const char* key, double fallback, double low, double high) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  const double out = value->is_number() ? value->get<double>() : low - 1;
  if (!(out >= low && out <= high))
    refuse_format(cat("'", key, "' must be a number from ", low, " to ", high));
  return out;
}

std::string PublishedFields::text(const char* key, const char* fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse_format(cat("'", key, "' must be a text"));
  return value->get<std::string>();
}

bool PublishedFields::boolean(const char* key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse_format(cat("'", key, "' must be true or false"));
  return value->get<bool>();
}

std::vector<std::int64_t> PublishedFields::wholes(const char* key) {
  const Json* value = find(key);
  std::vector<std::int64_t> out;
  if (value == nullptr || !value->is_array() || value->size() > 64)
    refuse_format(cat("'", key, "' must be a list of numbers"));
  for (const Json& item : *value) {
    if (!is_size(item))
      refuse_format(cat("'", key, "' must be a list of numbers from 1 to ", kLargest));
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

std::vector<double> PublishedFields::numbers(const Json& list, const char* key) const {
  std::vector<double> out;
  if (list.is_array() && list.size() <= 16)
    for (const Json& item : list)
      if (item.is_number()) out.push_back(item.get<double>());
  if (out.empty() || out.size() != list.size())
    refuse_format(cat("'", key, "' must be a list of numbers"));
  return out;
}

void PublishedFields::require(const char* key, bool wanted, const char* what) {
  if (boolean(key, wanted) != wanted)
    refuse(cat("'", key, "' is ", wanted ? "false" : "true"), what);
}

void PublishedFields::refuse(const std::string& field, const std::string& what) const {
  throw make_error<NotSupported>(FileName{path_}, ": ", field,
                                 ", which Tenon's network does not compute: ", what);
}

void PublishedFields::refuse_format(const std::string& what) const {
  throw make_error<FormatError>(FileName{path_}, ": ", what);
}

std::vector<std::string> PublishedFields::unknown() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : json_.members())
    if (!asked_.contains(key) &&
        std::find(std::begin(kIrrelevant), std::end(kIrrelevant), key) == std::end(kIrrelevant))
      out.push_back(key);
  return out;
}

PublishedName::PublishedName(std::string asked, std::string path)
    : asked_(std::move(asked)), path_(std::move(path)) {
  const std::size_t colon = asked_.find(':');
  out_ = stem_ = asked_.substr(0, colon);
  for (std::size_t at = colon; at < asked_.size();) {
    const std::size_t end = std::min(asked_.find(',', at + 1), asked_.size());
    const std::string part = asked_.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(part.find('='), part.size());
    given_.emplace_back(part.substr(0, equals), part.substr(std::min(equals + 1, part.size())));
    at = end;
  }
}

void PublishedName::put(const char* key, const char* field, std::int64_t value,
                        std::int64_t usual) {
  put_text(key, field, cat(value), value == usual);
}

void PublishedName::put(const char* key, const char* field, double value, double usual) {
  put_text(key, field, cat(value), value == usual);
}

void PublishedName::put(const char* key, const char* field, const std::string& value,
                        const char* usual) {
  put_text(key, field, value, value == usual);
}

void PublishedName::require(const char* key, const char* field, std::int64_t value,
                            std::int64_t fixed) {
  put_text(key, field, cat(value), true);
  if (value != fixed) refuse(key, field, cat(value), cat(fixed));
}

std::string PublishedName::name() const {
  for (const auto& [key, text] : given_)
    if (!said_.contains(key))
      throw make_error<ValueError>("model '", asked_, "': '", key, "' has no counterpart in ",
                                   FileName{path_}, ": leave it out");
  return out_;
}

void PublishedName::put_text(const char* key, const char* field, const std::string& value,
                             bool usual) {
  said_.insert(key);
  for (const auto& [name, text] : given_) {
    const bool same = text == value ||
                      (is_decimal(text) && is_decimal(value) &&
                       std::strtod(text.c_str(), nullptr) == std::strtod(value.c_str(), nullptr));
    if (name == key && !same) refuse(key, field, value, text);
  }
  if (usual) return;
  out_ += cat(out_ == stem_ ? ":" : ",", key, "=", value);
}

void PublishedName::refuse(const char* key, const char* field, const std::string& published,
                           const std::string& asked) const {
  throw make_error<ValueError>("model '", asked_, "' has ", key, " = ", asked,
                               ", and the weights' ", FileName{path_}, " says ", field, " = ",
                               published,
                               ": with these weights it would "
                               "compute something else; write ",
                               base_stem(),
                               ", which takes its sizes from the "
                               "config");
}

// The stem without its size: gpt2 for gpt2_medium.
std::string PublishedName::base_stem() const {
  std::string out = stem_;
  for (const char* size : {"_medium", "_xl", "_large"})
    if (const std::size_t at = out.find(size); at != std::string::npos)
      out.erase(at, std::string_view(size).size());
  return out;
}

}  // namespace tenon::models
