// Chooses the packing loop by the strides: contiguous across lines, contiguous along the reduction,
// or neither.
#include "cpu/kernels/gemm/gemm_pack.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kGatherSteps = 128;

float as_float(const void* data, DType dtype, std::int64_t index) {
  if (dtype == DType::Float32) return static_cast<const float*>(data)[index];
  if (dtype == DType::BFloat16)
    return static_cast<float>(static_cast<const bfloat16*>(data)[index]);
  return static_cast<float>(static_cast<const float16*>(data)[index]);
}

// No unit stride: lines are first gathered, element by element, a short stretch at a time.
void pack_gathered(const KernelSet& kernels, const PanelSource& source, int lines, std::int64_t k,
                   Math math, float* dst, int width) {
  float gathered[kMaxNr][kGatherSteps];
  const void* rows[kMaxNr];
  for (std::int64_t k0 = 0; k0 < k; k0 += kGatherSteps) {
    const std::int64_t count = k - k0 < kGatherSteps ? k - k0 : kGatherSteps;
    for (int line = 0; line < lines; ++line) {
      rows[line] = gathered[line];
      const std::int64_t at = line * source.line_stride + k0 * source.k_stride;
      for (std::int64_t i = 0; i < count; ++i) {
        gathered[line][i] = as_float(source.data, source.dtype, at + i * source.k_stride);
      }
    }
    kernels.pack_transposed({rows, lines, DType::Float32}, count, math, dst, width);
    dst += words_of(count, kernels.pairs && math == Math::Bf16) * width;
  }
}

}  // namespace

void pack_panel(const KernelSet& kernels, const PanelSource& source, int lines, std::int64_t k,
                Math math, float* dst, int width) {
  if (source.line_stride == 1) {
    kernels.pack_rows(source.data, source.dtype, source.k_stride, k, lines, math, dst, width);
  } else if (source.k_stride == 1) {
    const void* rows[kMaxNr];
    for (int line = 0; line < lines; ++line)
      rows[line] = element(source.data, source.dtype, line * source.line_stride);
    kernels.pack_transposed({rows, lines, source.dtype}, k, math, dst, width);
  } else {
    pack_gathered(kernels, source, lines, k, math, dst, width);
  }
}

void pack_block_panel(const KernelSet& kernels, const PanelSource& source, int lines,
                      std::int64_t k, Math math, float* dst) {
  constexpr std::int64_t kElements = 2 * kBlockWords;
  for (std::int64_t k0 = 0; k0 < k; k0 += kElements, dst += kBlockWords * kBlockEdge) {
    PanelSource stretch = source;
    stretch.data = element(source.data, source.dtype, k0 * source.k_stride);
    const int count = static_cast<int>(k - k0 < kElements ? k - k0 : kElements);
    if (source.k_stride == 1) {
      for (int line = 0; line < lines; ++line) {
        const void* from = element(stretch.data, source.dtype, line * source.line_stride);
        kernels.pair_row(from, source.dtype, count, dst + line * kBlockWords);
      }
      for (int i = lines * kBlockWords; i < kBlockEdge * kBlockWords; ++i) dst[i] = 0.0f;
      continue;
    }
    float steps[kBlockWords * kBlockEdge] = {};
    pack_panel(kernels, stretch, lines, count, math, steps, kBlockEdge);
    kernels.store_transposed(steps, kBlockEdge, kBlockWords, kBlockEdge, dst, kBlockWords);
  }
}

}  // namespace tenon::cpu
