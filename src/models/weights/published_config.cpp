// Maps the fields of config.json to network names.
#include "models/weights/published_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/lfs.h"
#include "io/text/json.h"
#include "models/weights/published_fields.h"
#include "models/weights/unsupported_families.h"

namespace tenon::models {
namespace {

namespace fs = std::filesystem;
using io::Json;

constexpr std::uint64_t kMostConfig = std::uint64_t{4} << 20;

std::string activation_of(PublishedFields& fields, const char* key, const char* fallback) {
  const std::string given = fields.text(key, fallback);
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"gelu", "gelu"},
      {"gelu_python", "gelu"},
      {"gelu_new", "gelu_tanh"},
      {"gelu_fast", "gelu_tanh"},
      {"gelu_accurate", "gelu_tanh"},
      {"gelu_python_tanh", "gelu_tanh"},
      {"gelu_pytorch_tanh", "gelu_tanh"},
      {"quick_gelu", "quick_gelu"},
      {"relu", "relu"},
      {"relu6", "relu6"},
      {"silu", "silu"},
      {"swish", "silu"},
      {"mish", "mish"},
      {"tanh", "tanh"},
      {"sigmoid", "sigmoid"},
      {"linear", "identity"}};
  for (const auto& [theirs, ours] : kNames)
    if (given == theirs) return std::string(ours);
  std::string all;
  for (const auto& [theirs, ours] : kNames) all += cat(all.empty() ? "" : ", ", theirs);
  fields.refuse(cat("'", key, "' is '", given.substr(0, 80), "'"),
                cat("its activations are ", all));
}

// Refuses features that neither GPT-2 nor BERT has.
void refuse_foreign_parts(PublishedFields& fields) {
  fields.require("add_cross_attention", false, "it has no cross-attention");
  if (fields.boolean("is_encoder_decoder", false))
    fields.refuse("'is_encoder_decoder' is true", "it has no encoder");
  if (const Json* pruned = fields.find("pruned_heads"); pruned != nullptr && !pruned->empty())
    fields.refuse("'pruned_heads' lists removed heads", "all layers have all heads");
  if (fields.find("quantization_config") != nullptr)
    fields.refuse("'quantization_config' is given",
                  "its weights are floating-point; save them without quantisation");
  if (fields.find("auto_map") != nullptr)
    fields.refuse("'auto_map' names code that computes the network",
                  "code in a file is never executed");
}

std::string architecture_of(PublishedFields& fields) {
  const Json* list = fields.find("architectures");
  return list != nullptr && list->is_array() && !list->empty() && (*list)[0].is_string()
             ? (*list)[0].get<std::string>()
             : "";
}

struct FixedSizes {
  std::string_view stem;
  std::int64_t layers, heads, width;
};

const FixedSizes* fixed_sizes(const std::string& stem) {
  static constexpr FixedSizes kFixed[] = {{"gpt2_medium", 24, 16, 1024},
                                          {"gpt2_large", 36, 20, 1280},
                                          {"gpt2_xl", 48, 25, 1600},
                                          {"bert_large", 24, 16, 1024},
                                          {"bert_large_classifier", 24, 16, 1024},
                                          {"bert_large_spans", 24, 16, 1024}};
  const auto* found = std::find_if(std::begin(kFixed), std::end(kFixed),
                                   [&](const FixedSizes& one) { return one.stem == stem; });
  return found == std::end(kFixed) ? nullptr : found;
}

// Sets layers, heads and width, or checks them if the name fixes them, as gpt2_medium does.
void put_sizes(PublishedName& name, const char* const (&fields)[3], std::int64_t layers,
               std::int64_t heads, std::int64_t width) {
  constexpr std::int64_t kLayers = 12, kHeads = 12, kWidth = 768;
  if (const FixedSizes* fixed = fixed_sizes(name.stem())) {
    name.require("layers", fields[0], layers, fixed->layers);
    name.require("heads", fields[1], heads, fixed->heads);
    name.require("width", fields[2], width, fixed->width);
    return;
  }
  name.put("layers", fields[0], layers, kLayers);
  name.put("heads", fields[1], heads, kHeads);
  name.put("width", fields[2], width, kWidth);
}

void read_gpt2(PublishedFields& fields, PublishedName& name, PublishedConfig& out) {
  refuse_foreign_parts(fields);
  fields.require("scale_attn_weights", true,
                 "its attention scores are divided by the square root of the head size");
  fields.require("scale_attn_by_inverse_layer_idx", false,
                 "its attention scores have the same scale in all layers");
  fields.require("reorder_and_upcast_attn", false,
                 "its attention has no separate order and precision");
  fields.require("tie_word_embeddings", true, "its output layer shares the token embedding");
  const std::int64_t layers = fields.whole("n_layer", 12, "num_hidden_layers"),
                     heads = fields.whole("n_head", 12, "num_attention_heads"),
                     width = fields.whole("n_embd", 768, "hidden_size"),
                     context = fields.whole("n_positions", 1024, "max_position_embeddings"),
                     hidden = fields.whole("n_inner", 4 * width);
  put_sizes(name, {"n_layer", "n_head", "n_embd"}, layers, heads, width);
  name.put("context", "n_positions", context, std::int64_t{1024});
  name.put("hidden", "n_inner", hidden, 4 * width);
  name.put("activation", "activation_function",
           activation_of(fields, "activation_function", "gelu_new"), "gelu_tanh");
  name.put("eps", "layer_norm_epsilon", fields.number("layer_norm_epsilon", 1e-5, 0, 1), 1e-5);
  const double dropout = fields.number("resid_pdrop", 0.1, 0, 0.99);
  name.put("dropout", "resid_pdrop", dropout, 0.0);
  name.put("attention_dropout", "attn_pdrop", fields.number("attn_pdrop", 0.1, 0, 0.99), dropout);
  name.put("embedding_dropout", "embd_pdrop", fields.number("embd_pdrop", 0.1, 0, 0.99), dropout);
  out.classes = fields.whole("vocab_size", 50'257);
  (void)fields.find("is_decoder");  // has no effect: GPT-2 is a decoder
  (void)fields.find("pad_token_id");
  (void)fields.find("problem_type");
}

void check_bert_task(PublishedFields& fields, const std::string& architecture, bool classes,
                     bool spans) {
  const auto of = [&](const char* task) {
    fields.refuse(cat("the architecture is ", architecture),
                  cat("it is another task's head: ", task));
  };
  if (classes && architecture == "BertForTokenClassification")
    of("a class for each token; bert_classifier gives one class for a text");
  if (classes && architecture == "BertForMultipleChoice")
    of("a choice between texts; bert_classifier gives a class for each text");
  if ((classes || spans) && architecture == "BertLMHeadModel") of("it sees only earlier tokens");
}

// Names of classes by their numbers; empty unless there is one for each.
std::vector<std::string> labels_of(PublishedFields& fields, std::int64_t& count) {
  const Json* map = fields.find("id2label");
  count = fields.whole("num_labels", count);
  if (map == nullptr || !map->is_object() || map->empty()) return {};
  count = static_cast<std::int64_t>(map->size());
  std::vector<std::string> names(map->size());
  bool numbered = true;  // all labels are "LABEL_0" and so on, which are not names
  for (const auto& [key, value] : map->members()) {
    const auto number = static_cast<std::uint64_t>(std::strtoull(key.c_str(), nullptr, 10));
    if (!value.is_string() || number >= names.size() || cat(number) != key) return {};
    names[number] = value.get<std::string>();
    numbered = numbered && names[number] == cat("LABEL_", number);
  }
  const std::set<std::string> distinct(names.begin(), names.end());
  return numbered || distinct.size() != names.size() ? std::vector<std::string>() : names;
}

void read_bert(PublishedFields& fields, PublishedName& name, PublishedConfig& out) {
  refuse_foreign_parts(fields);
  fields.require("is_decoder", false, "its attention is bidirectional");
  const bool classes = name.stem().ends_with("_classifier"),
             spans = name.stem().ends_with("_spans");
  if (!classes && !spans)
    fields.require("tie_word_embeddings", true, "its output layer shares the token embedding");
  else
    (void)fields.find("tie_word_embeddings");
  const std::string positions = fields.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    fields.refuse(cat("'position_embedding_type' is '", positions.substr(0, 80), "'"),
                  "its positions are absolute");
  if (const std::int64_t types = fields.whole("type_vocab_size", 2); types != 2)
    fields.refuse(cat("'type_vocab_size' is ", types), "it has two token types");
  if (const Json* filler = fields.find("pad_token_id"); filler != nullptr && *filler != 0)
    fields.refuse(cat("'pad_token_id' is ", io::json_text(*filler).substr(0, 40)),
                  "token 0 is the padding token");
  check_bert_task(fields, architecture_of(fields), classes, spans);
  const std::int64_t layers = fields.whole("num_hidden_layers", 12),
                     heads = fields.whole("num_attention_heads", 12),
                     width = fields.whole("hidden_size", 768),
                     vocabulary = fields.whole("vocab_size", 30'522);
  put_sizes(name, {"num_hidden_layers", "num_attention_heads", "hidden_size"}, layers, heads,
            width);
  name.put("hidden", "intermediate_size", fields.whole("intermediate_size", 3072), 4 * width);
  name.put("context", "max_position_embeddings", fields.whole("max_position_embeddings", 512),
           std::int64_t{512});
  name.put("activation", "hidden_act", activation_of(fields, "hidden_act", "gelu"), "gelu");
  name.put("eps", "layer_norm_eps", fields.number("layer_norm_eps", 1e-12, 0, 1), 1e-12);
  const double dropout = fields.number("hidden_dropout_prob", 0.1, 0, 0.99);
  name.put("dropout", "hidden_dropout_prob", dropout, 0.1);
  name.put("attention_dropout", "attention_probs_dropout_prob",
           fields.number("attention_probs_dropout_prob", 0.1, 0, 0.99), dropout);
  const double of_head = fields.number("classifier_dropout", dropout, 0, 0.99);
  const std::string problem = fields.text("problem_type", "");
  if (!classes && !spans) {
    out.classes = vocabulary;
    return;
  }
  name.put("vocabulary", "vocab_size", vocabulary, std::int64_t{30'522});
  if (!classes) return;
  name.put("head_dropout", "classifier_dropout", of_head, dropout);
  if (problem == "multi_label_classification")
    fields.refuse("'problem_type' is 'multi_label_classification'", "each text has one class");
  out.classes = 2;
  out.class_names = labels_of(fields, out.classes);
  out.regression = problem == "regression" || out.classes == 1;
}

void read_resnet(PublishedFields& fields, PublishedName& name, PublishedConfig& out) {
  const std::vector<std::int64_t> depths = fields.wholes("depths"),
                                  widths = fields.wholes("hidden_sizes");
  const std::string layer = fields.text("layer_type", "bottleneck"),
                    activation = fields.text("hidden_act", "relu");
  struct Row {
    const char *stem, *layer;
    std::vector<std::int64_t> depths;
  };
  static const std::vector<Row> rows{{"resnet18", "basic", {2, 2, 2, 2}},
                                     {"resnet34", "basic", {3, 4, 6, 3}},
                                     {"resnet50", "bottleneck", {3, 4, 6, 3}},
                                     {"resnet101", "bottleneck", {3, 4, 23, 3}},
                                     {"resnet152", "bottleneck", {3, 8, 36, 3}}};
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
    return one.layer == layer && one.depths == depths;
  });
  if (row == rows.end())
    fields.refuse("'depths' and 'layer_type' match no network of Tenon",
                  "it has resnet18, 34, 50, 101 and 152");
  if (name.stem() != row->stem)
    throw make_error<ValueError>(FileName{fields.path()}, " describes ", row->stem,
                                 ", and the network asked for is ", name.stem(), ": write ",
                                 row->stem);
  const std::int64_t width = fields.whole("embedding_size", 64);
  const std::int64_t grown = layer == "bottleneck" ? 4 : 1;
  for (std::size_t k = 0; k < widths.size(); ++k)
    if (widths.size() != 4 || widths[k] != width * grown << k)
      fields.refuse("'hidden_sizes' do not double from 'embedding_size' on",
                    "the widths of its stages do");
  if (activation != "relu")
    fields.refuse(cat("'hidden_act' is '", activation.substr(0, 80), "'"),
                  "its activation is relu");
  fields.require("downsample_in_first_stage", false, "its first stage keeps its size");
  fields.require("downsample_in_bottleneck", false, "its stride is in the convolution of 3 x 3");
  if (fields.whole("num_channels", 3) != 3)
    fields.refuse("'num_channels' is not 3", "it takes images of three colours");
  (void)fields.find("problem_type");
  name.put("width", "embedding_size", width, std::int64_t{64});
  out.classes = 2;
  out.class_names = labels_of(fields, out.classes);
}

std::string triple(const std::vector<double>& values) {
  std::string out;
  for (const double value : values) out += cat(out.empty() ? "" : ",", value);
  return out;
}

// timm's config: the name of one network, and its number of classes.
void read_timm(PublishedFields& fields, PublishedName& name, PublishedConfig& out) {
  const std::string architecture = fields.text("architecture", "");
  if (architecture != name.stem())
    throw make_error<ValueError>(FileName{fields.path()}, " describes timm's '",
                                 architecture.substr(0, 80), "', and the network asked for is ",
                                 name.stem());
  out.classes = fields.whole("num_classes", 1000);
  for (const char* key : {"num_features", "pool_size", "global_pool", "label_names",
                          "label_descriptions", "custom_load", "input_size", "fixed_input_size"})
    (void)fields.find(key);
  if (const Json* arguments = fields.find("model_args");
      arguments != nullptr && !arguments->empty())
    fields.refuse("'model_args' change the network", "it is as published");
  const Json* images = fields.find("pretrained_cfg");
  if (images == nullptr || !images->is_object()) return;
  const Json *mean = images->find("mean"), *deviation = images->find("std");
  if (mean != nullptr && deviation != nullptr)
    out.normalize =
        cat(triple(fields.numbers(*mean, "mean")), "/", triple(fields.numbers(*deviation, "std")));
}

[[noreturn]] void refuse_type(const std::string& path, const std::string& type) {
  if (const UnsupportedFamily* family = unsupported_family(type))
    throw make_error<NotSupported>(FileName{path}, ": this is ", family->name,
                                   ": not supported, because ", family->why);
  throw make_error<NotSupported>(
      FileName{path}, ": the network is of type '", type.substr(0, 80),
      "', which Tenon does not have: of Hugging Face's types it reads gpt2, bert "
      "and resnet");
}

void read_family(const std::string& type, PublishedFields& fields, PublishedName& name,
                 PublishedConfig& out) {
  struct Family {
    std::string_view type, stem;
    void (*read)(PublishedFields&, PublishedName&, PublishedConfig&);
  };
  static constexpr Family kFamilies[] = {
      {"gpt2", "gpt2", read_gpt2}, {"bert", "bert", read_bert}, {"resnet", "resnet", read_resnet}};
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const Family& one) { return one.type == type; });
  if (family == std::end(kFamilies)) refuse_type(fields.path(), type);
  if (!name.stem().starts_with(family->stem))
    throw make_error<ValueError>(FileName{fields.path()}, " describes a network of type '", type,
                                 "', and the network asked for is ", name.stem(), ": write ",
                                 family->stem == "bert"     ? "bert, bert_classifier or bert_spans"
                                 : family->stem == "resnet" ? "resnet18, 34, 50, 101 or 152"
                                                            : "gpt2");
  family->read(fields, name, out);
}

}  // namespace

namespace {

// The config.json beside a file may belong to any program.
bool is_published(const std::string& text) {
  const Json json = io::parse_json_or_discard(text);
  return json.is_object() && (json.contains("model_type") || json.contains("architecture"));
}

}  // namespace

std::string config_path(const std::string& weights) {
  std::error_code ignored;
  const fs::path place(weights);
  const fs::path folder = fs::is_directory(place, ignored) ? place : place.parent_path();
  const std::string path = (folder / "config.json").string();
  return fs::is_regular_file(path, ignored) ? path : "";
}

PublishedConfig parse_config(const std::string& json, const std::string& path,
                             const std::string& model) {
  const Json parsed = io::parse_json_or_discard(json);
  if (!parsed.is_object()) throw make_error<FormatError>(FileName{path}, ": is not a JSON object");
  PublishedFields fields(parsed, path);
  PublishedName name(model, path);
  PublishedConfig out;
  out.path = path;
  if (fields.find("architecture") != nullptr) {
    read_timm(fields, name, out);
  } else if (const std::string type = fields.text("model_type", ""); !type.empty()) {
    read_family(type, fields, name, out);
  } else {
    throw make_error<FormatError>(
        FileName{path},
        ": has neither 'model_type' nor 'architecture', so it is not a config of "
        "Hugging Face's or timm's: move it away from the weights if it is "
        "another program's");
  }
  out.model = name.name();
  const std::vector<std::string> unknown = fields.unknown();
  if (!unknown.empty()) {
    constexpr std::size_t kShown = 4;
    std::string listed;
    for (std::size_t k = 0; k < std::min(unknown.size(), kShown); ++k)
      listed += cat(k == 0 ? "'" : ", '", unknown[k].substr(0, 80), "'");
    out.notes.push_back({cat(unknown.size(), unknown.size() == 1 ? " field" : " fields",
                             " unknown, ignored: ", listed, unknown.size() > kShown ? ", ..." : ""),
                         static_cast<std::int64_t>(unknown.size()), path});
  }
  (void)info(out.model);  // throws if the sizes are not those of a valid network
  return out;
}

std::optional<PublishedConfig> published_config(const std::string& weights,
                                                const std::string& model) {
  const std::string path = config_path(weights);
  if (path.empty() || is_network_file(model)) return std::nullopt;
  const std::string text = io::read_file(path, kMostConfig);
  io::refuse_lfs_pointer(text, path);
  std::error_code ignored;
  if (!fs::is_directory(weights, ignored) && !is_published(text)) return std::nullopt;
  return parse_config(text, path, model);
}

PublishedNetwork published_network(const std::string& weights, const std::string& model) {
  PublishedNetwork out{model};
  const std::string beside = config_path(weights);
  if (beside.empty()) return out;
  if (is_network_file(model)) {
    out.notes.push_back({cat(beside, " was not compared with the network of a file"), 1, ""});
    return out;
  }
  std::optional<PublishedConfig> config = published_config(weights, model);
  if (!config) {
    out.notes.push_back(
        {cat(beside, " was not read: it has neither 'model_type' nor 'architecture'"), 1, ""});
    return out;
  }
  return {std::move(config->model), config->classes, std::move(config->path),
          std::move(config->notes)};
}

}  // namespace tenon::models
