// Runs the case table in its modes. Each mode is one test; each failing case is one line of it.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>

#include "base/philox.h"
#include "base/str.h"
#include "cases/modes.h"
#include "grad/numeric.h"
#include "graph/order.h"
#include "ops/table.h"

using namespace tenon;

namespace cases {

std::size_t number_of(const std::string& name) {
  std::uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash >> 8;
}

const Cases& all_cases() {
  static const Cases cases = [] {
    Cases list;
    for (auto* add : {add_elementwise, add_activations, add_reductions, add_views, add_movement,
                      add_order, add_composites, add_special, add_contractions, add_pooling,
                      add_losses, add_networks, add_options, add_functions})
      add(list);
    return list;
  }();
  return cases;
}

namespace {

/// Restores the settings that a mode changes.
struct Settings {
  ~Settings() {
    set_device("cpu");
    set_engine("fast");
    set_precision(Precision::Fp32);
    set_pass_enabled("fuse", true);
  }
};

/// Computed on the CPU and copied to the current device, so that every device sees the same bits.
Tensor random_input(const In& in, DType dtype, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(in.shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Philox4 words = philox(seed, k, 17);
    const double u = (words.v[0] + words.v[1] * 0x1p-32) * 0x1p-32;
    values[k] = in.low + u * (in.high - in.low);
    if (in.whole) values[k] = std::floor(values[k]);
  }
  // A leaf of the dtype itself, so that the case contains no cast.
  const Device device = current_device();
  set_device("cpu");
  const Tensor t = cast(Tensor::from(values, in.shape), in.whole ? in.dtype : dtype);
  t.compute();
  set_device(device);
  return Tensor::from_data(t.data(), t.shape(), t.dtype());
}

}  // namespace

Tensors make_inputs(const Case& c, DType dtype, std::uint64_t seed) {
  Tensors inputs;
  for (std::size_t k = 0; k < c.inputs.size(); ++k)
    inputs.push_back(random_input(c.inputs[k], dtype, seed + k));
  return inputs;
}

Tensors floating_only(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& t : inputs)
    if (is_floating(t.dtype())) out.push_back(t);
  return out;
}

Tensor weighted(const Tensor& y, std::uint64_t seed) {
  return sum(y * random_input({y.shape(), 0.5, 1.5}, y.dtype(), seed));
}

/// Cast to float32 on the CPU, whatever device computed them.
std::vector<double> numbers(const Tensor& t) {
  const Device device = current_device();
  set_device("cpu");
  const Tensor here = Tensor::from_data(t.data(), t.shape(), t.dtype());
  set_device(device);
  return cast(here, DType::Float64).to_vector<double>();
}

namespace {

/// Distance relative to the norm; infinite if one side has a NaN or infinity and the other has not.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double difference = 0, norm = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!std::isfinite(a[k]) || !std::isfinite(b[k])) {
      if (a[k] != b[k] && !(std::isnan(a[k]) && std::isnan(b[k]))) return HUGE_VAL;
      continue;
    }
    difference += (a[k] - b[k]) * (a[k] - b[k]);
    norm += b[k] * b[k];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-3);
}

}  // namespace

std::vector<Tensor> results(const Case& c, DType dtype, bool gradients) {
  const Tensors inputs = make_inputs(c, dtype), targets = floating_only(inputs);
  std::vector<Tensor> wanted{c.build(inputs)};
  if (gradients && c.grad && is_floating(wanted[0].dtype()))
    for (const Tensor& g : grad(weighted(wanted[0], 5), targets)) wanted.push_back(g);
  return wanted;
}

Values values(const Case& c, DType dtype, bool gradients) {
  const std::vector<Tensor> wanted = results(c, dtype, gradients);
  compute(wanted);
  Values out;
  for (const Tensor& t : wanted) out.push_back(numbers(t));
  return out;
}

void compare(const Case& c, const Values& got, const Values& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    INFO(c.name << (k == 0 ? std::string(", output") : cat(", gradient of input ", k - 1)));
    CHECK(distance(got[k], wanted[k]) < tolerance);
  }
}

namespace {

/// The share of cases that this process runs: "3/12" in TENON_TEST_SHARE is every twelfth case,
/// from the fourth on.
bool in_share(std::size_t number) {
  unsigned mine = 0, all = 1;
  if (const char* share = std::getenv("TENON_TEST_SHARE"))
    if (std::sscanf(share, "%u/%u", &mine, &all) != 2 || mine >= all)
      FAIL("TENON_TEST_SHARE is '" << share << "', must be like 3/12");
  return number % all == mine;
}

}  // namespace

void each_case(const std::function<void(const Case&)>& mode) {
  const Settings restore;
  std::size_t number = 0;
  for (const Case& c : all_cases()) {
    if (!in_share(number++)) continue;
    INFO(c.name);
    try {
      mode(c);
    } catch (const Error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
}

namespace {

void check_dtype(DType dtype, double factor) {
  each_case([&](const Case& c) {
    if (!c.in_16_bits && (dtype == DType::Float16 || dtype == DType::BFloat16)) return;
    set_engine("reference");
    const auto wanted = values(c, dtype);
    set_engine("fast");
    compare(c, values(c, dtype), wanted,
            dtype == DType::Float64 ? c.tolerance64 : c.tolerance * factor);
  });
}

ScalarFunction gradient_sum(const Case& c) {
  return [&c](const Tensors& inputs) {
    const Tensors targets = floating_only(inputs);
    const std::vector<Tensor> gradients = grad(weighted(c.build(inputs), 5), targets);
    Tensor total = zeros({}, DType::Float64);
    for (std::size_t k = 0; k < gradients.size(); ++k)
      total = total + weighted(gradients[k], 50 + k);
    return total;
  };
}

/// Gradients of f against finite differences, over the floating inputs of the case.
void check_gradient(const Case& c, const ScalarFunction& f, double tolerance) {
  const Tensors inputs = make_inputs(c, DType::Float64), targets = floating_only(inputs);
  const ScalarFunction of_targets = [&](const Tensors& at) {
    Tensors all = inputs;
    std::size_t k = 0;
    for (Tensor& t : all)
      if (is_floating(t.dtype())) t = at[k++];
    return f(all);
  };
  const auto numeric = numeric_gradient(of_targets, targets, 1e-5);
  const std::vector<Tensor> gradients = grad(of_targets(targets), targets);
  compute(gradients);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    INFO(c.name << ", floating input " << k);
    CHECK(distance(numbers(gradients[k]), numeric[k]) < tolerance);
  }
}

void collect(std::span<const Tensor> roots, std::set<Op>& seen) {
  for (const Node* node : topological_order(roots)) seen.insert(node->op);
}

}  // namespace

TEST_CASE("cases: fast engines against the reference, float32") { check_dtype(DType::Float32, 1); }
TEST_CASE("cases: fast engines against the reference, float64") { check_dtype(DType::Float64, 1); }
TEST_CASE("cases: fast engines against the reference, bfloat16") {
  check_dtype(DType::BFloat16, 2e4);
}
TEST_CASE("cases: fast engines against the reference, float16") {
  check_dtype(DType::Float16, 2.5e3);
}

TEST_CASE("cases: fused against unfused") {
  each_case([](const Case& c) {
    set_pass_enabled("fuse", false);
    const auto wanted = values(c, DType::Float32);
    set_pass_enabled("fuse", true);
    compare(c, values(c, DType::Float32), wanted, c.tolerance);
  });
}

TEST_CASE("cases: products of bfloat16 operands") {
  each_case([](const Case& c) {
    set_precision(Precision::Bf16);
    set_engine("reference");
    const auto wanted = values(c, DType::Float32);
    set_engine("fast");
    compare(c, values(c, DType::Float32), wanted, c.tolerance * 2e3);
  });
}

TEST_CASE("cases: one thread and several give the same bits") {
  const int usual = threads();
  each_case([](const Case& c) {
    set_threads(1);
    const auto wanted = values(c, DType::Float32);
    set_threads(3);
    compare(c, values(c, DType::Float32), wanted, 1e-300);
  });
  set_threads(usual);
}

TEST_CASE("cases: gradients against finite differences") {
  each_case([](const Case& c) {
    set_engine("reference");
    const auto f = [&c](const Tensors& x) { return weighted(c.build(x), 5); };
    if (c.grad) check_gradient(c, f, 1e-6);
  });
}

TEST_CASE("cases: second derivatives against finite differences") {
  each_case([](const Case& c) {
    set_engine("reference");
    if (c.grad && c.grad2) check_gradient(c, gradient_sum(c), 1e-5);
  });
}

TEST_CASE("cases: composites against their decompositions") {
  const Settings restore;
  set_engine("reference");
  for (const Op op : {Op::Softmax, Op::LogSoftmax}) {
    const Tensor x = random_input({{4, 9}, -3, 3}, DType::Float64, 3);
    const Tensor whole = op == Op::Softmax ? softmax(x) : log_softmax(x);
    const Tensor parts = op_info(op).decompose(whole);
    const Tensor pairs[][2] = {{whole, parts},
                               {grad(weighted(whole, 5), x), grad(weighted(parts, 5), x)}};
    for (const auto& [a, b] : pairs) {
      compute({a, b});
      CHECK(distance(numbers(a), numbers(b)) < 1e-12);
    }
  }
}

TEST_CASE("cases: every op is in a case") {
  std::set<Op> seen;
  for (const Case& c : all_cases()) {
    const Tensors inputs = make_inputs(c, DType::Float64), targets = floating_only(inputs);
    std::vector<Tensor> roots{c.build(inputs)};
    if (c.grad) {
      const std::vector<Tensor> first = grad(weighted(roots[0], 5), targets);
      roots.insert(roots.end(), first.begin(), first.end());
    }
    if (c.grad && c.grad2) {
      const std::vector<Tensor> second = grad(gradient_sum(c)(inputs), targets);
      roots.insert(roots.end(), second.begin(), second.end());
    }
    collect(roots, seen);
  }
  for (int k = 0; k < kOpCount; ++k) {
    if (kind_of(static_cast<Op>(k)) == OpKind::Transfer) continue;  // several devices: tests/run
    if (static_cast<Op>(k) == Op::OwnKernel) continue;              // on GPUs only: tests/cuda
    INFO(op_info(static_cast<Op>(k)).name);
    CHECK(seen.contains(static_cast<Op>(k)));
  }
}

}  // namespace cases
