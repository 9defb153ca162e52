// Numbers that change from step to step become leaves of one plan, with the bits of a plan that has
// the number built in.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

using List = std::vector<Tensor>;
using Doubles = std::vector<double>;

std::int64_t planned() { return runner_stats().programs_planned; }

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::size_t bytes = static_cast<std::size_t>(a.numel()) * item_size(a.dtype());
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(), bytes) == 0;
}

// Evaluates f with each of the numbers: in one series, in which they become leaves, and built in.
// Returns how many programs were planned for the last half of the series.
std::int64_t compare(const std::function<List(const Doubles&)>& f,
                     const std::vector<Doubles>& series) {
  clear_caches();
  std::vector<List> in_series;
  std::int64_t at_half = 0;
  for (std::size_t k = 0; k < series.size(); ++k) {
    if (k == series.size() / 2) at_half = planned();
    in_series.push_back(f(series[k]));
    compute(in_series.back());
  }
  const std::int64_t count = planned() - at_half;
  for (std::size_t k = 0; k < series.size(); ++k) {
    clear_caches();
    const List built_in = f(series[k]);
    compute(built_in);
    for (std::size_t r = 0; r < built_in.size(); ++r) {
      INFO("evaluation ", k, ", result ", r);
      CHECK(same_bits(in_series[k][r], built_in[r]));
    }
  }
  return count;
}

std::vector<Doubles> counting(int steps, double first, double by) {
  std::vector<Doubles> out;
  for (int k = 0; k < steps; ++k) out.push_back({first + k * by});
  return out;
}

Tensor noise(const Shape& shape, DType dtype = DType::Float32) {
  return randn(shape, DType::Float32, Generator(7)).to(dtype).compute();
}

// A random graph of element-wise ops, reductions and products with numbers in it, and its gradient.
class RandomGraph {
 public:
  RandomGraph(unsigned seed, DType dtype) : seed_(seed) {
    for (int k = 0; k < 3; ++k) x_.push_back(variable(noise({6, 6}, dtype) * (1 + k)));
  }

  List operator()(const Doubles& numbers) const {
    std::mt19937 random(seed_);
    std::vector<Tensor> made = x_;
    const auto below = [&](std::size_t count) { return random() % count; };
    for (int k = 0; k < 12; ++k) {
      const Tensor a = made[below(made.size())], b = made[below(made.size())];
      const double c = numbers[below(numbers.size())], d = numbers[below(numbers.size())];
      const std::size_t which = below(14);
      const Tensor next = which == 0    ? a * c
                          : which == 1  ? c - a
                          : which == 2  ? a / (c + 3)
                          : which == 3  ? a * c + b * d
                          : which == 4  ? tanh(a * c)
                          : which == 5  ? where(a > c, b, a * 0.5)
                          : which == 6  ? clamp(a, -std::fabs(c) - 1, std::fabs(d) + 1)
                          : which == 7  ? matmul(a * c, b) * 0.1
                          : which == 8  ? softmax(a * c, 1) * d
                          : which == 9  ? (a * c).sum(1, true) + b
                          : which == 10 ? (a - a.mean(0, true)) * d
                          : which == 11
                              ? full({6, 6}, c, a.dtype()) * (full({6, 6}, d, a.dtype()) + b)
                          : which == 12 ? maximum(a, c) + minimum(b, d)
                                        : square(sin(a) * c) / (1 + c * c);
      made.push_back(next);
    }
    const Tensor loss = (made.back() * made[made.size() - 2] * numbers[0]).sum();
    List out{loss, made.back()};
    for (const Tensor& g : grad(loss, x_)) out.push_back(g);
    return out;
  }

 private:
  unsigned seed_;
  std::vector<Tensor> x_;
};

}  // namespace

TEST_CASE("changing numbers: a loss with a changing factor is planned three times") {
  nn::Sequential net(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 4));
  const StateDict start = [&] {
    StateDict copy;
    for (const auto& [name, tensor] : net.state_dict()) copy[name] = (tensor * 1).compute();
    return copy;
  }();
  const Tensor x = noise({16, 8}), y = randint(0, 4, {16}).compute();
  const auto train = [&](bool as_tensor) {
    clear_caches();
    net.load_state_dict(start);
    optim::Sgd sgd(net, {.lr = 0.1});
    Doubles losses;
    const std::int64_t before = planned();
    for (int k = 0; k < 30; ++k) {
      const Tensor loss = cross_entropy(net(x), y);
      const double factor = 1 + 0.001 * k;
      losses.push_back(
          sgd.step(as_tensor ? loss * scalar(factor).compute() : loss * factor).item());
    }
    CHECK(planned() - before <= (as_tensor ? 1 : 3));
    return losses;
  };
  CHECK(train(false) == train(true));
}

TEST_CASE("changing numbers: results have the bits of a plan with the number built in") {
  const Tensor x = noise({32, 8}), w = variable(noise({8, 4}));
  const auto two = counting(8, 0.37, 0.11);
  CHECK(compare([&](const Doubles& c) { return List{x * c[0]}; }, two) == 0);
  CHECK(compare([](const Doubles& c) { return List{full({8}, c[0])}; }, two) == 0);
  CHECK(compare([](const Doubles& c) { return List{full({8}, c[0]) * 3 + c[0]}; }, two) == 0);
  CHECK(compare(
            [](const Doubles& c) {
              return List{full({}, c[0]) * 3, full({1}, c[0]) - 1};
            },
            two) == 0);
  CHECK(compare(
            [&](const Doubles& c) {
              return List{(x * c[0]).sum(), (x * c[0]).sum(0)};
            },
            two) == 0);
  CHECK(compare(
            [&](const Doubles& c) {
              const Tensor loss = (square(matmul(x, w)) * c[0]).mean() * (1 + c[0]);
              return List{loss, grad(loss, w)};
            },
            two) == 0);
  CHECK(compare(
            [&](const Doubles& c) {
              return List{pow(abs(x), c[0]), x.cumsum(1) * c[0], (x > c[0]).any(1)};
            },
            two) == 0);
  // Whole numbers; a sum divided by a number that once is its count, and zero.
  const Tensor n = arange(0, 40, 1, DType::Int64).compute();
  CHECK(compare(
            [&](const Doubles& c) {
              const auto k = static_cast<std::int64_t>(c[0]);
              return List{n * k + 1, index_select(n, 0, n.slice(0, 0, 8) + k),
                          n.to(DType::Float32) * k};
            },
            counting(8, 1, 1)) == 0);
  compare(
      [&](const Doubles& c) {
        const Tensor centred = x - x.sum(1, true) / c[0];
        return List{centred, (centred * c[0]).sum(1)};
      },
      counting(12, 3, 1));
  compare(
      [&](const Doubles& c) {
        return List{maximum(x, c[0]), x * c[0], x + c[0]};
      },
      counting(9, -2, 0.5));
}

TEST_CASE("changing numbers: random graphs have the same bits in a series and alone") {
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    for (unsigned seed = 0; seed < 60; ++seed) {
      std::mt19937 random(seed);
      std::vector<Doubles> series(6, Doubles{0.3, -0.7, 1.1});
      for (std::size_t k = 1; k < series.size(); ++k) {
        series[k] = series[k - 1];
        for (double& number : series[k])
          if (random() % 2 == 0) number += 0.01 * static_cast<double>(random() % 100);
      }
      CAPTURE(seed);
      compare(RandomGraph(seed, dtype), series);
    }
  }
}

TEST_CASE("changing numbers: the first row of a slice") {
  const Tensor x = noise({40, 16}), narrow = noise({40, 3}), w = variable(noise({16, 3}));
  const Tensor classes = randint(0, 3, {40}, DType::Int64, Generator(3)).compute();
  const Tensor half = noise({40, 16}, DType::BFloat16), mask = (narrow > 0).compute();
  const auto row = [](const Doubles& c) { return static_cast<std::int64_t>(c[0]); };
  const auto steps = counting(9, 1, 3);
  CHECK(compare(
            [&](const Doubles& c) {
              return List{x[row(c)], x.slice(0, row(c), row(c) + 2)};
            },
            steps) == 0);
  CHECK(compare(
            [&](const Doubles& c) {
              return List{narrow[row(c)] * 2, narrow[-row(c)], half[row(c)].sum(), mask[row(c)]};
            },
            steps) == 0);
  CHECK(compare(
            [&](const Doubles& c) {
              const auto end = row(c) + 8;
              const Tensor loss = cross_entropy(matmul(x.slice(0, row(c), end), w) * (1 + c[0]),
                                                classes.slice(0, row(c), end));
              return List{loss, grad(loss, w)};
            },
            steps) == 0);
  // Steps of no regular distance, and two rows that change independently.
  std::mt19937 random(5);
  std::vector<Doubles> jumps;
  for (int k = 0; k < 10; ++k)
    jumps.push_back({static_cast<double>(random() % 40), static_cast<double>(random() % 40)});
  CHECK(compare(
            [&](const Doubles& c) {
              return List{tanh(x[row(c)]) - x[static_cast<std::int64_t>(c[1])]};
            },
            jumps) == 0);
  // A variable may be assigned, so its slices are views of it.
  const Tensor v = variable(noise({40, 16}));
  compare(
      [&](const Doubles& c) {
        const Tensor sum = square(v[row(c)]).sum();
        return List{sum, grad(sum, v)};
      },
      steps);
}

TEST_CASE("changing numbers: 16-bit graphs are computed as before") {
  const Tensor x = noise({16, 16}, DType::BFloat16);
  compare(
      [&](const Doubles& c) {
        return List{x * c[0], (x * c[0]).sum(1) + c[0]};
      },
      counting(6, 0.3, 0.1));
  nn::Linear layer(16, 16);
  layer.set_precision(Precision::Bf16);
  const Tensor wide = noise({16, 16});
  compare(
      [&](const Doubles& c) {
        const Tensor loss = (layer(wide * c[0]) * c[0]).sum();
        return List{loss, grad(loss, layer.weight())};
      },
      counting(6, 0.3, 0.1));
}

TEST_CASE("changing numbers: a number that changes once keeps its place in the plan") {
  clear_caches();
  const Tensor x = noise({8, 8});
  const auto run = [&](double a, double b) { return (x * a + b).sum().item(); };
  const std::int64_t before = planned();
  for (const double a : {1.0, 2.0, 1.0, 2.0, 1.0}) run(a, 0.25);
  CHECK(planned() - before == 2);
  for (int k = 3; k < 20; ++k) run(k, 0.25);
  CHECK(planned() - before == 3);
  run(30, 0.5);  // another number changes for the first time
  run(31, 0.5);
  CHECK(planned() - before == 4);
  CHECK(run(3, 0.25) == doctest::Approx((x.sum() * 3).item() + 64 * 0.25));
}

TEST_CASE("changing numbers: memory does not grow with the steps") {
  const Tensor x = noise({64, 64});
  const auto run = [&](int k) { (tanh(x * (1 + 0.001 * k)) * (k + 0.5)).sum().item(); };
  for (int k = 0; k < 10; ++k) run(k);
  const CacheStats before = cache_stats();
  const std::int64_t in_use = runner_stats().memory_in_use;
  for (int k = 10; k < 500; ++k) run(k);
  CHECK(cache_stats().programs.count == before.programs.count);
  CHECK(cache_stats().programs.bytes == before.programs.bytes);
  CHECK(runner_stats().memory_in_use == in_use);
}

TEST_CASE("changing numbers: one that must be built in leaves the others as they are") {
  const Tensor x = noise({8, 8});
  std::vector<Doubles> series;
  for (int k = 0; k < 40; ++k) series.push_back({0.1 * (k + 1), k % 4 == 0 ? 0.0 : 0.5 + k});
  // A zero every fourth time: one plan with the zero built in, whatever the other number is.
  CHECK(compare([&](const Doubles& c) { return List{sum(x * c[0] + square(x) * c[1])}; }, series) ==
        0);
  const Tensor half = noise({8, 8}, DType::BFloat16);
  series.clear();
  for (int k = 0; k < 40; ++k) series.push_back({0.1 * (k + 1), static_cast<double>(1 + k % 2)});
  CHECK(compare([&](const Doubles& c) { return List{x * c[0], half * c[1]}; }, series) == 0);
  // Numbers that are a size of a sum.
  series.clear();
  for (int k = 0; k < 40; ++k) series.push_back({0.3 * (k + 1), k % 3 == 0 ? 64.0 : 60.0 + k});
  CHECK(compare([&](const Doubles& c) { return List{sum(x * c[0]) / c[1]}; }, series) == 0);
}
