// Fourier transforms as products with small Fourier matrices.
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
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/fft.h>
#include <tenon/functional.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "ops/infer.h"

namespace tenon::fft {
namespace {

constexpr std::int64_t kDirect = 64;          // up to here one product is faster than two
constexpr std::int64_t kLargestFactor = 512;  // of a length without Bluestein's convolution

// ---- Tables of w ------------------------------------------------------------------------------

enum class Table { Matrix, Chirp };

// w(a b / n) for a < rows and b < columns, or w(j² / 2n) for j < columns.
struct Key {
  Table table;
  std::int64_t n, rows, columns;
  DType dtype;
  Device device;
  bool operator==(const Key& other) const {
    return table == other.table && n == other.n && rows == other.rows && columns == other.columns &&
           dtype == other.dtype && device == other.device;
  }
};

template <class T>
Complex table_of(const Key& key) {
  std::vector<T> real, imaginary;
  const auto count = at(key.rows * key.columns);
  real.reserve(count);
  imaginary.reserve(count);
  const bool chirp = key.table == Table::Chirp;
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
        key, key.dtype == DType::Float64 ? table_of<double>(key) : table_of<float>(key));
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

Complex table(Table kind, std::int64_t n, std::int64_t rows, std::int64_t columns,
              const Tensor& like) {
  static Tables* const tables = new Tables;
  return (*tables)({kind, n, rows, columns, like.dtype(), like.device()});
}

// ---- Transforms of the last axis --------------------------------------------------------------

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

Complex transformed(const Complex& x, std::int64_t n);

// X[k] = w(k² / 2n) Σ_j x[j] w(j² / 2n) w(-(k - j)² / 2n), since jk = (j² + k² - (k - j)²) / 2: a
// convolution, computed by transforms of a power of 2.
Complex convolved(const Complex& x, std::int64_t n) {
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const Complex w = table(Table::Chirp, n, 1, n, x.real), back = conj(w);
  const auto around = [&](const Tensor& chirp) {
    return concat({chirp, zeros({m - 2 * n + 1}, chirp.dtype()), flip(slice(chirp, 0, 1, n), {0})});
  };
  const Complex filter(around(back.real), around(back.imaginary));
  const Complex product = transformed(padded(x * w, m), m) * transformed(filter, m);
  const Complex sum = conj(transformed(conj(product), m));
  const double scale = 1.0 / static_cast<double>(m);
  const Complex first = part(sum, -1, 0, n);
  return Complex(first.real * scale, first.imaginary * scale) * w;
}

// The transform of the last axis, which has n numbers.
Complex transformed(const Complex& x, std::int64_t n) {
  if (n == 1) return x;
  if (n <= kDirect) return matmul(x, table(Table::Matrix, n, n, n, x.real));
  if (largest_prime_factor(n) > kLargestFactor) return convolved(x, n);
  const std::int64_t n1 = first_factor(n), n2 = n / n1;
  const Complex outer = table(Table::Matrix, n1, n1, n1, x.real);
  if (n2 == 1) return matmul(x, outer);
  const Complex columns = matmul(outer, reshaped(x, with_last(x.shape(), 1, {n1, n2})));
  const Complex rotated = columns * table(Table::Matrix, n, n1, n2, x.real);
  return reshaped(swapped(transformed(rotated, n2)), x.shape());
}

// ---- Axes, lengths, scales --------------------------------------------------------------------

Complex floating(const Complex& x) {
  if (x.dtype() == DType::Float64 || x.dtype() == DType::Float32) return x;
  return {cast(x.real, DType::Float32), cast(x.imaginary, DType::Float32)};
}

Complex moved(const Complex& x, int axis) {
  if (axis == x.shape().rank() - 1) return x;
  return {transpose(x.real, axis, -1), transpose(x.imaginary, axis, -1)};
}

// The last axis cut off or padded to n numbers.
Complex resized(const Complex& x, std::int64_t n) {
  const std::int64_t size = x.shape()[x.shape().rank() - 1];
  return size > n ? part(x, -1, 0, n) : padded(x, n);
}

int axis_of(const Complex& x, int axis, const OpPlace& place) {
  if (x.shape().rank() == 0)
    throw make_error<ShapeError>(place, ": a transform needs an axis, and this is a scalar");
  return normalize_axis(axis, x.shape().rank(), place);
}

void require_length(std::int64_t n, const OpPlace& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // whose square is a 64-bit number
  if (n < 1 || n > kMost)
    throw make_error<ShapeError>(place, ": a transform of ", n, " numbers, must be 1 to ", kMost);
}

double scale_of(std::int64_t n, bool inverse, Norm norm) {
  const auto count = static_cast<double>(n);
  if (norm == Norm::Ortho) return 1 / std::sqrt(count);
  return (norm == Norm::Backward) == inverse ? 1 / count : 1;
}

Complex scaled(const Complex& x, double factor) {
  return factor == 1 ? x : Complex(x.real * factor, x.imaginary * factor);
}

// The results for the numbers of one axis, of which the first `kept` are returned.
Complex along(const Complex& given, Length length, int axis, bool inverse, double scale_norm,
              std::int64_t kept) {
  const PrecisionScope exact(Precision::Fp32);
  const Complex x = resized(moved(floating(given), axis), *length);
  // The inverse is the conjugate of the conjugate's transform.
  Complex out = transformed(inverse ? conj(x) : x, *length);
  if (inverse) out = conj(out);
  if (kept < *length) out = part(out, -1, 0, kept);
  return moved(scaled(out, scale_norm), axis);
}

Complex whole(const char* name, const Complex& x, Length n, int axis, bool inverse, Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(x.shape()[a]);
  require_length(length, place);
  return along(x, length, a, inverse, scale_of(length, inverse, norm), length);
}

// The first half of the results for real numbers.
Complex half(const char* name, const Tensor& x, Length n, int axis, bool inverse, Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(x.size(a));
  require_length(length, place);
  return along(x, length, a, inverse, scale_of(length, inverse, norm), length / 2 + 1);
}

// The real results for the first half of numbers, whose other half is the conjugate.
Tensor from_half(const char* name, const Complex& x, Length n, int axis, bool inverse, Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(2 * (x.shape()[a] - 1));
  require_length(length, place);
  const Complex first = resized(moved(floating(x), a), length / 2 + 1);
  const std::int64_t others = length - length / 2 - 1;
  const Complex second = part(first, -1, 1, 1 + others);
  const Complex all(concat({first.real, flip(second.real, {-1})}, -1),
                    concat({first.imaginary, flip(-second.imaginary, {-1})}, -1));
  const int last = all.shape().rank() - 1;
  const Complex out = along(all, length, last, inverse, scale_of(length, inverse, norm), length);
  return moved(out, a).real;
}

// The axes of a transform with their lengths, in order.
struct Axis {
  int axis;
  Length length;
};

std::vector<Axis> axes_of(const char* name, const Complex& x, const Extent& extent) {
  const OpPlace place = where(name);
  const int rank = x.shape().rank();
  const std::size_t sizes = extent.sizes.size(), count = extent.axes.empty()
                                                             ? (sizes > 0 ? sizes : at(rank))
                                                             : extent.axes.size();
  if (sizes > 0 && sizes != count)
    throw make_error<ValueError>(place, ": ", sizes, " sizes for ", count, " axes");
  if (count > at(rank))
    throw make_error<ShapeError>(place, ": ", count, " axes of a tensor ", x.shape());
  std::vector<Axis> out;
  std::vector<bool> taken(at(rank));
  for (std::size_t k = 0; k < count; ++k) {
    const int axis = extent.axes.empty()
                         ? rank - static_cast<int>(count - k)
                         : normalize_axis(static_cast<int>(extent.axes[k]), rank, place);
    if (taken[at(axis)]) throw make_error<ValueError>(place, ": axis ", axis, " is given twice");
    taken[at(axis)] = true;
    // -1 keeps the size, as no size does.
    const bool given = sizes > 0 && extent.sizes[k] != -1;
    out.push_back({axis, given ? Length(extent.sizes[k]) : Length()});
  }
  return out;
}

Complex all_but_last(const char* name, Complex x, const std::vector<Axis>& axes, bool inverse,
                     Norm norm) {
  for (std::size_t k = 0; k + 1 < axes.size(); ++k)
    x = whole(name, x, axes[k].length, axes[k].axis, inverse, norm);
  return x;
}

Complex several(const char* name, const Complex& x, const Extent& extent, bool inverse, Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) return x;
  return whole(name, all_but_last(name, x, axes, inverse, norm), axes.back().length,
               axes.back().axis, inverse, norm);
}

Complex several_half(const char* name, const Tensor& x, const Extent& extent, bool inverse,
                     Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) throw make_error<ShapeError>(where(name), ": a real transform needs an axis");
  const Complex first = half(name, x, axes.back().length, axes.back().axis, inverse, norm);
  return all_but_last(name, first, axes, inverse, norm);
}

Tensor several_from_half(const char* name, const Complex& x, const Extent& extent, bool inverse,
                         Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) throw make_error<ShapeError>(where(name), ": a real transform needs an axis");
  return from_half(name, all_but_last(name, x, axes, inverse, norm), axes.back().length,
                   axes.back().axis, inverse, norm);
}

const Extent kLastTwo{{}, {-2, -1}};

Tensor shifted(const char* name, const Tensor& x, const Ints& axes, bool back) {
  const Called called(name);
  Ints all = axes, shifts;
  if (all.empty())
    for (int axis = 0; axis < x.rank(); ++axis) all.push_back(axis);
  for (const std::int64_t axis : all) {
    const std::int64_t size = x.size(normalize_axis(static_cast<int>(axis), x.rank(), where(name)));
    shifts.push_back(back ? -(size / 2) : size / 2);
  }
  return all.empty() ? x : roll(x, shifts, all);
}

}  // namespace

Complex fft(const Complex& x, Length n, int axis, Norm norm) {
  return whole("fft::fft", x, n, axis, false, norm);
}
Complex ifft(const Complex& x, Length n, int axis, Norm norm) {
  return whole("fft::ifft", x, n, axis, true, norm);
}
Complex rfft(const Tensor& x, Length n, int axis, Norm norm) {
  return half("fft::rfft", x, n, axis, false, norm);
}
Tensor irfft(const Complex& x, Length n, int axis, Norm norm) {
  return from_half("fft::irfft", x, n, axis, true, norm);
}
Tensor hfft(const Complex& x, Length n, int axis, Norm norm) {
  return from_half("fft::hfft", x, n, axis, false, norm);
}
Complex ihfft(const Tensor& x, Length n, int axis, Norm norm) {
  return half("fft::ihfft", x, n, axis, true, norm);
}
Complex fftn(const Complex& x, const Extent& extent, Norm norm) {
  return several("fft::fftn", x, extent, false, norm);
}
Complex ifftn(const Complex& x, const Extent& extent, Norm norm) {
  return several("fft::ifftn", x, extent, true, norm);
}
Complex rfftn(const Tensor& x, const Extent& extent, Norm norm) {
  return several_half("fft::rfftn", x, extent, false, norm);
}
Tensor irfftn(const Complex& x, const Extent& extent, Norm norm) {
  return several_from_half("fft::irfftn", x, extent, true, norm);
}
Tensor hfftn(const Complex& x, const Extent& extent, Norm norm) {
  return several_from_half("fft::hfftn", x, extent, false, norm);
}
Complex ihfftn(const Tensor& x, const Extent& extent, Norm norm) {
  return several_half("fft::ihfftn", x, extent, true, norm);
}
Complex fft2(const Complex& x, Norm norm) { return several("fft::fft2", x, kLastTwo, false, norm); }
Complex ifft2(const Complex& x, Norm norm) {
  return several("fft::ifft2", x, kLastTwo, true, norm);
}
Complex rfft2(const Tensor& x, Norm norm) {
  return several_half("fft::rfft2", x, kLastTwo, false, norm);
}
Tensor irfft2(const Complex& x, Norm norm) {
  return several_from_half("fft::irfft2", x, kLastTwo, true, norm);
}

Tensor fftshift(const Tensor& x, const Ints& axes) {
  return shifted("fft::fftshift", x, axes, false);
}
Tensor ifftshift(const Tensor& x, const Ints& axes) {
  return shifted("fft::ifftshift", x, axes, true);
}

Tensor fftfreq(std::int64_t n, double distance) {
  const Called called("fft::fftfreq");
  require_length(n, where("fft::fftfreq"));
  const Tensor steps =
      concat({arange(0, (n + 1) / 2, 1, DType::Float32), arange(-(n / 2), 0, 1, DType::Float32)});
  return steps * (1 / (static_cast<double>(n) * distance));
}

Tensor rfftfreq(std::int64_t n, double distance) {
  const Called called("fft::rfftfreq");
  require_length(n, where("fft::rfftfreq"));
  return arange(0, n / 2 + 1, 1, DType::Float32) * (1 / (static_cast<double>(n) * distance));
}

}  // namespace tenon::fft
