// Weights under other libraries' names (make_family_fixtures.py): recognised, renamed, transposed,
// with equal logits; every published name has a place; mismatches are named.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/models.h>
#include <tenon/published_weights.h>
#include <tenon/shapes_only.h>
#include <tenon/train.h>
#include <tenon/weights.h>

#include "e2e/fixtures.h"
#include "io/folder.h"

using namespace tenon;
using fixtures::part;
using fixtures::Tensors;

namespace {

std::string after_at(const std::string& title) { return title.substr(title.find('@') + 1); }

// The tensor that a file's tensor must equal; "" if it is independent.
std::string tied_to(const std::string& key, const std::string& embedding) {
  if (key.ends_with("predictions.decoder.bias")) return "cls.predictions.bias";
  return key.ends_with("lm_head.weight") || key.ends_with("predictions.decoder.weight") ||
                 key == "output.weight"
             ? embedding
             : "";
}

// The values of the script's fill(), under the file's names; a tied head equals the embedding.
Tensors file_of(const Tensors& stored) {
  Tensors out;
  std::string embedding;
  for (const auto& entry : part(stored, "shape/"))
    for (const char* name : {"wte.weight", "token_embd.weight", "word_embeddings.weight"})
      if (entry.first.ends_with(name)) embedding = entry.first;
  for (const auto& [key, sizes] : part(stored, "shape/")) {
    const Shape shape = fixtures::shape_of(sizes);
    if (key.ends_with("num_batches_tracked") || key.ends_with("position_ids"))
      out.emplace(key, zeros(shape, DType::Int64));
    else if (tied_to(key, embedding).empty())
      out.emplace(key, fixtures::values(key, shape));
  }
  for (const auto& entry : part(stored, "shape/"))
    if (const std::string same = tied_to(entry.first, embedding); !same.empty())
      out.emplace(entry.first, out.at(same));
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& text : parts) out += text + "; ";
  return out;
}

// Reads names.txt: the tensors of each network with their shapes.
std::map<std::string, std::map<std::string, Shape>> published_names() {
  std::map<std::string, std::map<std::string, Shape>> out;
  std::ifstream file("tests/e2e/fixtures/weights/names.txt");
  std::string line, title;
  while (std::getline(file, line)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) {
      title = line;
      continue;
    }
    Shape shape;
    std::istringstream sizes(line.substr(space + 1));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    out[title].emplace(line.substr(0, space), shape);
  }
  return out;
}

// Writes a header followed by a hole of zeros, which takes no disk space.
void write_named(const std::string& path, const std::map<std::string, Shape>& shapes) {
  std::string json = "{";
  std::uint64_t at = 0;
  for (const auto& [name, shape] : shapes) {
    std::string sizes;
    for (const std::int64_t size : shape)
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    const auto bytes = static_cast<std::uint64_t>(shape.numel());
    json += at == 0 && json.size() == 1 ? "\"" : ",\"";
    json.append(name).append(R"(":{"dtype":"U8","shape":[)").append(sizes);
    json.append(R"(],"data_offsets":[)").append(std::to_string(at)).append(",");
    json.append(std::to_string(at + bytes)).append("]}");
    at += bytes;
  }
  json += "}";
  std::ofstream file(path, std::ios::binary);
  const std::uint64_t length = json.size();
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << json;
  file.close();
  std::filesystem::resize_file(path, 8 + length + at);
}

}  // namespace

TEST_CASE("families: equal logits from weights under other libraries' names") {
  const TestFolder folder;
  for (const auto& entry : fixtures::load("families")) {
    const std::string& title = entry.first;
    const Tensors& stored = entry.second;
    CAPTURE(title);
    const Tensor& logits = stored.at("logits");
    for (const char* ending : {".safetensors", ".pt"}) {
      const std::string path = folder / (std::string("w") + ending);
      io::save_weights(path, file_of(stored));
      train::Settings settings = train::Settings::resolve(after_at(title), "", {});
      settings.classes = logits.size(logits.rank() - 1);
      const train::TrainedModel model = train::TrainedModel::with_weights(settings, path);
      CHECK(model.weights_note().find("all ") != std::string::npos);
      const Tensor& given = stored.at("input");
      const Shape shape = given.rank() > 1 ? given.shape() : fixtures::shape_of(given);
      const Tensor x = given.rank() > 1 ? given
                                        : reshape(fixtures::values("input", {shape.numel()}) * 8,
                                                  {shape.begin(), shape.end()});
      CHECK(fixtures::distance(model.net()(x), logits) < 5e-6);
    }
  }
}

TEST_CASE("families: every tensor of the published files has a place, and changes are reported") {
  const std::map<std::string, std::vector<const char*>> said{
      {"torchvision@vgg16", {"torchvision AlexNet or VGG: "}},
      {"torchvision@resnet50", {"torchvision ResNet: "}},
      {"hf@resnet50",
       {"Hugging Face ResNet: 320 renamed, for instance 'classifier.1.bias' to 'fc.bias'"}},
      {"timm@inception_resnet_v2", {"timm Inception-ResNet-v2: "}},
      {"cadene@inception_resnet_v2",
       {"2 renamed, for instance 'last_linear.bias' to 'classif.bias'"}},
      {"2018@bert",
       {"Hugging Face BERT: 52 renamed, for instance 'bert.embeddings.LayerNorm.beta'",
        "position numbers", "4 left out, for instance 'bert.pooler.dense.bias': of another task",
        "'cls.predictions.decoder.weight' equals 'bert.embeddings.word_embeddings.weight'"}},
      {"hf@gpt2", {"Hugging Face GPT-2: 'lm_head.weight' equals 'transformer.wte.weight'"}},
      {"hf_base@gpt2", {"148 renamed", "24 left out, for instance 'h.0.attn.bias': masks"}},
      {"linear@gpt2",
       {"GPT-2 with linear layers: prefix 'model.' removed from 149 names; prefix '_orig_mod.' "
        "removed from",
        "48 transposed, for instance 'transformer.h.0.attn.c_attn.weight'"}}};
  const TestFolder folder;
  for (const auto& entry : published_names()) {
    const std::string& title = entry.first;
    const std::map<std::string, Shape>& shapes = entry.second;
    CAPTURE(title);
    write_named(folder / "w.safetensors", shapes);
    const io::WeightFile file(folder / "w.safetensors");
    StateDict wanted;
    {
      const ShapesOnly shapes_only;
      wanted = models::create(after_at(title)).state_dict();
    }
    // Only matching tensors are read: the largest one gets another shape, to save time.
    const models::WeightFit fit = models::fit_weights(file, wanted);
    CHECK(fit.differences() == "");
    CHECK(fit.tensors.size() == wanted.size());
    CHECK(models::weight_family(file) == fit.family);
    const std::string words = fit.family + ": " + joined(fit.done);
    CAPTURE(words);
    if (const auto wanted_words = said.find(title); wanted_words != said.end())
      for (const char* part : wanted_words->second) CHECK(words.find(part) != std::string::npos);
  }
}

TEST_CASE("families: mismatches are reported by name and shape") {
  const TestFolder folder;
  const std::string path = folder / "w.safetensors";
  StateDict state = models::create("resnet18:width=4", {.classes = 10}).state_dict();
  io::TensorMap given;
  for (const auto& [name, tensor] : state) given.emplace("module." + name, tensor);
  given.erase("module.bn1.bias");
  given["module.fc.weight"] = zeros({7, 32});
  given["module.fc2.weight"] = zeros({2, 2});
  given["epoch"] = zeros({});
  io::save_weights(path, given);
  const models::WeightFit fit = models::fit_weights(io::WeightFile(path), state);
  CHECK(fit.family == "torchvision ResNet");
  CHECK(fit.missing == std::vector<std::string>{"bn1.bias"});
  CHECK(fit.foreign == std::vector<std::string>{"module.fc2.weight"});
  CHECK(fit.differences() ==
        "missing: 'bn1.bias'; of another shape: 'fc.weight' is [7, 32] in the file and [10, 32] in "
        "the network; not in the network: 'module.fc2.weight'");
  CHECK(joined(fit.done).find("left out, without this prefix: 'epoch'") != std::string::npos);
  train::Settings settings = train::Settings::resolve("resnet18:width=4", "", {});
  CHECK_THROWS_WITH_AS(train::TrainedModel::with_weights(settings, path),
                       doctest::Contains("missing: 'bn1.bias'"), ValueError);
  // Two different tensors for one tied tensor are refused.
  io::save_weights(path, {{"transformer.h.0.attn.c_attn.weight", zeros({4, 12})},
                          {"transformer.wte.weight", zeros({3, 4})},
                          {"lm_head.weight", ones({3, 4})}});
  const StateDict tied{{"transformer.wte.weight", zeros({3, 4})}};
  CHECK_THROWS_WITH_AS(models::fit_weights(io::WeightFile(path), tied),
                       doctest::Contains("not equal to 'transformer.wte.weight'"), ValueError);
  // The head alone is used as the embedding.
  io::save_weights(path, {{"transformer.h.0.attn.c_attn.weight", zeros({4, 12})},
                          {"lm_head.weight", ones({3, 4})}});
  CHECK(models::fit_weights(io::WeightFile(path), tied).tensors.size() == 1);
  // Two names for one tensor.
  io::save_weights(path, {{"transformer.wte.weight", zeros({3, 4})},
                          {"h.0.attn.c_attn.weight", zeros({4, 12})},
                          {"wte.weight", ones({3, 4})}});
  CHECK_THROWS_WITH_AS(models::fit_weights(io::WeightFile(path), tied),
                       doctest::Contains("two tensors"), ValueError);
}
