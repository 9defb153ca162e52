// Low-rank adapters: peft's formula, the trainable parameters, and a merged model file.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/train.h>
#include <tenon/transformer.h>

#include "graph/node.h"
#include "graph/order.h"
#include "io/folder.h"
#include "train/adapting/lora.h"
#include "train/toy.h"

using namespace tenon;
using train::LoraOptions;
using train::Settings;

namespace {

double distance(const Tensor& a, const Tensor& b) { return amax(abs(a - b)).item<float>(); }

nn::AnyModule small_gpt2() {
  manual_seed(3);
  return models::create("gpt2:layers=2,heads=2,width=16,context=8", {.classes = 11});
}

Settings adapted_run(const std::string& lora, const std::string& epochs = "2") {
  return Settings::resolve("mlp:784-24-10", "",
                           {{"data", "digits:200,50"},
                            {"lora", lora},
                            {"epochs", epochs},
                            {"batch", "20"},
                            {"lr", "0.1"},
                            {"keep_best", "false"}});
}

class ToldNotes : public train::Callback {
 public:
  void on_note(const std::string& note) override { all += note + "; "; }
  std::string all;
};

}  // namespace

TEST_CASE("lora: W + alpha / rank * B A, and B is zero at first") {
  manual_seed(1);
  nn::Sequential plain(nn::Linear(6, 5), nn::ReLU(), nn::Linear(5, 3));
  const Tensor x = randn({4, 6}).compute(), before = plain(x).compute();
  const nn::AnyModule net = train::with_adapters(plain, {.rank = 2, .alpha = 6});
  CHECK(distance(net(x), before) == 0);
  const StateDict state = net.state_dict();
  const Tensor a = state.at("lora.0.weight.A"), b = state.at("lora.0.weight.B");
  CHECK(a.shape() == Shape{2, 6});
  CHECK(b.shape() == Shape{5, 2});
  CHECK(amax(abs(a)).item<float>() <= 1 / std::sqrt(6.0));  // Kaiming's bound for a = sqrt(5)
  CHECK(amax(abs(b)).item<float>() == 0);
  const Tensor value = randn({5, 2}).compute();
  set_value(b, value);
  const Tensor hidden = matmul(x, transpose(state.at("0.weight"), 0, 1)) + state.at("0.bias") +
                        matmul(matmul(x, transpose(a, 0, 1)), transpose(value, 0, 1)) * 3.0;
  const Tensor wanted =
      matmul(relu(hidden), transpose(state.at("2.weight"), 0, 1)) + state.at("2.bias");
  wanted.compute();
  CHECK(distance(net(x), wanted) < 1e-5);
  // The same values without adapters.
  const StateDict merged = train::merged_state(net);
  CHECK(merged.size() == 4);
  plain.load_state_dict(merged);
  set_value(b, zeros({5, 2}));
  CHECK(distance(plain(x), wanted) < 1e-5);
  const StateDict peft = train::adapter_state(net);
  CHECK(peft.count("base_model.model.2.lora_A.weight") == 1);
  CHECK(peft.size() == 4);
}

TEST_CASE("lora: only adapters have gradients, and the gradients are right") {
  manual_seed(2);
  const nn::Sequential plain(nn::Linear(4, 3));
  const nn::AnyModule net = train::with_adapters(plain, {.rank = 2, .alpha = 4});
  CHECK(net.trainable_parameters().size() == 2);
  const Tensor a = net.state_dict().at("lora.0.weight.A"),
               b = net.state_dict().at("lora.0.weight.B");
  set_value(b, randn({3, 2}).compute());
  const Tensor x = randn({5, 4}).compute();
  const Tensor loss = sum(square(net(x)));
  const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{a, b});
  // With G = dL/dW: dA = s B^T G, dB = s G A^T.
  const Tensor g = matmul(transpose(net(x) * 2.0, 0, 1), x);
  CHECK(distance(grads[0], matmul(transpose(b, 0, 1), g) * 2.0) < 1e-4);
  CHECK(distance(grads[1], matmul(g, transpose(a, 0, 1)) * 2.0) < 1e-4);
}

TEST_CASE("lora: no gradient of a weight's size exists if only products read the weight") {
  // Counts products in the gradient graph with as many elements as a weight.
  const auto largest = [](const nn::AnyModule& net, const Tensor& x, std::int64_t size) {
    int found = 0;
    const Tensor y = net(x);
    for (const Node* node : topological_order(grad(sum(square(y)), net.trainable_parameters())))
      found += node->op == Op::Matmul && node->shape.numel() == size ? 1 : 0;
    return found;
  };
  manual_seed(5);
  const nn::Sequential plain(nn::Linear(40, 30), nn::ReLU(), nn::Linear(30, 11));
  const nn::AnyModule net = train::with_adapters(plain, {.rank = 2, .alpha = 6});
  for (const nn::NamedTensor& p : net.named_trainable_parameters())
    set_value(p.tensor, randn(p.tensor.shape()).compute());
  for (const Shape& batch : {Shape{7}, Shape{2, 5}}) {
    Shape all = batch;
    all.push_back(40);
    const Tensor x = randn(all).compute();
    CHECK(largest(net, x, 1200) == 0);
    CHECK(largest(net, x, 330) == 0);
    // The gradients equal those computed from W's gradient.
    nn::Sequential sums(nn::Linear(40, 30), nn::ReLU(), nn::Linear(30, 11));
    sums.load_state_dict(train::merged_state(net));
    const Tensor loss = sum(square(net(x))), same = sum(square(sums(x)));
    const std::vector<Tensor> whole =
        grad(same, std::vector<Tensor>{sums.state_dict().at("0.weight")});
    const StateDict state = net.state_dict();
    const Tensor a = state.at("lora.0.weight.A"), b = state.at("lora.0.weight.B");
    const std::vector<Tensor> own = grad(loss, std::vector<Tensor>{a, b});
    CHECK(std::abs(loss.item() - same.item()) < 1e-4 * same.item());
    const auto near = [](const Tensor& left, const Tensor& right) {
      return distance(left, right) < 1e-4 * amax(abs(right)).item<float>();
    };
    CHECK(near(own[0], matmul(transpose(b, 0, 1), whole[0]) * 3.0));
    CHECK(near(own[1], matmul(whole[0], transpose(a, 0, 1)) * 3.0));
  }
  const nn::AnyModule gpt2 = train::with_adapters(small_gpt2(), {.rank = 2, .alpha = 2});
  const Tensor tokens = Tensor::from(std::vector<std::int64_t>{1, 5, 2, 9, 3, 3}, {2, 3});
  for (const std::int64_t size : {16 * 48, 16 * 64}) CHECK(largest(gpt2, tokens, size) == 0);
  // Attention's joint projection is read in three parts, so it is replaced by the sum.
  const nn::AnyModule joint = train::with_adapters(
      nn::Sequential(nn::TransformerEncoderLayer(10, 2, {.dim_feedforward = 12})),
      {.rank = 2, .alpha = 2});
  CHECK(largest(joint, randn({2, 3, 10}).compute(), 120) == 0);
}

TEST_CASE("lora: projections of attention and Conv1D have adapters, embeddings have none") {
  const nn::AnyModule plain = small_gpt2();
  const Tensor tokens = Tensor::from(std::vector<std::int64_t>{1, 5, 2, 9}, {1, 4});
  const Tensor before = plain(tokens).compute();
  const nn::AnyModule net = train::with_adapters(plain, {.rank = 2, .alpha = 2});
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : net.named_trainable_parameters()) names.push_back(p.name);
  CHECK(names.size() == 2 * 2 * 4);  // two blocks with c_attn, c_proj, c_fc, c_proj
  CHECK(names.front() == "lora.transformer.h.0.attn.c_attn.weight.A");
  CHECK(distance(net(tokens), before) == 0);
  manual_seed(9);
  for (const nn::NamedTensor& p : net.named_trainable_parameters())
    set_value(p.tensor, (randn(p.tensor.shape()) * 0.1).compute());
  const Tensor adapted = net(tokens).compute();
  CHECK(distance(adapted, before) > 1e-3);
  nn::AnyModule served = small_gpt2();
  served.load_state_dict(train::merged_state(net));
  CHECK(distance(served(tokens), adapted) < 1e-5);

  // The same network from a file has the same adapters.
  const nn::AnyModule read = train::with_adapters(
      models::create(models::NetworkFile{
          "f.toml", models::toml("gpt2:layers=2,heads=2,width=16,context=8", {.classes = 11})}),
      {.rank = 2, .alpha = 2});
  std::vector<std::string> names_of_file;
  for (const nn::NamedTensor& p : read.named_trainable_parameters())
    names_of_file.push_back(p.name);
  CHECK(names_of_file == names);

  const nn::Sequential layers(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 12}));
  const nn::AnyModule encoder = train::with_adapters(layers, {.rank = 2, .alpha = 2});
  CHECK(encoder.state_dict().count("lora.0.self_attn.in_proj_weight.B") == 1);
  CHECK(encoder.state_dict().at("lora.0.self_attn.in_proj_weight.B").shape() == Shape{24, 2});
}

namespace {
// Says that it is GPT-2's linear layer, and is another one.
class Named : public nn::Module {
 public:
  Named() : weight_(parameter("weight", zeros({4, 4}))) {}
  Tensor forward(const Tensor& x) const override { return x + matmul(x, exp(weight_)); }
  std::string describe() const override { return "Conv1D(4, 4)"; }

 private:
  Tensor weight_;
};
}  // namespace

TEST_CASE("lora: layers are known by their type, not by the text that describes them") {
  const nn::AnyModule net =
      train::with_adapters(nn::Sequential(Named(), nn::Linear(4, 3)), {.rank = 1, .alpha = 1});
  std::string names;
  for (const nn::NamedTensor& p : net.named_trainable_parameters()) names += p.name + " ";
  CHECK(names == "lora.1.weight.A lora.1.weight.B ");
}

TEST_CASE("lora: targets and parts that learn are named") {
  const auto names_of = [](const LoraOptions& options) {
    std::string all;
    const nn::AnyModule net = train::with_adapters(small_gpt2(), options);
    for (const nn::NamedTensor& p : net.named_trainable_parameters()) all += p.name + " ";
    return all;
  };
  CHECK(names_of({.rank = 1, .targets = {"h.1.attn.c_attn"}, .learn = {"transformer.ln_f"}}) ==
        "transformer.ln_f.weight transformer.ln_f.bias "
        "lora.transformer.h.1.attn.c_attn.weight.A lora.transformer.h.1.attn.c_attn.weight.B ");
  CHECK_THROWS_WITH_AS(names_of({.targets = {"c_atn"}}), doctest::Contains("'c_attn'"), ValueError);
  CHECK_THROWS_WITH_AS(
      names_of({.targets = {"wte"}}),
      doctest::Contains("can have an adapter. Layers that can: transformer.h.0.attn.c_attn, "),
      ValueError);
  CHECK_THROWS_AS(names_of({.learn = {"transformer.ln_g"}}), ValueError);
  for (const char* bad : {"", "rank", "rank=0", "rank=1.5", "rank=8,alpha=0",
                          "rank=8,targets=", "rank=8,targets=a++b", "rnk=8", "rank=8,"})
    CHECK_THROWS_WITH_AS(train::parse_lora(bad), doctest::Contains("rank=8,alpha=16"), ValueError);
  CHECK_THROWS_WITH_AS(train::parse_lora("rnk=8"),
                       doctest::Contains("and learn (did you mean 'rank'?), as in"), ValueError);
  CHECK(train::parse_lora("rank=4").alpha == 4);
}

TEST_CASE("lora: a run trains adapters, repeats bit for bit, and saves a merged model") {
  const TestFolder folder;
  const Settings s = adapted_run("rank=2,alpha=8");
  train::start_run(s, folder / "run");
  // The base has the seed's initial values; the file has the sums.
  const io::SafeTensors file = io::load_safetensors(folder / "run/model.safetensors");
  CHECK(file.tensors.size() == 4);
  const StateDict adapters = io::load_safetensors(folder / "run/adapters.safetensors").tensors;
  CHECK(adapters.size() == 4);
  CHECK(amax(abs(adapters.at("base_model.model.0.lora_B.weight"))).item<float>() > 0);
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(model.evaluate().items == 50);
  for (const train::VerifyCheck& check : train::verify_run(folder / "run", 6).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
  // Before the end of a run its checkpoint is read, including adapters.
  train::start_run(adapted_run("rank=2,alpha=8", "1"), folder / "one");
  const Tensor images = zeros({2, 1, 28, 28}, DType::UInt8);
  const Tensor ended = train::TrainedModel::open(folder / "one").predict(images);
  std::filesystem::remove(folder / "one/model.safetensors");
  CHECK(distance(train::TrainedModel::open(folder / "one").predict(images), ended) < 1e-6);
}

TEST_CASE("lora: parts frozen before the adapters are computed once") {
  const TestFolder folder;
  const auto notes = std::make_shared<ToldNotes>();
  Settings s = Settings::resolve("resnet20:width=4", "",
                                 {{"data", "scenes:24,12"},
                                  {"augment", "none"},
                                  {"freeze", "conv1,bn1,layer1,layer2,layer3"},
                                  {"lora", "rank=2"},
                                  {"batch", "8"},
                                  {"epochs", "1"}});
  train::start_run(s, folder / "run", {.callbacks = {notes}});
  CHECK(notes->all.find("computed once: of 38 samples") != std::string::npos);
  CHECK(notes->all.find("parameters of adapters and 0 others") != std::string::npos);
  CHECK(train::TrainedModel::open(folder / "run").evaluate().items == 12);
}

TEST_CASE("lora: a new head requires learn=") {
  Settings s = Settings::resolve("resnet20:width=4", "",
                                 {{"data", "scenes:20,10"},
                                  {"augment", "none"},
                                  {"head", "8,relu"},
                                  {"lora", "rank=2"},
                                  {"epochs", "1"}});
  CHECK_THROWS_WITH_AS(train::start_run(s, ""), doctest::Contains("learn="), ValueError);
}
