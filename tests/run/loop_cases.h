// Scans compared with the same loops unrolled: for the CPU and for GPUs.
#pragma once

#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

#include <cmath>
#include <string>
#include <vector>

#include "../base/distance.h"

namespace tenon::test {

using Tensors = std::vector<Tensor>;

/// The same as scan(), one step after another.
inline ScanResult unrolled(const ScanStep& step, Tensors carry, const Tensors& xs,
                           const ScanOptions& options = {}) {
  const std::int64_t length = options.length >= 0 ? options.length : xs[0].size(0);
  std::vector<Tensors> rows(static_cast<std::size_t>(length));
  for (std::int64_t k = 0; k < length; ++k) {
    const std::int64_t t = options.reverse ? length - 1 - k : k;
    Tensors x;
    for (const Tensor& all : xs) x.push_back(select(all, 0, t));
    ScanResult one = step(carry, x);
    carry = one.carry;
    rows[static_cast<std::size_t>(t)] = one.ys;
  }
  ScanResult out{carry, {}};
  if (length == 0) return out;
  for (std::size_t y = 0; y < rows[0].size(); ++y) {
    Tensors stacked;
    for (const Tensors& row : rows) stacked.push_back(row[y]);
    out.ys.push_back(stack(stacked, 0));
  }
  return out;
}

inline Tensors all_of(const ScanResult& r) {
  Tensors all = r.carry;
  all.insert(all.end(), r.ys.begin(), r.ys.end());
  return all;
}

/// A smooth number in which every element has a different weight.
inline Tensor weigh(const Tensors& values) {
  Tensor total = scalar(0.0, DType::Float64);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!is_floating(values[k].dtype()) || values[k].numel() == 0) continue;
    const Tensor v = cast(values[k], DType::Float64);
    const Tensor w = reshape(sin(cast(arange(0, v.numel()), DType::Float64) + (1.0 + double(k))),
                             Ints(v.shape().begin(), v.shape().end()));
    total = total + sum(v * w);
  }
  return total;
}

struct LoopCase {
  std::string name;
  Tensors carry, xs, weights;
  std::function<ScanStep(const Tensors& weights)> step;  // captures the weights
  ScanOptions options;
};

inline Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  Generator g(seed);
  return variable(randn(shape, dtype, g));
}

inline std::vector<LoopCase> loop_cases(DType dtype, std::int64_t length = 5) {
  const auto d = [&](const Shape& s, std::uint64_t seed) { return draw(s, seed, dtype); };
  std::vector<LoopCase> cases;
  cases.push_back({"sum of products",
                   {d({3}, 1)},
                   {d({length, 3}, 2)},
                   {d({3}, 3)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors& x) {
                       const Tensor next = c[0] * w[0] + x[0];
                       return ScanResult{{next}, {next * next}};
                     };
                   },
                   {}});
  cases.push_back({"recurrent layer",
                   {d({2, 4}, 4)},
                   {d({length, 2, 3}, 5)},
                   {d({4, 3}, 6), d({4, 4}, 7), d({4}, 8)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors& x) {
                       const Tensor h = tanh(linear(x[0], w[0], w[2]) + linear(c[0], w[1]));
                       return ScanResult{{h}, {h}};
                     };
                   },
                   {}});
  cases.push_back({"two carries, backwards",
                   {d({2, 3}, 9), d({2, 3}, 10)},
                   {d({length, 2, 12}, 11)},
                   {d({3, 12}, 12)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors& x) {
                       const Tensors g = split(x[0] + matmul(c[0], w[0]), 3, 1);
                       const Tensor cell = sigmoid(g[0]) * c[1] + sigmoid(g[1]) * tanh(g[2]);
                       const Tensor h = sigmoid(g[3]) * tanh(cell);
                       return ScanResult{{h, cell}, {h, cell * 2.0}};
                     };
                   },
                   {.length = -1, .reverse = true}});
  cases.push_back({"no rows",
                   {d({2, 2}, 13)},
                   {},
                   {d({2, 2}, 14)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors&) {
                       return ScanResult{{matmul(c[0], w[0]) * 0.5}, {}};
                     };
                   },
                   {.length = length, .reverse = false}});
  cases.push_back({"no carry",
                   {},
                   {d({length, 4}, 15), d({length, 4}, 16)},
                   {d({4}, 17)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors&, const Tensors& x) {
                       return ScanResult{{}, {x[0] * x[1] + w[0], sum(x[0])}};
                     };
                   },
                   {}});
  cases.push_back({"carries that swap",
                   {d({3}, 18), d({3}, 19)},
                   {d({length, 3}, 20)},
                   {d({3}, 21)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors& x) {
                       return ScanResult{{c[1], c[0] + x[0] * w[0]}, {c[0], c[0], x[0], w[0]}};
                     };
                   },
                   {}});
  cases.push_back({"a scan inside",
                   {d({2}, 22)},
                   {d({length, 3, 2}, 23)},
                   {d({2}, 24)},
                   [](const Tensors& w) -> ScanStep {
                     return [w](const Tensors& c, const Tensors& x) {
                       const ScanStep inner = [&w](const Tensors& ic, const Tensors& ix) {
                         const Tensor next = tanh(ic[0] * w[0] + ix[0]);
                         return ScanResult{{next}, {next}};
                       };
                       const ScanResult r = scan(inner, {c[0]}, {x[0]});
                       return ScanResult{{r.carry[0]}, {sum(r.ys[0], {0})}};
                     };
                   },
                   {}});
  return cases;
}

inline Tensors to_device(const Tensors& tensors, Device device) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(t.device() == device ? t : to(t, device).compute());
  return out;
}

/// Compares values and gradients of the scan with those of the unrolled loop.
inline void check_loop(const LoopCase& c, Device device, double tolerance) {
  CAPTURE(c.name);
  const Tensors carry = to_device(c.carry, device), xs = to_device(c.xs, device),
                weights = to_device(c.weights, device);
  const ScanResult ours = scan(c.step(weights), carry, xs, c.options),
                   theirs = unrolled(c.step(weights), carry, xs, c.options);
  const Tensors a = all_of(ours), b = all_of(theirs);
  REQUIRE(a.size() == b.size());
  Tensors inputs = carry;
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const Tensors ga = grad(weigh(a), inputs), gb = grad(weigh(b), inputs);
  compute(a);
  for (std::size_t k = 0; k < a.size(); ++k) {
    CAPTURE(k);
    REQUIRE(a[k].dtype() == b[k].dtype());
    CHECK(distance(a[k], b[k]) < tolerance);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    CAPTURE(k);
    REQUIRE(ga[k].dtype() == gb[k].dtype());
    CHECK(distance(ga[k], gb[k]) < tolerance);
  }
}

}  // namespace tenon::test
