// Which vector instructions the kernels may use, found at run time (CPU and operating system both),
// and what the CPU is.
//
// Kernels ask best_isa() when a call begins; results of different instruction sets differ in
// rounding, so a program that wants the same bits everywhere sets a limit. No kernel is compiled
// for the building machine alone.
#pragma once

#include <string>
#include <vector>

namespace tenon::cpu {

/// Ordered by what they include on x86: each level has everything before it. Neon stands for
/// aarch64's vectors.
enum class Isa { Base, Avx2, Avx512, Avx512Bf16, Amx, Neon };

/// The best instruction set that this CPU, this operating system and the limit allow.
Isa best_isa();
/// Caps best_isa() (tests and comparisons). Set it while no kernel runs: workspace sizes depend on
/// it.
void set_isa_limit(Isa limit);
/// The best instruction set that the CPU and the operating system allow, whatever the limit.
Isa hardware_isa();
const char* name(Isa isa);

/// Whether AVX-512's bfloat16 products (VDPBF16PS) are faster here than float32 multiply-adds on
/// rounded operands: twice as fast on AMD's cores, half as fast on Intel's, which have AMX for the
/// purpose.
bool fast_bf16_products();
/// Overrides it (tests): both ways give results of the same accuracy, not the same bits.
void set_fast_bf16_products(bool fast);

struct CpuInfo {
  std::string model;
  std::vector<std::string>
      features;  ///< Those that Tenon knows how to use: "avx2", "avx512bf16", …
};
CpuInfo cpu_info();

}  // namespace tenon::cpu
