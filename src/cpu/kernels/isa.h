// The vector instructions that kernels may use, found at run time (CPU and operating system), and
// the CPU itself.
//
// Kernels call best_isa() at the start of a call. Results of different instruction sets differ in
// rounding, so a user who needs the same bits on several machines sets TENON_ISA. No kernel is
// compiled for the build machine only.
#pragma once

#include <string>
#include <vector>

namespace tenon::cpu {

/// Ordered by inclusion on x86: each level includes all earlier ones. Neon is aarch64's instruction
/// set.
enum class Isa { Base, Avx2, Avx512, Avx512Bf16, Amx, Neon };

/// The best instruction set that this CPU, this operating system, the environment variable
/// TENON_ISA and the limit allow. Throws ValueError if TENON_ISA has no known name.
Isa best_isa();
/// Limits best_isa() (tests and comparisons). Do not call it while a kernel runs: workspace sizes
/// depend on it.
void set_isa_limit(Isa limit);
/// The best instruction set that the CPU and the operating system allow, without the limit.
Isa hardware_isa();
const char* name(Isa isa);

/// True if AVX-512's bfloat16 products (VDPBF16PS) are faster here than float32 multiply-adds on
/// rounded operands. They are twice as fast on AMD's cores and half as fast on Intel's, which have
/// AMX for bfloat16.
bool fast_bf16_products();
/// Overrides fast_bf16_products() (tests): both ways have the same accuracy, but not the same bits.
void set_fast_bf16_products(bool fast);

struct CpuInfo {
  std::string model;
  std::vector<std::string>
      features;  ///< Those that Tenon knows how to use: "avx2", "avx512bf16", …
};
CpuInfo cpu_info();

}  // namespace tenon::cpu
