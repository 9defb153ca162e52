// Which element-wise regions become prologues of products on a GPU, and the reasons noted for
// others. Needs no device.
#include <doctest/doctest.h>

#include <tenon/ops.h>

#include <span>
#include <string>
#include <vector>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Checks that the program has this many steps and that the last one has a prologue.
void check_fused(const Program& p, std::size_t steps = 1) {
  CAPTURE(print_fusion(p));
  CHECK(p.steps.size() == steps);
  CHECK(p.steps.back().region.has_prologue());
  CHECK(std::string(p.steps.back().engine->name()) == "native");
  CHECK(contains(print_fusion(p), "while loading"));
}
void check_apart(const Program& p, const std::string& why) {
  const std::string text = print_fusion(p);
  CAPTURE(text);
  for (const Step& step : p.steps) CHECK_FALSE(step.region.has_prologue());
  CHECK(contains(text, why));
}

// A run's record: the product was run with its prologue by `native`, and a larger batch of it
// without the prologue by another engine (an evaluation).
class Recorded final : public Tuning {
 public:
  std::vector<TuneAdvice> advise(const Program& program, const EqualSteps&,
                                 const PlanOptions&) override {
    return std::vector<TuneAdvice>(program.steps.size());
  }
  TuneAdvice known(const Region& region, std::span<const Value>, const PlanOptions&) override {
    const bool together = region.has_prologue();
    TuneAdvice advice{"key", TuneChoice(), "as before in this run", true, together};
    advice.choice->engine = together ? "native" : "wgmma";
    return advice;
  }
  void taken(const std::string&, const TuneChoice&) override {}
};

Tensor images() {
  const Tensor x = leaf({64, 3, 32, 32}, DType::UInt8);
  const Tensor mean = leaf({3, 1, 1}), scale = leaf({3, 1, 1});
  return (cast(x, DType::Float32) * (1.0 / 255) - mean) * scale;
}

}  // namespace

TEST_CASE("prologues: images of bytes are normalised while patches of them are loaded") {
  const Conv2dOptions patches{.stride = {4, 4}};
  const auto p = planned({relu(conv2d(images(), leaf({16, 3, 4, 4}), leaf({16}), patches))});
  check_fused(*p);
  CHECK(contains(print_steps(*p), "prologue+product"));
  CHECK_FALSE(contains(print_arena(*p), "float32[64, 3, 32, 32]"));
  // With overlapping windows each element would be computed once for every filter tap.
  check_apart(*planned({conv2d(images(), leaf({16, 3, 3, 3}))}), "costs more than it saves");
}

TEST_CASE("prologues: an activation before a convolution of single pixels") {
  check_fused(*planned({conv2d(relu(leaf({8, 64, 14, 14})), leaf({32, 64, 1, 1}))}));
}

TEST_CASE("prologues: element-wise ops before a matrix product") {
  const Tensor x = leaf({64, 120}), w = leaf({84, 120}), b = leaf({84});
  check_fused(*planned({linear(relu(x), w, b)}));
  check_fused(*planned({matmul(x * 2.0 + 1.0, transpose(w))}));
  check_fused(*planned({linear(where(gt(leaf({64, 120}), 0.0), x, 0.0), w, b)}));
  check_fused(*planned({linear(x, w * leaf({84, 1}), b)}));
  check_fused(*planned({linear(reshape(relu(leaf({64, 6, 5, 4})), {64, 120}), w, b)}));
  for (const Precision precision : {Precision::Tf32, Precision::Bf16, Precision::Fp16}) {
    const PrecisionScope scope(precision);
    check_fused(*planned({linear(relu(x), w, b)}));
  }
}

TEST_CASE("prologues: dropout is drawn by the products that read it, and its counter waits") {
  const Tensor x = leaf({64, 120}), w = leaf({10, 120});
  const auto p = planned({linear(dropout(x, 0.5, true), w)});
  CAPTURE(print_fusion(*p));
  bool drawn = false;
  for (const Step& step : p->steps) drawn = drawn || step.region.has_prologue();
  CHECK(drawn);
}

TEST_CASE("prologues: a gradient is masked while both products load it") {
  const Tensor dy = leaf({64, 84}), y = leaf({64, 84}), x = leaf({64, 120}), w = leaf({84, 120});
  const Tensor masked = where(gt(y, 0.0), dy, 0.0);
  const auto p = planned({matmul(masked, w), matmul(transpose(masked), x)});
  CAPTURE(print_fusion(*p));
  REQUIRE(p->steps.size() == 2);
  for (const Step& step : p->steps) CHECK(step.region.has_prologue());
}

TEST_CASE("prologues: a second one is put before the first") {
  const Tensor a = leaf({1, 120}), b = leaf({2, 120}), w = leaf({84, 120});
  const auto p = planned({linear(a * 1000 + slice(exp(b * 2), 0, 1, 2), w)});
  check_fused(*p);
  CHECK(p->steps[0].region.reads.size() == 3);
}

TEST_CASE("prologues: a run repeats its choice, whichever engine ran a larger batch") {
  const PrecisionScope scope(Precision::Bf16);
  const Tensor y = linear(relu(leaf({512, 512})), leaf({512, 512}));
  check_apart(*planned({y}), "whose engine wgmma reads operands as stored");
  Recorded record;
  const auto p = planned({y}, {.tuning = &record});
  CAPTURE(print_fusion(*p));
  CHECK(p->steps.size() == 2);  // the weight is rounded beside it
  CHECK(p->steps.back().region.has_prologue());
}

TEST_CASE("prologues: why not") {
  const Tensor x = leaf({64, 120}), w = leaf({84, 120});
  const Tensor y = relu(x);
  check_apart(*planned({linear(y, w), y}), "no prologue: it is a requested result");
  check_apart(*planned({linear(y, w), sum(y + 1.0, {0})}), "more than compute one operand");
  ;
  check_apart(*planned({linear(exp(leaf({64, 20000})), leaf({300, 20000}))}),
              "costs more than it saves");
  {
    const PrecisionScope scope(Precision::Bf16);
    check_apart(*planned({conv2d(relu(leaf({128, 64, 11, 11})), leaf({64, 64, 3, 3}))}),
                "whose engine conv reads operands as stored");
    check_apart(*planned({linear(relu(leaf({512, 512})), leaf({512, 512}))}),
                "whose engine wgmma reads operands as stored");
  }
  check_apart(*planned({linear(y, w)}, {.kind = Device::Kind::Cpu}),
              "whose engine contraction reads operands as stored");
  check_apart(*planned({linear(y, w)}, {.disabled = {kPrologue}}), "");
}
