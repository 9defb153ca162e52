// The tuner on a GPU, real or emulated: it distinguishes correct from wrong results, and a tuned
// run is reproducible with its choices.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "../cpu/region_builders.h"
#include "../io/folder.h"
#include "cuda/engines/products/native_engine.h"
#include "device_check.h"
#include "run/tune.h"

using namespace tenon;
using test::DeviceCheck;
using test::natural;

namespace {

constexpr DType F = DType::Float32;

/// Weights updated by the gradient that a product makes: read, and written in place.
DeviceCheck update(std::int64_t m, std::int64_t n, std::int64_t k, DType compute = F) {
  DeviceCheck t;
  Region& r = t.region;
  r.kind = RegionKind::Contraction;
  r.title = "matmul+update";
  Contraction& c = r.contraction;
  c.attrs.precision = test::precision_of(compute);
  c.a_shape = {m, k}, c.b_shape = {k, n}, c.out_shape = {m, n};
  c.a.stride[0] = k, c.a.stride[1] = c.b.stride[1] = 1, c.b.stride[0] = n;
  c.a.value = t.leaf(F, {m, k});
  c.b.value = t.leaf(F, {k, n});
  c.has_epilogue = true;
  r.map.space = {1, m, n};
  const ValueId weights = t.leaf(F, {1, m, n});
  const int step = t.compute(Op::Mul, F, t.accumulator(), t.number(0.1));
  const int less = t.compute(Op::Sub, F, t.load(weights), step);
  View view;
  view.stride[0] = m * n, view.stride[1] = n, view.stride[2] = 1;
  t.store_to(less, view, weights);
  const ValueId positive = t.output(DType::Bool, {1, m, n});
  t.store_to(t.compute(Op::Gt, DType::Bool, t.accumulator(), t.number(0)), view, positive);
  r.reads = {c.a.value, c.b.value, weights};
  r.writes = {weights, positive};
  return t;
}

/// Compiling is slow on the emulated GPU, so only a part of the cases runs there.
bool is_emulated() { return cuda::model_of(0).starts_with("Emulated"); }

struct Precise {
  DType compute;
  bool tf32;
};

DeviceCheck contraction(Op op, const Precise& how, const Shape& a, const Shape& b,
                        const Shape& out) {
  DeviceCheck t;
  t.region.kind = RegionKind::Contraction;
  t.region.title = "test";
  Contraction& c = t.region.contraction;
  c.op = op;
  c.attrs.precision = test::precision_of(how.compute, how.tf32);
  c.a_shape = a, c.b_shape = b, c.out_shape = out;
  c.a = natural(a), c.b = natural(b);
  c.a.value = t.leaf(F, a), c.b.value = t.leaf(F, b);
  return t;
}

DeviceCheck product(const Precise& how) {
  DeviceCheck t = contraction(Op::Matmul, how, {48, 40}, {40, 64}, {48, 64});
  t.region.contraction.out = t.output(F, {48, 64});
  return t;
}

DeviceCheck convolution(Op op, const Precise& how) {
  const Shape x{2, 8, 9, 9}, w{16, 8, 3, 3}, y{2, 16, 7, 7};
  DeviceCheck t = op == Op::Conv2d            ? contraction(op, how, x, w, y)
                  : op == Op::Conv2dInputGrad ? contraction(op, how, y, w, x)
                                              : contraction(op, how, x, y, w);
  t.region.contraction.attrs.conv = ConvAttrs();
  t.region.contraction.out = t.output(F, t.region.contraction.out_shape);
  return t;
}

/// Of rows for convolutions (channels), of columns for products.
void add_bias_relu(DeviceCheck& t) {
  Contraction& c = t.region.contraction;
  Shape space{1, c.out_shape[0], c.out_shape.numel() / c.out_shape[0]};
  if (c.op == Op::Conv2d || c.op == Op::Conv2dInputGrad)
    space = {c.out_shape[0], c.out_shape[1], c.out_shape[2] * c.out_shape[3]};
  c.has_epilogue = true;
  c.out = kNoValue;
  t.region.map.space = space;
  const int axis = c.op == Op::Matmul ? 2 : 1;
  Shape bias{1, 1, 1};
  bias[axis] = space[axis];
  const int sum = t.compute(Op::Add, F, t.accumulator(), t.load(t.leaf(F, bias)));
  t.store(t.compute(Op::Relu, F, sum));
}

/// Runs another kernel and spoils one element of a value.
class Spoiled final : public Kernel {
 public:
  Spoiled(std::unique_ptr<Kernel> inner, ValueId value, std::size_t at, float with)
      : inner_(std::move(inner)), value_(value), at_(at), with_(with) {
    workspace_bytes = inner_->workspace_bytes;
  }
  void run(const Binding& binding) const override {
    inner_->run(binding);
    std::byte* memory = binding.values[static_cast<std::size_t>(value_)];
    cuda::memory().from_host(memory + at_, &with_, sizeof with_, 0);
  }

 private:
  const std::unique_ptr<Kernel> inner_;
  const ValueId value_;
  const std::size_t at_;
  const float with_;
};

PlanOptions gpu_options(std::vector<const Engine*>& engines) {
  engines = {&cuda::native_contraction_engine(cuda::target_of(0))};
  PlanOptions options;
  options.engines = engines;
  options.device = {Device::Kind::Cuda, 0};
  options.traits = cuda::backend().traits();
  return options;
}

std::shared_ptr<data::Dataset> clouds() {
  manual_seed(3);
  const Tensor labels = cast(arange(0, 32), DType::Int64);
  return data::from_tensors(randn({32, 6}).eval(), remainder(labels, 2).eval(), 2);
}

train::TrainResult fit(const std::shared_ptr<data::Dataset>& set, train::TrainOptions options,
                       StateDict* weights) {
  manual_seed(1);
  nn::AnyModule net = nn::Sequential(nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 2));
  optim::SgdOptions sgd;
  sgd.lr = 0.1;
  optim::Sgd optimizer(net, sgd);
  data::LoaderOptions loading;
  loading.batch = 8;
  data::Loader loader(set, loading);
  train::Trainer trainer(net, nn::CrossEntropyLoss(), optimizer, std::move(options));
  train::TrainResult result = trainer.fit(loader);
  for (const auto& [name, t] : net.state_dict())
    weights->insert_or_assign(name, Tensor::from_data(t.data(), t.shape(), t.dtype(), Device{}));
  return result;
}

bool same(const StateDict& a, const StateDict& b) {
  for (const auto& [name, t] : a)
    if (t.to_vector<float>() != b.at(name).to_vector<float>()) return false;
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("tune on a GPU: random numbers and the comparison") {
  if (!DeviceCheck::can_run()) return;
  DeviceMemory& memory = cuda::memory();
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, F, DType::Float64}) {
    CAPTURE(name(dtype));
    constexpr std::int64_t kCount = 1001;
    const std::size_t item = item_size(dtype), bytes = kCount * item;
    void* x = memory.allocate(bytes + item, 0);
    void* y = memory.allocate(bytes + item, 0);
    for (void* p : {x, y}) {
      cuda::poison(p, bytes + item, 0);
      cuda::fill_random(p, dtype, kCount, 7, 2.0, 0);
    }
    std::vector<std::byte> host(bytes + item);
    memory.to_host(host.data(), x, bytes + item, 0);
    for (std::size_t k = bytes; k < host.size(); ++k) CHECK(host[k] == std::byte{0xff});
    cuda::Difference d = cuda::difference(x, y, dtype, kCount, 0);
    CHECK(d.apart == 0);
    CHECK(d.broken == 0);
    const double mean = d.size / kCount;  // of squares
    if (is_floating(dtype))
      CHECK((mean > 1.1 && mean < 1.6));  // 4 / 3
    else
      CHECK((is_bool(dtype) ? mean > 0.4 && mean < 0.6 : mean > 15 && mean < 20));  // 17.5
    cuda::fill_random(y, dtype, kCount, 8, 2.0, 0);
    d = cuda::difference(x, y, dtype, kCount, 0);
    CHECK(d.apart > d.size / 4);
    if (is_floating(dtype)) {
      cuda::fill_random(y, dtype, kCount, 9, -2.0, 0);  // from 1 to 3
      const double positive = cuda::difference(y, y, dtype, kCount, 0).size / kCount;
      CHECK((positive > 4.2 && positive < 4.5));  // 13 / 3
      cuda::poison(y, item, 0);
      CHECK(cuda::difference(x, y, dtype, kCount, 0).broken == 1);
      CHECK(cuda::difference(y, x, dtype, kCount, 0).broken == 1);
      cuda::poison(x, item, 0);
      CHECK(cuda::difference(y, x, dtype, kCount, 0).broken == 0);
    }
    memory.release(x, bytes + item, 0);
    memory.release(y, bytes + item, 0);
  }
}

TEST_CASE("tune on a GPU: the bench accepts correct kernels and rejects wrong ones") {
  if (!DeviceCheck::can_run()) return;
  register_backend(cuda::backend());
  for (const DType compute : {F, DType::BFloat16}) {
    const DeviceCheck t = update(20, 24, 40, compute);
    std::vector<const Engine*> engines;
    const PlanOptions options = gpu_options(engines);
    std::vector<Candidate> candidates;
    const Engine& native = *engines[0];
    const std::vector<std::string> names = native.configurations(t.region, t.values);
    for (std::size_t k = 0; k < 2; ++k)
      candidates.push_back({&native, names[k], native.prepare_as(names[k], t.region, t.values, 1)});
    const ValueId weights = t.region.writes[0];
    for (const auto& [at, with] :
         {std::pair<std::size_t, float>{0, 1.5f}, {4 * (20 * 24 - 1), NAN}})
      candidates.push_back(
          {&native, "spoiled",
           std::make_unique<Spoiled>(native.prepare_as(names[0], t.region, t.values, 1), weights,
                                     at, with)});
    const auto bench = make_gpu_bench(t.region, t.values, options, candidates);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      std::string why;
      CAPTURE(candidates[k].title());
      CHECK(bench->agrees(*candidates[k].kernel, &why) == (k < 2));
      INFO(why);
      CHECK(why.empty() == (k < 2));
    }
    CHECK(bench->microseconds(*candidates[0].kernel) > 0);
  }
}

TEST_CASE("tune on a GPU: every configuration that an engine offers is correct") {
  if (!DeviceCheck::can_run()) return;
  register_backend(cuda::backend());
  for (const Precise& how : {Precise{F, false}, Precise{F, true}, Precise{DType::BFloat16, false},
                             Precise{DType::Float16, false}})
    for (const Op op : {Op::Matmul, Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
      for (const bool simple : {false, true}) {
        if (is_emulated() && (how.tf32 || how.compute == DType::Float16)) continue;
        DeviceCheck t = op == Op::Matmul ? product(how) : convolution(op, how);
        if (simple) add_bias_relu(t);
        t.region.reads = {t.region.contraction.a.value, t.region.contraction.b.value};
        for (const MapInstr& i : t.region.map.instrs)
          if (i.code == MapCode::Load) t.region.reads.push_back(i.view.value);
        t.region.writes = {simple ? t.region.map.stores[0].view.value : t.region.contraction.out};
        PlanOptions options;
        options.engines = cuda::engines(cuda::target_of(0));
        options.device = {Device::Kind::Cuda, 0};
        options.traits = cuda::backend().traits();
        std::vector<Candidate> candidates = candidates_of(t.region, t.values, options);
        if (is_emulated() && candidates.size() > 3) candidates.resize(3);
        const auto bench = make_gpu_bench(t.region, t.values, options, candidates);
        for (const Candidate& c : candidates) {
          CAPTURE(op_row(op).name);
          CAPTURE(c.title());
          std::string why;
          CHECK(bench->agrees(*c.kernel, &why));
          CHECK(why == "");
        }
      }
}

TEST_CASE("tune on a GPU: a run that tunes keeps its choices and resumes with them") {
  if (!DeviceCheck::can_run()) return;
  const std::shared_ptr<data::Dataset> set = clouds();
  const TestFolder folder;
  set_device("cuda");
  StateDict whole, parts, by_preference;
  const auto options = [&](const std::string& name, std::int64_t stop_after, bool resume) {
    train::TrainOptions o;
    o.epochs = 2;
    o.run_dir = name.empty() ? "" : folder / name;
    o.stop_after = stop_after;
    o.resume = resume;
    return o;
  };
  set_tune(Tune::Write);
  fit(set, options("whole", 0, false), &whole);
  const std::string chosen = io::read_file(folder / "whole/engines.tune");
  CHECK(TuneTable::parse(chosen).size() >= 4);
  CHECK(io::read_file(folder / "whole/log.jsonl").find("\"engines\"") != std::string::npos);

  // Stopped, then resumed where the disk's table is not asked: the run's own copy is.
  set_tune(Tune::Read);
  fit(set, options("parts", 3, false), &parts);
  CHECK(io::read_file(folder / "parts/engines.tune").size() == chosen.size());
  set_tune(Tune::Off);
  fit(set, options("parts", 0, true), &parts);
  CHECK(same(whole, parts));

  // A damaged copy is ignored and the run continues.
  fit(set, options("damaged", 3, false), &by_preference);
  io::write_file(folder / "damaged/engines.tune", "no table");
  CHECK(fit(set, options("damaged", 0, true), &by_preference).steps == 8);
  set_tune(Tune::Read);
  set_device("cpu");
}
