// Lists GPUs and opens them.
#include "cuda/device/gpu.h"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tenon/error.h>

#include "base/background.h"
#include "cuda/device/gpu_models.h"
#include "cuda/device/opening/driver.h"
#include "cuda/device/vendor_library.h"
#include "cuda/jit/build.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

constexpr int kOldestArch = 80;

struct Slot {
  Gpu gpu;
  std::once_flag once;
  Context context;
  std::atomic<bool> opened{false};
};

struct Gpus {
  std::vector<std::unique_ptr<Slot>> slots;
  std::string problem;
};

int attribute(const Driver& api, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(api.cuDeviceGetAttribute(&value, which, device), "asking a GPU for its properties");
  return value;
}

/// The GPU's model. The driver knows the facts that differ between GPUs of one name (also between
/// parts of a GPU).
GpuModel model_of(const Driver& api, const Gpu& gpu) {
  const std::optional<GpuModel> named = named_gpu(gpu.name);
  GpuModel model = named.value_or(gpu_of_arch(gpu.target.arch));
  model.multiprocessors = gpu.target.multiprocessors;
  model.cache_bytes = attribute(api, gpu.device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  if (named) return model;
  const auto property = [&](CUdevice_attribute which) {
    int value = 0;  // newer drivers may not report the attribute
    return api.cuDeviceGetAttribute(&value, which, gpu.device) == CUDA_SUCCESS ? value : 0;
  };
  if (const int khz = property(CU_DEVICE_ATTRIBUTE_CLOCK_RATE); khz > 0) model.clock = 1e3 * khz;
  const double bytes = 2.0 * property(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8,
               a_second = 1e3 * property(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  if (bytes * a_second > 0) model.memory = bytes * a_second;
  add_measured(gpu.name, model);
  return model;
}

Gpu describe(const Driver& api, int ordinal) {
  Gpu gpu;
  check(api.cuDeviceGet(&gpu.device, ordinal), "opening GPU ", ordinal);
  char name[256] = {};
  check(api.cuDeviceGetName(name, sizeof name - 1, gpu.device), "naming GPU ", ordinal);
  gpu.name = name;
  std::size_t bytes = 0;
  check(api.cuDeviceTotalMem(&bytes, gpu.device), "asking GPU ", ordinal, " for its memory");
  gpu.memory_total = static_cast<std::int64_t>(bytes);
  gpu.target.memory_bytes = gpu.memory_total;
  Target& target = gpu.target;
  target.arch = 10 * attribute(api, gpu.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                attribute(api, gpu.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  target.multiprocessors = attribute(api, gpu.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  target.shared_bytes =
      attribute(api, gpu.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  target.model = model_of(api, gpu);
  target.cublaslt = cublaslt_present();
  target.cudnn = cudnn_present();
  return gpu;
}

/// Bytes of kernel arguments. CUDA 12.1 raised the limit from 4,096 to 32,764; the compiler must
/// know the limit too.
int launch_bytes() {
  const bool driver_knows = loaded_driver().version >= 12010,
             compiler_knows = !nvrtc().problem.empty() ||
                              std::pair(nvrtc().major, nvrtc().minor) >= std::pair(12, 1);
  return driver_knows && compiler_knows ? 32764 : 4096;
}

void list_gpus(Gpus& gpus) {
  const Driver& api = driver();
  int count = 0;
  check(api.cuDeviceGetCount(&count), "counting GPUs");
  std::string old;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto slot = std::make_unique<Slot>();
    slot->gpu = describe(api, ordinal);
    const int arch = slot->gpu.target.arch;
    if (arch < kOldestArch) {
      old += cat(old.empty() ? "" : ", ", slot->gpu.name, " (", arch / 10, ".", arch % 10, ")");
      continue;
    }
    slot->gpu.index = slot->gpu.target.ordinal = static_cast<int>(gpus.slots.size());
    gpus.slots.push_back(std::move(slot));
  }
  if (!gpus.slots.empty()) return;
  gpus.problem =
      old.empty() ? std::string(
                        "the NVIDIA driver finds no GPU: check nvidia-smi, and that "
                        "CUDA_VISIBLE_DEVICES does not hide it")
                  : cat("no GPU is new enough: ", old,
                        "; compute capability 8.0 (Ampere) or newer is needed: use --device cpu");
}

std::atomic<bool> listed{false};

const Gpus& gpus() {
  static const Gpus* const instance = [] {
    auto* made = new Gpus;
    // Starting the driver and loading the compiler take some tenths of a second each.
    std::future<void> early;
    if (driver_present()) early = in_background(warm_compiler);
    try {
      list_gpus(*made);
      for (const auto& slot : made->slots) {
        Target& target = slot->gpu.target;
        target.launch_bytes = launch_bytes();
        if (!nvrtc().problem.empty()) target.model = gpu_compiled_for(target.arch);
      }
      if (made->problem.empty() && !nvrtc().problem.empty() && usable_store().empty())
        made->problem = cat(nvrtc().problem, "; kernels for ", made->slots.front()->gpu.name,
                            " are compiled with it: install a CUDA toolkit or the Python wheel "
                            "nvidia-cuda-nvrtc, or use --device cpu");
    } catch (const Error& error) {
      made->problem = error.what();
    }
    listed = true;
    return made;
  }();
  return *instance;
}

Slot& slot_of(int index) {
  const Gpus& all = gpus();
  if (!all.problem.empty()) throw DeviceError(cat("cuda:", index, ": ", all.problem));
  if (index < 0 || index >= static_cast<int>(all.slots.size()))
    throw DeviceError(cat("there is no GPU cuda:", index, ": this machine has ", all.slots.size(),
                          all.slots.size() == 1 ? " (cuda:0)" : ", counted from cuda:0"));
  return *all.slots[static_cast<std::size_t>(index)];
}

void open(Slot& slot) {
  const Driver& api = driver();
  Context& context = slot.context;
  context.gpu = &slot.gpu;
  check(api.cuDevicePrimaryCtxRetain(&context.context, slot.gpu.device), "opening ",
        context.title());
  check(api.cuCtxSetCurrent(context.context), "opening ", context.title());
  check(api.cuStreamCreate(&context.work, CU_STREAM_NON_BLOCKING), "making a stream on ",
        context.title());
  check(api.cuStreamCreate(&context.copies, CU_STREAM_NON_BLOCKING), "making a stream on ",
        context.title());
}

}  // namespace

std::string Context::title() const { return cat("cuda:", gpu->index, " (", gpu->name, ")"); }

int usable_gpus() noexcept {
  try {
    return why_no_gpu().empty() ? static_cast<int>(gpus().slots.size()) : 0;
  } catch (...) {  // out of memory while listing: treated as no GPU
    return 0;
  }
}

bool gpus_listed() noexcept { return listed; }

const std::string& why_no_gpu() { return gpus().problem; }

const Gpu& gpu_at(int index) { return slot_of(index).gpu; }

const Context& context_of(int index) {
  Slot& slot = slot_of(index);
  bool fresh = false;
  std::call_once(slot.once, [&] {
    open(slot);
    fresh = true;
    slot.opened = true;
  });
  if (!fresh)
    check(driver().cuCtxSetCurrent(slot.context.context), "choosing ", slot.context.title());
  return slot.context;
}

bool is_open(int index) { return slot_of(index).opened; }

OutsideCapture::OutsideCapture() noexcept {
  loaded_driver().table.cuThreadExchangeStreamCaptureMode(&mode_);
}
OutsideCapture::~OutsideCapture() {
  loaded_driver().table.cuThreadExchangeStreamCaptureMode(&mode_);
}

Event::Event(const Context& context) {
  check(driver().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "making an event on ",
        context.title());
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ != nullptr) loaded_driver().table.cuEventDestroy(event_);
}

}  // namespace tenon::cuda
