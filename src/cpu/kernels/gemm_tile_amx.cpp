// Tiles for AMX: 32 x 32 results from bfloat16 pairs in four accumulator registers of 16 x 16.
//
// B is packed as for other tiles, 32 columns wide, which is the order that TDPBF16PS reads. A is
// packed in blocks of 16 words of the reduction, [block][32 rows][16 words], so that each of its
// registers is one contiguous kibibyte. The reduction is a multiple of 16 words, zero beyond its
// end. Everything else of the set is AVX-512's.
#include <immintrin.h>

#include "cpu/kernels/gemm_tile.h"

namespace tenon::cpu {
namespace {

constexpr int kEdge = 32, kWords = 16;

// All eight tile registers: 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

constexpr TileConfig whole_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  return config;
}

// In static memory: GCC's intrinsic tells the compiler that it reads only the first word of it.
constexpr TileConfig kConfig = whole_tiles();

void begin_tiles() { _tile_loadconfig(&kConfig); }

void end_tiles() { _tile_release(); }

void multiply(const TileArgs& t) {
  const float* a = t.a;
  const float* b = t.b;
  for (std::int64_t step = 0; step < t.steps; step += kWords) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, kEdge * 4);
    _tile_loadd(7, b + 16, kEdge * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * kWords, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a += kEdge * kWords;
    b += kEdge * kWords;
  }
}

void store_all(float* c, std::int64_t ldc) {
  const std::int64_t bytes = ldc * 4;
  _tile_stored(0, c, bytes);
  _tile_stored(1, c + 16, bytes);
  _tile_stored(2, c + 16 * ldc, bytes);
  _tile_stored(3, c + 16 * ldc + 16, bytes);
}

void zero_all() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

void amx_tile(const TileArgs& t) {
  const bool whole = t.rows == kEdge && t.cols == kEdge;
  if (whole && t.accumulate) {
    const std::int64_t bytes = t.ldc * 4;
    _tile_loadd(0, t.c, bytes);
    _tile_loadd(1, t.c + 16, bytes);
    _tile_loadd(2, t.c + 16 * t.ldc, bytes);
    _tile_loadd(3, t.c + 16 * t.ldc + 16, bytes);
  } else {
    zero_all();
  }
  multiply(t);
  if (whole) return store_all(t.c, t.ldc);
  alignas(64) float edge[kEdge * kEdge];
  store_all(edge, kEdge);
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* row = t.c + i * t.ldc;
    const float* from = edge + i * kEdge;
    for (std::int64_t j = 0; j < t.cols; ++j) row[j] = t.accumulate ? row[j] + from[j] : from[j];
  }
}

double amx_burn(std::int64_t rounds) {
  begin_tiles();
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
