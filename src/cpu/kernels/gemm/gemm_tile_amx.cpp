// Block tiles for AMX: 32 x 32 results from bfloat16 pairs in four accumulator registers of 16 x
// 16.
//
// A product of two registers takes 16 cycles, and a load whose rows are whole cache lines takes 8.
// Two halves of A by two halves of B therefore keep the multipliers busy from the L1 cache. The
// rest of the kernel set is AVX-512's.
#include <immintrin.h>

#include "cpu/kernels/gemm/gemm_tile.h"

namespace tenon::cpu {
namespace {

// Registers 0 to 3 hold sums (16 x 16), 4 and 5 the halves of A (16 rows of words), 6 and 7 the
// halves of B (a row per word).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

struct TileConfigs {
  TileConfig of_words[kBlockWords + 1];
  constexpr TileConfigs() {
    for (int words = 1; words <= kBlockWords; ++words) {
      for (int i = 0; i < 8; ++i) {
        const bool is_a = i == 4 || i == 5, is_b = i >= 6;
        of_words[words].row_bytes[i] = static_cast<std::uint16_t>(is_a ? 4 * words : 64);
        of_words[words].rows[i] = static_cast<std::uint8_t>(is_b ? words : kBlockHalf);
      }
    }
  }
};

// In static memory: GCC's intrinsic declares to the compiler that only the first word is read.
constexpr TileConfigs kConfigs;

void begin_tiles(int words) { _tile_loadconfig(&kConfigs.of_words[words]); }

void end_tiles() { _tile_release(); }

// Halves of 16 rows and columns: only halves with results are multiplied.
template <bool TwoA, bool TwoB>
void multiply(const BlockArgs& t) {
  const float* a = t.a;
  const float* b = t.b;
  const std::int64_t a_bytes = 4 * t.a_row, b_bytes = 4 * t.b_row, a_half = kBlockHalf * t.a_row;
  for (std::int64_t step = 0; step < t.steps; ++step) {
    const float* pa = t.a_table != nullptr ? a + t.a_table[step] : a;
    const float* pb = t.b_table != nullptr ? b + t.b_table[step] : b;
    _tile_loadd(4, pa, a_bytes);
    _tile_loadd(6, pb, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (TwoB) {
      _tile_loadd(7, pb + kBlockHalf, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (TwoA) {
      _tile_loadd(5, pa + a_half, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (TwoB) _tile_dpbf16ps(3, 5, 7);
    }
    a += t.a_step;
    b += t.b_step;
  }
}

void store_all(float* c, std::int64_t ldc) {
  const std::int64_t bytes = ldc * 4;
  _tile_stored(0, c, bytes);
  _tile_stored(1, c + kBlockHalf, bytes);
  _tile_stored(2, c + kBlockHalf * ldc, bytes);
  _tile_stored(3, c + kBlockHalf * ldc + kBlockHalf, bytes);
}

void zero_all() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

void amx_tile(const BlockArgs& t) {
  const bool whole = t.rows == kBlockEdge && t.cols == kBlockEdge;
  if (whole && t.accumulate) {
    const std::int64_t bytes = t.ldc * 4;
    _tile_loadd(0, t.c, bytes);
    _tile_loadd(1, t.c + kBlockHalf, bytes);
    _tile_loadd(2, t.c + kBlockHalf * t.ldc, bytes);
    _tile_loadd(3, t.c + kBlockHalf * t.ldc + kBlockHalf, bytes);
  } else {
    zero_all();
  }
  const bool two_a = t.rows > kBlockHalf, two_b = t.cols > kBlockHalf;
  if (two_a) {
    two_b ? multiply<true, true>(t) : multiply<true, false>(t);
  } else {
    two_b ? multiply<false, true>(t) : multiply<false, false>(t);
  }
  if (whole) return store_all(t.c, t.ldc);
  alignas(64) float edge[kBlockEdge * kBlockEdge];
  store_all(edge, kBlockEdge);
  for (int i = 0; i < t.rows; ++i) {
    float* row = t.c + i * t.ldc;
    const float* from = edge + i * kBlockEdge;
    for (int j = 0; j < t.cols; ++j) row[j] = t.accumulate ? row[j] + from[j] : from[j];
  }
}

double amx_burn(std::int64_t rounds) {
  begin_tiles(kBlockWords);
  zero_all();
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  end_tiles();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 32 * 2;
}

double burn(std::int64_t rounds, bool pair_words) {
  return pair_words ? amx_burn(rounds) : avx512bf16_kernels().burn(rounds, false);
}

KernelSet make_amx_kernels() {
  KernelSet set = avx512bf16_kernels();
  set.block_tile = amx_tile;
  set.block_begin = begin_tiles;
  set.block_end = end_tiles;
  set.burn = burn;
  return set;
}

}  // namespace

const KernelSet& amx_kernels() {
  static const KernelSet set = make_amx_kernels();
  return set;
}

}  // namespace tenon::cpu
