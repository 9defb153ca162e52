// The loops of Fourier transforms in fourier.cpp and fourier_row.h.
//
// A block is [n][2][lanes]: n complex numbers of each of kFourierLanes transforms that run side by
// side, as a vector of real parts and a vector of imaginary parts. Every step is the same for all
// lanes, so vectors are full whatever n is. No standard header that defines functions is included,
// because the linker would take them from the files compiled for any instruction set.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// Lanes of a block: one cache line.
template <class T>
inline constexpr std::int64_t kFourierLanes = 64 / static_cast<std::int64_t>(sizeof(T));

/// Prime factors up to here have loops; transforms of other lengths become convolutions.
inline constexpr std::int64_t kLargestRadix = 61;

/// One pass splits transforms of radix * groups numbers into `radix` transforms of `groups` numbers
/// each, which are `stride` apart.
struct FourierPass {
  std::int64_t radix, groups, stride;
  std::int64_t roots, rotations;  // positions in FourierTable::factors
};

/// The passes of a length whose prime factors are at most kLargestRadix, with their factors.
template <class T>
struct FourierTable {
  std::int64_t n = 1;
  const FourierPass* passes = nullptr;
  std::int64_t pass_count = 0;
  const T* factors = nullptr;  // cosine and sine of angles
};

/// `count` lanes of a block and arrays of the same numbers.
template <class T>
struct FourierLoops {
  /// Transforms a block; `other` is scratch of the same size. Returns that of the two that has the
  /// results.
  T* (*transform)(const FourierTable<T>& table, T* block, T* other);
  /// Reads lanes, element e of lane l from real[l * lane + e * step]; lanes from `count` on are 0.
  void (*load)(std::int64_t n, std::int64_t count, const T* real, const T* imaginary,
               std::int64_t lane, std::int64_t step, T* block);
  /// Writes lanes, of which the elements of one are neighbours if `lane` is not 1, each number
  /// times `scale`. Null pointers take no numbers. May change the block.
  void (*store)(std::int64_t n, std::int64_t count, T* block, T scale, T* real, T* imaginary,
                std::int64_t lane, std::int64_t step);
  /// Writes lanes to neighbouring places, element e times factor e of the lane, which are as far
  /// apart as the places.
  void (*store_rotated)(std::int64_t n, std::int64_t count, const T* block, const T* cosines,
                        const T* sines, T* real, T* imaginary, std::int64_t step);
};

/// The loops of best_isa().
template <class T>
const FourierLoops<T>& fourier_loops();

#define TENON_DECLARE_FOURIER_LOOPS(isa)             \
  extern const FourierLoops<float> isa##_floats_fft; \
  extern const FourierLoops<double> isa##_doubles_fft;
TENON_DECLARE_FOURIER_LOOPS(base)
TENON_DECLARE_FOURIER_LOOPS(avx2)
TENON_DECLARE_FOURIER_LOOPS(avx512)
#undef TENON_DECLARE_FOURIER_LOOPS

}  // namespace tenon::cpu
