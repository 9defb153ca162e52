// Loading the driver, the pool of GPU memory, and GPU memory through whatever GPU there is (the
// emulated one under ctest).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>

#include "cuda/cuda.h"
#include "cuda/device/driver.h"
#include "cuda/device/gpu.h"
#include "cuda/device/memory.h"
#include "cuda/device/pool.h"
#include "cuda/device/staging.h"

using namespace tenon;
using namespace tenon::cuda;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A GPU with `room` bytes for the pool, which records its allocations.
struct FakeGpu {
  explicit FakeGpu(std::size_t bytes) : room(bytes) {}
  RawMemory raw() {
    return {[this](std::size_t bytes) -> void* {
              if (bytes > room) return nullptr;
              room -= bytes;
              void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
              taken[memory] = bytes;
              return memory;
            },
            [this](void* memory) {
              room += taken.at(memory);
              taken.erase(memory);
              std::free(memory);
            }};
  }
  std::size_t room;
  std::map<void*, std::size_t> taken;
};

bool no_gpu() {
  if (gpu_count() > 0) return false;
  MESSAGE("skipped: " << why_no_gpu());
  return true;
}

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine());
  return bytes;
}

}  // namespace

TEST_CASE("driver: a message for a driver that is missing, switched off or another library") {
  const LoadedDriver missing = load_driver("/no/such/libcuda.so.1");
  CHECK(contains(missing.problem, "no NVIDIA driver can be loaded"));
  CHECK(contains(missing.problem, "/no/such/libcuda.so.1"));
  CHECK(contains(missing.problem, "--device cpu"));
  CHECK(contains(load_driver("off").problem, "switched off"));
  // A library that is not a driver.
  const LoadedDriver foreign = load_driver("libm.so.6");
  CHECK(contains(foreign.problem, "lacks cuInit"));
}

TEST_CASE("driver: errors carry name, text, what was done and what to do") {
  CHECK_NOTHROW(check(CUDA_SUCCESS, "anything"));
  try {
    check(CUDA_ERROR_ILLEGAL_ADDRESS, "launching ", "softmax", " on cuda:", 1);
    FAIL("no error");
  } catch (const DeviceError& error) {
    CHECK(contains(error.what(), "launching softmax on cuda:1"));
    CHECK(contains(error.what(), "compute-sanitizer"));
  }
  CHECK_THROWS_AS(check(CUDA_ERROR_OUT_OF_MEMORY, "allocating"), MemoryError);
}

TEST_CASE("driver: a machine without a GPU says why") {
  if (gpu_count() > 0) {
    CHECK(why_no_gpu().empty());
    CHECK_THROWS_AS(target_of(gpu_count()), DeviceError);
    CHECK_THROWS_AS(target_of(-1), DeviceError);
    return;
  }
  CHECK(!why_no_gpu().empty());
  CHECK_THROWS_AS(target_of(0), DeviceError);
  CHECK_THROWS_AS(stream(0), DeviceError);
  CHECK(facts().why_none == why_no_gpu());
}

TEST_CASE("pool: sizes, reuse and statistics") {
  FakeGpu gpu(std::size_t{64} << 20);
  {
    Pool pool(gpu.raw());
    CHECK(Pool::rounded(1) == 256);
    CHECK(Pool::rounded(257) == 512);
    CHECK(Pool::rounded(700) == 768);
    CHECK(Pool::rounded(Pool::kLargestSmall) == Pool::kLargestSmall);
    CHECK(Pool::rounded(Pool::kLargestSmall + 1) == Pool::kSlab);
    void* first = pool.allocate(1000);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 256 == 0);
    CHECK(pool.stats().system_allocations == 1);
    std::vector<void*> more;
    more.reserve(1000);
    for (int i = 0; i < 1000; ++i) more.push_back(pool.allocate(1000));
    CHECK(pool.stats().system_allocations == 1);  // one slab of 2048 blocks
    CHECK(pool.stats().in_use == 1001 * 1024);
    for (void* block : more) pool.release(block, 1000);
    CHECK(pool.stats().in_use == 1024);
    CHECK(pool.stats().peak == 1001 * 1024);
    void* large = pool.allocate(5 << 20);
    pool.release(large, 5 << 20);
    CHECK(pool.allocate(6 << 20) == large);  // the same 6 MiB
    pool.release(large, 6 << 20);
    pool.trim();
    CHECK(pool.stats().cached == (2 << 20) - 1024);  // the slab that is in use stays
    CHECK(gpu.taken.size() == 1);
    pool.release(first, 1000);
    pool.trim();
    CHECK(gpu.taken.empty());
    CHECK(pool.stats().cached == 0);
    CHECK(pool.stats().in_use == 0);
  }
}

TEST_CASE("pool: trims before it fails, and respects the limit") {
  FakeGpu gpu(std::size_t{16} << 20);
  Pool pool(gpu.raw());
  void* a = pool.allocate(8 << 20);
  pool.release(a, 8 << 20);
  void* b = pool.allocate(12 << 20);  // only when the 8 MiB go back first
  CHECK(b != nullptr);
  CHECK(pool.allocate(8 << 20) == nullptr);
  CHECK(pool.allocate(100) != nullptr);
  pool.release(b, 12 << 20);
  pool.set_limit(10 << 20);
  CHECK(pool.allocate(12 << 20) == nullptr);
  CHECK(pool.allocate(4 << 20) != nullptr);
  CHECK(pool.stats().in_use + pool.stats().cached <= (10 << 20));
}

TEST_CASE("pool: without caching it allocates and frees exactly what is requested") {
  FakeGpu gpu(std::size_t{1} << 20);
  Pool pool(gpu.raw(), false);
  void* block = pool.allocate(1000);
  CHECK(gpu.taken.at(block) == 1000);
  CHECK(pool.stats().in_use == 1000);
  CHECK(pool.allocate(std::size_t{1} << 20) == nullptr);
  pool.release(block, 1000);
  CHECK(gpu.taken.empty());
  CHECK(pool.stats().system_releases == 1);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().cached == 0);
}

TEST_CASE("pool: random use never hands out memory twice") {
  FakeGpu gpu(std::size_t{256} << 20);
  Pool pool(gpu.raw());
  std::mt19937 engine(7);
  struct Block {
    unsigned char* memory;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() < 40 && engine() % 2 == 0) {
      const std::size_t bytes = 1 + engine() % (std::size_t{1} << (engine() % 22));
      auto* memory = static_cast<unsigned char*>(pool.allocate(bytes));
      REQUIRE(memory != nullptr);
      const auto mark = static_cast<unsigned char>(engine());
      memory[0] = memory[bytes - 1] = mark;
      live.push_back({memory, bytes, mark});
    } else if (!live.empty()) {
      const std::size_t at = engine() % live.size();
      CHECK(live[at].memory[0] == live[at].mark);
      CHECK(live[at].memory[live[at].bytes - 1] == live[at].mark);
      pool.release(live[at].memory, live[at].bytes);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (step % 500 == 499) pool.trim();
  }
  for (const Block& block : live) pool.release(block.memory, block.bytes);
  pool.trim();
  CHECK(gpu.taken.empty());
}

TEST_CASE("driver: readable sizes") {
  CHECK(size_text(12) == "12 bytes");
  CHECK(size_text(1536) == "1.5 KiB");
  CHECK(size_text(std::int64_t{3} << 30) == "3 GiB");
}

TEST_CASE("GPU memory: copies of every size return the same bytes") {
  if (no_gpu()) return;
  DeviceMemory& gpu = memory();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4096}, Staging::kSegment - 1,
        Staging::kSegment, Staging::kSegment + 1, 9 * Staging::kSegment + 17}) {
    CAPTURE(bytes);
    const std::vector<std::uint8_t> sent = random_bytes(bytes, static_cast<unsigned>(bytes));
    std::vector<std::uint8_t> back(bytes, 0xcd);
    const std::size_t room = std::max<std::size_t>(bytes, 1);
    void* a = gpu.allocate(room, 0);
    void* b = gpu.allocate(room, 0);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % 256 == 0);
    gpu.from_host(a, sent.data(), bytes, 0);
    gpu.copy(b, 0, a, 0, bytes);
    gpu.to_host(back.data(), b, bytes, 0);
    CHECK(back == sent);
    gpu.release(a, room, 0);
    gpu.release(b, room, 0);
  }
}

TEST_CASE("GPU memory: many small copies keep their order") {
  if (no_gpu()) return;
  DeviceMemory& gpu = memory();
  constexpr int kCount = 3000;
  void* block = gpu.allocate(sizeof(int), 0);
  void* all = gpu.allocate(kCount * sizeof(int), 0);
  for (int i = 0; i < kCount; ++i) {
    gpu.from_host(block, &i, sizeof i, 0);
    gpu.copy(static_cast<char*>(all) + sizeof(int) * static_cast<unsigned>(i), 0, block, 0,
             sizeof i);
  }
  std::vector<int> back(kCount, -1);
  gpu.to_host(back.data(), all, kCount * sizeof(int), 0);
  for (int i = 0; i < kCount; ++i) CHECK(back[static_cast<std::size_t>(i)] == i);
  gpu.release(block, sizeof(int), 0);
  gpu.release(all, kCount * sizeof(int), 0);
}

TEST_CASE("GPU memory: a copy beside the work completes before later work") {
  if (no_gpu()) return;
  DeviceMemory& gpu = memory();
  const std::vector<std::uint8_t> sent = random_bytes(5 << 20, 3);
  void* a = gpu.allocate(sent.size(), 0);
  const Event ready = copy_async(a, sent.data(), sent.size(), 0);
  work_after(ready, 0);
  std::vector<std::uint8_t> back(sent.size(), 0xcd);
  gpu.to_host(back.data(), a, back.size(), 0);
  CHECK(back == sent);
  gpu.release(a, sent.size(), 0);
  synchronize(0);
}

TEST_CASE("GPU memory: tensors move between GPUs") {
  if (no_gpu()) return;
  if (gpu_count() < 2) {
    MESSAGE("skipped: one GPU");
    return;
  }
  DeviceMemory& gpu = memory();
  const std::vector<std::uint8_t> sent = random_bytes(3 << 20, 5);
  void* a = gpu.allocate(sent.size(), 0);
  void* b = gpu.allocate(sent.size(), 1);
  gpu.from_host(a, sent.data(), sent.size(), 0);
  gpu.copy(b, 1, a, 0, sent.size());
  std::vector<std::uint8_t> back(sent.size(), 0xcd);
  gpu.to_host(back.data(), b, back.size(), 1);
  CHECK(back == sent);
  gpu.release(a, sent.size(), 0);
  gpu.release(b, sent.size(), 1);
}

TEST_CASE(
    "GPU memory: the error of a too large request names its size, the memory in use and the GPU") {
  if (no_gpu()) return;
  DeviceMemory& gpu = memory();
  void* held = gpu.allocate(3 << 20, 0);
  try {
    gpu.allocate(std::size_t{1} << 45, 0);
    FAIL("no error");
  } catch (const MemoryError& error) {
    CHECK(contains(error.what(), "32 TiB"));
    CHECK(contains(error.what(), "cuda:0 ("));
    CHECK(contains(error.what(), "in use"));
  }
  gpu.set_limit(8 << 20, 0);
  CHECK_THROWS_AS(gpu.allocate(64 << 20, 0), MemoryError);
  gpu.set_limit(0, 0);
  gpu.release(held, 3 << 20, 0);
  gpu.trim(0);
}

TEST_CASE("facts: libraries and GPUs are listed") {
  const Facts all = facts();
  REQUIRE(all.libraries.size() == 5);
  for (const LibraryFact& fact : all.libraries) CHECK(!fact.version.empty());
  CHECK(static_cast<int>(all.gpus.size()) == gpu_count());
  for (const GpuFact& fact : all.gpus) {
    CHECK(!fact.name.empty());
    CHECK(fact.target.arch >= 80);
    CHECK(fact.memory_free <= fact.memory_total);
  }
}
