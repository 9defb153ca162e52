// Updates of the rows of sparse embeddings: the same numbers as updates of whole tables, and no
// table-sized work.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include <tenon/averaging.h>
#include <tenon/compile.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/optimizers.h>

using namespace tenon;

namespace {

constexpr std::int64_t kRows = 23, kColumns = 5;

Tensor start(DType dtype = DType::Float32) {
  return cast(sin(arange(0, kRows * kColumns).to(DType::Float64) * 0.7), dtype)
      .reshape({kRows, kColumns});
}

Tensor numbers(std::vector<std::int64_t> index) {
  const auto n = static_cast<std::int64_t>(index.size());
  return Tensor::from(index, {n});
}

// Row numbers with repetitions, another list for each step.
Tensor batch(std::int64_t step) {
  return numbers({7, (step * 5) % kRows, 7, 0, (step * 3 + 1) % kRows, kRows - 1, 7, 0});
}

nn::Embedding table(bool sparse, DType dtype = DType::Float32,
                    std::optional<std::int64_t> padding = {}) {
  return nn::Embedding(kRows, kColumns, {.padding_index = padding, .sparse = sparse},
                       {.weight = start(dtype)});
}

Tensor loss_of(const nn::Embedding& net, std::int64_t step) {
  const Tensor x = net(batch(step));
  const Tensor scale = cast(arange(1, 9), x.dtype()).reshape({8, 1});
  return sum(square(x) * scale * 0.1) + sum(sin(x));
}

std::vector<double> values(const Tensor& t) { return cast(t, DType::Float64).to_vector<double>(); }

// The weight after some steps.
std::vector<double> trained(const std::string& optimizer, const optim::OptimizerOptions& options,
                            bool sparse, const optim::Clip& clip = {},
                            DType dtype = DType::Float32) {
  const nn::Embedding net = table(sparse, dtype);
  const auto rule = optim::create(optimizer, net, options);
  for (int k = 0; k < 5; ++k) rule->step(loss_of(net, k), clip);
  return values(net.weight());
}

}  // namespace

TEST_CASE("row updates: sgd and adagrad give the bits of an update of the whole table") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16})
    for (const char* name : {"sgd", "adagrad"})
      for (const optim::Clip clip : {optim::Clip{}, optim::Clip{.value = 0.3}}) {
        CAPTURE(name);
        CAPTURE(dtype);
        CHECK(trained(name, {.lr = 0.1}, true, clip, dtype) ==
              trained(name, {.lr = 0.1}, false, clip, dtype));
      }
  CHECK(trained("sgd", {.lr = 0.1, .maximize = true}, true) ==
        trained("sgd", {.lr = 0.1, .maximize = true}, false));
}

TEST_CASE("row updates: the norm of clipped gradients counts each row once") {
  const nn::Embedding rows = table(true), whole = table(false);
  const Tensor of_rows = grad(loss_of(rows, 1), rows.weight()),
               of_whole = grad(loss_of(whole, 1), whole.weight());
  const optim::ClippedGrads a = optim::clip_grad_norm({of_rows}, 0.25),
                            b = optim::clip_grad_norm({of_whole}, 0.25);
  CHECK(a.norm.item() == doctest::Approx(b.norm.item()).epsilon(1e-6));
  const std::vector<double> first = values(a.grads[0]), second = values(b.grads[0]);
  for (std::size_t k = 0; k < first.size(); ++k)
    CHECK(first[k] == doctest::Approx(second[k]).epsilon(1e-6));
  const std::vector<double> p = trained("sgd", {.lr = 0.1}, true, {.norm = 0.5, .value = 0.4}),
                            q = trained("sgd", {.lr = 0.1}, false, {.norm = 0.5, .value = 0.4});
  for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k] == doctest::Approx(q[k]).epsilon(1e-5));
}

TEST_CASE("row updates: sparse_adam follows PyTorch's formula on the rows of each batch") {
  const nn::Embedding net = table(true, DType::Float64);
  optim::SparseAdam adam(net, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3});
  std::vector<double> p = values(net.weight()), m(p.size()), v(p.size());
  for (int t = 1; t <= 6; ++t) {
    const std::vector<double> g = values(grad(loss_of(net, t), net.weight()));
    const std::vector<std::int64_t> index = batch(t).to_vector<std::int64_t>();
    for (const std::int64_t row : std::set<std::int64_t>(index.begin(), index.end()))
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const auto k = static_cast<std::size_t>(row * kColumns + c);
        m[k] += (g[k] - m[k]) * (1 - 0.8);
        v[k] += (g[k] * g[k] - v[k]) * (1 - 0.95);
        const double rate = 0.05 * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t));
        p[k] -= rate * m[k] / (std::sqrt(v[k]) + 1e-3);
      }
    adam.step(loss_of(net, t));
  }
  const StateDict state = adam.state_dict();
  const std::vector<double> weight = values(net.weight()),
                            mean = values(state.at("weight.exp_avg")),
                            squares = values(state.at("weight.exp_avg_sq"));
  for (std::size_t k = 0; k < p.size(); ++k) {
    CHECK(weight[k] == doctest::Approx(p[k]).epsilon(1e-12));
    CHECK(mean[k] == doctest::Approx(m[k]).epsilon(1e-12));
    CHECK(squares[k] == doctest::Approx(v[k]).epsilon(1e-12));
  }
}

TEST_CASE("row updates: sparse_adam updates all elements of other parameters") {
  const Tensor p = variable(Tensor::from<double>({1, -2, 3}, {3}), "p");
  optim::SparseAdam adam({p}, {.lr = 0.1});
  adam.step(sum(p * Tensor::from<double>({1, 0, -4}, {3})));
  const std::vector<double> after = values(p);
  CHECK(after[0] == doctest::Approx(0.9).epsilon(1e-6));
  CHECK(after[1] == -2);
  CHECK(after[2] == doctest::Approx(3.1).epsilon(1e-6));
}

TEST_CASE("row updates: sparse_adam leaves tables that the loss does not read") {
  const nn::Embedding read = table(true), other = table(true);
  optim::SparseAdam adam({read.weight(), other.weight()}, {.lr = 0.1});
  adam.step(loss_of(read, 0) + loss_of(other, 0));
  const std::vector<double> before = values(other.weight()),
                            moments = values(adam.state_dict().at("param.1.exp_avg"));
  adam.step(loss_of(read, 1), {.norm = 0.5, .value = 1});
  CHECK(values(other.weight()) == before);
  CHECK(values(adam.state_dict().at("param.1.exp_avg")) == moments);
}

TEST_CASE("row updates: a guard, several readers, padding, and rows without a batch") {
  const nn::Embedding rows = table(true, DType::Float32, 7),
                      whole = table(false, DType::Float32, 7);
  for (const nn::Embedding& net : {rows, whole}) {
    optim::Sgd sgd(net, {.lr = 0.1});
    const auto loss = [&](int k) { return loss_of(net, k) + sum(square(net(batch(k + 3)))); };
    for (int k = 0; k < 3; ++k)
      compute(sgd.updates({grad(loss(k), net.weight())}, scalar(k != 1, DType::Bool)));
    CHECK(sgd.steps() == 2);
    sgd.step(sum(net(zeros({0}, DType::Int64))) + 0);
    CHECK(sgd.steps() == 3);
  }
  const std::vector<double> a = values(rows.weight()), b = values(whole.weight());
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(b[k]).epsilon(1e-6));
  CHECK(std::equal(a.begin() + 7 * kColumns, a.begin() + 8 * kColumns,
                   values(start()).begin() + 7 * kColumns));
}

TEST_CASE("row updates: bags of all modes") {
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max}) {
    std::vector<std::vector<double>> after;
    for (const bool sparse : {true, false}) {
      const nn::EmbeddingBag net(kRows, kColumns, {.sparse = sparse, .mode = mode},
                                 {.weight = start()});
      optim::Adagrad rule(net, {.lr = 0.1});
      for (int k = 0; k < 3; ++k)
        rule.step(sum(square(net(batch(k), numbers({0, 3, 3, 6})))) +
                  sum(net(batch(k).reshape({2, 4}))));
      after.push_back(values(net.weight()));
    }
    for (std::size_t k = 0; k < after[0].size(); ++k)
      CHECK(after[0][k] == doctest::Approx(after[1][k]).epsilon(1e-5));
  }
}

TEST_CASE("row updates: a compiled step, and the same bits with any number of threads") {
  std::vector<std::vector<double>> after;
  for (const int threads : {1, 2, 5}) {
    Context context = current_context();
    context.threads = threads;
    const ContextScope scope(context);
    const nn::Embedding net = table(true);
    optim::SparseAdam adam(net, {.lr = 0.1});
    const auto step = compile([&](const std::vector<Tensor>& in) {
      const Tensor loss = sum(square(net(in[0])));
      std::vector<Tensor> out = adam.updates({grad(loss, net.weight())}, isfinite(loss));
      out.insert(out.begin(), loss);
      return out;
    });
    for (int k = 0; k < 4; ++k) step({batch(k)});
    after.push_back(values(net.weight()));
  }
  CHECK(after[0] == after[1]);
  CHECK(after[0] == after[2]);
}

TEST_CASE("row updates: the state continues with the same bits") {
  const nn::Embedding a = table(true), b = table(true);
  optim::SparseAdam first(a, {.lr = 0.1}), second(b, {.lr = 0.1});
  for (int k = 0; k < 3; ++k) first.step(loss_of(a, k));
  set_value(b.weight(), a.weight());
  second.load_state_dict(first.state_dict());
  for (int k = 3; k < 6; ++k) {
    first.step(loss_of(a, k));
    second.step(loss_of(b, k));
  }
  CHECK(values(a.weight()) == values(b.weight()));
}

TEST_CASE("row updates: a held result keeps its value") {
  const nn::Embedding net = table(true);
  optim::Sgd sgd(net, {.lr = 0.1});
  const std::vector<Tensor> held = sgd.updates({grad(loss_of(net, 0), net.weight())});
  compute(held);
  const std::vector<double> after = values(held[0]);
  CHECK(after == values(net.weight()));
  sgd.step(loss_of(net, 1));
  CHECK(values(held[0]) == after);
  CHECK(values(net.weight()) != after);
}

TEST_CASE("row updates: a scatter into its own variable, whoever reads it") {
  const Tensor p = variable(start(), "p");
  const std::vector<double> before = values(p);
  const Tensor index = broadcast_to(numbers({3, 1, 3}).reshape({3, 1}), {3, kColumns});
  const Tensor rows = gather(p, 0, index) * Tensor::from<float>({2, 3, 4}, {3, 1});
  std::vector<Tensor> wanted{sum(p), assign(p, scatter(p, 0, index, rows)), p * 1};
  compute(wanted);
  std::vector<double> expected = before;
  for (std::size_t c = 0; c < std::size_t{kColumns}; ++c) {
    expected[kColumns + c] = static_cast<float>(before[kColumns + c] * 3);
    expected[3 * kColumns + c] = static_cast<float>(before[3 * kColumns + c] * 4);
  }
  CHECK(values(p) == expected);
  CHECK(values(wanted[2]) == before);
  // The result is also read: nothing may be written before.
  const Tensor added = scatter_add(p, 0, index, rows);
  const Tensor difference = added - p;
  compute({assign(p, added), difference});
  CHECK(values(difference)[0] == 0);
  CHECK(values(difference)[kColumns] != 0);
  // The whole variable is the source of its own rows.
  const Tensor q = variable(Tensor::from<float>({1, 2, 3}, {3}), "q");
  compute({assign(q, scatter(q, 0, Tensor::from<std::int64_t>({2, 1, 0}, {3}), q))});
  CHECK(values(q) == std::vector<double>{3, 2, 1});
}

TEST_CASE("row updates: an index out of range changes nothing") {
  const nn::Embedding net = table(true);
  optim::SparseAdam adam(net, {.lr = 0.1});
  const std::vector<double> before = values(net.weight());
  CHECK_THROWS_AS(adam.step(sum(net(numbers({1, kRows, 2})))), ValueError);
  CHECK(values(net.weight()) == before);
  CHECK(adam.steps() == 0);
  const Tensor p = variable(Tensor::from<float>({1, 2, 3}, {3}), "p");
  const Tensor update = scatter_add(p, 0, numbers({0, 1, 3}), ones({3}));
  CHECK_THROWS_AS(compute({assign(p, update)}), ValueError);
  CHECK(values(p) == std::vector<double>{1, 2, 3});
}

TEST_CASE("row updates: optimizers and networks that would change other rows are refused") {
  const nn::Embedding net = table(true);
  const Tensor loss = loss_of(net, 0);
  const auto refuses = [&](const std::string& name, const optim::OptimizerOptions& options) {
    const auto rule = optim::create(name, net, options);
    try {
      rule->step(loss);
    } catch (const ValueError& e) {
      const std::string text = e.what();
      return text.find("'weight'") != std::string::npos &&
             text.find("without `sparse`") != std::string::npos;
    }
    return false;
  };
  for (const std::string& name : optim::names())
    if (name != "sgd" && name != "adagrad" && name != "sparse_adam") {
      CAPTURE(name);
      CHECK(refuses(name, {}));
    }
  CHECK(refuses("sgd", {.momentum = 0.9}));
  CHECK(refuses("sgd", {.weight_decay = 0.1}));
  CHECK(refuses("adagrad", {.weight_decay = 0.1}));
  CHECK_THROWS_AS(optim::create("sparse_adam", net, {.weight_decay = 0.1}), ValueError);
  std::vector<optim::ParameterGroup> groups{
      {.parameters = {{"w", net.weight()}}, .weight_decay = 0.1}};
  CHECK_THROWS_AS(optim::SparseAdam{groups}, ValueError);
  // A tied output layer, and a penalty.
  optim::SparseAdam adam(net);
  CHECK_THROWS_AS(adam.step(sum(linear(net(batch(0)), net.weight()))), ValueError);
  CHECK_THROWS_AS(adam.step(loss + sum(square(net.weight()))), ValueError);
  // A changed gradient.
  const Tensor gradient = grad(loss, net.weight());
  CHECK_THROWS_AS(adam.updates({gradient * 2}), ValueError);
  CHECK_THROWS_AS(adam.updates({abs(-gradient)}), ValueError);
  optim::GradientAccumulator accumulator(adam, 2);
  CHECK_THROWS_AS(accumulator.step(loss), ValueError);
  CHECK_THROWS_AS(embedding(batch(0), net.weight(), {.scale_grad_by_freq = true, .sparse = true}),
                  ValueError);
  CHECK(adam.steps() == 0);
}

TEST_CASE("row updates: the gradient of a sparse embedding is the gradient of any other") {
  const nn::Embedding rows = table(true, DType::Float64), whole = table(false, DType::Float64);
  const auto first = [](const nn::Embedding& net) { return grad(loss_of(net, 2), net.weight()); };
  const auto second = [&](const nn::Embedding& net) {
    return grad(sum(square(first(net))), net.weight());
  };
  CHECK(values(first(rows)) == values(first(whole)));
  CHECK(values(second(rows)) == values(second(whole)));
  CHECK(rows.describe() == "Embedding(23, 5, sparse=true)");
}

TEST_CASE("row updates: a large table is neither copied nor computed") {
  const std::int64_t rows = 200000;
  const nn::Embedding net(rows, 32, {.sparse = true}, {.weight = zeros({rows, 32})});
  optim::SparseAdam adam(net);
  const Tensor loss = sum(net(numbers({5, 199999, 5})) + 1);
  std::vector<Tensor> wanted = adam.updates({grad(loss, net.weight())});
  wanted.push_back(loss);
  const Plan plan = tenon::plan(wanted);
  CHECK(plan.peak_bytes() - plan.leaf_bytes() < 100000);
}
