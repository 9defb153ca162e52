// CUDA GPUs as a backend: forwards every call to the file that implements it.
#include <limits>

#include <tenon/error.h>

#include "cuda/cuda.h"
#include "cuda/device/images.h"
#include "cuda/device/uploads.h"
#include "cuda/device/vendor_library.h"
#include "device/backend.h"

namespace tenon::cuda {
namespace {

class GpuTrials final : public Trials {
 public:
  void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed, double scale,
                   int index) override {
    cuda::fill_random(data, dtype, count, seed, scale, index);
  }
  void poison(void* data, std::size_t bytes, int index) override {
    cuda::poison(data, bytes, index);
  }
  Difference difference(const void* expected, const void* got, DType dtype, std::int64_t count,
                        int index) override {
    return cuda::difference(expected, got, dtype, count, index);
  }
  std::vector<std::string_view> measured_choices() override { return cuda::measured_choices(); }
};

class GpuBackend final : public Backend {
 public:
  Device::Kind kind() const override { return Device::Kind::Cuda; }
  const char* name() const override { return "cuda"; }
  DeviceTraits traits() const override {
    static const bool has_cudnn = cudnn_present(), has_cublaslt = cublaslt_present();
    return {.queues_calls = true,
            .host_sees_values = false,
            .launches_kernels = true,
            .aligns_loop_rows = true,
            .stores_16_bits = true,
            .rewrites_convolutions = true,
            .has_response_norm = true,
            .overwrites_inputs = true,
            .overlaps_steps = true,
            .rounds_operands = true,
            .convolves_channels_last = has_cudnn,
            .has_product_library = has_cublaslt,
            .recompute = {.most_cost = std::numeric_limits<std::int64_t>::max(), .is_cheap = true},
            .attention = {.largest_size = 128,
                          .size_step = 8,
                          .most_heads = 65535,
                          .generates_dropout = true},
            .longest_row = 65536};
  }
  void open(int index) override { target_of(index); }
  DeviceFacts facts(int index) override {
    const Target target = target_of(index);
    return {model_of(index), target.memory_bytes, target.model};
  }
  DeviceMemory* memory() override { return &cuda::memory(); }

  std::span<const Engine* const> engines(int index, bool reference) override {
    if (reference)
      throw NotSupported("the reference engine runs on the CPU: use set_engine(\"fast\") on GPUs");
    return cuda::engines(target_of(index));
  }

  void* stream(int index) override { return cuda::stream(index); }
  void synchronize() override { cuda::synchronize(); }
  void run_once(const Program& program, std::byte* const* values, std::byte* arena) override {
    cuda::run_once(program, values, arena);
  }
  std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program) override {
    return cuda::make_replay(std::move(program));
  }
  double measure(const Kernel& kernel, const Binding& binding, int index, int repeats) override {
    return cuda::measure(kernel, binding, index, repeats);
  }
  Trials* trials() override { return &trials_; }
  std::unique_ptr<Uploads> make_uploads(int slots, std::size_t bytes, int index) override {
    return cuda::make_uploads(slots, bytes, index);
  }
  ImageDecoder image_decoder(int index) override { return cuda::image_decoder(index); }
  std::unique_ptr<IdleClock> make_idle_clock(int index) override {
    return cuda::make_idle_clock(index);
  }

 private:
  GpuTrials trials_;
};

}  // namespace

Backend& backend() {
  static GpuBackend* const instance = new GpuBackend;  // tensors in static storage outlive it
  return *instance;
}

}  // namespace tenon::cuda
