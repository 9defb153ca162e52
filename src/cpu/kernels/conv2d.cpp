// Two-dimensional convolution, portable form.
#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"

namespace tenon::cpu {
namespace {
float load(ConvOperand o, std::int64_t i, Math math) {
  float v = 0;
  if (o.dtype == DType::Float32) v = static_cast<const float*>(o.data)[i];
  if (o.dtype == DType::BFloat16) v = static_cast<float>(static_cast<const bfloat16*>(o.data)[i]);
  if (o.dtype == DType::Float16) v = static_cast<float>(static_cast<const float16*>(o.data)[i]);
  return math == Math::Bf16 ? static_cast<float>(bfloat16(v)) : v;
}

// Calls f(kernel index, output index in y's plane, input index in x's plane) for every valid tap.
template <class F>
void taps(const ConvShape& s, F f) {
  for (std::int64_t i = 0; i < s.p; ++i)
    for (std::int64_t j = 0; j < s.q; ++j)
      for (std::int64_t a = 0; a < s.r; ++a)
        for (std::int64_t b = 0; b < s.s; ++b) {
          const std::int64_t y = i * s.stride_h - s.pad_h + a * s.dil_h,
                             x = j * s.stride_w - s.pad_w + b * s.dil_w;
          if (y >= 0 && y < s.h && x >= 0 && x < s.w) f(a * s.s + b, i * s.q + j, y * s.w + x);
        }
}
}  // namespace

void conv2d_forward(const ConvShape& s, ConvOperand x, ConvOperand w, float* y, Math math,
                    const Epilogue& e, void*) {
  const std::int64_t cg = s.c / s.groups, kg = s.k / s.groups, pq = s.p * s.q, rs = s.r * s.s,
                     hw = s.h * s.w;
  parallel_for(s.n, [&](std::int64_t n, int worker) {
    float* out = y + n * s.k * pq;
    std::fill(out, out + s.k * pq, 0.0f);
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t c = 0; c < cg; ++c)
        taps(s, [&](std::int64_t t, std::int64_t o, std::int64_t i) {
          out[k * pq + o] += load(x, (n * s.c + k / kg * cg + c) * hw + i, math) *
                             load(w, (k * cg + c) * rs + t, math);
        });
    if (e.fn) e.fn(e.ctx, worker, n, 0, s.k, 0, pq, out, pq);
  });
}

void conv2d_input_grad(const ConvShape& s, ConvOperand dy, ConvOperand w, float* dx, Math math,
                       const Epilogue& e, void*) {
  const std::int64_t cg = s.c / s.groups, kg = s.k / s.groups, pq = s.p * s.q, rs = s.r * s.s,
                     hw = s.h * s.w;
  parallel_for(s.n, [&](std::int64_t n, int worker) {
    float* out = dx + n * s.c * hw;
    std::fill(out, out + s.c * hw, 0.0f);
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t c = 0; c < cg; ++c)
        taps(s, [&](std::int64_t t, std::int64_t o, std::int64_t i) {
          out[(k / kg * cg + c) * hw + i] +=
              load(dy, (n * s.k + k) * pq + o, math) * load(w, (k * cg + c) * rs + t, math);
        });
    if (e.fn) e.fn(e.ctx, worker, n, 0, s.c, 0, hw, out, hw);
  });
}

void conv2d_weight_grad(const ConvShape& s, ConvOperand x, ConvOperand dy, float* dw, Math math,
                        const Epilogue& e, void*) {
  const std::int64_t cg = s.c / s.groups, kg = s.k / s.groups, pq = s.p * s.q, rs = s.r * s.s,
                     hw = s.h * s.w;
  parallel_for(s.k, [&](std::int64_t k, int worker) {
    float* out = dw + k * cg * rs;
    std::fill(out, out + cg * rs, 0.0f);
    for (std::int64_t n = 0; n < s.n; ++n)
      for (std::int64_t c = 0; c < cg; ++c)
        taps(s, [&](std::int64_t t, std::int64_t o, std::int64_t i) {
          out[c * rs + t] += load(x, (n * s.c + k / kg * cg + c) * hw + i, math) *
                             load(dy, (n * s.k + k) * pq + o, math);
        });
    if (e.fn) e.fn(e.ctx, worker, 0, k, k + 1, 0, cg * rs, out, cg * rs);
  });
}

std::size_t conv2d_workspace(const ConvShape&, ConvPass, Math, int) { return 64; }

}  // namespace tenon::cpu
