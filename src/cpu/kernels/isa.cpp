// Detects vector instructions: support by the CPU (CPUID) and by the operating system (XCR0,
// arch_prctl for AMX).
#include "cpu/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <tenon/error.h>

#include "base/str.h"
#include "base/system/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {
namespace {

std::atomic<int> g_limit{static_cast<int>(Isa::Neon)};
std::atomic<int> g_fast_products{-1};  // -1: not overridden; decided by the CPU's vendor

#if defined(__x86_64__)

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Leaf(unsigned leaf, unsigned sub) { __get_cpuid_count(leaf, sub, &a, &b, &c, &d); }
};

bool bit(unsigned word, int index) { return ((word >> index) & 1u) != 0; }

// Extended control register 0: the register files that the operating system saves.
std::uint64_t saved_state() {
  if (!bit(Leaf(1, 0).c, 27)) return 0;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

struct Features {
  bool fma, f16c, avx2, avx512, vnni, bf16, amx;
};

// The kernel saves AMX's 8 KiB of tiles only for processes that request it (Linux 5.16).
bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Features detect() {
  const Leaf one(1, 0), seven(7, 0), seven1(7, 1);
  const std::uint64_t saved = saved_state();
  const bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6,
             tiles = (saved & 0x60000) == 0x60000;
  Features f{};
  f.fma = ymm && bit(one.c, 12);
  f.f16c = ymm && bit(one.c, 29);
  f.avx2 = f.fma && f.f16c && bit(seven.b, 5) && bit(seven.b, 8) && bit(seven.b, 3);
  f.avx512 = f.avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) &&
             bit(seven.b, 30) && bit(seven.b, 31);
  f.vnni = f.avx512 && bit(seven.c, 11);
  f.bf16 = f.vnni && bit(seven1.a, 5);
  f.amx = f.bf16 && tiles && bit(seven.d, 22) && bit(seven.d, 24) && ask_for_tiles();
  return f;
}

const Features& features() {
  static const Features instance = detect();
  return instance;
}

Isa detect_isa() {
  const Features& f = features();
  if (f.amx) return Isa::Amx;
  if (f.bf16) return Isa::Avx512Bf16;
  if (f.avx512) return Isa::Avx512;
  return f.avx2 ? Isa::Avx2 : Isa::Base;
}

bool is_amd() {
  unsigned highest = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &highest, &b, &c, &d) != 0 && b == signature_AMD_ebx &&
         c == signature_AMD_ecx && d == signature_AMD_edx;
}

#elif defined(__aarch64__)
Isa detect_isa() { return Isa::Neon; }
bool is_amd() { return false; }
#else
Isa detect_isa() { return Isa::Base; }
bool is_amd() { return false; }
#endif

// The limit that the environment variable TENON_ISA sets.
Isa isa_of_environment() {
  const std::string wanted = env_text("TENON_ISA");
  if (wanted.empty()) return Isa::Neon;
  std::string names;
  for (int k = 0; k <= static_cast<int>(Isa::Neon); ++k) {
    const auto isa = static_cast<Isa>(k);
    if (wanted == name(isa)) return isa;
    names += cat(names.empty() ? "" : ", ", name(isa));
  }
  throw ValueError(cat("environment variable TENON_ISA is '", wanted, "'; give one of ", names));
}

}  // namespace

Isa hardware_isa() {
  static const Isa isa = detect_isa();
  return isa;
}

Isa best_isa() {
  static const Isa chosen = isa_of_environment();
  const Isa limit = std::min(chosen, static_cast<Isa>(g_limit.load(std::memory_order_relaxed)));
  const Isa isa = hardware_isa();
  if (isa == Isa::Neon) return limit == Isa::Base ? Isa::Base : Isa::Neon;
  return limit < isa ? limit : isa;
}

void set_isa_limit(Isa limit) { g_limit.store(static_cast<int>(limit), std::memory_order_relaxed); }

bool fast_bf16_products() {
  static const bool amd = is_amd();
  const int set = g_fast_products.load(std::memory_order_relaxed);
  return set < 0 ? amd : set != 0;
}

void set_fast_bf16_products(bool fast) {
  g_fast_products.store(fast ? 1 : 0, std::memory_order_relaxed);
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::Base:
      return "base";
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
    case Isa::Avx512Bf16:
      return "avx512bf16";
    case Isa::Amx:
      return "amx";
    case Isa::Neon:
      return "neon";
  }
  return "unknown";
}

CpuInfo cpu_info() {
  CpuInfo info;
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "r")) {
    char line[512];
    while (info.model.empty() && std::fgets(line, sizeof line, file) != nullptr) {
      const char* colon = std::strchr(line, ':');
      if (colon == nullptr || std::strncmp(line, "model name", 10) != 0) continue;
      info.model = colon + 1 + (colon[1] == ' ');
      while (!info.model.empty() && info.model.back() == '\n') info.model.pop_back();
    }
    std::fclose(file);
  }
#if defined(__x86_64__)
  const Features& f = features();
  const struct {
    bool present;
    const char* text;
  } rows[] = {{f.fma, "fma"},       {f.f16c, "f16c"},       {f.avx2, "avx2"},
              {f.avx512, "avx512"}, {f.vnni, "avx512vnni"}, {f.bf16, "avx512bf16"},
              {f.amx, "amx-bf16"}};
  for (const auto& row : rows) {
    if (row.present) info.features.emplace_back(row.text);
  }
#elif defined(__aarch64__)
  info.features.emplace_back("neon");
#endif
  if (info.model.empty()) info.model = "unknown CPU";
  return info;
}

}  // namespace tenon::cpu
