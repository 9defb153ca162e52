// Modules with any inputs and outputs: called with their own types, and observed, summarized and
// updated like any other module.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

using namespace tenon;

namespace {

struct Memory {
  Tensor hidden;
  std::vector<std::pair<Tensor, Tensor>> layers;
  std::optional<Tensor> mask;
  int steps = 0;
  std::string name;
};

/// A recurrent step on a plain struct of tensors. The struct counts the calls.
struct Cell : nn::ModuleOf<Cell> {
  explicit Cell(std::int64_t width)
      : mix(child("mix", nn::Linear(width, width))), calls(buffer("calls", scalar(0))) {}
  Memory forward(const Tensor& x, Memory memory, bool keep = true) const {
    update(calls, calls + 1);
    memory.hidden = tanh(mix(x) + memory.hidden);
    if (keep) memory.layers.emplace_back(x, memory.hidden);
    ++memory.steps;
    return memory;
  }
  nn::Linear mix;
  Tensor calls;
};

struct Doubling : nn::ModuleOf<Doubling> {
  Tensor forward(const Tensor& x) const { return x * 2; }
};

/// A user's type may have the name of an internal type of the library.
struct State {
  Tensor position, velocity;
};
struct Pendulum : nn::ModuleOf<Pendulum> {
  State forward(const State& before) const {
    const Tensor faster = before.velocity - before.position * 0.1;
    return {before.position + faster, faster};
  }
};

struct Pack {  // not a plain struct: lists its tensors itself
  explicit Pack(Tensor t) : tensor(std::move(t)) {}
  Tensor tensor;
};
template <class F>
void each_tensor(Pack& pack, F&& f) {
  f(pack.tensor);
}

struct Packing : nn::ModuleOf<Packing> {
  Packing() : seen(buffer("seen", scalar(0))) {}
  Pack forward(const Tensor& x) const {
    update(seen, seen + 1);
    return Pack(x + 1);
  }
  Tensor seen;
};

}  // namespace

TEST_CASE("modules of any inputs: structs, ranges and pairs of tensors go in and come out") {
  const Cell cell(3);
  Memory memory{.hidden = zeros({2, 3}), .layers = {}, .mask = {}, .name = "start"};
  for (int t = 0; t < 3; ++t) memory = cell(ones({2, 3}), memory);
  CHECK(memory.steps == 3);
  CHECK(memory.layers.size() == 3);
  CHECK(memory.name == "start");
  CHECK(cell(ones({2, 3}), memory, false).layers.size() == 3);
  optim::Sgd sgd(cell, {.lr = 0.1});
  sgd.step(sum(memory.hidden));
  CHECK(cell.calls.item() == 3);
}

TEST_CASE("modules of any inputs: parameters, scopes, errors and names are those of any module") {
  const Cell cell(3);
  CHECK(cell.named_parameters()[0].name == "mix.weight");
  CHECK(cell.describe() == "Cell");
  CHECK(nn::AnyModule(cell).describe() == "Cell");
  const Memory memory{.hidden = zeros({2, 3}), .layers = {}, .mask = {}, .name = ""};
  CHECK_THROWS_WITH_AS(cell(ones({2, 4}), memory), doctest::Contains("mix"), ShapeError);
}

TEST_CASE("modules of any inputs: an observer sees all tensors of a call") {
  const Cell cell(3);
  const Memory memory{.hidden = zeros({2, 3}), .layers = {}, .mask = ones({2}), .name = ""};
  std::vector<std::array<std::size_t, 2>> counts;
  {
    const nn::CallObserver watch([&](const std::string&, const nn::ModuleBase&,
                                     std::span<const Tensor> inputs,
                                     std::span<const Tensor> outputs) {
      counts.push_back({inputs.size(), outputs.size()});
    });
    (void)cell(ones({2, 3}), memory);
  }
  CHECK(counts == std::vector<std::array<std::size_t, 2>>{{1, 1}, {3, 4}});
  const nn::ModuleSummary s = cell.summary(ones({2, 3}), memory);
  CHECK(s.parameters == 12);
  CHECK(s.multiply_adds == 18);
  CHECK(s.inputs == std::vector<Shape>{{2, 3}, {2, 3}, {2}});
  CHECK(s.outputs.size() == 4);
}

TEST_CASE("modules of any inputs: containers accept modules of one tensor to one tensor") {
  nn::Sequential net{Doubling(), nn::ReLU()};
  CHECK(net(full({1}, 3)).item() == 6);
  CHECK_THROWS_AS(net.append(Cell(2)), ValueError);
  const nn::ModuleList list({Cell(2)});
  CHECK(list[0].as<Cell>() != nullptr);
  CHECK_FALSE(list[0].takes_one_tensor());
  CHECK_THROWS_WITH_AS(list[0](ones({2})), doctest::Contains("Cell"), NotSupported);
}

TEST_CASE("modules of any inputs: a type may list its tensors itself") {
  const Packing packing;
  CHECK(packing(scalar(1)).tensor.item() == 2);
  CHECK(packing.seen.item() == 1);
}

TEST_CASE("modules: the cost of children is linear in their number") {
  const nn::Linear part(1, 1);
  const auto seconds = [&](int count) {
    const auto start = std::chrono::steady_clock::now();
    nn::ModuleList list;
    for (int k = 0; k < count; ++k) list.append(nn::Linear(1, 1, {.tied_weight = part.weight()}));
    CHECK(list.parameter_count() == count + 1);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  (void)seconds(100);
  CHECK(seconds(10'000) < 2);  // 30 s if each child compares with all earlier ones
}

TEST_CASE("modules: a tied weight is one parameter under two names") {
  manual_seed(3);
  const nn::Embedding words(5, 3);
  nn::Sequential net(words, nn::Linear(3, 3),
                     nn::Linear(3, 5, {.bias = false, .tied_weight = words.weight()}));
  CHECK(net.parameter_count() == 15 + 12);
  const StateDict held = net.state_dict();
  CHECK(held.size() == 3);
  CHECK(held.count("2.weight") == 0);

  // One gradient from both uses, and one update.
  const Tensor index = Tensor::from<std::int64_t>({0, 2, 4}, {3});
  const std::vector<float> before = words.weight().to_vector<float>();
  const Tensor loss = cross_entropy(net(index), index);
  const std::vector<float> g = grad(loss, words.weight()).to_vector<float>();
  optim::Sgd sgd(net, {.lr = 1});
  sgd.step(loss);
  const std::vector<float> after = words.weight().to_vector<float>();
  for (std::size_t k = 0; k < g.size(); ++k)
    CHECK(after[k] == doctest::Approx(before[k] - g[k]).epsilon(1e-5));

  // PyTorch saves such a tensor under both names; one of them is enough.
  StateDict both = net.state_dict();
  both["2.weight"] = ones({5, 3});
  both["0.weight"] = zeros({5, 3});
  CHECK(net.load_state_dict(both) == 3);
  CHECK(sum(words.weight()).item() == 0);
  both.erase("0.weight");
  net.load_state_dict(both);
  CHECK(sum(words.weight()).item() == 15);
  CHECK_THROWS_AS(nn::Linear(4, 5, {.tied_weight = words.weight()}), ShapeError);
  CHECK_THROWS_AS(nn::Linear(3, 5, {.tied_weight = ones({5, 3})}), ValueError);
}

TEST_CASE("modules of any inputs: a struct of the user's own may be named State") {
  const State after = Pendulum()(State{ones({2}), zeros({2})});
  CHECK(after.velocity.shape() == Shape{2});
  CHECK(after.position.to_vector<float>()[0] == doctest::Approx(0.9));
}
