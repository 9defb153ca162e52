// Matrices in column-major order, and loops over the matrices of a batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/parallel.h>
#include <tenon/shape.h>

#include "base/str.h"

namespace tenon::linalg {

/// A matrix as LAPACK takes it.
template <class T>
class Matrix {
 public:
  Matrix(int rows, int columns)
      : rows_(rows), columns_(columns), data_(static_cast<std::size_t>(rows) * columns) {}
  /// A copy of a matrix in row-major order.
  Matrix(int rows, int columns, const T* from) : Matrix(rows, columns) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) (*this)(i, j) = *from++;
  }
  T& operator()(int i, int j) { return data_[static_cast<std::size_t>(j) * rows_ + i]; }
  const T& operator()(int i, int j) const { return data_[static_cast<std::size_t>(j) * rows_ + i]; }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  /// The leading dimension: the distance of two columns. LAPACK requires at least 1.
  int stride() const { return std::max(rows_, 1); }
  /// Writes the matrix in row-major order.
  void store(T* to) const {
    for (int i = 0; i < rows_; ++i)
      for (int j = 0; j < columns_; ++j) *to++ = (*this)(i, j);
  }

 private:
  int rows_, columns_;
  std::vector<T> data_;
};

/// The matrices in the last two axes of a shape.
struct Batch {
  explicit Batch(const Shape& shape)
      : rows(static_cast<int>(shape[shape.rank() - 2])),
        columns(static_cast<int>(shape[shape.rank() - 1])) {
    for (int axis = 0; axis < shape.rank() - 2; ++axis) count *= shape[axis];
  }
  std::int64_t size() const { return std::int64_t{rows} * columns; }
  /// The k-th matrix in messages.
  std::string name(std::int64_t k) const {
    return count == 1 ? "the matrix" : cat("matrix ", k, " of the batch");
  }
  /// Calls f(k) for each matrix, in parallel; `work` is the number of operations for one.
  void each(double work, const std::function<void(std::int64_t k)>& f) const {
    constexpr double kWorkOfRange = 1e5;  // operations that are worth a thread's start
    const auto grain = static_cast<std::int64_t>(std::max(1.0, kWorkOfRange / std::max(work, 1.0)));
    parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t k = first; k < last; ++k) f(k);
    });
  }

  std::int64_t count = 1;
  int rows, columns;
};

/// Calls f with a float or a double, as the dtype is.
template <class F>
void with_element(DType dtype, F&& f) {
  dtype == DType::Float64 ? f(double{}) : f(float{});
}

}  // namespace tenon::linalg
