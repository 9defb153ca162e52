// Passes that share the walk of another pass: each rewrites something, is timed, and changes the
// plan when it is switched off.
#include <doctest/doctest.h>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/precision.h>

#include <algorithm>
#include <string>
#include <vector>

#include "big_graphs.h"
#include "plan/program/passes.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const Settings kCpu{.kind = Device::Kind::Cpu}, kGpu{.kind = Device::Kind::Cuda},
    kGpuWithLibraries{
        .kind = Device::Kind::Cuda, .convolves_channels_last = true, .has_product_library = true};

std::vector<Tensor> convolution_over_whole_input() {
  return {conv2d(leaf({4, 3, 5, 5}), leaf({6, 3, 5, 5}))};
}

std::vector<Tensor> nodes_without_effect() { return {relu(detach(leaf({2, 3})))}; }

std::vector<Tensor> views_of_views() {
  return {relu(reshape(reshape(leaf({2, 6}), {3, 4}), {12}))};
}

std::vector<Tensor> transposed_product() {
  return {permute(matmul(leaf({4, 8}), leaf({8, 6})), {1, 0})};
}

/// The updates of convolutions in bfloat16, with normalisation and pooling between them.
std::vector<Tensor> convolutions() {
  const PrecisionScope scope(Precision::Bf16);
  std::vector<Tensor> weights;
  Tensor x = leaf({4, 64, 8, 8});
  for (const std::int64_t side : {3, 3, 1, 3, 3}) {
    const Tensor w = weight({64, 64, side, side}, weights), scale = weight({64}, weights);
    const Tensor y = conv2d(x, w, {}, {.padding = {side / 2, side / 2}});
    const Moments m = batch_moments(y);
    x = relu(tenon::batch_norm(y, m.mean, m.var, scale, scale, 1e-5));
    if (side == 1) x = max_pool2d(x, {.kernel = {2, 2}});
  }
  return training_step(sum(x * x), weights);
}

/// A few rows of a table are replaced.
std::vector<Tensor> updated_rows() {
  std::vector<Tensor> weights;
  const Tensor table = weight({40, 16}, weights), index = leaf({8, 16}, DType::Int64);
  return {assign(table, scatter(table, 0, index, gather(table, 0, index) * 2))};
}

std::vector<Tensor> embedded() {
  std::vector<Tensor> weights;
  const Tensor table = weight({40, 16}, weights);
  return training_step(sum(square(embedding(cast(leaf({6, 5}), DType::Int64), table))), weights);
}

/// Products with bias and activation, and their gradients.
std::vector<Tensor> perceptron() { return deep_mlp(3, 16, 8); }

/// Convolutions with batch normalisation that subtracts the mean.
std::vector<Tensor> centered() { return deep_resnet(1, 16); }

/// Two results of a product's epilogue that are stored, and their sums over rows.
std::vector<Tensor> summed_results() {
  const Tensor a = tanh(matmul(leaf({256, 64}), leaf({64, 128}))), b = a * leaf({256, 128});
  return {a, b, sum(a, {0}), sum(b, {0})};
}

/// Weights that are rounded before products read them, and activations larger than the weights.
std::vector<Tensor> rounded_weights() {
  Tensor h = leaf({4096, 512});
  for (int k = 0; k < 16; ++k) {
    const Tensor rounded = cast(leaf({512, 512}), DType::BFloat16);
    h = relu(matmul(h, cast(rounded, DType::Float32)));
  }
  return {h};
}

struct Example {
  PassId pass;
  std::vector<Tensor> (*graph)();
  Settings settings;
};
const Example kExamples[] = {
    {kConvolutionsToProducts, convolution_over_whole_input, kCpu},
    {kDropNoops, nodes_without_effect, kCpu},
    {kMergeViews, views_of_views, kCpu},
    {kMoveTransposes, transposed_product, kCpu},
    {kSumDeviations, convolutions, kGpu},
    {kPermuteFilters, convolutions, kGpuWithLibraries},
    {kSkipCasts, convolutions, kGpu},
    {kPoolingNhwc, convolutions, kGpuWithLibraries},
    {kMultiplyPixels, convolutions, kGpuWithLibraries},
    {kElementwiseNhwc, convolutions, kGpuWithLibraries},
    {kShortenIndices, embedded, kGpu},
    {kShrinkScatterBases, embedded, kGpu},
    {kLowerFilterPrecision, convolutions, kGpu},
    {kRecomputeCentered, centered, kGpu},
    {kUpdateRows, updated_rows, kCpu},
    {kEpilogue, perceptron, kCpu},
    {kColumnSums, summed_results, kGpu},
    {kSink, perceptron, kCpu},
    {kDelayLeafSteps, rounded_weights, kCpu},
};

const PassRecord* record_of(const Program& program, PassId pass) {
  const auto found = std::find_if(
      program.passes.begin(), program.passes.end(),
      [pass](const PassRecord& record) { return record.name == pass_info(pass).name; });
  return found == program.passes.end() ? nullptr : &*found;
}

std::string text_of(const Program& program) {
  return print_graph(program) + print_steps(program) + print_arena(program);
}

}  // namespace

TEST_CASE("shared walks: each pass rewrites something, and nothing when it is switched off") {
  for (const Example& example : kExamples) {
    CAPTURE(std::string(pass_info(example.pass).name));
    const std::vector<Tensor> roots = example.graph();
    Settings settings = example.settings;
    const auto with = planned(roots, settings);
    settings.disabled = {example.pass};
    const auto without = planned(roots, settings);
    const PassRecord* record = record_of(*with, example.pass);
    REQUIRE(record != nullptr);
    CHECK(record->before == 0);
    CHECK(record->after > 0);
    CHECK(record->unit == "rewrites");
    CHECK(record->ms > 0);
    CHECK(record_of(*without, example.pass) == nullptr);
    const bool is_same = text_of(*with) == text_of(*without);
    CHECK(!is_same);
  }
}

TEST_CASE("shared walks: the times of passes add up to the time of planning") {
  const auto program = planned(deep_mlp(40), {.kind = Device::Kind::Cpu, .checks_passes = false});
  double sum = 0;
  for (const PassRecord& pass : program->passes) {
    CHECK(pass.ms >= 0);
    sum += pass.ms;
  }
  CHECK(sum <= program->planning_ms);
}
