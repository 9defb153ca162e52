// The GPU model: figures known by name, figures kept from a measurement, and estimates that rank
// engines as they were measured on an H200.
#include <doctest/doctest.h>

#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <set>
#include <string>

#include <tenon/shapes_only.h>
#include "base/str.h"
#include "cuda/device/gpu_models.h"
#include "null/planning.h"
#include "plan/program/tune.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("GPU model: named GPUs have the rates of their data sheets") {
  struct Sheet {
    const char* name;
    double fp32, tf32, half, memory;  // FLOP/s, bytes/s
  };
  for (const Sheet& s : {Sheet{"NVIDIA H200", 67e12, 494e12, 989e12, 4.8e12},
                         {"NVIDIA H100 80GB HBM3", 67e12, 494e12, 989e12, 3.35e12},
                         {"NVIDIA A100-SXM4-80GB", 19.5e12, 156e12, 312e12, 2.04e12},
                         {"NVIDIA GeForce RTX 4090", 82.6e12, 82.6e12, 165e12, 1.01e12},
                         {"NVIDIA L40", 90.5e12, 90.5e12, 181e12, .864e12},
                         {"NVIDIA L40S", 91.6e12, 183e12, 366e12, .864e12}}) {
    CAPTURE(std::string(s.name));
    const auto gpu = cuda::named_gpu(s.name);
    REQUIRE(gpu);
    const double flops = 2 * gpu->multiprocessors * gpu->clock;
    CHECK(flops * gpu->fp32 == doctest::Approx(s.fp32).epsilon(0.12));
    CHECK(flops * gpu->tf32 == doctest::Approx(s.tf32).epsilon(0.05));
    CHECK(flops * gpu->half == doctest::Approx(s.half).epsilon(0.05));
    CHECK(gpu->memory == doctest::Approx(s.memory).epsilon(0.01));
  }
  CHECK_FALSE(cuda::named_gpu("NVIDIA RTX A2000"));
  CHECK(cuda::gpu_of_arch(86).half < cuda::gpu_of_arch(80).half);
  CHECK(cuda::gpu_compiled_for(89) == *cuda::named_gpu("NVIDIA A100-SXM4-80GB"));
}

TEST_CASE("GPU model: measurements are stored as text, and those of another GPU are ignored") {
  GpuModel gpu = cuda::gpu_of_arch(86), read;
  gpu.memory = 448e9, gpu.fp32 = 127, gpu.tf32 = 125, gpu.half = 250;
  REQUIRE(cuda::read_gpu(cuda::gpu_text(gpu), read));
  CHECK(read.memory == 448e9);
  CHECK(read.half == 250);
  const std::string text = cuda::gpu_text(gpu);
  const std::string others[] = {"", text.substr(0, text.size() - 8),
                                "tenon-gpu 2\n" + text.substr(12),
                                "tenon-gpu 1\nmemory -1\nfp32 1\ntf32 1\nhalf 1\n",
                                "tenon-gpu 1\nmemory nan\nfp32 1\ntf32 1\nhalf 1\n"};
  for (const std::string& bad : others) {
    CAPTURE(bad);
    GpuModel untouched;
    CHECK_FALSE(cuda::read_gpu(bad, untouched));
    CHECK(untouched == GpuModel());
  }
}

TEST_CASE("GPU model: the roofline takes the longer of bytes and arithmetic, and the launches") {
  GpuModel gpu;
  const double launch = gpu.launch_us;
  CHECK(microseconds(gpu, {}) == doctest::Approx(launch));
  CHECK(microseconds(gpu, {.launches = 3}) == doctest::Approx(3 * launch));
  const double near = microseconds(gpu, {.bytes = 40e6}) - launch,
               far = microseconds(gpu, {.bytes = 400e6}) - launch;
  CHECK(far > 15 * near);
  CHECK(microseconds(gpu, {.bytes = 40e6, .multiply_adds = 1e12, .rate = gpu.half}) > 100 + near);
  gpu.multiprocessors /= 2;
  CHECK(microseconds(gpu, {.bytes = 40e6}) - launch == doctest::Approx(2 * near));
}

namespace {

Shape with_batch(const Shape& shape, std::int64_t batch) {
  Shape out{batch};
  for (const std::int64_t extent : shape) out.push_back(extent);
  return out;
}

std::vector<Tensor> training_step(const std::string& model, const std::string& optimizer,
                                  std::int64_t batch) {
  const nn::AnyModule net = models::create(model);
  optim::OptimizerOptions options;
  if (optimizer == "sgd") options.momentum = 0.9, options.weight_decay = 5e-4;
  const auto updates = optim::create(optimizer, net, options);
  const Tensor x = leaf(with_batch(models::info(model).input, batch));
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch)), {batch});
  const Tensor loss = cross_entropy(net(x), y);
  std::vector<Tensor> roots = updates->updates(grad(loss, updates->parameters()));
  roots.insert(roots.begin(), loss);
  return roots;
}

}  // namespace

// A measurement is found by the region's epilogue. A change of how a gradient is written therefore
// needs new keys for the old rows.
TEST_CASE("GPU model: the table of the H200 has every product of the networks it was made with") {
  const TuneTable table =
      TuneTable::parse(io::read_file("src/cuda/tuned/nvidia_h200.tune"), nullptr);
  const ShapesOnly shapes;
  int products = 0;
  for (const auto& [model, batch] : {std::tuple("lenet5", 64),
                                     {"keras_cnn", 128},
                                     {"fcn_r", 1024},
                                     {"mlp:26752-2048-2048-2048-26752", 64}})
    for (const Precision precision : {Precision::Fp32, Precision::Tf32}) {
      const PrecisionScope scope(precision);
      const auto program = planned(training_step(model, "sgd", batch));
      for (const Step& step : program->steps) {
        if (step.region.kind != RegionKind::Contraction) continue;
        ++products;
        const std::string key = tune_key("NVIDIA H200", step.region, program->values);
        INFO(key);
        CHECK(table.find(key) != nullptr);
      }
    }
  CHECK(products > 80);
}

// Without a table the order of estimates decides. The H200's table holds measurements: the
// estimates must choose its winner, or an engine that was measured within an eighth of it.
TEST_CASE("GPU model: estimates order the engines as an H200 measured them") {
  const TuneTable table =
      TuneTable::parse(io::read_file("src/cuda/tuned/nvidia_h200.tune"), nullptr);
  cuda::Target target;
  target.cublaslt = target.cudnn = true;
  const auto engines = cuda::engines(target);
  std::set<std::string> seen;
  int rows = 0, right = 0;
  std::string wrong;
  for (const auto& [model, optimizer, batch] :
       {std::tuple("lenet5", "sgd", 64), {"keras_cnn", "adam", 128}, {"fcn_r", "sgd", 1024}})
    for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16}) {
      const PrecisionScope scope(precision);
      const auto program = planned(training_step(model, optimizer, batch));
      for (const Step& step : program->steps) {
        if (step.region.kind != RegionKind::Contraction) continue;
        const std::string key = tune_key("NVIDIA H200", step.region, program->values);
        const TuneChoice* measured = table.find(key);
        if (measured == nullptr || !seen.insert(key).second) continue;
        const std::string chosen = preferred(engines, step.region, program->values)->name();
        // An engine newer than the row is skipped.
        if (measured->rivals.find(chosen) == std::string::npos) continue;
        const bool close = measured->next.starts_with(chosen) &&
                           measured->next_microseconds < 1.125 * measured->microseconds;
        ++rows;
        if (chosen == measured->engine || close)
          ++right;
        else
          wrong += cat("\n", key, ": ", chosen, ", not ", measured->engine);
      }
    }
  CAPTURE(wrong);
  CHECK(rows >= 60);
  CHECK(right * 100 >= rows * 95);
}
