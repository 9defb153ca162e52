// Kernels by source: one object for each source and GPU. A worker compiles and loads it, its
// holders launch it.
#include "cuda/jit/jit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/system/cache_file.h"
#include "cuda/device/gpu.h"
#include "cuda/device/opening/driver.h"
#include "cuda/jit/build.h"
#include "cuda/jit/workers.h"
#include "graph/element_code.h"

namespace tenon::cuda {
namespace {

// Shared memory that a block may use without an attribute.
constexpr std::uint32_t kPlainShared = 48 * 1024;
// Threads that wait for a kernel check at this interval whether the process ends. They stop waiting
// after one to two intervals.
constexpr std::chrono::seconds kExitCheck{1};

struct Counters {
  std::mutex mutex;
  JitStats stats;
};

Counters& counters() {
  static Counters* const instance = new Counters;
  return *instance;
}

void count(const Image& image) {
  Counters& all = counters();
  const std::lock_guard lock(all.mutex);
  switch (image.origin) {
    case Image::Origin::BuiltIn:
      ++all.stats.built_in;
      break;
    case Image::Origin::Disk:
      ++all.stats.from_disk;
      break;
    case Image::Origin::Compiler:
      ++all.stats.compiled;
      break;
  }
  all.stats.compile_ms += image.compile_ms;
  all.stats.longest_ms = std::max(all.stats.longest_ms, image.compile_ms);
}

std::atomic<bool> at_launch{false};

const KernelCache& disk() {
  static const KernelCache* const cache = new KernelCache(cache_folder_of("kernels"));
  return *cache;
}

// Kernels that wait for earlier kernels themselves. Never destroyed, because kernels stay loaded.
struct Awaiting {
  std::mutex mutex;
  std::set<const void*> functions;
};

Awaiting& awaiting() {
  static Awaiting* const instance = new Awaiting;
  return *instance;
}

class JitKernel final : public CompiledKernel, public std::enable_shared_from_this<JitKernel> {
 public:
  JitKernel(const Target& target, Source source) : target_(target), source_(std::move(source)) {}

  const Source& source() const override { return source_; }

  // The first call makes a worker find or compile the kernel.
  void start() const {
    std::call_once(started_, [this] {
      run_on_worker(
          [self = std::const_pointer_cast<JitKernel>(shared_from_this())] { self->find(); });
    });
  }
  void wait() const override {
    if (target_.ordinal < 0)
      throw DeviceError(cat("the kernel ", source_.entry,
                            " was made for no GPU: it can be printed, not compiled or launched"));
    if (!done_.load(std::memory_order_acquire)) {
      start();
      wait_until_done();
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  void launch(void* stream, Grid grid, Grid block, std::uint32_t shared_bytes,
              void* const* params) const override {
    wait();
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    const Context& context = context_of(target_.ordinal);
    if (shared_bytes + static_shared_ > kPlainShared) allow_shared();
    check(driver().cuLaunchKernel(function_, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                  shared_bytes, static_cast<CUstream>(stream),
                                  const_cast<void**>(params), nullptr),
          "launching ", source_.entry, " on ", context.title(), " with ", grid.x, " x ", grid.y,
          " x ", grid.z, " blocks of ", block.x * block.y * block.z, " threads and ", shared_bytes,
          " bytes of shared memory");
  }

  void launch_resident(void* stream, std::uint32_t blocks, std::uint32_t threads,
                       void* const* params) const override {
    wait();
    launch(stream, {std::min(blocks, resident_blocks(threads)), 1, 1}, {threads, 1, 1}, 0, params);
  }

 private:
  // On a worker.
  void find() noexcept {
    try {
      const Image image = find_image(source_, target_.arch, disk());
      if (image.bytes.empty())
        return compile_on_worker([self = shared_from_this()] { self->build(); }, source_.effort);
      take(image);
    } catch (...) {
      error_ = std::current_exception();
    }
    finish();
  }

  // On the whole GPU. Computed once: a kernel launched this way has one block size.
  std::uint32_t resident_blocks(std::uint32_t threads) const {
    std::call_once(resident_once_, [&] {
      int blocks = 0;
      check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_,
                                                                 static_cast<int>(threads), 0),
            "asking how many blocks of ", source_.entry, " a multiprocessor holds");
      resident_ = static_cast<std::uint32_t>(blocks * target_.multiprocessors);
    });
    return resident_;
  }

  // When the process ends, nothing is compiled any more. Threads that wait usually end with the
  // process. Threads that the exit handlers wait for get an error, and so does the thread that ends
  // the process.
  void wait_until_done() const {
    const auto is_done = [&] { return done_.load(std::memory_order_acquire); };
    std::unique_lock lock(mutex_);
    bool given_up = are_workers_stopped();
    while (!changed_.wait_for(lock, kExitCheck, is_done)) {
      if (given_up)
        throw DeviceError(cat("the kernel ", source_.entry,
                              " was not compiled before the end of the process began"));
      given_up = are_workers_stopped();
    }
  }

  void build() noexcept {
    try {
      take(compile_image(source_, target_.arch, disk()));
    } catch (...) {
      if (are_workers_stopped()) return;  // see wait_until_done
      error_ = std::current_exception();
    }
    finish();
  }

  void take(const Image& image) {
    count(image);
    load(image.bytes);
  }

  void finish() noexcept {
    {
      const std::lock_guard lock(mutex_);
      done_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
  }

  void load(const std::string& image) {
    const Context& context = context_of(target_.ordinal);
    const OutsideCapture outside;
    const Driver& api = driver();
    CUmodule module = nullptr;  // stays loaded to the end of the process
    check(api.cuModuleLoadData(&module, image.data()), "loading the kernel ", source_.entry, " on ",
          context.title());
    const CUresult found = api.cuModuleGetFunction(&function_, module, source_.entry.c_str());
    if (found != CUDA_SUCCESS && is_own())
      throw make_error<ValueError>(OpPlace{own_operations(source_.text), {}},
                                   ": its CUDA source defines no extern \"C\" __global__ function ",
                                   source_.entry);
    check(found, "finding ", source_.entry, " in its module");
    int bytes = 0;
    check(api.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function_),
          "asking for the shared memory of ", source_.entry);
    static_shared_ = static_cast<std::uint32_t>(bytes);
    if (is_own() || source_.text.find(kAwaits) == std::string::npos) return;
    const std::lock_guard lock(awaiting().mutex);
    awaiting().functions.insert(function_);
  }

  // Whether the whole kernel is an own one. It waits for no other kernel itself.
  bool is_own() const { return source_.text.starts_with(kOwnOperation); }

  // Once per kernel: allows all shared memory of the GPU, which costs no occupancy as long as it is
  // not used.
  void allow_shared() const {
    std::call_once(shared_once_, [&] {
      const OutsideCapture outside;
      check(driver().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(target_.shared_bytes - static_shared_)),
            "asking for more shared memory for ", source_.entry);
    });
  }

  const Target target_;
  const Source source_;
  CUfunction function_ = nullptr;
  std::uint32_t static_shared_ = 0;
  mutable std::once_flag started_, shared_once_, resident_once_;
  mutable std::uint32_t resident_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;
};

using Key = std::tuple<int, int, Digest>;  // GPU, architecture, source

struct Kernels {
  std::mutex mutex;
  std::map<Key, std::shared_ptr<JitKernel>> by_key;
};

// Never destroyed: programs in static storage may outlive it.
Kernels& kernels() {
  static Kernels* const instance = new Kernels;
  return *instance;
}

Key memory_key(const Target& target, const Source& source) {
  Digester digester;
  digester.add(source.entry);
  digester.add(source.text);
  return {target.ordinal, target.arch, digester.result()};
}

}  // namespace

std::shared_ptr<const CompiledKernel> compile(const Target& target, Source source) {
  Kernels& all = kernels();
  const Key key = memory_key(target, source);
  std::shared_ptr<JitKernel> kernel;
  {
    const std::lock_guard lock(all.mutex);
    std::shared_ptr<JitKernel>& slot = all.by_key[key];
    if (slot != nullptr) {
      const std::lock_guard stats_lock(counters().mutex);
      ++counters().stats.from_memory;
    } else {
      slot = std::make_shared<JitKernel>(target, std::move(source));
    }
    kernel = slot;
  }
  if (target.ordinal >= 0 && !at_launch) kernel->start();
  return kernel;
}

void compile_at_launch() { at_launch = true; }

bool awaits_kernels(const void* function) {
  Awaiting& all = awaiting();
  const std::lock_guard lock(all.mutex);
  return all.functions.count(function) != 0;
}

std::vector<Source> sources_for(int ordinal) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  std::vector<Source> sources;
  for (const auto& [key, kernel] : all.by_key)
    if (std::get<0>(key) == ordinal) sources.push_back(kernel->source());
  return sources;
}

JitStats jit_stats() {
  const std::lock_guard lock(counters().mutex);
  return counters().stats;
}

}  // namespace tenon::cuda
