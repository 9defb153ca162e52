// Random graphs: the fast engines, fused, against plain loops, unfused. They cover combinations
// that single cases do not: views of views between reductions, values with several readers, rows
// and columns over the same space.
//
// All functions are bounded, so that rounding errors stay small. A failure names its seed; the
// graph is the same on every machine.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "base/philox.h"
#include "base/str.h"

using namespace tenon;

namespace {

constexpr int kGraphs = 300;

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : seed_(seed) {
    for (int k = 0; k < 3; ++k) pool_.push_back(input(random_shape()));
    inputs_ = pool_;
  }

  /// Some results, including the last one.
  std::vector<Tensor> make(int steps) {
    for (int k = 0; k < steps; ++k) pool_.push_back(step());
    std::vector<Tensor> roots{pool_.back()};
    for (int k = 0; k < 2; ++k) roots.push_back(any());
    return roots;
  }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  Tensor input(const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    for (float& v : values) v = 2 * static_cast<float>(number()) - 1;
    return Tensor::from(values, shape);
  }

 private:
  double number() { return philox(seed_, counter_++, 29).v[0] * 0x1p-32; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(number() * static_cast<double>(n));
  }
  Tensor any() {
    return pool_[static_cast<std::size_t>(below(static_cast<std::int64_t>(pool_.size())))];
  }

  Shape random_shape() {
    const std::int64_t sizes[] = {1, 2, 3, 4, 5, 7, 17};
    Shape shape;
    for (std::int64_t rank = 1 + below(3); rank > 0; --rank) shape.push_back(sizes[below(7)]);
    return shape;
  }

  // Keeps graphs from growing without bound.
  Tensor small(const Tensor& x) { return x.numel() > 3000 || x.rank() > 5 ? mean(x, {0}) : x; }

  Tensor step() {
    const Tensor x = small(any());
    switch (below(7)) {
      case 0:
        return unary(x);
      case 6:
        return x.rank() > 0 ? layer(x) : unary(x);
      case 1:
        return binary(x, small(any()));
      case 2:
        return binary(x, unary(x));
      case 3:
        return x.rank() > 0 ? reduction(x) : unary(x);
      case 4:
        return x.rank() > 0 ? view(x) : unary(x);
      default:
        return x.rank() > 0 ? movement(x) : unary(x);
    }
  }

  Tensor unary(const Tensor& x) {
    switch (below(8)) {
      case 0:
        return tanh(x);
      case 1:
        return sin(x);
      case 2:
        return sigmoid(x);
      case 3:
        return -x;
      case 4:
        return relu(x);
      case 5:
        return x * 0.5 + 0.25;
      case 6:
        return exp(-square(x));
      default:
        return where(gt(x, 0.125), x, tanh(x * 2));
    }
  }

  Tensor binary(const Tensor& x, const Tensor& y) {
    Tensor other = y;
    try {
      broadcast_shapes(x.shape(), y.shape(), "");
    } catch (const ShapeError&) {
      other = mean(y);
    }
    switch (below(5)) {
      case 0:
        return (x + other) * 0.5;
      case 1:
        return x - other * 0.25;
      case 2:
        return x * other;
      case 3:
        return maximum(x, other);
      default:
        return tanh(x) / (1 + square(other));
    }
  }

  Tensor reduction(const Tensor& x) {
    Ints axes;
    for (int a = 0; a < x.rank(); ++a)
      if (below(2) == 0) axes.push_back(a);
    const bool keep = below(2) == 0;
    switch (below(8)) {
      case 0:
        return tanh(sum(x, axes, keep));
      case 6:
        return prod(tanh(x), axes, keep);
      case 7:
        return (x - mean(x, axes, true)) * rsqrt(var(x, axes, true, 0) + 0.1);
      case 1:
        return mean(x, axes, keep);
      case 2:
        return amax(x, axes, keep);
      case 3:
        return softmax(x, static_cast<int>(below(x.rank())));
      case 4:
        return x - mean(x, axes, true);
      default:
        return log_softmax(x, -1) * 0.1;
    }
  }

  Tensor view(const Tensor& x) {
    const int a = static_cast<int>(below(x.rank())), b = static_cast<int>(below(x.rank()));
    switch (below(7)) {
      case 0:
        return transpose(x, a, b);
      case 1:
        return flip(x, {a});
      case 2:
        return slice(x, a, below(x.size(a)), x.size(a), 1 + below(3));
      case 3:
        return flatten(x, std::min(a, b), std::max(a, b));
      case 4:
        return unsqueeze(x, a);
      case 5:
        return expand(unsqueeze(x, a), to_ints(x, a));
      default:
        return slice(x, a, -1, -x.size(a) - 1, -1 - below(2));
    }
  }
  // The sizes of x with a 2 put in front of axis a.
  static Ints to_ints(const Tensor& x, int a) {
    Ints sizes(x.shape().begin(), x.shape().end());
    sizes.insert(sizes.begin() + a, 2);
    return sizes;
  }

  Tensor movement(const Tensor& x) {
    const int a = static_cast<int>(below(x.rank()));
    switch (below(5)) {
      case 0:
        return concat({x, unary(x)}, a);
      case 1:
        return pad(x, {below(2), below(3)}, 0.5);
      case 2:
        return x + cast(arange(0, x.size(-1)), x.dtype()) * 0.1;
      case 3:
        return index_select(x, a, indices(1 + below(5), x.size(a)));
      default:
        return scatter_add(
            x, a, broadcast_to(reshape(indices(x.size(a), x.size(a)), column(x, a)), x.shape()),
            tanh(x));
    }
  }
  Tensor indices(std::int64_t count, std::int64_t size) {
    std::vector<std::int64_t> list(static_cast<std::size_t>(count));
    for (std::int64_t& i : list) i = below(size);
    return Tensor::from(list, {count});
  }
  static Ints column(const Tensor& x, int axis) {
    Ints sizes(static_cast<std::size_t>(x.rank()), 1);
    sizes[static_cast<std::size_t>(axis)] = x.size(axis);
    return sizes;
  }

  Tensor layer(const Tensor& x) {
    const std::int64_t in = x.size(-1), rows = x.numel() / in;
    Generator generator(seed_);
    switch (below(7)) {
      case 0:
        return matmul(x, input({in, 1 + below(6)}) * 0.3);
      case 1:
        return relu(linear(x, input({5, in}) * 0.3, input({5})));
      case 2:
        return tanh(linear(x, input({in, in}) * 0.3) + x);
      case 3:
        return relu(
            conv2d(reshape(x, {1, 1, rows, in}), input({2, 1, 3, 3}), input({2}), padded()));
      case 4:
        return rows > 1 && in > 1 ? max_pool2d(reshape(x, {1, 1, rows, in})) : x;
      case 5:
        return dropout(x, 0.25, true, &generator);
      default:
        return cross_entropy(reshape(x, {rows, in}), indices(rows, in), Reduction::None);
    }
  }
  static Conv2dOptions padded() {
    Conv2dOptions options;
    options.padding = {1, 1};
    return options;
  }

  std::uint64_t seed_, counter_ = 0;
  std::vector<Tensor> pool_, inputs_;
};

std::vector<std::vector<float>> results(int seed) {
  Maker maker(static_cast<std::uint64_t>(seed));
  std::vector<Tensor> roots = maker.make(4 + seed % 17);
  Tensor loss = zeros({});
  for (const Tensor& root : roots) loss = loss + sum(root * maker.input(root.shape()));
  for (const Tensor& g : grad(loss, maker.inputs())) roots.push_back(g);
  eval(roots);
  std::vector<std::vector<float>> values;
  for (const Tensor& root : roots) values.push_back(root.to_vector<float>());
  return values;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    difference += (static_cast<double>(a[k]) - b[k]) * (static_cast<double>(a[k]) - b[k]);
    norm += static_cast<double>(b[k]) * b[k];
  }
  // A gradient that nearly cancels keeps the rounding errors of its terms, which are of order 0.1
  // and more.
  const double floor = 0.05 * std::sqrt(static_cast<double>(a.size())) + 1e-9;
  return std::sqrt(difference) / std::max(std::sqrt(norm), floor);
}

}  // namespace

TEST_CASE("random graphs: merged, on both engines, against plain loops") {
  const auto merging = [](bool on) {
    for (const char* pass : {"fuse", "prologue", "reductions"}) set_pass_enabled(pass, on);
  };
  for (int seed = 0; seed < kGraphs; ++seed) {
    CAPTURE(seed);
    try {
      set_engine("reference");
      merging(false);
      const auto wanted = results(seed);
      merging(true);
      for (const char* engine : {"fast", "reference"}) {
        CAPTURE(engine);
        set_engine(engine);
        const auto got = results(seed);
        REQUIRE(got.size() == wanted.size());
        for (std::size_t k = 0; k < got.size(); ++k) {
          CAPTURE(k);
          // Written so that a NaN fails the comparison.
          if (!(distance(got[k], wanted[k]) < 1e-4)) CHECK(distance(got[k], wanted[k]) < 1e-4);
        }
      }
    } catch (const Error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
  set_engine("fast");
  merging(true);
}
