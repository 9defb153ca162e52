// Fourier transforms as products with small Fourier matrices, for devices that have no kernel.
//
// A transform of n = n1 n2 numbers x[j1 n2 + j2] has the results
// X[k1 + n1 k2] = Σ_j2 w(j2 k2 / n2) w(j2 k1 / n) Σ_j1 w(j1 k1 / n1) x[j1 n2 + j2], where w(t) is
// exp(-2πi t): a product with a matrix [n1, n1], one with a factor for each number, and transforms
// of n2 numbers.
#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <utility>
#include <vector>

#include <tenon/creation.h>
#include <tenon/functional.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "ops/fourier.h"

namespace tenon {
namespace {

constexpr std::int64_t kDirect = 64;          // up to here one product is faster than two
constexpr std::int64_t kLargestFactor = 512;  // of a length without Bluestein's convolution

// ---- Tables of w ------------------------------------------------------------------------------

enum class Factors { Matrix, Chirp };

// w(a b / n) for a < rows and b < columns, or w(j² / 2n) for j < columns.
struct Key {
  Factors table;
  std::int64_t n, rows, columns;
  DType dtype;
  Device device;
  bool operator==(const Key& other) const {
    return table == other.table && n == other.n && rows == other.rows && columns == other.columns &&
           dtype == other.dtype && device == other.device;
  }
};

template <class T>
Complex stored_table(const Key& key) {
  std::vector<T> real, imaginary;
  const auto count = at(key.rows * key.columns);
  real.reserve(count);
  imaginary.reserve(count);
  const bool chirp = key.table == Factors::Chirp;
  const std::int64_t circle = chirp ? 2 * key.n : key.n;
  for (std::int64_t a = 0; a < key.rows; ++a)
    for (std::int64_t b = 0; b < key.columns; ++b) {
      // A whole number of steps on the circle, so that angles stay small.
      const std::int64_t steps = (chirp ? b : a) * b % circle;
      const double angle =
          2 * std::numbers::pi * static_cast<double>(steps) / static_cast<double>(circle);
      real.push_back(static_cast<T>(std::cos(angle)));
      imaginary.push_back(static_cast<T>(-std::sin(angle)));
    }
  const Shape shape = chirp ? Shape{key.columns} : Shape{key.rows, key.columns};
  return {Tensor::from_data(real.data(), shape, key.dtype, key.device),
          Tensor::from_data(imaginary.data(), shape, key.dtype, key.device)};
}

// The tables that were used last, up to 64 MiB.
class Tables {
 public:
  Complex operator()(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(tables_.begin(), tables_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (found != tables_.end()) {
      tables_.splice(tables_.begin(), tables_, found);
      return found->second;
    }
    tables_.emplace_front(
        key, key.dtype == DType::Float64 ? stored_table<double>(key) : stored_table<float>(key));
    bytes_ += bytes(key);
    while (bytes_ > kMost && tables_.size() > 1) {
      bytes_ -= bytes(tables_.back().first);
      tables_.pop_back();
    }
    return tables_.front().second;
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{64} << 20;
  static std::int64_t bytes(const Key& key) {
    return 2 * key.rows * key.columns * static_cast<std::int64_t>(item_size(key.dtype));
  }
  std::mutex mutex_;
  std::list<std::pair<Key, Complex>> tables_;
  std::int64_t bytes_ = 0;
};

// A plan contains no arrays of its own, so the factors are computed whenever it runs.
Complex computed_table(const Key& key) {
  const auto numbers = [](std::int64_t n) { return arange(0, n, 1, DType::Int64); };
  const bool chirp = key.table == Factors::Chirp;
  const Tensor columns = numbers(key.columns),
               rows = chirp ? columns : unsqueeze(numbers(key.rows), -1);
  const std::int64_t circle = chirp ? 2 * key.n : key.n;
  const Tensor steps = cast(remainder(rows * columns, circle), DType::Float64),
               angle = steps * (2 * std::numbers::pi / static_cast<double>(circle));
  return {cast(cos(angle), key.dtype), cast(-sin(angle), key.dtype)};
}

// ---- Transforms -------------------------------------------------------------------------------

std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t most = 1;
  for (std::int64_t p = 2; p * p <= n; ++p)
    while (n % p == 0) {
      most = p;
      n /= p;
    }
  return std::max(most, n);
}

// The factor nearest to the square root of n, up to kDirect: two products of that size need the
// least arithmetic. A factor above kDirect only if there is no other.
std::int64_t first_factor(std::int64_t n) {
  std::int64_t root = 1;
  while (root < kDirect && root * root < n) ++root;
  for (std::int64_t f = root; f > 1; --f)
    if (n % f == 0) return f;
  for (std::int64_t f = root + 1; f < n; ++f)
    if (n % f == 0) return f;
  return n;
}

Shape with_last(const Shape& shape, int axes, std::initializer_list<std::int64_t> sizes) {
  Ints all(shape.begin(), shape.end() - axes);
  all.insert(all.end(), sizes);
  return Shape(all.data(), static_cast<int>(all.size()));
}

Complex reshaped(const Complex& x, const Shape& shape) {
  const Ints sizes(shape.begin(), shape.end());
  return {reshape(x.real, sizes), reshape(x.imaginary, sizes)};
}

Complex swapped(const Complex& x) { return {transpose(x.real), transpose(x.imaginary)}; }

Complex part(const Complex& x, int axis, std::int64_t start, std::int64_t end) {
  return {slice(x.real, axis, start, end), slice(x.imaginary, axis, start, end)};
}

Complex padded(const Complex& x, std::int64_t n) {
  const std::int64_t missing = n - x.shape()[x.shape().rank() - 1];
  if (missing == 0) return x;
  return {pad(x.real, {0, missing}), pad(x.imaginary, {0, missing})};
}

// Transforms of the last axis. In a plan, the factors are computed.
class Transformer {
 public:
  explicit Transformer(bool in_plan) : in_plan_(in_plan) {}

  Complex transformed(const Complex& x, std::int64_t n) const {
    if (n == 1) return x;
    if (n <= kDirect) return matmul(x, matrix(x, n, n, n));
    if (largest_prime_factor(n) > kLargestFactor) return convolved(x, n);
    const std::int64_t n1 = first_factor(n), n2 = n / n1;
    const Complex outer = matrix(x, n1, n1, n1);
    if (n2 == 1) return matmul(x, outer);
    const Complex columns = matmul(outer, reshaped(x, with_last(x.shape(), 1, {n1, n2})));
    const Complex rotated = columns * matrix(x, n, n1, n2);
    return reshaped(swapped(transformed(rotated, n2)), x.shape());
  }

 private:
  Complex table(const Key& key) const {
    if (in_plan_) return computed_table(key);
    static Tables* const tables = new Tables;
    return (*tables)(key);
  }
  Complex matrix(const Complex& x, std::int64_t n, std::int64_t rows, std::int64_t columns) const {
    return table({Factors::Matrix, n, rows, columns, x.dtype(), x.real.device()});
  }

  // X[k] = w(k² / 2n) Σ_j x[j] w(j² / 2n) w(-(k - j)² / 2n), since jk = (j² + k² - (k - j)²) / 2: a
  // convolution, computed by transforms of a power of 2.
  Complex convolved(const Complex& x, std::int64_t n) const {
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    const Complex w = table({Factors::Chirp, n, 1, n, x.dtype(), x.real.device()}), back = conj(w);
    const auto around = [&](const Tensor& chirp) {
      return concat(
          {chirp, zeros({m - 2 * n + 1}, chirp.dtype()), flip(slice(chirp, 0, 1, n), {0})});
    };
    const Complex filter(around(back.real), around(back.imaginary));
    const Complex product = transformed(padded(x * w, m), m) * transformed(filter, m);
    const Complex sum = conj(transformed(conj(product), m));
    const double scale = 1.0 / static_cast<double>(m);
    const Complex first = part(sum, -1, 0, n);
    return Complex(first.real * scale, first.imaginary * scale) * w;
  }

  const bool in_plan_;
};

Complex moved(const Complex& x, int axis) {
  if (axis == x.shape().rank() - 1) return x;
  return {transpose(x.real, axis, -1), transpose(x.imaginary, axis, -1)};
}

// The numbers and the conjugates of all but the first, and the middle one, behind them.
Complex mirrored(const Complex& x, std::int64_t n) {
  const Complex first = padded(x, n / 2 + 1), second = part(first, -1, 1, n - n / 2);
  return {concat({first.real, flip(second.real, {-1})}, -1),
          concat({first.imaginary, flip(-second.imaginary, {-1})}, -1)};
}

}  // namespace

Complex fourier_products(const Complex& given, const FourierAttrs& attrs, bool in_plan) {
  const PrecisionScope exact(Precision::Fp32);
  const Complex last = moved(given, attrs.axis);
  const Complex x = attrs.mirrored != 0 ? mirrored(last, attrs.length) : padded(last, attrs.length);
  // The inverse is the conjugate of the conjugate's transform.
  const bool inverse = attrs.inverse != 0;
  Complex out = Transformer(in_plan).transformed(inverse ? conj(x) : x, attrs.length);
  if (inverse) out = conj(out);
  if (attrs.kept < attrs.length) out = part(out, -1, 0, attrs.kept);
  if (attrs.scale != 1) out = {out.real * attrs.scale, out.imaginary * attrs.scale};
  return moved(out, attrs.axis);
}

}  // namespace tenon
