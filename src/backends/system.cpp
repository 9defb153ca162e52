// Facts and measurements of the machine, from the operating system and from src/cpu.
//
// Everything here is for reports. A missing file of /proc yields zero; it is never an error.
#include <tenon/system.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <unistd.h>

#include "base/str.h"
#include "base/system/env.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "device/cpu_model.h"

namespace tenon {
namespace {

// The operating system's figure of memory available without swapping, in bytes; 0 if unknown.
std::int64_t meminfo(const char* key) {
  std::int64_t bytes = 0;
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  char line[256];
  while (bytes == 0 && std::fgets(line, sizeof line, file) != nullptr) {
    long long kib = 0;
    const std::size_t length = std::strlen(key);
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, ": %lld kB", &kib) == 1)
      bytes = kib * 1024;
  }
  std::fclose(file);
  return bytes;
}

// The number in a file of the control group; -1 for "max" (no limit) or a missing file.
std::int64_t group_value(const char* path) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return -1;
  long long value = -1;
  if (std::fscanf(file, "%lld", &value) != 1) value = -1;
  std::fclose(file);
  return value;
}

std::string build_text() {
#if defined(__clang__)
  const std::string compiler = cat("Clang ", __clang_major__, ".", __clang_minor__);
#else
  const std::string compiler = cat("GCC ", __GNUC__, ".", __GNUC_MINOR__);
#endif
#if defined(NDEBUG)
  const char* kind = "release";
#else
  const char* kind = "debug";
#endif
#if defined(__x86_64__)
  const char* arch = "x86-64";
#elif defined(__aarch64__)
  const char* arch = "aarch64";
#else
  const char* arch = "other architecture";
#endif
  return cat(compiler, ", ", kind, ", ", arch);
}

// Copies between two buffers far larger than any cache share, for several rounds; the fastest
// counts.
double measure_copy() {
  constexpr std::int64_t kChunk = std::int64_t{4} << 20;
  const std::int64_t room = std::max(kChunk, meminfo("MemAvailable") / 8);
  const std::int64_t chunks = std::max<std::int64_t>(1, std::min<std::int64_t>(48, room / kChunk));
  const auto bytes = static_cast<std::size_t>(chunks * kChunk);
  const std::unique_ptr<char[]> from(new (std::nothrow) char[bytes]),
      to(new (std::nothrow) char[bytes]);
  if (!from || !to) return 0;
  parallel_for(chunks, [&](std::int64_t i, int) {
    std::memset(from.get() + i * kChunk, 1, kChunk);
    std::memset(to.get() + i * kChunk, 2, kChunk);
  });
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(chunks, [&](std::int64_t i, int) {
      std::memcpy(to.get() + i * kChunk, from.get() + i * kChunk, kChunk);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds.count());
  }
  return best;
}

// The fastest of a few rounds: a busy neighbour can only make a round slower.
double measure_flops(bool bf16, int threads) {
  double best = 0;
  for (int round = 0; round < 4; ++round) best = std::max(best, cpu::peak_flops(bf16, threads));
  return best;
}

}  // namespace

const char* version() { return TENON_VERSION; }

SystemInfo system_info() {
  const cpu::Facts facts = cpu::facts();
  SystemInfo info;
  info.version = version();
  info.build = build_text();
  info.cpu = facts.model;
  info.cpus = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  info.cpus_allowed = available_cpus();
  info.features = facts.features;
  info.isa_available = facts.isa_available;
  info.isa = facts.isa;
  info.caches = facts.caches;
  info.caches_assumed = {kCpu.first_cache, kCpu.second_cache, kCpu.last_cache};
  info.memory_total = meminfo("MemTotal");
  info.memory_available = meminfo("MemAvailable");
  const std::int64_t limit = group_value("/sys/fs/cgroup/memory.max");
  if (limit > 0 && limit < info.memory_total) {
    const std::int64_t used =
        std::max<std::int64_t>(0, group_value("/sys/fs/cgroup/memory.current"));
    info.memory_total = limit;
    info.memory_available =
        std::min(info.memory_available, std::max<std::int64_t>(0, limit - used));
  }
  return info;
}

SystemSpeed measure_system(int threads) {
  SystemSpeed speed;
  speed.threads = threads > 0 ? threads : num_threads();
  const ThreadCount count(speed.threads);
  speed.fp32_flops = measure_flops(false, speed.threads);
  speed.bf16_flops = measure_flops(true, speed.threads);
  speed.copy_bytes = measure_copy();
  return speed;
}

std::string cache_folder() { return user_cache_folder(); }

}  // namespace tenon
