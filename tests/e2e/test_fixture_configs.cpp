// config.json beside weights (make_config_fixtures.py): 200 variations give transformers' logits,
// or are refused with the name of the field; sizes that a user gives must equal the config's.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/published_weights.h>
#include <tenon/train.h>
#include <tenon/weights.h>

#include "base/str.h"
#include "e2e/fixtures.h"
#include "io/folder.h"

using namespace tenon;
using nlohmann::json;
using train::Settings;
using train::TrainedModel;

namespace {

// Tensors for "transformer.wte.weight:61,16 …"; a tied head equals the embedding.
io::TensorMap tensors_of(const std::string& shapes) {
  io::TensorMap out;
  std::string embedding;
  std::istringstream words(shapes);
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find(':'));
    Shape shape;
    std::istringstream sizes(word.substr(name.size() + 1));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    if (name.ends_with("wte.weight") || name.ends_with("word_embeddings.weight")) embedding = name;
    out.emplace(name, name.ends_with("num_batches_tracked") ? zeros(shape, DType::Int64)
                                                            : fixtures::values(name, shape));
  }
  for (const char* tied : {"lm_head.weight", "cls.predictions.decoder.weight"})
    if (out.contains(tied)) out[tied] = out.at(embedding);
  if (out.contains("cls.predictions.decoder.bias"))
    out["cls.predictions.decoder.bias"] = out.at("cls.predictions.bias");
  return out;
}

json rows() {
  std::ifstream file("tests/e2e/fixtures/configs.json");
  return json::parse(file);
}

void write_config(const TestFolder& folder, const json& config) {
  io::write_file(folder / "config.json", config.dump());
}

Tensor input_of(const json& row) {
  if (row["tokens"].is_null()) return fixtures::values("input", {2, 3, 64, 64});
  std::vector<std::int64_t> flat;
  for (const json& text : row["tokens"])
    for (const json& token : text) flat.push_back(token.get<std::int64_t>());
  const auto texts = static_cast<std::int64_t>(row["tokens"].size());
  return Tensor::from(flat, {texts, std::ssize(flat) / texts});
}

// Compares the elements that the row contains.
void check_logits(const json& row, const Tensor& got) {
  Shape shape;
  for (const json& size : row["shape"]) shape.push_back(size.get<std::int64_t>());
  REQUIRE(got.shape() == shape);
  const auto values = got.to_vector<float>();
  const auto wanted = row["logits"].get<std::vector<double>>();
  double apart = 0, largest = 1;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::size_t place = values.size() > wanted.size() ? k * values.size() / wanted.size() : k;
    apart = std::max(apart, std::fabs(static_cast<double>(values[place]) - wanted[k]));
    largest = std::max(largest, std::fabs(wanted[k]));
  }
  CHECK(apart < 2e-5 * largest);
}

TrainedModel opened(const std::string& network, const std::string& weights) {
  return TrainedModel::with_weights(Settings::resolve(network, "", {}), weights);
}

json small_gpt2() {
  for (const json& row : rows())
    if (row["network"] == "gpt2" && row.contains("logits") && row["config"].contains("n_head") &&
        row["config"]["n_head"] == 4)
      return row;
  return {};
}

}  // namespace

TEST_CASE("configs: 200 variations equal transformers, or are refused by name") {
  int computed = 0, refused = 0;
  const TestFolder folder;
  for (const json& row : rows()) {
    const auto network = row["network"].get<std::string>();
    const std::string config = row["config"].dump();
    CAPTURE(network);
    CAPTURE(config);
    write_config(folder, row["config"]);
    if (row.contains("says")) {
      io::save_weights(folder / "model.safetensors", {{"transformer.wte.weight", zeros({2, 2})}});
      CHECK_THROWS_WITH_AS(opened(network, folder / "model.safetensors"),
                           doctest::Contains(row["says"].get<std::string>().c_str()), NotSupported);
      ++refused;
      continue;
    }
    io::save_weights(folder / "model.safetensors", tensors_of(row["shapes"]));
    const TrainedModel model =
        opened(network, computed % 2 == 0 ? folder / "model.safetensors" : folder / ".");
    check_logits(row, model.net()(input_of(row)));
    if (row["config"].contains("id2label") && row["config"]["id2label"]["0"] == "cat")
      CHECK(model.class_names()[1] == "dog");
    ++computed;
  }
  CHECK(computed == 166);
  CHECK(refused == 34);
}

TEST_CASE("configs: sizes in a name must equal the config's") {
  const TestFolder folder;
  const json row = small_gpt2();
  REQUIRE(!row.is_null());
  write_config(folder, row["config"]);
  io::save_weights(folder / "pytorch_model.bin", tensors_of(row["shapes"]));
  const auto refused = [&](const std::string& network) {
    try {
      opened(network, folder / ".");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused("gpt2:heads=2"), "heads = 2");
  has(refused("gpt2:heads=2"), "n_head = 4");
  has(refused("gpt2:eps=0.5"), "layer_norm_epsilon");
  has(refused("gpt2_medium"), "n_layer");
  has(refused("bert"), "write gpt2");
  has(refused("mlp"), "write gpt2");
  CHECK(refused("gpt2:heads=4") == "");
  // A note names unknown fields, but not irrelevant ones.
  json config = row["config"];
  config["shiny"] = 3;
  write_config(folder, config);
  has(opened("gpt2", folder / ".").weights_note(), "1 field unknown, ignored: 'shiny'");
  config["n_layer"] = 0;
  write_config(folder, config);
  has(refused("gpt2"), "'n_layer' must be a whole number");
  // In a given folder config.json must be valid; beside a file it may belong to another program.
  io::write_file(folder / "config.json", "{\"a\": 1}");
  try {
    opened("gpt2", folder / "pytorch_model.bin");
  } catch (const ValueError& error) {
    has(error.what(), "does not fit gpt2");
  }
  has(refused("gpt2"), "model_type");
  io::write_file(folder / "config.json", "{");
  has(refused("gpt2"), "not a JSON object");
}

TEST_CASE("configs: similar unsupported networks are named, with the reason") {
  const TestFolder folder;
  io::save_weights(folder / "model.safetensors",
                   {{"roberta.embeddings.word_embeddings.weight", zeros({8, 4})}});
  io::write_file(folder / "config.json", R"({"model_type": "roberta"})");
  const auto refused = [&] {
    try {
      opened("bert:width=4,heads=2,layers=1", folder / "model.safetensors");
    } catch (const NotSupported& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused().find("this is RoBERTa: not supported, because its positions") !=
        std::string::npos);
  std::filesystem::remove(folder / "config.json");  // now recognised by tensor names
  CHECK(refused().find("this is RoBERTa: not supported, because its positions") !=
        std::string::npos);
  io::write_file(folder / "config.json", R"({"model_type": "squidnet"})");
  CHECK(refused().find("'squidnet'") != std::string::npos);
}

TEST_CASE("configs: a run uses the config's sizes, and its folder stores them") {
  const TestFolder folder;
  const json row = small_gpt2();
  json config = row["config"];
  config["vocab_size"] = 256;
  write_config(folder, config);
  io::TensorMap tensors = tensors_of(row["shapes"]);
  const std::int64_t width = config["n_embd"].get<std::int64_t>();
  tensors["transformer.wte.weight"] = fixtures::values("wte.weight", {256, width});
  tensors["lm_head.weight"] = tensors["transformer.wte.weight"];
  io::save_weights(folder / "model.safetensors", tensors);
  std::string text;
  for (int k = 0; k < 100; ++k) text += "a line of text\n";
  io::write_file(folder / "text.txt", text);
  const Settings s = Settings::resolve("gpt2", "",
                                       {{"weights", folder / "."},
                                        {"data", cat("text:", folder / "text.txt", ",length=8")},
                                        {"epochs", "1"}});
  CHECK(s.model.find("heads=4") != std::string::npos);
  CHECK(s.model.find("activation=") != std::string::npos);
  train::start_run(s, folder / "run");
  CHECK(TrainedModel::open(folder / "run").settings().model == s.model);
}

// The published files that `tenon data fetch weights` downloads contain no unknown field.
TEST_CASE("configs: the published configs of GPT-2 and BERT are read without a note") {
  const auto gpt2 = [](int width, int heads, int layers, const char* more) {
    return cat(R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
      "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
      "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
      "n_embd": )",
               width, R"(, "n_head": )", heads, R"(, "n_layer": )", layers,
               R"(, "n_positions": 1024, )", more,
               R"("resid_pdrop": 0.1, "summary_activation": null,
      "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
      "summary_use_proj": true, "task_specific_params": {"text-generation": {"do_sample": true,
      "max_length": 50}}, "vocab_size": 50257})");
  };
  const auto bert = [](int width, int heads, int layers) {
    return cat(R"({"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
      "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "hidden_size": )",
               width, R"(, "initializer_range": 0.02, "intermediate_size": )", 4 * width,
               R"(, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
      "num_attention_heads": )",
               heads, R"(, "num_hidden_layers": )", layers,
               R"(, "pad_token_id": 0, "position_embedding_type": "absolute",
      "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": true,
      "vocab_size": 30522})");
  };
  const char* old = R"("n_special": 0, "predict_special_tokens": true, )";
  const std::pair<const char*, std::string> published[] = {
      {"gpt2", gpt2(768, 12, 12, "")},
      {"gpt2_medium", gpt2(1024, 16, 24, old)},
      {"gpt2_large", gpt2(1280, 20, 36, "")},
      {"gpt2_xl", gpt2(1600, 25, 48, R"("output_past": true, )")},
      {"bert", bert(768, 12, 12)},
      {"bert_large", bert(1024, 16, 24)}};
  const TestFolder folder;
  for (const auto& [model, config] : published) {
    CAPTURE(model);
    io::write_file(folder / "config.json", config);
    const models::PublishedNetwork network = models::published_network(folder.path(), model);
    CHECK(network.notes.empty());
    CHECK(network.model.starts_with(model));
    CHECK(network.classes == models::info(model).classes);
    CHECK(network.config == folder / "config.json");
  }
}
