// Error messages when the driver, the compiler or the GPU fails. The emulated driver fails on
// request. Decisions that are made once per process are tested in child processes.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>

#include "base/system/env.h"
#include "cuda/cuda.h"
#include "cuda/device/gpu.h"

using namespace tenon;
using namespace tenon::cuda;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool emulated() {
  if (contains(env_text("TENON_CUDA_DRIVER"), "fake")) return true;
  MESSAGE("skipped: needs the emulated driver (run by ctest)");
  return false;
}

// The output of a process with these settings.
std::string report(const std::string& settings) {
  const std::string command = settings +
                              " /proc/$PPID/exe --no-skip --no-intro --no-version "
                              "--test-case='driver: report' 2>&1";
  std::FILE* child = popen(command.c_str(), "r");
  REQUIRE(child != nullptr);
  std::string text;
  char piece[4096];
  for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof piece, child)) > 0;)
    text.append(piece, got);
  pclose(child);
  return text;
}

// Makes call number `call` of one of the driver's functions from now on fail.
struct Failure {
  explicit Failure(const std::string& what) { setenv("TENON_FAKE_CUDA_FAIL", what.c_str(), 1); }
  ~Failure() { unsetenv("TENON_FAKE_CUDA_FAIL"); }
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
};

}  // namespace

// Run in children only.
TEST_CASE("driver: report" * doctest::skip()) {
  std::printf("GPUs: %d\nwhy none: %s\n", gpu_count(), why_no_gpu().c_str());
  for (const LibraryFact& fact : facts().libraries)
    std::printf("%s: %s\n", fact.name.c_str(), fact.version.c_str());
  try {
    target_of(0);
  } catch (const DeviceError& error) {
    std::printf("refused: %s\n", error.what());
  }
}

TEST_CASE("driver: a message for what is missing or too old") {
  if (!emulated()) return;
  const std::string old_driver = report("TENON_FAKE_CUDA_DRIVER=11080");
  CHECK(contains(old_driver, "GPUs: 0"));
  CHECK(contains(old_driver, "serves CUDA 11.8"));
  CHECK(contains(old_driver, "needs 12.0"));
  CHECK(contains(old_driver, "refused: "));

  const std::string old_gpu = report("TENON_FAKE_CUDA_CAPABILITY=75");
  CHECK(contains(old_gpu, "GPUs: 0"));
  CHECK(contains(old_gpu, "(7.5)"));
  CHECK(contains(old_gpu, "8.0 (Ampere)"));

  const std::string none = report("TENON_FAKE_CUDA_GPUS=0");
  CHECK(contains(none, "GPUs: 0"));
  CHECK(contains(none, "finds no GPU"));
  CHECK(contains(none, "CUDA_VISIBLE_DEVICES"));

  const std::string no_driver = report("TENON_CUDA_DRIVER=/none/libcuda.so.1");
  CHECK(contains(no_driver, "no NVIDIA driver can be loaded"));

  const std::string no_compiler = report("TENON_NVRTC=off");
  CHECK(contains(no_compiler, "GPUs: 0"));
  CHECK(contains(no_compiler, "NVRTC is switched off"));
  CHECK(contains(no_compiler, "TENON_NVRTC"));
  CHECK(contains(no_compiler, "--device cpu"));
  const std::string lost_compiler = report("TENON_NVRTC=/none/libnvrtc.so");
  CHECK(contains(lost_compiler, "/none/libnvrtc.so"));
  CHECK(contains(lost_compiler, "nvidia-cuda-nvrtc"));

  const std::string one = report("TENON_FAKE_CUDA_GPUS=1 TENON_CUBLASLT=off TENON_CUDNN=off");
  CHECK(contains(one, "GPUs: 1"));
  CHECK(contains(one, "cuBLASLt: TENON_CUBLASLT is 'off'"));
}

TEST_CASE("GPU memory: a GPU that is full is trimmed before the request is refused") {
  if (!emulated() || gpu_count() == 0) return;
  DeviceMemory& gpu = memory();
  gpu.trim(0);
  void* kept = gpu.allocate(3 << 20, 0);
  gpu.release(kept, 3 << 20, 0);  // cached
  const std::int64_t before = gpu.stats(0).cached;
  CHECK(before >= (3 << 20));
  {
    const Failure full("cuMemAlloc_v2:1:2");
    void* memory_block = gpu.allocate(32 << 20, 0);  // the second try gets it
    CHECK(memory_block != nullptr);
    CHECK(gpu.stats(0).cached < before);
    gpu.release(memory_block, 32 << 20, 0);
  }
  {
    const Failure broken("cuMemAlloc_v2:1:719");
    CHECK_THROWS_AS(gpu.allocate(64 << 20, 0), DeviceError);
  }
  gpu.trim(0);
}
