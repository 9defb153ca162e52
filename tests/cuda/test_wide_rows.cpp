// Losses over many classes on a card, real or emulated: scores of 16 bits in padded rows give the
// loss and the gradients of float64, and the same bits every time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>

#include "../base/distance.h"
#include "../null/planning.h"
#include "base/index.h"
#include "card.h"

using namespace tenon;
using test::distance;
using test::values;

namespace {

constexpr std::int64_t kDepth = 64;

struct Loss {
  std::int64_t rows, classes;
  bool bias = false;
  ClassLossOptions options = {};
};

struct Data {
  Tensor x, w, bias, target;

  explicit Data(const Loss& s)
      : x(numbers({s.rows, kDepth}, 1.0)),
        w(numbers({s.classes, kDepth}, 0.5)),
        bias(numbers({s.classes}, 1.0)),
        target(remainder(arange(0, s.rows) * 7919, s.classes)) {
    target = where(eq(arange(0, s.rows), 1), s.classes - 1, target).eval();  // the last class too
  }
  static Tensor numbers(const Shape& shape, double scale) {
    return (sin(cast(arange(0, shape.numel()), DType::Float32) * 1.7) * scale)
        .reshape(Ints(shape.begin(), shape.end()))
        .eval();
  }
};

/// The loss and its gradients with respect to x, w and the bias.
std::vector<Tensor> results(const Loss& s, const Data& d, DType dtype) {
  const Tensor x = cast(d.x, dtype), w = cast(d.w, dtype), bias = cast(d.bias, dtype);
  Tensor scores = matmul(x, transpose(w, 0, 1));
  if (s.bias) scores = scores + bias;
  const Tensor loss = cross_entropy(scores, d.target, s.options);
  std::vector<Tensor> wanted{x, w};
  if (s.bias) wanted.push_back(bias);
  std::vector<Tensor> all = grad(loss, wanted);
  all.push_back(loss);
  return all;
}

std::vector<std::vector<double>> on_card(const Loss& s, Precision precision) {
  set_device("cuda");
  set_precision(precision);
  auto out = values(results(s, Data(s), DType::Float32));
  set_precision(Precision::Fp32);
  set_device("cpu");
  return out;
}

std::shared_ptr<const Program> planned(const Loss& s, Precision precision, Device::Kind kind,
                                       bool wants_scores = false) {
  set_precision(precision);
  const Tensor x = test::leaf({s.rows, 256}), w = test::leaf({s.classes, 256});
  const Tensor target = cast(test::leaf({s.rows}), DType::Int64).eval();
  Tensor scores = matmul(x, transpose(w, 0, 1));
  if (s.bias) scores = scores + test::leaf({s.classes});
  std::vector<Tensor> roots = grad(cross_entropy(scores, target), std::vector<Tensor>{x, w});
  if (wants_scores) roots.push_back(reshape(scores, {1, s.rows, s.classes}));
  set_precision(Precision::Fp32);
  return test::planned(roots, {kind});
}

/// Reductions of rows in all steps.
std::int64_t row_reductions(const Program& program) {
  std::int64_t count = 0;
  for (const Step& step : program.steps)
    count += std::count_if(step.region.map.instrs.begin(), step.region.map.instrs.end(),
                           [](const MapInstr& instr) { return instr.code == MapCode::RowReduce; });
  return count;
}

/// Results of products with as many rows as there are classes' scores.
std::vector<Value> scores_in(const Program& program, std::int64_t rows) {
  std::vector<Value> found;
  for (const Value& value : program.values)
    if (value.kind == Value::Kind::Arena && value.shape.rank() == 2 && value.shape[0] == rows &&
        value.shape[1] > 256)
      found.push_back(value);
  return found;
}

}  // namespace

TEST_CASE("cuda wide rows: losses and gradients are float64's within the operands' rounding") {
  if (!test::has_card()) return;
  ClassLossOptions smooth, some, all;
  smooth.label_smoothing = 0.1;
  some.ignore_index = 0;
  all.reduction = Reduction::Sum;
  const Loss losses[] = {{256, 1025},
                         {256, 1030, true},
                         {256, 1032, true},
                         {17, 16385},
                         {9, 10000, true},
                         {256, 1027, true, smooth},
                         {257, 1025, false, some},
                         {256, 1033, false, all}};
  for (const Loss& s : losses) {
    CAPTURE(s.rows);
    CAPTURE(s.classes);
    const auto wanted = values(results(s, Data(s), DType::Float64));
    for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
      const double most = precision == Precision::Bf16 ? 6e-3 : 2e-3;
      const auto got = on_card(s, precision);
      for (std::size_t k = 0; k < got.size(); ++k) {
        CAPTURE(k);
        CHECK(distance(got[k], wanted[k]) < most);
      }
      CHECK(on_card(s, precision) == got);
    }
  }
}

TEST_CASE("cuda wide rows: scores are kept in 16 bits, in rows that copies of 16 bytes can read") {
  constexpr Device::Kind kCard = Device::Kind::Cuda;
  for (const std::int64_t classes : {1025, 1030, 1032}) {
    CAPTURE(classes);
    const auto program = planned({256, classes}, Precision::Bf16, kCard);
    const std::vector<Value> kept = scores_in(*program, 256);
    CHECK(kept.size() == 2);  // they and their gradient
    for (const Value& value : kept) {
      CHECK(value.dtype == DType::BFloat16);
      CHECK(value.shape[1] == (classes == 1032 ? 1032 : 1088));
    }
    const auto reads_scores = [&](const Step& step) {
      return step.region.kind == RegionKind::Map && step.region.map.has_rows;
    };
    CHECK(std::count_if(program->steps.begin(), program->steps.end(), reads_scores) == 1);
    CHECK(row_reductions(*program) == 2);  // the largest score and the sum of exponentials
    CHECK(row_reductions(*planned({256, classes, true}, Precision::Bf16, kCard)) == 2);
  }
  // As they stand: of float32, on a CPU, of few classes, and where they are a result.
  const auto is_whole = [](const std::shared_ptr<const Program>& program, std::int64_t rows) {
    const std::vector<Value> kept = scores_in(*program, rows);
    return std::none_of(kept.begin(), kept.end(),
                        [](const Value& value) { return value.shape[1] % 64 == 0; });
  };
  CHECK(is_whole(planned({256, 1025}, Precision::Fp32, kCard), 256));
  CHECK(is_whole(planned({256, 1025}, Precision::Bf16, Device::Kind::Cpu), 256));
  CHECK(is_whole(planned({512, 1001}, Precision::Bf16, kCard), 512));
  CHECK(is_whole(planned({256, 1025}, Precision::Bf16, kCard, true), 256));
}

TEST_CASE(
    "cuda wide rows: rows of 16-bit scores are read once, however often they are passed over") {
  for (const bool bias : {false, true}) {
    CAPTURE(bias);
    const auto program = planned({512, 50257, bias}, Precision::Bf16, Device::Kind::Cuda);
    const auto has_rows = [](const Step& step) {
      return step.region.kind == RegionKind::Map && step.region.map.has_rows;
    };
    const auto step = std::find_if(program->steps.begin(), program->steps.end(), has_rows);
    REQUIRE(step != program->steps.end());
    const std::string text = step->kernel->source();
    const auto count = [&text](const std::string& what) {
      std::size_t found = 0;
      for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
      return found;
    };
    CHECK(count("_packed<N>(") == 1);
    CHECK(count("widen_row(") == 3);                         // maximum, sum, gradient
    CHECK(count("load_constant_row<") == (bias ? 3u : 0u));  // of the bias, which all rows share
    CHECK(count("exp_near(") == 2);                          // by the special unit
    CHECK(count("as_coordinate(") == 1);                     // classes compare in 32 bits
    const std::string rounding = "rounded<BF16>(";
    const std::size_t from = text.find(rounding) + rounding.size();
    const std::string exact = text.substr(from, text.find(')', from) - from);
    CHECK(count("[i] = " + exact + ";") == 1);  // rounded once, by the store
  }
}

TEST_CASE("cuda wide rows: a bias is added by the product, where rows need no padding") {
  const auto program = planned({512, 10000, true}, Precision::Bf16, Device::Kind::Cuda);
  int losses = 0;
  for (const Step& step : program->steps) {
    if (step.region.kind != RegionKind::Map || !step.region.map.has_rows) continue;
    ++losses;
    for (const ValueId id : step.region.reads)
      CHECK(program->values[static_cast<std::size_t>(id)].shape.numel() != 10000);
  }
  CHECK(losses == 1);
  for (const Value& value : scores_in(*program, 512)) CHECK(value.dtype == DType::BFloat16);
}
