// Losses over many classes on a GPU, real or emulated: 16-bit scores in padded rows give float64's
// loss and gradients within tolerance, and are deterministic.
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
#include <tenon/optim.h>

#include "../base/distance.h"
#include "../null/planning.h"
#include "base/index.h"
#include "gpu.h"

using namespace tenon;
using test::distance;
using test::values;

namespace {

struct Loss {
  std::int64_t rows, classes;
  bool bias = false;
  ClassLossOptions options = {};
  bool permuted = false;  // the weight is [depth, classes]
  double level = 0;       // of the bias
  std::int64_t depth = 64;
};

/// From this size on all products of the gradient have 16-bit operands.
constexpr std::int64_t kDeep = 256;

struct Data {
  Tensor x, w, bias, target;

  explicit Data(const Loss& s)
      : x(numbers({s.rows, s.depth}, 1.0)),
        w(numbers(s.permuted ? Shape{s.depth, s.classes} : Shape{s.classes, s.depth},
                  4 / std::sqrt(static_cast<double>(s.depth)))),
        bias((numbers({s.classes}, 1.0) + s.level).eval()),
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
  Tensor scores = matmul(x, s.permuted ? w : transpose(w, 0, 1));
  if (s.bias) scores = scores + bias;
  const Tensor loss = cross_entropy(scores, d.target, s.options);
  std::vector<Tensor> wanted{x, w};
  if (s.bias) wanted.push_back(bias);
  std::vector<Tensor> all = grad(loss, wanted);
  all.push_back(loss);
  return all;
}

std::vector<std::vector<double>> on_gpu(const Loss& s, Precision precision) {
  set_device("cuda");
  set_precision(precision);
  auto out = values(results(s, Data(s), DType::Float32));
  set_precision(Precision::Fp32);
  set_device("cpu");
  return out;
}

/// Compares with float64, within a share of the effect of rounding the operands.
std::vector<std::vector<double>> checked(const Loss& s, Precision precision, double share = 1) {
  CAPTURE(s.rows);
  CAPTURE(s.classes);
  CAPTURE(s.level);
  const auto wanted = values(results(s, Data(s), DType::Float64));
  const double most = share * (precision == Precision::Bf16 ? 6e-3 : 2e-3);
  auto got = on_gpu(s, precision);
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(got[k], wanted[k]) < most);
  }
  return got;
}

std::shared_ptr<const Program> planned(const Loss& s, Precision precision, test::Settings settings,
                                       bool wants_scores = false) {
  set_precision(precision);
  const Tensor x = test::leaf({s.rows, 256}),
               w = test::leaf(s.permuted ? Shape{256, s.classes} : Shape{s.classes, 256});
  const Tensor target = cast(test::leaf({s.rows}), DType::Int64).eval();
  Tensor scores = matmul(x, s.permuted ? w : transpose(w, 0, 1));
  std::vector<Tensor> of{x, w};
  if (s.bias) {
    of.push_back(test::leaf({s.classes}));
    scores = scores + of.back();
  }
  const Tensor loss = s.options.label_smoothing > 0 ? cross_entropy(scores, target, s.options)
                                                    : cross_entropy(scores, target);
  std::vector<Tensor> roots = grad(loss, of);
  if (wants_scores) roots.push_back(reshape(scores, {1, s.rows, s.classes}));
  set_precision(Precision::Fp32);
  return test::planned(roots, settings);
}

/// Rows, columns and inner length of each product.
std::vector<std::vector<std::int64_t>> products_in(const Program& program) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const Step& step : program.steps)
    if (const Contraction& c = step.region.contraction; step.region.kind == RegionKind::Contraction)
      sizes.push_back({c.a_shape.at(-2), c.b_shape.at(-1), c.a_shape.at(-1)});
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// A step of a language model whose output layer shares the embedding.
std::shared_ptr<const Program> tied_step(std::int64_t words, bool clips) {
  constexpr std::int64_t kRows = 4096;
  set_precision(Precision::Bf16);
  const Tensor w = variable(zeros({words, 256}), "words");
  const Tensor word = cast(test::leaf({kRows}), DType::Int64).eval();
  const Tensor loss = cross_entropy(matmul(embedding(word, w), transpose(w, 0, 1)), word);
  optim::AdamW adam(std::vector<Tensor>{w}, {.lr = 0.1});
  std::vector<Tensor> grads = grad(loss, adam.parameters());
  if (clips) grads = optim::clip_grad_norm(grads, 1).grads;
  std::vector<Tensor> roots = adam.updates(grads);
  roots.push_back(loss);
  set_precision(Precision::Fp32);
  return test::planned(roots, {.has_product_library = true});
}

/// Reductions of rows in all steps.
std::int64_t row_reductions(const Program& program) {
  std::int64_t count = 0;
  for (const Step& step : program.steps)
    count += std::count_if(step.region.map.instrs.begin(), step.region.map.instrs.end(),
                           [](const MapInstr& instr) { return instr.code == MapCode::RowReduce; });
  return count;
}

/// The scores in memory: values of `rows` rows and more than 256 columns.
std::vector<Value> scores_in(const Program& program, std::int64_t rows) {
  std::vector<Value> found;
  for (const Value& value : program.values)
    if (value.kind == Value::Kind::Arena && value.shape.rank() == 2 && value.shape[0] == rows &&
        value.shape[1] > 256)
      found.push_back(value);
  return found;
}

}  // namespace

TEST_CASE("cuda logit rows: losses and gradients equal float64's within the operands' rounding") {
  if (!test::has_gpu()) return;
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
                         {256, 1033, false, all},
                         {256, 1031, true, smooth, true, 0, kDeep},
                         // The padding columns, of zero weights and bias, would be far above
                         // all classes, and be infinite in the gradient.
                         {256, 1029, true, {}, false, -1000, kDeep}};
  for (const Loss& s : losses)
    for (const Precision precision : {Precision::Bf16, Precision::Fp16})
      CHECK(checked(s, precision) == on_gpu(s, precision));
}

TEST_CASE("cuda logit rows: scores are stored in 16 bits, in rows aligned to 16 bytes") {
  const test::Settings kGpu;
  for (const std::int64_t classes : {1025, 1030, 1032}) {
    CAPTURE(classes);
    const auto program = planned({256, classes}, Precision::Bf16, kGpu);
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
    ClassLossOptions smooth;
    smooth.label_smoothing = 0.1;
    for (const ClassLossOptions& options : {ClassLossOptions{}, smooth}) {
      // The same step sums the bias gradient from the operands of products.
      const auto biased = planned({256, classes, true, options}, Precision::Bf16, kGpu);
      CHECK(std::count_if(biased->steps.begin(), biased->steps.end(), reads_scores) == 1);
      for (const Value& value : scores_in(*biased, 256)) CHECK(value.dtype == DType::BFloat16);
    }
  }
  // Not padded: in float32, on a CPU, with few classes, and if the scores are a result.
  const auto is_whole = [](const std::shared_ptr<const Program>& program, std::int64_t rows) {
    const std::vector<Value> kept = scores_in(*program, rows);
    return std::none_of(kept.begin(), kept.end(),
                        [](const Value& value) { return value.shape[1] % 64 == 0; });
  };
  CHECK(is_whole(planned({256, 1025}, Precision::Fp32, kGpu), 256));
  CHECK(is_whole(planned({256, 1025}, Precision::Bf16, {.kind = Device::Kind::Cpu}), 256));
  CHECK(is_whole(planned({512, 1001}, Precision::Bf16, kGpu), 512));
  CHECK(is_whole(planned({256, 1025}, Precision::Bf16, kGpu, true), 256));
}

TEST_CASE("cuda logit rows: products of the gradient also run over padded rows") {
  using Sizes = std::vector<std::vector<std::int64_t>>;
  const test::Settings alone, library{.has_product_library = true};
  const auto count_pads = [](const Program& program) {
    return std::count_if(program.steps.begin(), program.steps.end(), [](const Step& step) {
      return step.region.kind == RegionKind::Opaque && step.region.opaque.op == Op::Pad;
    });
  };
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const auto program = planned({4096, 1027}, precision, library);
    CHECK(products_in(*program) == Sizes{{1088, 256, 4096}, {4096, 256, 1088}, {4096, 1088, 256}});
    CHECK(count_pads(*program) == 1);
    for (const Value& value : scores_in(*program, 4096)) CHECK(value.shape[1] == 1088);
    const auto permuted = planned({4096, 1027, false, {}, true}, precision, library);
    CHECK(products_in(*permuted) == Sizes{{256, 1088, 4096}, {4096, 256, 1088}, {4096, 1088, 256}});
    CHECK(count_pads(*permuted) == 1);
  }
  // A result is cut if that is worth a kernel; the inner length is never cut.
  const Sizes cut{{1027, 256, 4096}, {4096, 256, 1088}, {4096, 1088, 256}},
      few{{512, 256, 1088}, {512, 1088, 256}, {1027, 256, 512}},
      whole{{1032, 256, 4096}, {4096, 256, 1032}, {4096, 1032, 256}};
  CHECK(products_in(*planned({4096, 1027}, Precision::Bf16, alone)) == cut);
  CHECK(products_in(*planned({512, 1027}, Precision::Bf16, library)) == few);
  CHECK(products_in(*planned({4096, 1032}, Precision::Bf16, library)) == whole);
}

TEST_CASE("cuda logit rows: an update reads a weight's gradient from its padded rows") {
  constexpr std::int64_t kWords = 1027;
  for (const bool clips : {false, true}) {
    CAPTURE(clips);
    const auto program = tied_step(kWords, clips);
    INFO(print_steps(*program));
    ValueId gradient = kNoValue;
    int large = 0;  // values of a weight's size
    for (std::size_t id = 0; id < program->values.size(); ++id) {
      const Value& value = program->values[id];
      if (value.kind != Value::Kind::Arena || value.dtype != DType::Float32 ||
          value.shape.numel() < kWords * 256)
        continue;
      if (value.shape == Shape{1088, 256}) gradient = static_cast<ValueId>(id);
      large += value.shape.at(-1) == 256 && value.shape.numel() < 4096 * 256 ? 1 : 0;
    }
    REQUIRE(gradient != kNoValue);
    CHECK(large == (clips ? 3 : 2));  // the embedding's, and what the norm is of
    std::vector<const Step*> readers;
    for (const Step& step : program->steps)
      if (const auto& reads = step.region.reads;
          std::find(reads.begin(), reads.end(), gradient) != reads.end())
        readers.push_back(&step);
    REQUIRE(readers.size() == 1);
    const std::vector<ValueId>& writes = readers[0]->region.writes;
    const bool updates = std::any_of(writes.begin(), writes.end(), [&](ValueId id) {
      const Value& value = program->values[at(id)];
      return value.kind == Value::Kind::Variable && value.shape == Shape{kWords, 256};
    });
    CHECK(updates != clips);
  }
}

TEST_CASE("vendor: products of padded rows' gradients give float64's results") {
  if (!test::has_gpu()) return;
  ClassLossOptions smooth;
  smooth.label_smoothing = 0.1;
  smooth.ignore_index = 3;
  smooth.reduction = Reduction::Sum;
  checked({4096, 1025, false, {}, false, 0, kDeep}, Precision::Fp16);
  // Twice: of many sums that cancel.
  checked({4096, 1027, true, smooth, true, 0, kDeep}, Precision::Bf16, 2);
}

TEST_CASE("cuda logit rows: products other than the loss's read scores") {
  if (!test::has_gpu()) return;
  const auto run = [](DType dtype) {
    const Data d({256, 1027, false, {}, false, 0, kDeep});
    const Tensor x = cast(d.x, dtype), w = cast(d.w, dtype);
    const Tensor scores = matmul(x, transpose(w, 0, 1));
    const Tensor mixed = matmul(softmax(scores, -1), w),
                 alike = matmul(scores, transpose(scores, 0, 1));
    const Tensor loss = cross_entropy(scores, d.target) + square(mixed).sum() + alike.sum() * 1e-4;
    std::vector<Tensor> all = grad(loss, std::vector<Tensor>{x, w});
    all.push_back(mixed);
    all.push_back(loss);
    return values(all);
  };
  const auto wanted = run(DType::Float64);
  set_device("cuda");
  set_precision(Precision::Bf16);
  const auto got = run(DType::Float32);
  set_precision(Precision::Fp32);
  set_device("cpu");
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(got[k], wanted[k]) < 2e-2);
  }
}

TEST_CASE("cuda logit rows: 16-bit scores are read once for all passes over a row") {
  for (const bool bias : {false, true}) {
    CAPTURE(bias);
    const auto program = planned({512, 50257, bias}, Precision::Bf16, {});
    const auto has_rows = [](const Step& step) {
      return step.region.kind == RegionKind::Map && step.region.map.has_rows;
    };
    const auto step = std::find_if(program->steps.begin(), program->steps.end(), has_rows);
    REQUIRE(step != program->steps.end());
    std::string text = step->kernel->source();
    text.resize(std::min(text.size(), text.find("next launch")));  // which sums the bias's gradient
    const auto count = [&text](const std::string& what) {
      std::size_t found = 0;
      for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
      return found;
    };
    CHECK(count("_packed<N>(") == 1);
    CHECK(count("convert_row(") == 3);                       // maximum, sum, gradient
    CHECK(count("load_constant_row<") == (bias ? 3u : 0u));  // of the bias, which all rows share
    CHECK(count("exp_near(") == 2);                          // by the special unit
    CHECK(count("as_coordinate(") == 1);                     // classes compare in 32 bits
    CHECK(count("columns_left(") == 3);                      // once a vector, which are classes
    const std::string rounding = "rounded<BF16>(";
    const std::size_t from = text.find(rounding) + rounding.size();
    const std::string exact = text.substr(from, text.find(')', from) - from);
    CHECK(count("[i] = " + exact + ";") == 1);  // rounded once, by the store
  }
}

TEST_CASE("cuda logit rows: the product adds the bias if rows need no padding") {
  const auto program = planned({512, 10000, true}, Precision::Bf16, {});
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
