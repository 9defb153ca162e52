// Coordinates of convolution passes, and copies of planes.
#include "cpu/kernels/conv/conv_geometry.h"
#include "base/index.h"

#include <algorithm>
#include <numeric>

namespace tenon::cpu {
namespace {

// Division that rounds down for negative numbers too; b > 0.
std::int64_t div_down(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// Copies `rows` source rows of one row phase, from `row` on, into as many plane rows of every
// column phase.
void split_rows(const KernelSet& kernels, const Planes& p, const PlaneSource& source,
                std::int64_t row, std::int64_t rows, Math math, float* dst) {
  constexpr std::int64_t kStretch = 512;
  const std::int64_t first = std::max<std::int64_t>(0, p.col_origin);
  const std::int64_t end = std::min(p.in_w, p.col_origin + p.width * p.col_phases);
  const std::int64_t pitch = p.row_phases * p.in_w;
  float words[kStretch];
  for (std::int64_t col = first; col < end; col += kStretch) {
    const std::int64_t count = std::min(kStretch, end - col), at_once = kStretch / count;
    for (std::int64_t i = 0; i < rows; i += at_once) {
      const std::int64_t n = std::min(at_once, rows - i), at = row * p.in_w + i * pitch + col;
      kernels.convert_rows(
          {source.at(source.lo, at), source.at(source.hi, at), source.dtype, n, count, pitch}, math,
          words, count);
      for (std::int64_t j = 0; j < std::min(count, p.col_phases); ++j) {
        const std::int64_t x = col + j - p.col_origin, phase = x % p.col_phases;
        if (phase >= p.kept_cols) continue;
        kernels.take_rows(words + j, n, count, p.col_phases, divide_up(count - j, p.col_phases),
                          dst + phase * p.phase_size() + i * p.width + x / p.col_phases, p.width);
      }
    }
  }
}

// The plane rows [first, last) of one row phase that contain input rows.
struct RowRange {
  std::int64_t first, last;
};

RowRange rows_inside(const Planes& p, std::int64_t out_row0, std::int64_t phase) {
  const std::int64_t start = p.row_origin + out_row0 * p.row_phases + phase;
  const std::int64_t first = std::max<std::int64_t>(0, divide_up(-start, p.row_phases));
  const std::int64_t end = divide_up(p.in_h - start, p.row_phases);
  return {std::min(first, p.rows), std::clamp(end, std::min(first, p.rows), p.rows)};
}

}  // namespace

Axis::Taps Axis::taps_inside(std::int64_t out0, std::int64_t out1) const {
  const std::int64_t low = out0 * stride + offset, high = (out1 - 1) * stride + offset;
  const auto outside = [&](std::int64_t tap) {
    return high + tap * offset_step < 0 || low + tap * offset_step >= in_size;
  };
  Taps taps{0, count};
  while (taps.first < taps.last && outside(taps.first)) ++taps.first;
  while (taps.last > taps.first && outside(taps.last - 1)) --taps.last;
  return taps;
}

std::int64_t Axis::lowest() const {
  return count == 0 ? 0 : std::min(offset, offset + (count - 1) * offset_step);
}

std::int64_t Axis::highest() const {
  return count == 0 ? 0 : std::max(offset, offset + (count - 1) * offset_step);
}

// Forward: output i reads i * stride - pad + t * dil. Backward: dx at h = stride * i + phase reads
// dy at (h + pad - t * dil) / stride for the taps t for which the division is exact.
Axis PassAxis::axis(int phase) const {
  Axis a;
  a.in_size = in;
  if (!backward) {
    a.out_count = out;
    a.stride = stride;
    a.count = filter;
    a.offset = -pad;
    a.offset_step = dil;
    return a;
  }
  a.out_first = phase;
  a.out_step = stride;
  a.out_count = out > phase ? divide_up(out - phase, stride) : 0;
  a.step = stride / std::gcd(stride, dil);
  const std::int64_t reach = phase + pad, candidates = std::min(a.step, filter);
  while (a.first < candidates && (reach - a.first * dil) % stride != 0) ++a.first;
  if (a.first < candidates) {
    a.count = divide_up(filter - a.first, a.step);
    a.offset = div_down(reach - a.first * dil, stride);
    a.offset_step = -(a.step * dil / stride);
  }
  return a;
}

std::int64_t Planes::offset(std::int64_t row, std::int64_t col) const {
  const std::int64_t y = row - row_origin, x = col - col_origin;
  return (y % row_phases * kept_cols + x % col_phases) * phase_size() + y / row_phases * width +
         x / col_phases;
}

Correlation correlation_of(const ConvShape& s, bool input_grad, bool in_scratch) {
  Correlation pass;
  pass.in_scratch = in_scratch;
  const std::int64_t c = s.c / s.groups, k = s.k / s.groups, taps = s.r * s.s;
  pass.images = s.n;
  pass.groups = s.groups;
  pass.in_channels = input_grad ? k : c;
  pass.out_channels = input_grad ? c : k;
  pass.out_h = input_grad ? s.h : s.p;
  pass.out_w = input_grad ? s.w : s.q;
  pass.rows = {input_grad, input_grad ? s.p : s.h, pass.out_h, s.r, s.stride_h, s.pad_h, s.dil_h};
  pass.cols = {input_grad, input_grad ? s.q : s.w, pass.out_w, s.s, s.stride_w, s.pad_w, s.dil_w};
  pass.filter_in_stride = input_grad ? c * taps : taps;
  pass.filter_out_stride = input_grad ? taps : c * taps;
  pass.filter_group_stride = k * c * taps;
  return pass;
}

Planes planes_for(const PassAxis& rows, const PassAxis& cols, std::int64_t out_rows) {
  // Plane positions from the lowest to the highest tap of any phase, for the longest line of
  // outputs.
  const auto extent = [](const PassAxis& pass, std::int64_t limit, std::int64_t& origin,
                         std::int64_t& phases) {
    const Axis first = pass.axis(0);
    std::int64_t low = first.lowest(), high = first.highest();
    for (int phase = 1; phase < pass.phases(); ++phase) {
      const Axis axis = pass.axis(phase);
      low = std::min(low, axis.lowest());
      high = std::max(high, axis.highest());
    }
    origin = low;
    phases = first.stride;
    return divide_up((std::min(limit, first.out_count) - 1) * first.stride + high - low + 1,
                     first.stride);
  };
  Planes p;
  p.in_h = rows.in;
  p.in_w = cols.in;
  p.rows = extent(rows, out_rows, p.row_origin, p.row_phases);
  p.width = extent(cols, cols.longest(), p.col_origin, p.col_phases);
  p.kept_rows = rows.filter == 1 ? 1 : p.row_phases;
  p.kept_cols = cols.filter == 1 ? 1 : p.col_phases;
  return p;
}

bool Planes::whole() const {
  return row_phases == 1 && col_phases == 1 && row_origin == 0 && col_origin == 0 && rows == in_h &&
         width == in_w;
}

void copy_plane(const KernelSet& kernels, const Planes& p, const PlaneSource& source,
                std::int64_t out_row0, Math math, float* dst) {
  if (p.whole() && out_row0 == 0) {
    kernels.convert(source.lo, source.hi, source.dtype, p.size(), math, dst);
    return;
  }
  std::fill_n(dst, p.size(), 0.0f);
  const std::int64_t first_col = std::max<std::int64_t>(0, p.col_origin);
  const std::int64_t cols = std::min(p.in_w, p.col_origin + p.width) - first_col;
  for (std::int64_t phase = 0; phase < p.kept_rows; ++phase) {
    float* const planes = dst + phase * p.kept_cols * p.phase_size();
    const RowRange range = rows_inside(p, out_row0, phase);
    const std::int64_t row = p.row_origin + (out_row0 + range.first) * p.row_phases + phase;
    if (p.col_phases > 1) {
      split_rows(kernels, p, source, row, range.last - range.first, math,
                 planes + range.first * p.width);
    } else if (range.last > range.first && cols > 0) {
      const std::int64_t at = row * p.in_w + first_col;
      kernels.convert_rows({source.at(source.lo, at), source.at(source.hi, at), source.dtype,
                            range.last - range.first, cols, p.row_phases * p.in_w},
                           math, planes + range.first * p.width + first_col - p.col_origin,
                           p.width);
    }
  }
}

Window choose_window(const KernelSet& kernels, int nv, std::int64_t rows, std::int64_t cols) {
  const std::int64_t most = kernels.max_mr[nv];
  const std::int64_t pieces = divide_up(cols, most);
  Window best{1, static_cast<int>(divide_up(cols, pieces))};
  if (pieces > 1) return best;
  for (int rp = 2; rp <= std::min<std::int64_t>(kMaxWindowRows, rows); ++rp) {
    if (rp * cols <= most && kernels.window[0][nv][rp][cols] != nullptr) best.rp = rp;
  }
  return best;
}

}  // namespace tenon::cpu
