// The exponential of matrices by scaling and squaring with the Padé approximant of order 13, in
// double precision (N. Higham, "The scaling and squaring method for the matrix exponential
// revisited", 2005).
#include <cmath>

#include <tenon/function.h>

#include "linalg/call.h"
#include "linalg/checks.h"

namespace tenon::linalg {
namespace {

using Square = Matrix<double>;

Square product(const Square& a, const Square& b) {
  const int n = a.rows(), stride = a.stride();
  const double one = 1, zero = 0;
  Square out(n, n);
  lapack<double>().gemm("N", "N", &n, &n, &n, &one, a.data(), &stride, b.data(), &stride, &zero,
                        out.data(), &stride, 1, 1);
  return out;
}

// to += factor * from
void add(Square& to, double factor, const Square& from) {
  const std::int64_t count = std::int64_t{to.rows()} * to.columns();
  for (std::int64_t i = 0; i < count; ++i) to.data()[i] += factor * from.data()[i];
}

Square identity(int n, double factor) {
  Square out(n, n);
  for (int i = 0; i < n; ++i) out(i, i) = factor;
  return out;
}

// The largest sum of a column's absolute values.
double norm_of(const Square& a) {
  double most = 0;
  for (int j = 0; j < a.columns(); ++j) {
    double sum = 0;
    for (int i = 0; i < a.rows(); ++i) sum += std::abs(a(i, j));
    if (!(sum <= most)) most = sum;
  }
  return most;
}

// b[k] of the approximant, b[13] first.
constexpr double kPade[] = {1,
                            182,
                            16380,
                            960960,
                            40840800,
                            1323241920,
                            33522128640,
                            670442572800,
                            10559470521600.0,
                            129060195264000.0,
                            1187353796428800.0,
                            7771770303897600.0,
                            32382376266240000.0,
                            64764752532480000.0};
constexpr double kLargestNorm = 5.371920351148152;  // up to which order 13 is exact to 2^-53

Square exponential(Square a) {
  const int n = a.rows(), stride = a.stride();
  const double norm = norm_of(a);
  if (!std::isfinite(norm)) {
    std::fill(a.data(), a.data() + std::int64_t{n} * n, std::nan(""));
    return a;
  }
  const int halvings =
      norm > kLargestNorm ? static_cast<int>(std::ceil(std::log2(norm / kLargestNorm))) : 0;
  const double scale = std::ldexp(1.0, -halvings);
  for (std::int64_t i = 0; i < std::int64_t{n} * n; ++i) a.data()[i] *= scale;
  const Square a2 = product(a, a), a4 = product(a2, a2), a6 = product(a2, a4);
  // The approximant is (odd + even) / (even - odd); `first` is the index of its highest power.
  const auto sum_of = [&](int first) {
    Square high(n, n);
    add(high, kPade[first], a6);
    add(high, kPade[first + 2], a4);
    add(high, kPade[first + 4], a2);
    Square out = product(a6, high);
    add(out, kPade[first + 6], a6);
    add(out, kPade[first + 8], a4);
    add(out, kPade[first + 10], a2);
    add(out, 1, identity(n, kPade[first + 12]));
    return out;
  };
  const Square odd = product(a, sum_of(0)), even = sum_of(1);
  Square result = even, below = even;
  add(result, 1, odd);
  add(below, -1, odd);
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  lapack<double>().getrf(&n, &n, below.data(), &stride, pivots.data(), &info);
  lapack<double>().getrs("N", &n, &n, below.data(), &stride, pivots.data(), result.data(), &stride,
                         &info, 1);
  for (int k = 0; k < halvings; ++k) result = product(result, result);
  return result;
}

Tensor exponential_of(const Tensor& a) {
  const auto run = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const Batch batch(in[0].shape());
    batch.each(20.0 * batch.rows * static_cast<double>(batch.size()), [&](std::int64_t k) {
      const int n = batch.rows;
      const T* const from = part<T>(in[0], k, batch.count);
      T* const to = part<T>(out[0], k, batch.count);
      Square m(n, n);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) m(i, j) = from[std::int64_t{i} * n + j];
      if (n > 0) m = exponential(std::move(m));
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) to[std::int64_t{i} * n + j] = static_cast<T>(m(i, j));
    });
  };
  return call({a}, {{a.dtype(), a.shape()}}, run)[0];
}

}  // namespace

// The derivative of exp at aᵀ in direction g is a block of the exponential of a larger matrix
// (N. Higham, "Functions of matrices", 2008, section 3.2).
Tensor matrix_exp(const Tensor& a) {
  const Called called("linalg::matrix_exp");
  if (a.dtype() == DType::Float16 || a.dtype() == DType::BFloat16)
    return cast(matrix_exp(cast(a, DType::Float32)), a.dtype());
  require_square(a);
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{exponential_of(in[0])};
      },
      [](const FunctionContext& context, const std::vector<Tensor>& g) {
        const Tensor at = transpose(context.arguments()[0]);
        const std::int64_t n = at.size(-1);
        const Tensor blocks =
            concat({concat({at, g[0]}, -1), concat({zeros_like(at), at}, -1)}, -2);
        return std::vector<Tensor>{slice(slice(matrix_exp(blocks), -2, 0, n), -1, n, 2 * n)};
      });
  return function(a);
}

}  // namespace tenon::linalg
