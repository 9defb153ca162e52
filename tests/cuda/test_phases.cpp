// Launches in phases, on a GPU, real or emulated: the same bits as with one launch per phase, also
// when repeated.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/train.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../base/distance.h"
#include "../cpu/region_builders.h"
#include "cuda/engines/maps/map_engine.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;
using test::distance;

namespace {

constexpr DType F = DType::Float32;

/// Runs kernels one after another.
class InARow final : public Kernel {
 public:
  void add(std::unique_ptr<Kernel> kernel) {
    workspace_bytes = std::max(workspace_bytes, kernel->workspace_bytes);
    kernels_.push_back(std::move(kernel));
  }
  void run(const Binding& binding) const override {
    for (const auto& kernel : kernels_) kernel->run(binding);
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

/// Regions of one program, phase by phase.
class Phases {
 public:
  Phases() : t_(test::map_over<DeviceCheck>({1})) {}

  void next_phase() { ++phase_; }
  MapProgram& begin(const Shape& space) {
    t_.region.map = MapProgram();
    t_.region.map.space = space;
    return t_.region.map;
  }
  void end() {
    t_.region.phase = phase_;
    regions_.push_back(t_.region);
  }
  DeviceCheck& t() { return t_; }

  /// The sum of squares of all elements of a value.
  ValueId squares(ValueId x, std::int64_t n) {
    begin({n});
    const int loaded = t_.load(x);
    const ValueId sum = t_.reduce(t_.compute(Op::Square, F, loaded), Op::Sum, 1, F);
    end();
    return sum;
  }
  /// The same as a row reduction, with further values computed from the sum.
  ValueId root_of_row(ValueId x, std::int64_t n, const std::vector<ValueId>& scalars) {
    begin({n});
    int sum = t_.row_reduce(Op::Sum, t_.compute(Op::Square, F, t_.load(x)), F);
    for (ValueId s : scalars) sum = t_.compute(Op::Add, F, sum, t_.load(s, nullptr, true));
    const ValueId root = t_.store(t_.compute(Op::Sqrt, F, sum));
    end();
    return root;
  }
  /// x -= g / scalar, in place.
  void update(ValueId x, ValueId g, ValueId scalar, std::int64_t n) {
    begin({n});
    const int step = t_.compute(Op::Div, F, t_.load(g), t_.load(scalar));
    t_.store_to(t_.compute(Op::Sub, F, t_.load(x), step), t_.broadcast(x), x);
    end();
  }

  /// True if one launch, of several phases, can do them; otherwise *why has the reason.
  bool may_share(std::string* why) const {
    const Engine& engine = cuda::map_engine(cuda::Target());
    std::vector<LaunchPart> parts;
    for (const Region& region : regions_)
      parts.push_back({&region, engine.capabilities(region, t_.values).share, region.phase});
    return engine.saves(parts, why) > 0;
  }
  /// Checks that one launch has the same bits as a launch per region; returns its source.
  std::string check() {
    const cuda::Target target = DeviceCheck::can_run() ? cuda::target_of(0) : cuda::Target();
    const Engine& engine = cuda::map_engine(target);
    const auto kernel = t_.together(engine, regions_);
    std::string text = kernel->source();
    CHECK(text.find("__global__") == text.rfind("__global__"));
    if (!DeviceCheck::can_run()) return text;
    InARow apart;
    for (const Region& region : regions_) apart.add(engine.prepare(region, t_.values, 1));
    const auto expected = t_.run_on_gpu(apart);
    for (int k = 0; k < 5; ++k) CHECK(t_.run_on_gpu(*kernel) == expected);
    return text;
  }

 private:
  DeviceCheck t_;
  std::vector<Region> regions_;
  int phase_ = 0;
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Updates of parameters of these sizes, after a row of `last` elements that gives the step.
std::string updates(const std::vector<std::int64_t>& sizes, std::int64_t last) {
  Phases phases;
  const ValueId row = phases.t().leaf(F, {last});
  const ValueId norm = phases.root_of_row(row, last, {phases.t().leaf(F, {}, 1, 4)});
  phases.next_phase();
  for (const std::int64_t n : sizes) {
    const ValueId x = phases.t().leaf(F, {n}), g = phases.t().leaf(F, {n});
    phases.t().overwritten(x);
    phases.update(x, g, norm, n);
  }
  return phases.check();
}

}  // namespace

namespace {

/// How the regions after column sums read the sums and one another.
enum class Reads { Own, Others, First, Changed, Rounded };

/// Sums over the columns of a value [outer, channels, inner], and regions that process them.
std::string columns_then(std::int64_t outer, std::int64_t channels, std::int64_t inner,
                         Reads reads) {
  Phases phases;
  DeviceCheck& t = phases.t();
  const Shape space{outer, channels, inner};
  const ValueId x = t.leaf(F, space), weight = t.leaf(F, {channels});
  t.overwritten(weight);
  phases.begin(space);
  int loaded = t.load(x);
  View of_channels;
  of_channels.stride[1] = 1;
  if (reads == Reads::Changed) loaded = t.compute(Op::Mul, F, loaded, t.load(weight, &of_channels));
  const ValueId sum = t.reduce(loaded, Op::Sum, 5, F);
  const ValueId squares = t.reduce(t.compute(Op::Square, F, loaded), Op::Sum, 5, F);
  phases.end();
  phases.next_phase();
  std::vector<ValueId> means;
  for (const ValueId of : {sum, squares}) {
    phases.begin({channels});
    int mean = t.compute(Op::Div, F, t.load(of), t.number(700));
    if (reads == Reads::Rounded)  // as it is stored
      mean = t.compute(Op::Tanh, DType::BFloat16, t.compute(Op::Cast, DType::BFloat16, mean));
    means.push_back(t.store(mean));
    phases.end();
  }
  phases.next_phase();
  View other;
  other.stride[0] = reads == Reads::First ? 0 : -1;
  other.offset = reads == Reads::First ? 0 : channels - 1;
  const bool own = reads != Reads::Others && reads != Reads::First;
  phases.begin({channels});
  const auto wide = [&](int mean_of) {
    return reads == Reads::Rounded ? t.compute(Op::Cast, F, mean_of) : mean_of;
  };
  const int mean = wide(t.load(means[0], own ? nullptr : &other));
  const int moved = t.compute(Op::Add, F, t.load(weight), wide(t.load(means[1])));
  t.store_to(t.compute(Op::Mul, F, mean, moved), t.broadcast(weight), weight);
  phases.end();
  std::string why;
  CHECK_MESSAGE(phases.may_share(&why), why);
  return phases.check();
}

}  // namespace

TEST_CASE("cuda phases: the block with a column's sums processes them") {
  struct Case {
    std::int64_t outer, channels, inner;
  };
  for (const Case& c : {Case{700, 40, 1}, Case{700, 64, 1}, Case{700, 1000, 1}, Case{700, 2048, 1},
                        Case{9000, 256, 1}, Case{3, 70, 600}, Case{16, 5, 5000}, Case{5, 64, 1}}) {
    CAPTURE(c.channels);
    CAPTURE(c.inner);
    const std::string text = columns_then(c.outer, c.channels, c.inner, Reads::Own);
    CHECK(contains(text, "then::finish<1>"));
    CHECK_FALSE(contains(text, "ends_last"));
  }
}

TEST_CASE("cuda phases: work of few blocks after many is the last block's") {
  for (const Reads reads : {Reads::Others, Reads::First, Reads::Changed, Reads::Rounded})
    for (const std::int64_t channels : {64, 1000}) {
      CAPTURE(static_cast<int>(reads));
      CAPTURE(channels);
      CHECK(contains(columns_then(700, channels, 1, reads), "ends_last"));
    }
  // The work of many blocks does not wait for other blocks.
  Phases phases;
  DeviceCheck& t = phases.t();
  const ValueId x = t.leaf(F, {100000});
  for (int k = 0; k < 2; ++k) {
    phases.begin({100000});
    const ValueId y = t.store(t.compute(Op::Sqrt, F, t.load(x)));
    phases.end();
    phases.next_phase();
    if (k == 1) break;
    phases.begin({100000});
    t.store(t.compute(Op::Add, F, t.load(y), t.number(1)));
    phases.end();
  }
  std::string why;
  CHECK(!phases.may_share(&why));
  CHECK(contains(why, "would have to wait"));
}

TEST_CASE("cuda phases: a norm and updates of parameters of many sizes") {
  // The last phase has many more blocks than the GPU holds.
  const std::vector<std::vector<std::int64_t>> all = {
      {235200, 300, 3000, 10}, {1, 7, 0, 4097, 1031}, {70001}, {12, 12, 12, 12}, {0, 5000},
      {3000000, 5, 1100000}};
  for (const std::vector<std::int64_t>& sizes : all) {
    CAPTURE(sizes.size());
    CAPTURE(sizes[0]);
    const std::string text = updates(sizes, 130);
    CHECK(contains(text, "phase1(a, blockIdx.x, gridDim.x);"));
    CHECK_FALSE(contains(text, "ends_last"));
  }
}

TEST_CASE("cuda phases: the last block ends a launch") {
  Phases phases;
  std::vector<ValueId> sums;
  for (const std::int64_t n : {50000, 3, 800})
    sums.push_back(phases.squares(phases.t().leaf(F, {n}), n));
  phases.next_phase();
  const ValueId row = phases.t().leaf(F, {40});
  const ValueId norm = phases.root_of_row(row, 40, sums);
  phases.next_phase();
  phases.root_of_row(row, 40, {norm, sums[0]});
  const std::string text = phases.check();
  CHECK(contains(text, "ends_last(&tenon::cuda::arrivals"));
}

TEST_CASE("cuda phases: without reductions") {
  Phases phases;
  const std::int64_t n = 6001;
  const ValueId x = phases.t().leaf(F, {n}), g = phases.t().leaf(F, {n});
  phases.t().overwritten(x);
  phases.update(x, g, phases.t().leaf(F, {}), n);
  phases.next_phase();
  phases.begin({1});
  View first;
  const int element = phases.t().load(x, &first);
  phases.t().store(phases.t().compute(Op::Exp, F, element));
  phases.end();
  const std::string text = phases.check();
  CHECK(contains(text, "ends_last"));
  // x changes in the launch, so no load of x may be a constant load.
  CHECK_FALSE(contains(text, "load_constant_row<4>(x0"));
}

TEST_CASE("cuda phases: all phases in one block") {
  Phases phases;
  const ValueId row = phases.t().leaf(F, {300});
  ValueId norm = phases.root_of_row(row, 300, {});
  for (int k = 0; k < 2; ++k) {
    phases.next_phase();
    norm = phases.root_of_row(row, 300, {norm});
  }
  const std::string text = phases.check();
  CHECK_FALSE(contains(text, "ends_last"));
}

TEST_CASE("cuda phases: a row that all blocks read, the work of many, and the last block's") {
  Phases phases;
  const ValueId row = phases.t().leaf(F, {300}), x = phases.t().leaf(F, {20000}),
                g = phases.t().leaf(F, {20000});
  phases.t().overwritten(x);
  const ValueId norm = phases.root_of_row(row, 300, {});
  phases.next_phase();
  phases.update(x, g, norm, 20000);
  const ValueId sum = phases.squares(g, 20000);
  phases.next_phase();
  phases.root_of_row(row, 300, {norm, sum});
  const std::string text = phases.check();
  CHECK(contains(text, "phase0(a, 0, 1);"));
  CHECK(contains(text, "ends_last"));
}

TEST_CASE("cuda phases: a row that every block computes, and where that is not allowed") {
  struct Case {
    const char* what;
    bool repeats_first_phase, elements = false, reads_elements = false, in_place = false,
                              written_later = false, own_elements = false;
    std::int64_t length = 300;
  };
  const std::vector<Case> cases = {
      {"only a scalar", true},
      {"elements too", true, true},
      {"elements that the row itself is made of", false, true, false, false, false, true},
      {"elements that are read afterwards", false, true, true},
      {"a scalar that is updated", false, false, false, true},
      {"a row that is written afterwards", false, false, false, false, true},
      {"a long row", false, false, false, false, false, false, 5000}};
  for (const Case& c : cases) {
    CAPTURE(std::string(c.what));
    Phases phases;
    DeviceCheck& t = phases.t();
    const std::int64_t n = c.length;
    const ValueId row = t.leaf(F, {n}), weights = t.leaf(F, {n}), count = t.leaf(F, {1}, 1, 4);
    phases.begin({n});
    const int sum = t.row_reduce(Op::Sum, t.compute(Op::Square, F, t.load(row)), F);
    const int norm =
        t.compute(Op::Sqrt, F, t.compute(Op::Add, F, sum, t.load(count, nullptr, true)));
    const ValueId factor = t.store(norm);
    if (c.in_place) {
      t.overwritten(count);
      t.store_to(norm, t.broadcast(count), count);
    }
    if (c.elements) {
      const ValueId changed = c.own_elements ? row : weights;
      t.overwritten(changed);
      const int step = t.compute(Op::Div, F, t.load(row), norm);
      t.store_to(t.compute(Op::Sub, F, t.load(changed), step), t.broadcast(changed), changed);
    }
    phases.end();
    phases.next_phase();
    const ValueId x = t.leaf(F, {5000}), g = t.leaf(F, {5000});
    t.overwritten(x);
    phases.update(x, g, factor, 5000);
    if (c.reads_elements) phases.update(t.output(F, {n}), weights, factor, n);
    if (c.written_later) {
      t.overwritten(row);
      phases.update(row, t.leaf(F, {n}), factor, n);
    }
    std::string why;
    CHECK(phases.may_share(&why) == c.repeats_first_phase);
    if (!c.repeats_first_phase) continue;
    CHECK(contains(phases.check(), "if (blockIdx.x == 0)") == c.elements);
  }
}

TEST_CASE("cuda phases: blocks that would have to wait for each other") {
  Phases phases;
  const std::int64_t n = 30000;
  const ValueId x = phases.t().leaf(F, {n}), g = phases.t().leaf(F, {n});
  phases.t().overwritten(x);
  const ValueId sum = phases.squares(x, n);
  phases.next_phase();
  const ValueId norm = phases.root_of_row(phases.t().leaf(F, {9}), 9, {sum});
  std::string why;
  CHECK(phases.may_share(&why));
  phases.next_phase();
  phases.update(x, g, norm, n);
  CHECK_FALSE(phases.may_share(&why));
  CHECK(why == "in one launch blocks would have to wait for one another");
}

// ---- Training

namespace {

struct Course {
  std::vector<float> weights;
  double loss = 0;
  bool operator==(const Course&) const = default;
};

std::shared_ptr<data::Dataset> points(bool broken) {
  manual_seed(3);
  std::vector<float> x = randn({48, 60}).compute().to_vector<float>();
  if (broken) x[7 * 60 + 3] = 3e38f;
  std::vector<std::int64_t> y;
  for (int k = 0; k < 48; ++k) y.push_back(k % 4);
  return data::from_tensors(Tensor::from(x, {48, 60}), Tensor::from(y, {48}), 4);
}

struct Setting {
  const char* optimizer = "sgd";
  Precision precision = Precision::Fp32;
  double clip_norm = 1, clip_value = 0;
  bool broken = false;  // a batch whose gradients are not finite in float16
  int steps_per_launch = 0;
};

Course fit(const Setting& s, const char* device, bool phases = true) {
  set_device(device);
  set_pass_enabled("phases", phases);
  set_precision(s.precision);
  manual_seed(1);
  nn::AnyModule net = nn::Sequential(nn::Linear(60, 90), nn::Tanh(), nn::Linear(90, 4));
  optim::OptimizerOptions options;
  options.lr = 0.05;
  if (std::string(s.optimizer) == "sgd") options.momentum = 0.9;
  const auto optimizer = optim::create(s.optimizer, net, options);
  data::LoaderOptions loading;
  loading.batch = 8;
  data::Loader loader(points(s.broken), loading);
  train::TrainOptions training;
  training.epochs = 6;
  training.keep_best = false;
  training.clip_norm = s.clip_norm;
  training.clip_value = s.clip_value;
  training.steps_per_launch = s.steps_per_launch;
  const nn::Loss loss = [](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores, target);
  };
  train::Trainer trainer(net, loss, *optimizer, training);
  Course course;
  course.loss = trainer.fit(loader).epochs.back().train_loss;
  for (const Tensor& p : optimizer->parameters())
    for (float w : p.to_vector<float>()) course.weights.push_back(w);
  set_precision(Precision::Fp32);
  set_pass_enabled("phases", true);
  set_device("cpu");
  return course;
}

}  // namespace

TEST_CASE("GPU phases: a clipped training is bit-equal to three launches a step") {
  if (!test::has_gpu()) return;
  const Setting settings[] = {
      {"sgd", Precision::Fp32, 0.05},         {"sgd", Precision::Fp32, 1e6},  // never too long
      {"adamw", Precision::Bf16, 0.3},        {"adamw", Precision::Fp16, 0.3, 0.1},
      {"sgd", Precision::Fp16, 0.3, 0, true}, {"sgd", Precision::Fp32, 0.3, 0, false, 1},
  };
  for (const Setting& s : settings) {
    const std::string title = std::string(s.optimizer) + " " + name(s.precision);
    CAPTURE(title);
    CAPTURE(s.clip_norm);
    const Course apart = fit(s, "cuda", false), joined = fit(s, "cuda");
    CHECK(joined.loss == apart.loss);
    CHECK(joined.weights == apart.weights);
    CHECK(fit(s, "cuda") == joined);
    for (float w : joined.weights) REQUIRE(std::isfinite(w));
  }
}

TEST_CASE("GPU phases: a clipped training takes the same course as on the CPU") {
  if (!test::has_gpu()) return;
  for (const char* optimizer : {"sgd", "adamw"}) {
    CAPTURE(std::string(optimizer));
    const Setting s{optimizer, Precision::Fp32, 0.3};
    CHECK(distance(fit(s, "cpu").weights, fit(s, "cuda").weights) < 1e-4);
  }
}
