// Fragment layouts are those of the PTX ISA: "Matrix fragments for mma.m16n8k16 with floating point
// type", "… mma.m16n8k8" (tf32) and "ldmatrix". With g = lane / 4 and t = lane % 4:
//
//   m16n8k16  a[0..3]: rows g, g+8, g, g+8, columns 2t, 2t, 2t+8, 2t+8 and the next one
//             b[0..1]: rows 2t, 2t+8 and the next one, column g
//   m16n8k8   a[0..3]: rows g, g+8, g, g+8, columns t, t, t+4, t+4;  b[0..1]: rows t, t+4, column g
//   d[0..3]:  rows g, g, g+8, g+8, columns 2t, 2t+1, 2t, 2t+1
#include "warp.h"

#include <cstring>

namespace tenon_emulator {
namespace {

constexpr std::uint32_t full = 0xffffffffu;

const char* apply_sync(const WarpCall*, std::uint32_t) { return nullptr; }

/// The lane that `lane` reads, or itself when that is outside the warp.
int source_lane(const WarpCall& call, int lane) {
  int from = lane;
  switch (static_cast<Shuffle>(call.mode)) {
    case Shuffle::Xor:
      from = lane ^ call.argument;
      break;
    case Shuffle::Down:
      from = lane + call.argument;
      break;
    case Shuffle::From:
      from = call.argument & 31;
      break;
  }
  return from < 0 || from > 31 ? lane : from;
}

const char* apply_shuffle(const WarpCall* lanes, std::uint32_t present) {
  unsigned char values[32][8];
  std::memset(values, 0xff, sizeof values);  // the values of absent lanes
  for (int lane = 0; lane < 32; ++lane) {
    if ((present >> lane & 1u) == 0) continue;
    std::memcpy(values[lane], lanes[lane].out, static_cast<std::size_t>(lanes[lane].bytes));
  }
  for (int lane = 0; lane < 32; ++lane) {
    if ((present >> lane & 1u) == 0) continue;
    const WarpCall& call = lanes[lane];
    std::memcpy(call.out, values[source_lane(call, lane)], static_cast<std::size_t>(call.bytes));
  }
  return nullptr;
}

float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, 4);
  return x;
}

float half_of(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
  float magnitude = float_of((exponent + 112) << 23 | fraction << 13);
  if (exponent == 31) magnitude = float_of(0x7f800000u | fraction << 13);
  if (exponent == 0) magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

/// Element `half` of a register; tf32 products see the upper 19 bits only.
float element(Mma kind, std::uint32_t bits, int half) {
  if (kind == Mma::Tf32) return float_of(bits & ~0x1fffu);
  const std::uint32_t part = bits >> (16 * half) & 0xffffu;
  return kind == Mma::Bf16 ? float_of(part << 16) : half_of(part);
}

const char* apply_mma(const WarpCall* lanes, std::uint32_t present) {
  if (present != full) return "the warp is not whole";
  const auto kind = static_cast<Mma>(lanes[0].mode);
  const int pack = kind == Mma::Tf32 ? 1 : 2;  // elements in a register
  const int depth = 8 * pack;
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    if (lanes[lane].mode != lanes[0].mode) return "lanes ask for different products";
    const int g = lane / 4, t = lane % 4;
    const auto* left = static_cast<const unsigned*>(lanes[lane].a);
    const auto* right = static_cast<const unsigned*>(lanes[lane].b);
    for (int half = 0; half < pack; ++half) {
      const int column = pack * t + half;
      for (int i = 0; i < 4; ++i) {
        a[g + 8 * (i % 2)][column + depth / 2 * (i / 2)] = element(kind, left[i], half);
      }
      for (int i = 0; i < 2; ++i) b[column + depth / 2 * i][g] = element(kind, right[i], half);
    }
  }
  // A row at a time, each sum in the order of k.
  float product[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < 8; ++column) product[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane) {
    auto* d = static_cast<float*>(lanes[lane].out);
    for (int i = 0; i < 4; ++i) d[i] += product[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
  }
  return nullptr;
}

const char* apply_load_matrix(const WarpCall* lanes, std::uint32_t present) {
  if (present != full) return "the warp is not whole";
  const int count = lanes[0].bytes;
  for (int lane = 0; lane < 8 * count; ++lane) {
    if (reinterpret_cast<std::uintptr_t>(lanes[lane].a) % 16 != 0) {
      return "an address is not aligned to 16 bytes";
    }
  }
  for (int m = 0; m < count; ++m) {
    std::uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) std::memcpy(matrix[row], lanes[8 * m + row].a, 16);
    for (int lane = 0; lane < 32; ++lane) {
      if (lanes[lane].bytes != count || lanes[lane].mode != lanes[0].mode) {
        return "lanes ask for different loads";
      }
      const int g = lane / 4, t = 2 * (lane % 4);
      const bool transposed = lanes[lane].mode != 0;
      const std::uint32_t low = transposed ? matrix[t][g] : matrix[g][t];
      const std::uint32_t high = transposed ? matrix[t + 1][g] : matrix[g][t + 1];
      static_cast<unsigned*>(lanes[lane].out)[m] = low | high << 16;
    }
  }
  return nullptr;
}

}  // namespace

WarpCall sync_call() {
  WarpCall call;
  call.apply = apply_sync;
  return call;
}

WarpCall shuffle_call(Shuffle mode, void* value, int bytes, int argument) {
  WarpCall call;
  call.apply = apply_shuffle;
  call.out = value;
  call.mode = static_cast<int>(mode);
  call.bytes = bytes;
  call.argument = argument;
  return call;
}

WarpCall mma_call(Mma kind, float* d, const unsigned* a, const unsigned* b) {
  WarpCall call;
  call.apply = apply_mma;
  call.out = d;
  call.a = a;
  call.b = b;
  call.mode = static_cast<int>(kind);
  return call;
}

WarpCall load_matrix_call(int count, bool transposed, unsigned* registers, const void* row) {
  WarpCall call;
  call.apply = apply_load_matrix;
  call.out = registers;
  call.a = row;
  call.mode = transposed ? 1 : 0;
  call.bytes = count;
  return call;
}

}  // namespace tenon_emulator
