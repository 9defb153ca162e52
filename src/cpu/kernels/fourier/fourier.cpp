// Rows of an array are read into neighbouring places, transformed, and written to the results.
//
// A row of an even number n of real numbers is transformed as n / 2 complex numbers, z[j] = x[2j] +
// i x[2j + 1]; so are n complex numbers of whose results only the real parts are wanted. Short rows
// are transformed as the lanes of a block, others one by one (fourier_row.h).
#include "cpu/kernels/fourier/fourier.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/fourier/fourier_row.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kShort = 256;          // rows below are lanes of a block
constexpr std::int64_t kShortColumns = 4096;  // as kShort, of neighbouring columns
constexpr std::int64_t kShared = 1 << 16;     // rows from here on are shared by the threads
constexpr std::int64_t kElements = 1 << 14;   // least number of elements for another thread

template <class T>
class Transforms final : public Fourier {
 public:
  Transforms(const FourierShape& shape, int threads)
      : s_(shape),
        halved_(
            shape.length % 2 == 0 &&
            (shape.has_imaginary ? shape.wants_real && !shape.wants_imaginary : !shape.mirrored)),
        n_(halved_ ? shape.length / 2 : shape.length),
        columns_(shape.inner >= kLanes && !halved_ && !shape.mirrored && n_ <= kShortColumns &&
                 has_fourier_passes(n_)) {
    if (columns_ || (n_ < kShort && has_fourier_passes(n_)))
      table_.emplace(n_);
    else
      row_ = std::make_unique<FourierRow<T>>(n_);
    if (halved_) make_factors();
    spread_ = row_ != nullptr && n_ >= kShared;
    const std::int64_t places = spread_ ? 1 : threads;
    places_ = threads * block_size();
    workspace_bytes = at(places_ + places * place_size()) * sizeof(T);
  }

  void run(const FourierArrays& arrays, std::byte* workspace) const override {
    const auto in = [](const std::byte* data) { return reinterpret_cast<const T*>(data); };
    const auto out = [](std::byte* data) { return reinterpret_cast<T*>(data); };
    Call call{in(arrays.real), in(arrays.imaginary), out(arrays.out_real),
              out(arrays.out_imaginary), out(workspace)};
    // The inverse transform is that of swapped parts, swapped.
    if (s_.inverse && !halved_)
      std::swap(call.real, call.imaginary), std::swap(call.out_real, call.out_imaginary);
    if (columns_) return run_columns(call);
    if (table_) return run_lanes(call);
    run_rows(call);
  }

 private:
  static constexpr std::int64_t kLanes = kFourierLanes<T>;

  struct Call {
    const T *real, *imaginary;
    T *out_real, *out_imaginary, *workspace;
  };

  // exp(-2πi k / length) for k up to length / 2.
  void make_factors() {
    FourierAngles angles;
    for (std::int64_t k = 0; k <= n_; ++k) angles.add(k, s_.length);
    cosines_.assign(angles.cosines.begin(), angles.cosines.end());
    sines_.assign(angles.sines.begin(), angles.sines.end());
  }

  // Scratch: for each worker (or once, if the threads share rows) a place with the numbers and the
  // results of the rows at hand, and for each worker a block.
  std::int64_t pitch() const { return n_ + 1; }  // of arrays of a row
  std::int64_t place_size() const {
    if (columns_) return 0;
    return row_ == nullptr ? 2 * kLanes * pitch()
                           : round_up(4 * pitch() + row_->row_scratch(), kLanes);
  }
  std::int64_t block_size() const {
    return row_ == nullptr ? 4 * kLanes * n_ : round_up(row_->block_scratch(), kLanes);
  }

  std::int64_t rows() const { return s_.outer * s_.inner; }
  std::int64_t first_of(std::int64_t row, std::int64_t size) const {
    return row / s_.inner * size * s_.inner + row % s_.inner;
  }
  T scale() const { return static_cast<T>(s_.scale); }

  // f(unit, worker) for units of `elements` elements.
  template <class F>
  static void in_chunks(std::int64_t units, std::int64_t elements, F&& f) {
    const std::int64_t each =
        std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, elements));
    parallel_for(divide_up(units, each), [&](std::int64_t chunk, int worker) {
      for (std::int64_t u = chunk * each; u < std::min(units, (chunk + 1) * each); ++u)
        f(u, worker);
    });
  }

  // Neighbouring columns are lanes in place.
  void run_columns(const Call& call) const {
    const FourierLoops<T>& loops = fourier_loops<T>();
    const std::int64_t blocks = divide_up(s_.inner, kLanes);
    in_chunks(s_.outer * blocks, n_ * kLanes, [&](std::int64_t unit, int worker) {
      const std::int64_t outer = unit / blocks, column = unit % blocks * kLanes,
                         lanes = std::min(kLanes, s_.inner - column),
                         from = outer * s_.given * s_.inner + column,
                         to = outer * s_.kept * s_.inner + column;
      T* const block = call.workspace + worker * block_size();
      const auto input = [&](const T* x) { return x == nullptr ? x : x + from; };
      const auto result = [&](T* y) { return y == nullptr ? y : y + to; };
      loops.load(s_.given, lanes, input(call.real), input(call.imaginary), 1, s_.inner, block);
      std::fill(block + 2 * kLanes * s_.given, block + 2 * kLanes * n_, T{});
      T* const results = loops.transform(table_->table(), block, block + 2 * kLanes * n_);
      loops.store(s_.kept, lanes, results, scale(), result(call.out_real),
                  result(call.out_imaginary), 1, s_.inner);
    });
  }

  void run_lanes(const Call& call) const {
    const FourierLoops<T>& loops = fourier_loops<T>();
    const std::int64_t lane = 2 * pitch();
    in_chunks(divide_up(rows(), kLanes), n_ * kLanes, [&](std::int64_t unit, int worker) {
      const std::int64_t row = unit * kLanes, lanes = std::min(kLanes, rows() - row);
      T* const block = call.workspace + worker * block_size();
      T* const place = call.workspace + places_ + worker * place_size();
      for (std::int64_t l = 0; l < lanes; ++l) gather(call, row + l, place + l * lane);
      loops.load(n_, lanes, place, place + pitch(), lane, 1, block);
      T* const results = loops.transform(table_->table(), block, block + 2 * kLanes * n_);
      loops.store(n_, lanes, results, scale(), place, place + pitch(), lane, 1);
      for (std::int64_t l = 0; l < lanes; ++l) scatter(call, row + l, place + l * lane);
    });
  }

  void run_rows(const Call& call) const {
    const auto transform = [&](std::int64_t row, int worker) {
      T* const place = call.workspace + places_ + worker * place_size();
      gather(call, row, place);
      T* const results = place + 2 * pitch();
      row_->run({place, place + pitch()}, {results, results + pitch()}, scale(),
                {results + 2 * pitch(), call.workspace, block_size()});
      scatter(call, row, results);
    };
    if (!spread_) return in_chunks(rows(), n_, transform);
    for (std::int64_t row = 0; row < rows(); ++row) transform(row, 0);
  }

  // ---- Reading a row ----------------------------------------------------------------------------

  void gather(const Call& call, std::int64_t row, T* place) const {
    const std::int64_t first = first_of(row, s_.given);
    const T* const real = call.real == nullptr ? nullptr : call.real + first;
    const T* const imaginary = call.imaginary == nullptr ? nullptr : call.imaginary + first;
    if (!halved_) {
      read(real, s_.given, 1, n_, place);
      read(imaginary, s_.given, 1, n_, place + pitch());
      if (s_.mirrored) mirror(place);
    } else if (!s_.has_imaginary) {  // whatever is wanted
      read(real, (s_.given + 1) / 2, 2, n_, place);
      read(real + s_.inner, s_.given / 2, 2, n_, place + pitch());
    } else {
      pack(real, imaginary, place);
    }
  }

  // Calls f with the distance of neighbours in a row, which is known when the loops of f are
  // compiled if it is 1: vectors then load and store it.
  template <class F>
  void with_inner(F&& f) const {
    if (s_.inner == 1) return f(std::integral_constant<std::int64_t, 1>());
    f(s_.inner);
  }

  void read(const T* from, std::int64_t count, std::int64_t step, std::int64_t n, T* to) const {
    if (from == nullptr) count = 0;
    with_inner([&](auto inner) {
      if (step == 1)
        for (std::int64_t j = 0; j < count; ++j) to[j] = from[j * inner];
      else
        for (std::int64_t j = 0; j < count; ++j) to[j] = from[2 * j * inner];
    });
    std::fill(to + count, to + n, T{});
  }

  // The second half of the numbers are the conjugates of the first, whose first number is real.
  // With swapped parts, these are the negative conjugates.
  void mirror(T* place) const {
    T *const kept = s_.inverse ? place + pitch() : place, *const negated =
                                                              s_.inverse ? place : place + pitch();
    negated[0] = 0;
    for (std::int64_t j = 1; j < s_.given; ++j) {
      kept[n_ - j] = kept[j];
      negated[n_ - j] = 2 * j == n_ ? T{} : -negated[j];
    }
  }

  // The real parts of the results are the transform of h[k] = (z[k] + conj z[length - k]) / 2, of
  // which those with even and odd numbers are transforms of h[k] + h[k + n] and w(k / length)
  // (h[k] - h[k + n]).
  void pack(const T* real, const T* imaginary, T* place) const {
    T *const re = place, *const im = place + pitch();
    const std::int64_t count = std::min(s_.given, n_ + 1);
    const T half = T(0.5), inner = s_.mirrored ? T{1} : half, sign = s_.inverse ? T{-1} : T{1};
    with_inner([&](auto step) {
#pragma GCC ivdep
      for (std::int64_t k = 0; k < count; ++k) {
        re[k] = inner * real[k * step];
        im[k] = sign * inner * imaginary[k * step];
      }
    });
    std::fill(re + count, re + n_ + 1, T{});
    std::fill(im + count, im + n_ + 1, T{});
    re[0] = real[0], im[0] = 0;
    if (s_.given > n_) re[n_] = real[n_ * s_.inner], im[n_] = 0;
    for (std::int64_t k = n_ + 1; k < s_.given; ++k) {
      re[s_.length - k] += half * real[k * s_.inner];
      im[s_.length - k] -= sign * half * imaginary[k * s_.inner];
    }
    join_all(re, im);
  }

  // Number k from the sum (x, y) and the difference (u, v) of h[k] and conj h[n - k].
  void join_all(T* re, T* im) const {
    const T *const cosines = cosines_.data(), *const sines = sines_.data();
    const std::int64_t n = n_;
    const auto join = [=](std::int64_t k, T x, T y, T u, T v) {
      re[k] = x - (u * sines[k] + v * cosines[k]);
      im[k] = y + (u * cosines[k] - v * sines[k]);
    };
    // No number is read or written for two k.
#pragma GCC ivdep
    for (std::int64_t k = 0; k < (n + 1) / 2; ++k) {
      const T a = re[k], b = im[k], c = re[n - k], d = im[n - k];
      join(k, a + c, b - d, a - c, b + d);
      join(n - k, c + a, d - b, c - a, d + b);
    }
    const std::int64_t middle = n / 2;
    if (2 * middle == n) join(middle, 2 * re[middle], T{}, T{}, 2 * im[middle]);
  }

  // ---- Writing a row ----------------------------------------------------------------------------

  void scatter(const Call& call, std::int64_t row, T* place) const {
    const std::int64_t first = first_of(row, s_.kept);
    T* const real = call.out_real == nullptr ? nullptr : call.out_real + first;
    T* const imaginary = call.out_imaginary == nullptr ? nullptr : call.out_imaginary + first;
    if (!halved_) {
      put(place, s_.kept, 1, real);
      put(place + pitch(), s_.kept, 1, imaginary);
    } else if (s_.has_imaginary) {
      put(place, (s_.kept + 1) / 2, 2, real);
      put(place + pitch(), s_.kept / 2, 2, real + s_.inner);
    } else {
      unpack(place, real, imaginary);
    }
  }

  void put(const T* from, std::int64_t count, std::int64_t step, T* to) const {
    if (to == nullptr) return;
    with_inner([&](auto inner) {
      if (step == 1)
        for (std::int64_t k = 0; k < count; ++k) to[k * inner] = from[k];
      else
        for (std::int64_t k = 0; k < count; ++k) to[2 * k * inner] = from[k];
    });
  }

  // X[k] = e[k] + w(k / length) o[k], where e and o are the transforms of the numbers x[2j] and
  // x[2j + 1]: (z[k] + conj z[n - k]) / 2 and (z[k] - conj z[n - k]) / 2i.
  void unpack(T* place, T* real, T* imaginary) const {
    const T *const re = place, *const im = place + pitch();
    place[n_] = re[0], place[pitch() + n_] = im[0];
    const T half = T(0.5), sign = s_.inverse ? T{-1} : T{1};
    const std::int64_t n = n_, count = std::min(s_.kept, n + 1),
                       reals = real == nullptr ? 0 : count,
                       others = imaginary == nullptr ? 0 : count;
    const T *const cosines = cosines_.data(), *const sines = sines_.data();
    with_inner([&](auto inner) {
#pragma GCC ivdep
      for (std::int64_t k = 0; k < reals; ++k)
        real[k * inner] = half * (re[k] + re[n - k] + (im[k] + im[n - k]) * cosines[k] -
                                  (re[n - k] - re[k]) * sines[k]);
#pragma GCC ivdep
      for (std::int64_t k = 0; k < others; ++k)
        imaginary[k * inner] =
            sign * half *
            (im[k] - im[n - k] + (im[k] + im[n - k]) * sines[k] + (re[n - k] - re[k]) * cosines[k]);
      for (std::int64_t k = n + 1; k < s_.kept; ++k) {
        const std::int64_t to = k * inner, from = (s_.length - k) * inner;
        if (real != nullptr) real[to] = real[from];
        if (imaginary != nullptr) imaginary[to] = -imaginary[from];
      }
    });
  }

  const FourierShape s_;
  const bool halved_;
  const std::int64_t n_;  // complex numbers of a transform
  const bool columns_;
  bool spread_ = false;
  std::int64_t places_ = 0;  // in the workspace, behind the blocks
  std::optional<FourierFactors<T>> table_;
  std::unique_ptr<const FourierRow<T>> row_;
  std::vector<T> cosines_, sines_;
};

}  // namespace

std::unique_ptr<const Fourier> fourier(const FourierShape& shape, DType dtype, int threads) {
  if (dtype == DType::Float64) return std::make_unique<Transforms<double>>(shape, threads);
  return std::make_unique<Transforms<float>>(shape, threads);
}

}  // namespace tenon::cpu
