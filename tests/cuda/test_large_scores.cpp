// Float32 attention on a GPU where one score is much larger than a query's others: after
// cancellation the gradient is as close to float64's as that of a plain float32 computation.
#include "../run/attention_cases.h"

#include <cmath>
#include <vector>

#include <tenon/context.h>

#include "gpu.h"

using namespace tenon;
using namespace tenon::test::attention;

namespace {

/// Every other query is so long that its scores reach 200 and more, which a float32 logarithm of
/// their sum rounds to 8e-6.
Operands large_scores(const Sizes& s, Masked masked) {
  Operands o = operands(s, masked);
  std::vector<float> lengths;
  for (std::int64_t i = 0; i < s.queries; ++i) lengths.push_back(i % 2 == 0 ? 80.0F : 1.0F);
  o.q = mul(o.q, Tensor::from<float>(lengths, {s.queries, 1})).compute();
  return o;
}

/// Value and gradients written out, in the operands' order.
Tensors written_out(const Operands& o, Masked masked, DType dtype) {
  const Tensor q = cast(o.q, dtype), k = cast(o.k, dtype), v = cast(o.v, dtype);
  const Shape &rows = q.shape(), &columns = k.shape();
  const std::int64_t group = rows[1] / columns[1];
  const auto shared = [&](const Tensor& x) {
    const Shape& of = x.shape();
    return reshape(expand(unsqueeze(x, 2), {of[0], of[1], group, of[2], of[3]}),
                   {of[0], rows[1], of[2], of[3]});
  };
  Tensor scores = matmul(q, transpose(shared(k), 2, 3)) / std::sqrt(static_cast<double>(rows[3]));
  if (masked == Masked::Causal) {
    const Tensor seen = ge(unsqueeze(arange(0, rows[2]), 1), unsqueeze(arange(0, columns[2]), 0));
    scores = where(seen, scores, full({}, -INFINITY, dtype));
  }
  if (masked == Masked::Added) scores = scores + cast(o.mask, dtype);
  const Tensor y = matmul(softmax(scores, -1), shared(v));
  Tensors all = grad(y, Tensors{q, k, v}, cast(o.seed, dtype));
  all.insert(all.begin(), y);
  compute(all);
  return all;
}

// Sequences of one tile and of several, grouped heads, and padded heads.
const Sizes kSizes[] = {{2, 3, 3, 33, 61, 16, 16},
                        {1, 2, 2, 64, 64, 64, 64},
                        {1, 4, 2, 70, 100, 40, 24},
                        {1, 2, 1, 129, 150, 64, 64},
                        {1, 1, 1, 65, 70, 128, 72}};

}  // namespace

TEST_CASE("large scores: gradients of float32 attention are as accurate as those of plain ops") {
  if (!test::has_gpu()) return;
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Added}) {
      CAPTURE(s.queries);
      CAPTURE(static_cast<int>(masked));
      const Operands o = large_scores(s, masked);
      const Tensors there = results_on(device("cuda"), o, masked, DType::Float32, 0),
                    plain = written_out(o, masked, DType::Float32),
                    exact = written_out(o, masked, DType::Float64);
      for (std::size_t k = 0; k < exact.size(); ++k) {
        CAPTURE(k);
        CHECK(distance(there[k], exact[k]) < 3 * distance(plain[k], exact[k]) + 3e-7);
      }
    }
}

TEST_CASE("large scores: a query that sees one key has no gradient") {
  if (!test::has_gpu()) return;
  // Scores of thousands: all weights but one are 0, so their inputs have no influence.
  for (const Sizes& s : kSizes) {
    CAPTURE(s.queries);
    Operands o = operands(s, Masked::No);
    o.q = (o.q * 0 + 30).compute();
    const Tensor first = eq(unsqueeze(arange(0, s.keys), 1), 0);
    o.k = (o.k * 0 + cast(first, DType::Float32) * 30).compute();
    const Tensors all = results_on(device("cuda"), o, Masked::No, DType::Float32, 0);
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}})
      for (const float slope : all[k].to_vector<float>()) CHECK(slope == 0);
  }
}

TEST_CASE("large scores: without the gradient of queries, the others have the same bits") {
  if (!test::has_gpu()) return;
  const Operands o = on(large_scores({1, 2, 2, 70, 100, 16, 16}, Masked::No), device("cuda"));
  const Tensors all = results(o, Masked::No, DType::Float32);
  const Tensor y = scaled_dot_product_attention(o.q, o.k, o.v);
  const Tensors alone = grad(y, Tensors{o.k, o.v}, o.seed);
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(alone[k].to_vector<float>() == all[k + 2].to_vector<float>());
}
