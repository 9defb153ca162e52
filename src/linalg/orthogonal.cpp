// Orthogonal factors: QR, singular values, eigenvalues, and least squares.
#include <cmath>
#include <limits>

#include "linalg/call.h"
#include "linalg/routines.h"

namespace tenon::linalg {
namespace {

double work_of(const Batch& batch) {
  return 4.0 * batch.rows * batch.columns * std::min(batch.rows, batch.columns);
}

// What a routine reports: a negative number is an argument that it refuses, which is a NaN here.
void require_success(const Batch& batch, std::int64_t k, int info, const char* what) {
  if (info == 0) return;
  throw make_error<ValueError>(batch.name(k), info < 0 ? " has a NaN or an infinity: " : ": ", what,
                               " did not converge");
}

template <class T>
struct Decomposed {
  Matrix<T> u, vh;
  std::vector<T> s;
};

template <class T>
Decomposed<T> svd_of(const Batch& batch, std::int64_t k, const T* from, const char* job) {
  int rows = batch.rows, columns = batch.columns;
  const int few = std::min(rows, columns);
  const bool all = *job == 'A', none = *job == 'N';
  Decomposed<T> out{Matrix<T>(none ? 0 : rows, all ? rows : few),
                    Matrix<T>(none  ? 0
                              : all ? columns
                                    : few,
                              columns),
                    std::vector<T>(static_cast<std::size_t>(few))};
  Matrix<T> m(rows, columns, from);
  if (few == 0) {  // LAPACK leaves the factors as they are
    for (int i = 0; i < std::min(out.u.rows(), out.u.columns()); ++i) out.u(i, i) = 1;
    for (int i = 0; i < std::min(out.vh.rows(), out.vh.columns()); ++i) out.vh(i, i) = 1;
    return out;
  }
  std::vector<int> indices(static_cast<std::size_t>(8 * few));
  const int m_stride = m.stride(), u_stride = out.u.stride(), vh_stride = out.vh.stride();
  const int info = with_workspace<T>([&](T* work, int* size, int* result) {
    lapack<T>().gesdd(job, &rows, &columns, m.data(), &m_stride, out.s.data(), out.u.data(),
                      &u_stride, out.vh.data(), &vh_stride, work, size, indices.data(), result, 1);
  });
  require_success(batch, k, info, "its singular value decomposition");
  return out;
}

// The sign of an orthogonal matrix's determinant, by its factors.
template <class T>
double orthogonal_sign(Matrix<T> m) {
  const int n = m.rows(), stride = m.stride();
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  lapack<T>().getrf(&n, &n, m.data(), &stride, pivots.data(), &info);
  double sign = 1;
  for (int i = 0; i < n; ++i)
    if ((pivots[static_cast<std::size_t>(i)] != i + 1) != std::signbit(m(i, i))) sign = -sign;
  return sign;
}

}  // namespace

// With a = u s vh the cofactors are det(u) det(vh) u c vh, where c is diagonal and c_i is the
// product of all singular values but s_i.
Tensor cofactors_of(const Tensor& a) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(work_of(batch), [&](std::int64_t k) {
      const int n = batch.rows;
      const Decomposed<T> found = svd_of<T>(batch, k, part<T>(in[0], k, batch.count), "A");
      const double sign = orthogonal_sign(found.u) * orthogonal_sign(found.vh);
      Matrix<T> scaled(n, n), result(n, n);
      for (int j = 0; j < n; ++j) {
        double others = sign;
        for (int i = 0; i < n; ++i)
          if (i != j) others *= found.s[static_cast<std::size_t>(i)];
        for (int i = 0; i < n; ++i) scaled(i, j) = static_cast<T>(others * found.u(i, j));
      }
      const T one = 1, zero = 0;
      const int stride = result.stride();
      lapack<T>().gemm("N", "N", &n, &n, &n, &one, scaled.data(), &stride, found.vh.data(), &stride,
                       &zero, result.data(), &stride, 1, 1);
      result.store(part<T>(out[0], k, batch.count));
    });
  };
  return call({a}, {{a.dtype(), a.shape()}}, run)[0];
}

QrFactors factor_qr(const Tensor& a) {
  const Batch sizes(a.shape());
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(work_of(batch), [&](std::int64_t k) {
      const int rows = batch.rows, columns = batch.columns;
      Matrix<T> m(rows, columns, part<T>(in[0], k, batch.count));
      const int stride = m.stride();
      with_workspace<T>([&](T* work, int* size, int* info) {
        lapack<T>().geqrf(&rows, &columns, m.data(), &stride, part<T>(out[1], k, batch.count), work,
                          size, info);
      });
      m.store(part<T>(out[0], k, batch.count));
    });
  };
  const Shape tau = with_last(a.shape(), 2, {std::min(sizes.rows, sizes.columns)});
  const auto out = call({a}, {{a.dtype(), a.shape()}, {a.dtype(), tau}}, run);
  return {out[0], out[1]};
}

Tensor q_of(const QrFactors& factors, std::int64_t columns) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch packed(in[0].shape()), batch(out[0].shape());
    const int reflectors = static_cast<int>(in[1].shape()[in[1].shape().rank() - 1]);
    batch.each(work_of(batch), [&](std::int64_t k) {
      const int rows = batch.rows, wanted = batch.columns;
      const Matrix<T> from(packed.rows, packed.columns, part<T>(in[0], k, batch.count));
      Matrix<T> q(rows, wanted);
      for (int j = 0; j < std::min(wanted, reflectors); ++j)
        for (int i = 0; i < rows; ++i) q(i, j) = from(i, j);
      const int stride = q.stride();
      with_workspace<T>([&](T* work, int* size, int* info) {
        lapack<T>().orgqr(&rows, &wanted, &reflectors, q.data(), &stride,
                          part<T>(in[1], k, batch.count), work, size, info);
      });
      q.store(part<T>(out[0], k, batch.count));
    });
  };
  const Tensor& packed = factors.packed;
  const std::int64_t rows = packed.size(-2);
  return call({packed, factors.tau},
              {{packed.dtype(), with_last(packed.shape(), 2, {rows, columns})}}, run)[0];
}

SvdFactors factor_svd(const Tensor& a, bool full) {
  const std::int64_t rows = a.size(-2), columns = a.size(-1), few = std::min(rows, columns);
  const auto run = [full](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    const bool values_only = !out[0].is_read() && !out[2].is_read();
    batch.each(work_of(batch), [&](std::int64_t k) {
      const Decomposed<T> found = svd_of<T>(batch, k, part<T>(in[0], k, batch.count),
                                            values_only ? "N"
                                            : full      ? "A"
                                                        : "S");
      std::copy(found.s.begin(), found.s.end(), part<T>(out[1], k, batch.count));
      if (values_only) return;
      found.u.store(part<T>(out[0], k, batch.count));
      found.vh.store(part<T>(out[2], k, batch.count));
    });
  };
  const auto out = call({a},
                        {{a.dtype(), with_last(a.shape(), 2, {rows, full ? rows : few})},
                         {a.dtype(), with_last(a.shape(), 2, {few})},
                         {a.dtype(), with_last(a.shape(), 2, {full ? columns : few, columns})}},
                        run);
  return {out[0], out[1], out[2]};
}

Eigen eigen_of_symmetric(const Tensor& a, bool upper) {
  const auto run = [upper](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    const bool values_only = !out[1].is_read();
    batch.each(work_of(batch), [&](std::int64_t k) {
      const int n = batch.rows;
      Matrix<T> m(n, n, part<T>(in[0], k, batch.count));
      const int stride = m.stride();
      std::vector<int> indices(static_cast<std::size_t>(3 + 5 * std::int64_t{n}));
      const int count = static_cast<int>(indices.size());
      const int info = with_workspace<T>([&](T* work, int* size, int* result) {
        lapack<T>().syevd(values_only ? "N" : "V", upper ? "U" : "L", &n, m.data(), &stride,
                          part<T>(out[0], k, batch.count), work, size, indices.data(), &count,
                          result, 1, 1);
      });
      require_success(batch, k, info, "the search for its eigenvalues");
      if (!values_only) m.store(part<T>(out[1], k, batch.count));
    });
  };
  const Shape values = with_last(a.shape(), 1, {});
  const auto out = call({a}, {{a.dtype(), values}, {a.dtype(), a.shape()}}, run);
  return {out[0], out[1]};
}

ComplexEigen eigen_of(const Tensor& a) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(4 * work_of(batch), [&](std::int64_t k) {
      const int n = batch.rows, one = 1;
      Matrix<T> m(n, n, part<T>(in[0], k, batch.count)), right(n, n), imaginary(n, n);
      T* const parts = part<T>(out[1], k, batch.count);
      const int stride = m.stride();
      const int info = with_workspace<T>([&](T* work, int* size, int* result) {
        lapack<T>().geev("N", "V", &n, m.data(), &stride, part<T>(out[0], k, batch.count), parts,
                         nullptr, &one, right.data(), &stride, work, size, result, 1, 1);
      });
      require_success(batch, k, info, "the search for its eigenvalues");
      // Of a conjugate pair, LAPACK gives the real part in one column and the imaginary in the
      // next.
      for (int j = 0; j + 1 < n; ++j) {
        if (!(parts[j] > 0)) continue;
        for (int i = 0; i < n; ++i) {
          imaginary(i, j) = right(i, j + 1);
          imaginary(i, j + 1) = -right(i, j + 1);
          right(i, j + 1) = right(i, j);
        }
      }
      right.store(part<T>(out[2], k, batch.count));
      imaginary.store(part<T>(out[3], k, batch.count));
    });
  };
  const TensorType values{a.dtype(), with_last(a.shape(), 1, {})}, vectors{a.dtype(), a.shape()};
  const auto out = call({a}, {values, values, vectors, vectors}, run);
  return {out[0], out[1], out[2], out[3]};
}

MinimumNorm least_squares(const Tensor& a, const Tensor& b, double rcond) {
  const std::int64_t rows = a.size(-2), columns = a.size(-1), few = std::min(rows, columns);
  const auto run = [rcond](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape()), sides(in[1].shape());
    batch.each(work_of(batch), [&](std::int64_t k) {
      const int m = batch.rows, n = batch.columns, right = sides.columns, longer = std::max(m, n);
      Matrix<T> from(m, n, part<T>(in[0], k, batch.count)), x(longer, right), solution(n, right);
      const T* given = part<T>(in[1], k, batch.count);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < right; ++j) x(i, j) = *given++;
      int rank = 0;
      if (std::min(m, n) > 0 && right > 0) {
        // The size that LAPACK's text gives for any block size, with room to spare.
        const int levels = 2 + static_cast<int>(std::log2(std::min(m, n) + 1.0));
        std::vector<int> indices(static_cast<std::size_t>(std::min(m, n)) * (3 * levels + 11));
        const int stride = from.stride(), x_stride = x.stride();
        const T limit = static_cast<T>(rcond);
        const int info = with_workspace<T>([&](T* work, int* size, int* result) {
          lapack<T>().gelsd(&m, &n, &right, from.data(), &stride, x.data(), &x_stride,
                            part<T>(out[2], k, batch.count), &limit, &rank, work, size,
                            indices.data(), result);
        });
        require_success(batch, k, info, "its singular value decomposition");
      }
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < right; ++j) solution(i, j) = x(i, j);
      solution.store(part<T>(out[0], k, batch.count));
      *part<std::int64_t>(out[1], k, batch.count) = rank;
    });
  };
  const auto out = call({a, b},
                        {{a.dtype(), with_last(b.shape(), 2, {columns, b.size(-1)})},
                         {DType::Int64, with_last(a.shape(), 2, {})},
                         {a.dtype(), with_last(a.shape(), 2, {few})}},
                        run);
  return {out[0], out[1], out[2]};
}

}  // namespace tenon::linalg
