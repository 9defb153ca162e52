// Fourier transforms of whole rows of many numbers.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "cpu/kernels/fourier/fourier_loops.h"

namespace tenon::cpu {

/// Factors exp(-2πi steps / circle) in float64, in which they are computed for every type.
struct FourierAngles {
  std::vector<double> cosines, sines;
  /// Appends a factor, with 0 <= steps < circle.
  void add(std::int64_t steps, std::int64_t circle);
};

/// The memory of a table.
template <class T>
class FourierFactors {
 public:
  explicit FourierFactors(std::int64_t n);
  FourierTable<T> table() const {
    return {n_, passes_.data(), std::ssize(passes_), factors_.data()};
  }

 private:
  const std::int64_t n_;
  std::vector<FourierPass> passes_;
  std::vector<T> factors_;
};

/// Complex numbers as two arrays.
template <class T>
struct FourierParts {
  T *real, *imaginary;
};

/// Scratch memory of a transform. A transform inside a chunk of parallel_for() runs in its thread
/// alone; otherwise all threads share the row.
template <class T>
struct FourierScratch {
  T* row;
  T* blocks;  // of all workers
  std::int64_t block_size;
};

/// A transform of rows of n numbers, with its tables.
///
/// A row x[j1 n2 + j2] of n1 n2 numbers has the results X[k1 + n1 k2] = Σ_j2 w(j2 k2 / n2)
/// w(j2 k1 / n) Σ_j1 w(j1 k1 / n1) x[j1 n2 + j2], where w(t) is exp(-2πi t). The inner sums are
/// transforms of n1 numbers for neighbouring j2, which are the lanes of a block; the outer sums
/// have neighbouring k1 as lanes. So both blocks are small, and only one of them is transposed.
///
/// With other prime factors than has_fourier_passes() takes, X[k] = w(k² / 2n) Σ_j x[j] w(j² / 2n)
/// w(-(k - j)² / 2n), since jk = (j² + k² - (k - j)²) / 2: a convolution, computed by transforms of
/// a power of 2.
template <class T>
class FourierRow {
 public:
  explicit FourierRow(std::int64_t n);

  std::int64_t size() const { return n_; }
  /// Values in the scratch of a row, and in a block.
  std::int64_t row_scratch() const;
  std::int64_t block_scratch() const;
  /// Transforms a row, each result times `scale`. `out` is other memory than `in`.
  void run(FourierParts<const T> in, FourierParts<T> out, T scale,
           const FourierScratch<T>& scratch) const;

 private:
  FourierRow(std::int64_t n, std::int64_t n1);
  void make_filter();
  void transform(FourierParts<const T> in, FourierParts<T> out, T scale,
                 const FourierScratch<T>& scratch) const;
  void convolve(FourierParts<const T> in, FourierParts<T> out, T scale,
                const FourierScratch<T>& scratch) const;

  const std::int64_t n_;
  const FourierFactors<T> columns_, rows_;         // of n1 and n2 numbers
  std::vector<T> cosines_, sines_;                 // [n1, n2], or of the chirp [n]
  std::unique_ptr<const FourierRow> longer_;       // of the convolution
  std::vector<T> filter_real_, filter_imaginary_;  // the transform of the convolution's filter
};

/// True if the loops of a block have all prime factors of n.
bool has_fourier_passes(std::int64_t n);

}  // namespace tenon::cpu
