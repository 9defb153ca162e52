// The functions of cuda.h about GPUs and their streams.
#include <array>
#include <atomic>

#include <tenon/error.h>

#include "cuda/cuda.h"
#include "cuda/device/gpu.h"
#include "cuda/device/opening/driver.h"
#include "cuda/jit/workers.h"

namespace tenon::cuda {
namespace {

// Opening a GPU takes some tenths of a second, during which the caller builds and plans.
void open_early(int index) {
  static std::array<std::atomic<bool>, 64> begun;
  if (index >= static_cast<int>(begun.size()) ||
      begun[static_cast<std::size_t>(index)].exchange(true))
    return;
  run_on_worker([index] {
    try {
      context_of(index);
    } catch (const Error&) {  // the first real use tries again and reports the error
    }
  });
}

}  // namespace

int gpu_count() noexcept { return usable_gpus(); }

Target target_of(int index) {
  const Target& target = gpu_at(index).target;
  open_early(index);
  return target;
}

std::string model_of(int index) { return gpu_at(index).name; }

void* stream(int index) { return context_of(index).work; }

void synchronize(int index) {
  if (!is_open(index)) return;  // nothing was queued
  const Context& context = context_of(index);
  check(driver().cuStreamSynchronize(context.work), "waiting for ", context.title());
}

void synchronize() {
  if (!gpus_listed()) return;  // so nothing was queued
  for (int index = 0; index < usable_gpus(); ++index) synchronize(index);
}

}  // namespace tenon::cuda
