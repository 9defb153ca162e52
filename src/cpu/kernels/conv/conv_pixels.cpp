// Pixel-major planes: pairs are zipped along whole planes, transposed, and spread if there is
// padding or a stride.
#include "cpu/kernels/conv/conv_pixels.h"
#include "base/index.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

// Input rows [first, last) that a band of planes contains.
struct Rows {
  std::int64_t first, last;
  Rows(const Planes& p, std::int64_t out_row0) {
    const std::int64_t start = p.row_origin + out_row0 * p.row_phases;
    first = std::clamp<std::int64_t>(start, 0, p.in_h);
    last = std::clamp<std::int64_t>(start + p.rows * p.row_phases, first, p.in_h);
  }
};

bool is_whole(const Planes& p, const Rows& rows) {
  return p.row_phases == 1 && p.col_phases == 1 && p.col_origin == 0 && p.width == p.in_w &&
         rows.last - rows.first == p.rows;
}

// Distributes one row of pixels to the columns of its phases.
void spread_row(const Planes& p, std::int64_t words, const float* from, float* to) {
  const std::int64_t first = std::max<std::int64_t>(0, p.col_origin);
  const std::int64_t last = std::min(p.in_w, p.col_origin + p.width * p.col_phases);
  if (last <= first) return;
  if (p.col_phases == 1) {
    std::copy_n(from + first * words, (last - first) * words, to + (first - p.col_origin) * words);
    return;
  }
  for (std::int64_t x = first; x < last; ++x) {
    const std::int64_t at = x - p.col_origin;
    if (at % p.col_phases >= p.kept_cols) continue;
    std::copy_n(from + x * words, words,
                to + (at % p.col_phases * p.phase_size() + at / p.col_phases) * words);
  }
}

}  // namespace

std::int64_t pixel_scratch(const Planes& planes, std::int64_t words) {
  const std::int64_t rows = std::min(planes.in_h, planes.rows * planes.row_phases);
  return 2 * words * round_up(rows * planes.in_w, 16);
}

void copy_pixels(const KernelSet& kernels, const Planes& planes, const PixelSource& source,
                 std::int64_t out_row0, float* dst, float* scratch) {
  const Rows rows(planes, out_row0);
  const std::int64_t pixels = (rows.last - rows.first) * planes.in_w;
  const std::int64_t pitch = round_up(pixels, 16), words = source.words;
  const void* lines[kMaxPixelWords];
  for (std::int64_t i = 0; i < words; ++i) {
    const std::int64_t at = i * source.step + rows.first * planes.in_w;
    const void* lo = element(source.first, source.dtype, at);
    const void* hi = i < source.pairs ? element(lo, source.dtype, source.other) : nullptr;
    kernels.convert(lo, hi, source.dtype, pixels, Math::Bf16, scratch + i * pitch);
    lines[i] = scratch + i * pitch;
  }
  const bool whole = is_whole(planes, rows);
  float* flat = whole ? dst : scratch + words * pitch;
  const int count = static_cast<int>(words);
  kernels.pack_transposed({lines, count, DType::Float32}, pixels, Math::F32, flat, count);
  if (whole) return;
  std::fill_n(dst, planes.size() * words, 0.0f);
  for (std::int64_t y = rows.first; y < rows.last; ++y) {
    const std::int64_t at = y - planes.row_origin - out_row0 * planes.row_phases;
    if (at % planes.row_phases >= planes.kept_rows) continue;
    const std::int64_t row = at % planes.row_phases * planes.kept_cols * planes.phase_size() +
                             at / planes.row_phases * planes.width;
    spread_row(planes, words, flat + (y - rows.first) * planes.in_w * words, dst + row * words);
  }
}

RunPieces::RunPieces(std::int64_t length)
    : run(length), count((length + kBlockWords - 1) / kBlockWords) {
  words = count == 0 ? 0 : (length + count - 1) / count;
}

std::int64_t RunPieces::start(std::int64_t piece) const {
  return std::min(piece * words, run - words);
}

}  // namespace tenon::cpu
