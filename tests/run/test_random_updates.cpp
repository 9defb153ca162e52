// Random updates: variables replaced by values computed from them, several at once, fused and
// unfused, fast and reference, against the same values computed without assignments.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/ops.h>

#include "base/philox.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

/// A stream of choices that restarts for each way of computing.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t count) { return philox(seed_, next_++, 5).v[0] % count; }
  const Tensor& of(const Tensors& list) { return list[below(list.size())]; }

 private:
  std::uint64_t seed_, next_ = 0;
};

Tensor random_op(Choices& choose, const Tensor& a, const Tensor& b) {
  const std::int64_t n = a.size(0);
  switch (choose.below(12)) {
    case 0:
      return a + b;
    case 1:
      return a * b;
    case 2:
      return tanh(a);
    case 3:
      return transpose(a);
    case 4:
      return matmul(a, b) / n;
    case 5:
      return softmax(a);
    case 6:
      return a - mean(b, {0}, true);
    case 7:
      return flip(a, {1});
    case 8:
      return a / (sum(b * b) + 1.0);
    case 9:
      return expand(slice(a, 0, 0, 1), {n, n}) + b;
    case 10:
      return concat({slice(a, 1, 1, n), slice(b, 1, 0, 1)}, 1);
    default:
      return relu(matmul(transpose(a), b) + mean(a, {1}, true));
  }
}

/// The variables' new values, and one intermediate that the caller holds.
Tensors compute(Choices choose, const Tensors& variables) {
  Tensors pool = variables;
  for (std::size_t k = 2 + choose.below(8); k > 0; --k)
    pool.push_back(random_op(choose, choose.of(pool), choose.of(pool)));
  Tensors out;
  for (std::size_t k = 0; k < variables.size(); ++k) out.push_back(choose.of(pool));
  out.push_back(pool.back());
  return out;
}

std::vector<double> numbers(const Tensors& tensors) {
  std::vector<double> all;
  for (const Tensor& t : tensors)
    for (const float x : (t + 0.0).to_vector<float>()) all.push_back(static_cast<double>(x));
  return all;
}

Tensors start(std::uint64_t seed) {
  Choices choose(seed + 1000);
  const auto n = static_cast<std::int64_t>(3 + choose.below(60));
  Generator generator(seed);
  Tensors out;
  for (std::size_t k = 1 + choose.below(3); k > 0; --k)
    out.push_back((rand({n, n}, DType::Float32, &generator) - 0.5).eval());
  return out;
}

std::vector<double> updated(std::uint64_t seed) {
  Tensors variables, work;
  for (const Tensor& t : start(seed)) variables.push_back(variable(t));
  const Tensors values = compute(Choices(seed), variables);
  for (std::size_t k = 0; k < variables.size(); ++k)
    work.push_back(assign(variables[k], values[k]));
  work.push_back(is_variable(values.back()) ? values.back() + 0.0 : values.back());
  eval(work);
  variables.push_back(work.back());
  return numbers(variables);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0,
         norm =
             1e-4 * static_cast<double>(b.size());  // sums that cancel need an absolute tolerance
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("run: random updates give the same values as the graph without assignments") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    set_engine("reference");
    const std::vector<double> expected = numbers(compute(Choices(seed), start(seed)));
    for (const bool fuse : {true, false}) {
      set_pass_enabled("fuse", fuse);
      for (const std::string engine : {"fast", "reference"}) {
        set_engine(engine);
        const std::vector<double> found = updated(seed);
        REQUIRE(found.size() == expected.size());
        CHECK(distance(found, expected) < 1e-4);
      }
    }
  }
  set_engine("fast");
  set_pass_enabled("fuse", true);
}
