// Rows by two steps of shorter transforms (fourier_row.h), and the tables of all Fourier
// transforms.
#include "cpu/kernels/fourier/fourier_row.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/isa.h"

namespace tenon::cpu {
namespace {

// The prime factors of n, pairs of 2 as 4: the first passes have the most groups, and 4 has the
// cheapest butterfly for its size.
std::vector<std::int64_t> radices(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (const std::int64_t radix : {4, 2})
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  for (std::int64_t p = 3; p * p <= n; p += 2)
    for (; n % p == 0; n /= p) out.push_back(p);
  if (n > 1) out.push_back(n);
  return out;
}

// The divisor of n that is nearest to its square root from below; 1 if the row is a convolution.
std::int64_t columns_of(std::int64_t n) {
  if (!has_fourier_passes(n)) return 1;
  auto n1 = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % n1 != 0) --n1;
  return n1;
}

std::int64_t power_for(std::int64_t n) {
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  return m;
}

// out = a b, or with the parts of the result swapped.
template <class T>
void multiply(std::int64_t n, FourierParts<const T> a, const T* cosines, const T* sines, T scale,
              FourierParts<T> out) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const T c = cosines[i] * scale, s = sines[i] * scale, x = a.real[i], y = a.imaginary[i];
    out.real[i] = x * c - y * s;
    out.imaginary[i] = x * s + y * c;
  }
}

}  // namespace

bool has_fourier_passes(std::int64_t n) {
  return radices(n).empty() || radices(n).back() <= kLargestRadix;
}

void FourierAngles::add(std::int64_t steps, std::int64_t circle) {
  const double angle =
      2 * std::numbers::pi * static_cast<double>(steps) / static_cast<double>(circle);
  cosines.push_back(std::cos(angle));
  sines.push_back(-std::sin(angle));
}

namespace {

std::vector<FourierPass> passes_of(std::int64_t n, FourierAngles& angles) {
  std::vector<FourierPass> passes;
  std::int64_t rest = n, stride = 1;
  for (const std::int64_t radix : radices(n)) {
    FourierPass pass{radix, rest / radix, stride, 2 * std::ssize(angles.sines), 0};
    for (std::int64_t k = 0; k < radix; ++k) angles.add(k, radix);
    pass.rotations = 2 * std::ssize(angles.sines);
    for (std::int64_t group = 0; group < pass.groups; ++group)
      for (std::int64_t k = 1; k < radix; ++k) angles.add(group * k, rest);
    passes.push_back(pass);
    rest /= radix, stride *= radix;
  }
  return passes;
}

// Of the product with n1 rows of n2 numbers, or of the convolution.
FourierAngles row_angles(std::int64_t n, std::int64_t n1) {
  FourierAngles angles;
  if (n1 == 1)
    for (std::int64_t j = 0; j < n; ++j) angles.add(j * j % (2 * n), 2 * n);
  else
    for (std::int64_t a = 0; a < n1; ++a)
      for (std::int64_t b = 0; b < n / n1; ++b) angles.add(a * b, n);
  return angles;
}

}  // namespace

template <class T>
FourierFactors<T>::FourierFactors(std::int64_t n) : n_(n) {
  FourierAngles angles;
  passes_ = passes_of(n, angles);
  for (std::size_t i = 0; i < angles.sines.size(); ++i) {
    factors_.push_back(static_cast<T>(angles.cosines[i]));
    factors_.push_back(static_cast<T>(angles.sines[i]));
  }
}

template <class T>
FourierRow<T>::FourierRow(std::int64_t n) : FourierRow(n, columns_of(n)) {}

template <class T>
FourierRow<T>::FourierRow(std::int64_t n, std::int64_t n1)
    : n_(n), columns_(n1), rows_(n1 == 1 ? 1 : n / n1) {
  const FourierAngles angles = row_angles(n, n1);
  cosines_.assign(angles.cosines.begin(), angles.cosines.end());
  sines_.assign(angles.sines.begin(), angles.sines.end());
  if (n1 == 1) make_filter();
}

template <class T>
void FourierRow<T>::make_filter() {
  const std::int64_t m = power_for(n_);
  longer_ = std::make_unique<const FourierRow>(m);
  std::vector<T> real(at(m)), imaginary(at(m));
  for (std::int64_t j = 0; j < n_; ++j)
    for (const std::int64_t place : {j, (m - j) % m})
      real[at(place)] = cosines_[at(j)], imaginary[at(place)] = -sines_[at(j)];
  filter_real_.resize(at(m)), filter_imaginary_.resize(at(m));
  const OnlyThread alone;
  std::vector<T> row(at(longer_->row_scratch())), block(at(longer_->block_scratch()));
  longer_->run({real.data(), imaginary.data()}, {filter_real_.data(), filter_imaginary_.data()},
               T{1} / static_cast<T>(m), {row.data(), block.data(), 0});
}

template <class T>
std::int64_t FourierRow<T>::row_scratch() const {
  return longer_ == nullptr ? 2 * n_ : 4 * longer_->size() + longer_->row_scratch();
}

template <class T>
std::int64_t FourierRow<T>::block_scratch() const {
  if (longer_ != nullptr) return longer_->block_scratch();
  return 4 * kFourierLanes<T> * std::max(columns_.table().n, rows_.table().n);
}

template <class T>
void FourierRow<T>::run(FourierParts<const T> in, FourierParts<T> out, T scale,
                        const FourierScratch<T>& scratch) const {
  if (longer_ != nullptr) return convolve(in, out, scale, scratch);
  transform(in, out, scale, scratch);
}

template <class T>
void FourierRow<T>::transform(FourierParts<const T> in, FourierParts<T> out, T scale,
                              const FourierScratch<T>& scratch) const {
  constexpr std::int64_t kLanes = kFourierLanes<T>;
  const FourierLoops<T>& loops = fourier_loops<T>();
  const FourierTable<T> columns = columns_.table(), rows = rows_.table();
  const std::int64_t n1 = columns.n, n2 = rows.n;
  const FourierParts<T> middle{scratch.row, scratch.row + n_};
  const auto in_lanes = [&](std::int64_t lanes, const FourierTable<T>& table, auto&& f) {
    parallel_for(divide_up(lanes, kLanes), [&](std::int64_t unit, int worker) {
      T* const block = scratch.blocks + worker * scratch.block_size;
      f(unit * kLanes, std::min(kLanes, lanes - unit * kLanes), block,
        block + 2 * kLanes * table.n);
    });
  };
  in_lanes(n2, columns, [&](std::int64_t j, std::int64_t lanes, T* block, T* other) {
    loops.load(n1, lanes, in.real + j, in.imaginary + j, 1, n2, block);
    const T* const results = loops.transform(columns, block, other);
    loops.store_rotated(n1, lanes, results, cosines_.data() + j, sines_.data() + j, middle.real + j,
                        middle.imaginary + j, n2);
  });
  in_lanes(n1, rows, [&](std::int64_t k, std::int64_t lanes, T* block, T* other) {
    loops.load(n2, lanes, middle.real + k * n2, middle.imaginary + k * n2, n2, 1, block);
    T* const results = loops.transform(rows, block, other);
    loops.store(n2, lanes, results, scale, out.real + k, out.imaginary + k, 1, n1);
  });
}

// The inverse transform of the product is the transform of its swapped parts, swapped.
template <class T>
void FourierRow<T>::convolve(FourierParts<const T> in, FourierParts<T> out, T scale,
                             const FourierScratch<T>& scratch) const {
  const std::int64_t m = longer_->size();
  const FourierParts<T> a{scratch.row, scratch.row + m}, b{a.real + 2 * m, a.imaginary + 2 * m};
  FourierScratch<T> inner = scratch;
  inner.row += 4 * m;
  multiply(n_, in, cosines_.data(), sines_.data(), T{1}, a);
  std::fill(a.real + n_, a.real + m, T{});
  std::fill(a.imaginary + n_, a.imaginary + m, T{});
  longer_->run({a.real, a.imaginary}, b, T{1}, inner);
  multiply<T>(m, {b.real, b.imaginary}, filter_real_.data(), filter_imaginary_.data(), T{1}, a);
  longer_->run({a.imaginary, a.real}, {b.imaginary, b.real}, T{1}, inner);
  multiply<T>(n_, {b.real, b.imaginary}, cosines_.data(), sines_.data(), scale, out);
}

template <class T>
const FourierLoops<T>& fourier_loops() {
  constexpr bool kFloat = sizeof(T) == sizeof(float);
  const auto of_type = []([[maybe_unused]] const auto& floats,
                          [[maybe_unused]] const auto& doubles) -> const FourierLoops<T>& {
    if constexpr (kFloat)
      return floats;
    else
      return doubles;
  };
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::Amx:
    case Isa::Avx512Bf16:
    case Isa::Avx512:
      return of_type(avx512_floats_fft, avx512_doubles_fft);
    case Isa::Avx2:
      return of_type(avx2_floats_fft, avx2_doubles_fft);
#endif
    default:
      return of_type(base_floats_fft, base_doubles_fft);
  }
}

template class FourierFactors<float>;
template class FourierFactors<double>;
template class FourierRow<float>;
template class FourierRow<double>;
template const FourierLoops<float>& fourier_loops<float>();
template const FourierLoops<double>& fourier_loops<double>();

}  // namespace tenon::cpu
