// Triangular factors of square matrices, and what follows from them: solutions and determinants.
#include <cmath>
#include <cstdlib>

#include "linalg/call.h"
#include "linalg/routines.h"

namespace tenon::linalg {
namespace {

double cube(const Batch& batch) {
  return static_cast<double>(batch.rows) * batch.columns * std::min(batch.rows, batch.columns);
}

Shape batch_shape(const Tensor& a) { return with_last(a.shape(), 2, {}); }

// The parity of a permutation by exchanges of rows.
int parity(const std::int32_t* pivots, int n) {
  int sign = 1;
  for (int i = 0; i < n; ++i)
    if (pivots[i] != i + 1) sign = -sign;
  return sign;
}

// Pivots may come from a user.
void require_row(std::int64_t pivot, int rows) {
  if (pivot < 1 || pivot > rows)
    throw make_error<ValueError>("a pivot is ", pivot, ", must be a row from 1 to ", rows);
}

// Positive rows, and pairs of equal negative ones.
void require_blocks(const std::int32_t* pivots, int n) {
  for (int i = 0; i < n; ++i) {
    require_row(std::abs(std::int64_t{pivots[i]}), n);
    if (pivots[i] > 0) continue;
    if (i + 1 == n || pivots[i + 1] != pivots[i])
      throw make_error<ValueError>("pivot ", i, " is ", pivots[i],
                                   ", and a negative pivot must be followed by an equal one");
    ++i;
  }
}

}  // namespace

Factor factor_cholesky(const Tensor& a, Failure failure) {
  const auto run = [failure](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(cube(batch), [&](std::int64_t k) {
      const int n = batch.rows;
      Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      int info = 0;
      const int stride = m.stride();
      lapack<T>().potrf("L", &n, m.data(), &stride, &info, 1);
      if (info > 0 && failure == Failure::Throw)
        throw make_error<ValueError>(batch.name(k),
                                     " is not positive definite: its leading minor of ", info,
                                     " rows is not");
      for (int j = 1; j < n; ++j)
        for (int i = 0; i < j; ++i) m(i, j) = 0;
      m.store(part<T>(out[0], k, batch.count));
      *part<std::int32_t>(out[1], k, batch.count) = info;
    });
  };
  const auto out = call({a}, {{a.dtype(), a.shape()}, {DType::Int32, batch_shape(a)}}, run);
  return {out[0], out[1]};
}

LuFactors factor_lu(const Tensor& a, Failure failure) {
  const Batch sizes(a.shape());
  const auto run = [failure](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(cube(batch), [&](std::int64_t k) {
      const int rows = batch.rows, columns = batch.columns;
      Matrix<T> m(rows, columns, part<T>(in[0], k, batch.count));
      int info = 0;
      const int stride = m.stride();
      lapack<T>().getrf(&rows, &columns, m.data(), &stride,
                        part<std::int32_t>(out[1], k, batch.count), &info);
      if (info > 0 && failure == Failure::Throw)
        throw make_error<ValueError>(batch.name(k), " is singular: U has a zero in row ", info,
                                     " of its diagonal");
      m.store(part<T>(out[0], k, batch.count));
      *part<std::int32_t>(out[2], k, batch.count) = info;
    });
  };
  const Shape pivots = with_last(a.shape(), 2, {std::min(sizes.rows, sizes.columns)});
  const auto out = call(
      {a}, {{a.dtype(), a.shape()}, {DType::Int32, pivots}, {DType::Int32, batch_shape(a)}}, run);
  return {out[0], out[1], out[2]};
}

Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool transposed) {
  const auto run = [transposed](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[2].shape());
    batch.each(static_cast<double>(batch.rows * batch.size()), [&](std::int64_t k) {
      const int n = batch.rows, columns = batch.columns;
      const Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      Matrix<T> x(n, columns, part<T>(in[2], k, batch.count));
      int info = 0;
      const int m_stride = m.stride(), x_stride = x.stride();
      lapack<T>().getrs(transposed ? "T" : "N", &n, &columns, m.data(), &m_stride,
                        part<std::int32_t>(in[1], k, batch.count), x.data(), &x_stride, &info, 1);
      x.store(part<T>(out[0], k, batch.count));
    });
  };
  return call({lu, pivots, b}, {{b.dtype(), b.shape()}}, run)[0];
}

LdlFactors factor_ldl(const Tensor& a, Failure failure) {
  const auto run = [failure](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(cube(batch), [&](std::int64_t k) {
      const int n = batch.rows;
      Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      const int stride = m.stride();
      const int info = with_workspace<T>([&](T* work, int* size, int* result) {
        lapack<T>().sytrf("L", &n, m.data(), &stride, part<std::int32_t>(out[1], k, batch.count),
                          work, size, result, 1);
      });
      if (info > 0 && failure == Failure::Throw)
        throw make_error<ValueError>(batch.name(k), " is singular: D has a zero in row ", info);
      for (int j = 1; j < n; ++j)
        for (int i = 0; i < j; ++i) m(i, j) = 0;
      m.store(part<T>(out[0], k, batch.count));
      *part<std::int32_t>(out[2], k, batch.count) = info;
    });
  };
  const auto out = call({a},
                        {{a.dtype(), a.shape()},
                         {DType::Int32, with_last(a.shape(), 1, {})},
                         {DType::Int32, batch_shape(a)}},
                        run);
  return {out[0], out[1], out[2]};
}

Tensor solve_ldl(const Tensor& ld, const Tensor& pivots, const Tensor& b) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[2].shape());
    batch.each(static_cast<double>(batch.rows * batch.size()), [&](std::int64_t k) {
      const int n = batch.rows, columns = batch.columns;
      const std::int32_t* const exchanges = part<std::int32_t>(in[1], k, batch.count);
      require_blocks(exchanges, n);
      const Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      Matrix<T> x(n, columns, part<T>(in[2], k, batch.count));
      int info = 0;
      const int m_stride = m.stride(), x_stride = x.stride();
      lapack<T>().sytrs("L", &n, &columns, m.data(), &m_stride, exchanges, x.data(), &x_stride,
                        &info, 1);
      x.store(part<T>(out[0], k, batch.count));
    });
  };
  return call({ld, pivots, b}, {{b.dtype(), b.shape()}}, run)[0];
}

Tensor permutation(const Tensor& pivots, std::int64_t rows, DType dtype) {
  const auto run = [](Inputs in, Outputs out) {
    const Batch batch(out[0].shape());
    with_element(out[0].dtype(), [&](auto element) {
      using T = decltype(element);
      batch.each(static_cast<double>(batch.size()), [&](std::int64_t k) {
        std::vector<int> order(static_cast<std::size_t>(batch.rows));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
        const auto exchanges = in[0].shape()[in[0].shape().rank() - 1];
        const std::int32_t* const with = part<std::int32_t>(in[0], k, batch.count);
        for (std::int64_t i = 0; i < exchanges; ++i) require_row(with[i], batch.rows);
        for (std::int64_t i = 0; i < exchanges; ++i)
          std::swap(order[static_cast<std::size_t>(i)],
                    order[static_cast<std::size_t>(with[i] - 1)]);
        T* const p = part<T>(out[0], k, batch.count);
        std::fill(p, p + batch.size(), T(0));
        for (int i = 0; i < batch.rows; ++i)
          p[std::int64_t{order[static_cast<std::size_t>(i)]} * batch.rows + i] = 1;
      });
    });
  };
  return host_call(where("linalg").operation, {pivots},
                   {dtype, with_last(pivots.shape(), 1, {rows, rows})}, run);
}

Determinants determinants_of(const Tensor& lu, const Tensor& pivots) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(batch.rows, [&](std::int64_t k) {
      const T* const m = part<T>(in[0], k, batch.count);
      double value = parity(part<std::int32_t>(in[1], k, batch.count), batch.rows), logarithm = 0;
      double sign = value;
      for (int i = 0; i < batch.rows; ++i) {
        const double pivot = m[std::int64_t{i} * (batch.rows + 1)];
        value *= pivot;
        sign = pivot == 0 ? 0 : std::signbit(pivot) ? -sign : sign;
        logarithm += std::log(std::abs(pivot));
      }
      *part<T>(out[0], k, batch.count) = static_cast<T>(value);
      *part<T>(out[1], k, batch.count) = static_cast<T>(sign);
      *part<T>(out[2], k, batch.count) = static_cast<T>(logarithm);
    });
  };
  const TensorType each{lu.dtype(), batch_shape(lu)};
  const auto out = call({lu, pivots}, {each, each, each}, run);
  return {out[0], out[1], out[2]};
}

Tensor solve_with_triangle(const Tensor& a, const Tensor& b, const Triangle& triangle) {
  const auto run = [triangle](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[1].shape());
    const int n = triangle.left ? batch.rows : batch.columns;
    batch.each(static_cast<double>(n * batch.size()), [&](std::int64_t k) {
      const Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      Matrix<T> x(batch.rows, batch.columns, part<T>(in[1], k, batch.count));
      const T one = 1;
      const int rows = batch.rows, columns = batch.columns, m_stride = m.stride(),
                x_stride = x.stride();
      lapack<T>().trsm(triangle.left ? "L" : "R", triangle.upper ? "U" : "L", "N",
                       triangle.unit ? "U" : "N", &rows, &columns, &one, m.data(), &m_stride,
                       x.data(), &x_stride, 1, 1, 1, 1);
      x.store(part<T>(out[0], k, batch.count));
    });
  };
  return call({a, b}, {{b.dtype(), b.shape()}}, run)[0];
}

}  // namespace tenon::linalg
