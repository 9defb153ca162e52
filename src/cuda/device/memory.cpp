// DeviceMemory for CUDA GPUs: one pool and one staging ring per GPU, created on first use.
#include "cuda/device/memory.h"

#include <memory>
#include <mutex>
#include <vector>

#include <tenon/error.h>

#include "base/system/env.h"
#include "cuda/cuda.h"
#include "cuda/device/opening/driver.h"
#include "cuda/device/outside.h"
#include "cuda/device/pool.h"
#include "cuda/device/staging.h"

namespace tenon::cuda {
namespace {

struct GpuMemory {
  explicit GpuMemory(const Context& c)
      : context(c),
        pool({[this](std::size_t bytes) { return take(bytes); },
              [this](void* memory) { give(memory); }},
             env_flag("TENON_CUDA_POOL", true)),
        staging(c, c.work),
        copies(c, c.copies) {}

  void* take(std::size_t bytes) const {
    const OutsideCapture outside;
    CUdeviceptr memory = 0;
    const CUresult result = driver().cuMemAlloc(&memory, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    check(result, "allocating ", size_text(static_cast<std::int64_t>(bytes)), " on ",
          context.title());
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
    return reinterpret_cast<void*>(memory);
  }
  // At the end of the process the driver may be unloaded before the last buffer is freed; nothing
  // is lost then.
  void give(void* memory) const {
    const OutsideCapture outside;
    loaded_driver().table.cuMemFree(address(memory));
  }

  const Context& context;
  Pool pool;
  std::mutex staging_mutex, copies_mutex;
  Staging staging, copies;
};

struct PoolSlot {
  std::once_flag once;
  std::unique_ptr<GpuMemory> memory;
};

// Never destroyed: tensors in static storage may outlive it.
std::vector<PoolSlot>& slots() {
  static std::vector<PoolSlot>* const instance =
      new std::vector<PoolSlot>(static_cast<std::size_t>(usable_gpus()));
  return *instance;
}

GpuMemory& memory_of(int index) {
  const Context& context = context_of(index);  // refuses a GPU that is not there
  PoolSlot& slot = slots()[static_cast<std::size_t>(index)];
  std::call_once(slot.once, [&] { slot.memory = std::make_unique<GpuMemory>(context); });
  return *slot.memory;
}

[[noreturn]] void refuse(GpuMemory& gpu, std::size_t bytes) {
  const PoolStats stats = gpu.pool.stats();
  std::size_t available = 0, total = 0;
  driver().cuMemGetInfo(&available, &total);
  const std::int64_t limit = gpu.pool.limit();
  throw MemoryError(cat(gpu.context.title(), " has no room for ",
                        size_text(static_cast<std::int64_t>(bytes)), ": ", size_text(stats.in_use),
                        " are in use and ", size_text(stats.cached), " cached by this process",
                        limit != 0 ? cat(", which may take ", size_text(limit)) : "",
                        "; the GPU has ", size_text(static_cast<std::int64_t>(total)), " (",
                        size_text(static_cast<std::int64_t>(available)),
                        " free): use a smaller batch, a lower precision or a smaller network"));
}

class CudaMemory final : public DeviceMemory {
 public:
  void* allocate(std::size_t bytes, int index) override {
    GpuMemory& gpu = memory_of(index);
    void* memory = gpu.pool.allocate(bytes);
    if (memory == nullptr) refuse(gpu, bytes);
    return memory;
  }

  void release(void* memory, std::size_t bytes, int index) noexcept override {
    // Does not call the driver if the block is kept: the last buffers may be freed after the
    // driver's end.
    slots()[static_cast<std::size_t>(index)].memory->pool.release(memory, bytes);
  }

  void to_host(void* to, const void* from, std::size_t bytes, int index) override {
    GpuMemory& gpu = memory_of(index);
    {
      const std::lock_guard lock(gpu.staging_mutex);
      gpu.staging.to_host(to, from, bytes);
    }
    throw_outside(index);
  }

  void from_host(void* to, const void* from, std::size_t bytes, int index) override {
    GpuMemory& gpu = memory_of(index);
    const std::lock_guard lock(gpu.staging_mutex);
    gpu.staging.to_gpu(to, from, bytes);
  }

  void copy(void* to, int to_index, const void* from, int from_index, std::size_t bytes) override;

  PoolStats stats(int index) override { return memory_of(index).pool.stats(); }

  void trim(int index) override {
    GpuMemory& gpu = memory_of(index);
    check(driver().cuStreamSynchronize(gpu.context.work), "waiting for ", gpu.context.title());
    gpu.pool.trim();
  }

  void set_limit(std::int64_t bytes, int index) override { memory_of(index).pool.set_limit(bytes); }
};

// Copies between GPUs. The copy waits for the source's work so far. The source's later work waits
// for the copy, because it may overwrite the bytes.
void copy_between(const Context& to, void* target, const Context& from, const void* source,
                  std::size_t bytes) {
  const Driver& api = driver();
  check(api.cuCtxSetCurrent(from.context), "choosing ", from.title());
  const Event ready(from);
  check(api.cuEventRecord(ready.get(), from.work), "recording an event on ", from.title());
  check(api.cuCtxSetCurrent(to.context), "choosing ", to.title());
  const Event done(to);
  check(api.cuStreamWaitEvent(to.work, ready.get(), 0), "waiting for ", from.title());
  check(api.cuMemcpyPeerAsync(address(target), to.context, address(source), from.context, bytes,
                              to.work),
        "copying ", bytes, " bytes from ", from.title(), " to ", to.title());
  check(api.cuEventRecord(done.get(), to.work), "recording an event on ", to.title());
  check(api.cuCtxSetCurrent(from.context), "choosing ", from.title());
  check(api.cuStreamWaitEvent(from.work, done.get(), 0), "waiting for ", to.title());
}

void CudaMemory::copy(void* to, int to_index, const void* from, int from_index, std::size_t bytes) {
  if (bytes == 0) return;
  const Context& source = context_of(from_index);
  const Context& target = context_of(to_index);
  if (to_index != from_index) return copy_between(target, to, source, from, bytes);
  check(driver().cuMemcpyDtoDAsync(address(to), address(from), bytes, target.work), "copying ",
        bytes, " bytes on ", target.title());
}

}  // namespace

DeviceMemory& memory() {
  static CudaMemory* const instance = new CudaMemory;
  return *instance;
}

Event copy_async(void* to, const void* from, std::size_t bytes, int index) {
  GpuMemory& gpu = memory_of(index);
  const Context& context = gpu.context;
  const Driver& api = driver();
  const Event before(context);
  check(api.cuEventRecord(before.get(), context.work), "recording an event on ", context.title());
  const std::lock_guard lock(gpu.copies_mutex);
  check(api.cuStreamWaitEvent(context.copies, before.get(), 0), "waiting for ", context.title());
  gpu.copies.to_gpu(to, from, bytes);
  Event done(context);
  check(api.cuEventRecord(done.get(), context.copies), "recording an event on ", context.title());
  return done;
}

void work_after(const Event& event, int index) {
  const Context& context = context_of(index);
  check(driver().cuStreamWaitEvent(context.work, event.get(), 0), "waiting for a copy on ",
        context.title());
}

}  // namespace tenon::cuda
