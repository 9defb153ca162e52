// Shared by the tests of the CPU kernels: the instruction sets to test, a scoped number of threads,
// and workspace that reveals reads of unwritten memory.
#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/kernels/isa.h"

namespace tenon::cpu {

// An instruction set and, if it multiplies bfloat16, whether that counts as fast.
struct Level {
  Isa isa;
  bool fast_products;
};

inline std::vector<Level> levels() {
  if (hardware_isa() == Isa::Neon) return {{Isa::Base, false}, {Isa::Neon, false}};
  std::vector<Level> all;
  for (const Isa isa : {Isa::Base, Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16, Isa::Amx}) {
    if (isa <= hardware_isa()) all.push_back({isa, false});
  }
  if (hardware_isa() >= Isa::Avx512Bf16) all.push_back({Isa::Avx512Bf16, true});
  return all;
}

struct Limit {
  bool before = fast_bf16_products();
  explicit Limit(Level level) {
    set_isa_limit(level.isa);
    set_fast_bf16_products(level.fast_products);
  }
  ~Limit() {
    set_isa_limit(Isa::Neon);
    set_fast_bf16_products(before);
  }
};

struct Threads {
  int before = num_threads();
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
};

struct Memory {
  void* data;
  explicit Memory(std::size_t bytes) : data(std::aligned_alloc(64, (bytes + 127) / 64 * 64)) {
    std::memset(data, 0xff,
                (bytes + 127) / 64 * 64);  // NaN, so that reads of unwritten memory show
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

}  // namespace tenon::cpu
