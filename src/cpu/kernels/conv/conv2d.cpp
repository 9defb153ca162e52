// The three passes of a 2-d convolution: chooses an algorithm for each.
//
// A filter that covers its whole unpadded input has one output pixel and is a matrix product.
// Depthwise filters over small maps take all channels of an image as one row. All other cases are
// correlations over copied planes. No pass writes a lowered ("im2col") matrix to memory.
#include "cpu/kernels/conv/conv2d.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "cpu/kernels/conv/conv_correlate.h"
#include "cpu/kernels/conv/conv_small_maps.h"
#include "cpu/kernels/conv/conv_weight_grad.h"

namespace tenon::cpu {
namespace {

// y[n, k] = x[n, chw] w[k, chw]^T.
bool is_product(const ConvShape& s) {
  return s.groups == 1 && s.p == 1 && s.q == 1 && s.r == s.h && s.s == s.w && s.pad_h == 0 &&
         s.pad_w == 0;
}

// A 1 x 1 filter does not depend on the rows of the image. If the number of pixels allows it, the
// pixels are regrouped into rows of whole vectors. Tiles then need no code for row ends and no
// sorting.
ConvShape in_even_rows(const ConvShape& s) {
  constexpr std::int64_t kVector = 16;
  const bool pointwise = s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                         s.pad_h == 0 && s.pad_w == 0 && s.h * s.w % kVector == 0;
  if (!pointwise) return s;
  ConvShape even = s;
  even.h = even.p = s.h * s.w / kVector;
  even.w = even.q = kVector;
  return even;
}

bool is_empty(const ConvShape& s) {
  return s.n <= 0 || s.k <= 0 || s.c <= 0 || s.h <= 0 || s.w <= 0;
}

GemmShape product_shape(const ConvShape& s, ConvPass pass) {
  const std::int64_t inputs = s.c * s.r * s.s;
  switch (pass) {
    case ConvPass::Forward:
      return {1, s.n, s.k, inputs};
    case ConvPass::InputGrad:
      return {1, s.n, inputs, s.k};
    case ConvPass::WeightGrad:
      return {1, s.k, inputs, s.n};
  }
  return {};
}

// A row-major [rows, cols] matrix in one of the convolution's tensors, or its transpose.
Operand matrix(ConvOperand x, std::int64_t cols, bool transposed) {
  return {x.data, x.dtype, transposed ? 1 : cols, transposed ? cols : 1, 0, nullptr};
}

// Passes a product's rectangle (rows: images, columns: channel and pixel) to a convolution's
// epilogue, image by image, in rectangles of whole channels or of a piece of one channel.
struct PerImage {
  Epilogue epilogue;
  std::int64_t pixels;

  static void call(void* ctx, const ResultBlock& block) {
    const PerImage& self = *static_cast<const PerImage*>(ctx);
    const std::int64_t pixels = self.pixels;
    const Rectangle& from = block.place;
    for (std::int64_t image = from.row0; image < from.row1; ++image) {
      for (std::int64_t col = from.col0; col < from.col1;) {
        const std::int64_t channel = col / pixels, pixel = col % pixels;
        const std::int64_t whole = pixel == 0 ? (from.col1 - col) / pixels : 0;
        const std::int64_t end =
            whole > 0 ? col + whole * pixels : std::min(from.col1, (channel + 1) * pixels);
        const Rectangle to = {image, channel, channel + std::max<std::int64_t>(whole, 1), pixel,
                              whole > 0 ? pixels : pixel + end - col};
        float* data = block.data + (image - from.row0) * block.ld + col - from.col0;
        self.epilogue.fn(self.epilogue.ctx, {block.worker, to, data, pixels});
        col = end;
      }
    }
  }
};

// Runs a product whose epilogue is the convolution's: `pixels` to a channel of its columns.
void run_per_image(Gemm product, std::int64_t pixels) {
  PerImage per_image{product.epilogue, pixels};
  if (product.epilogue.fn != nullptr) product.epilogue = {PerImage::call, &per_image};
  gemm(product);
}

// True if the pass was computed by conv_small_maps.h. `a` and `b` are x and w, dy and w, or x and
// dy.
bool ran_small_maps(const ConvShape& shape, ConvPass pass, ConvOperand a, ConvOperand b, float* out,
                    Math math, const Epilogue& epilogue, void* workspace) {
  if (a.dtype != DType::Float32 || b.dtype != DType::Float32 || !has_small_maps(shape, math))
    return false;
  const auto *p = static_cast<const float*>(a.data), *q = static_cast<const float*>(b.data);
  if (pass == ConvPass::WeightGrad)
    correlate_small_weights(shape, p, q, out, epilogue, workspace);
  else
    correlate_small_maps(shape, pass, p, q, out, epilogue, workspace);
  return true;
}

// Without images a weight gradient is zero; the epilogue must still be called.
void zero_weights(const ConvShape& s, float* dw, const Epilogue& epilogue) {
  const std::int64_t cols = s.c / s.groups * s.r * s.s;
  std::fill_n(dw, s.k * cols, 0.0f);
  if (epilogue.fn != nullptr && s.k * cols > 0)
    epilogue.fn(epilogue.ctx, {0, {0, 0, s.k, 0, cols}, dw, cols});
}

}  // namespace

void conv2d_forward(const ConvShape& shape, ConvOperand x, ConvOperand w, float* y, Math math,
                    const Epilogue& epilogue, void* workspace) {
  if (is_empty(shape) || shape.p <= 0 || shape.q <= 0) return;
  if (is_product(shape)) {
    const std::int64_t inputs = shape.c * shape.r * shape.s;
    return run_per_image({.shape = product_shape(shape, ConvPass::Forward),
                          .a = matrix(x, inputs, false),
                          .b = matrix(w, inputs, true),
                          .c = y,
                          .ldc = shape.k,
                          .math = math,
                          .epilogue = epilogue,
                          .workspace = workspace},
                         1);
  }
  if (ran_small_maps(shape, ConvPass::Forward, x, w, y, math, epilogue, workspace)) return;
  correlate(correlation_of(in_even_rows(shape), false, y == nullptr), x, w, y, math, epilogue,
            workspace);
}

void conv2d_input_grad(const ConvShape& shape, ConvOperand dy, ConvOperand w, float* dx, Math math,
                       const Epilogue& epilogue, void* workspace) {
  if (is_empty(shape)) return;
  if (is_product(shape)) {
    const std::int64_t inputs = shape.c * shape.r * shape.s;
    return run_per_image({.shape = product_shape(shape, ConvPass::InputGrad),
                          .a = matrix(dy, shape.k, false),
                          .b = matrix(w, inputs, false),
                          .c = dx,
                          .ldc = inputs,
                          .math = math,
                          .epilogue = epilogue,
                          .workspace = workspace},
                         shape.h * shape.w);
  }
  if (ran_small_maps(shape, ConvPass::InputGrad, dy, w, dx, math, epilogue, workspace)) return;
  correlate(correlation_of(in_even_rows(shape), true, dx == nullptr), dy, w, dx, math, epilogue,
            workspace);
}

void conv2d_weight_grad(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                        const Epilogue& epilogue, void* workspace) {
  if (is_empty(shape) || shape.p <= 0 || shape.q <= 0) return zero_weights(shape, dw, epilogue);
  if (is_product(shape)) {
    const std::int64_t inputs = shape.c * shape.r * shape.s;
    return gemm({.shape = product_shape(shape, ConvPass::WeightGrad),
                 .a = matrix(dy, shape.k, true),
                 .b = matrix(x, inputs, false),
                 .c = dw,
                 .ldc = inputs,
                 .math = math,
                 .epilogue = epilogue,
                 .workspace = workspace});
  }
  if (ran_small_maps(shape, ConvPass::WeightGrad, x, dy, dw, math, epilogue, workspace)) return;
  correlate_weights(in_even_rows(shape), x, dy, dw, math, epilogue, workspace);
}

std::size_t conv2d_workspace(const ConvShape& shape, ConvPass pass, Math math, int threads) {
  return conv2d_workspace(shape, pass, math, threads, false);
}

std::int64_t conv2d_piece(const ConvShape& shape, ConvPass pass, Math math, bool result_is_null) {
  const bool pixels = shape.p > 0 && shape.q > 0 && pass != ConvPass::WeightGrad;
  if (is_empty(shape) || is_product(shape) || has_small_maps(shape, math) || !pixels) return 0;
  const bool input_grad = pass == ConvPass::InputGrad;
  return correlate_piece(correlation_of(in_even_rows(shape), input_grad, result_is_null), math);
}

std::size_t conv2d_workspace(const ConvShape& shape, ConvPass pass, Math math, int threads,
                             bool result_is_null) {
  if (is_empty(shape) || (pass != ConvPass::InputGrad && (shape.p <= 0 || shape.q <= 0))) return 0;
  if (is_product(shape))
    return gemm_workspace(product_shape(shape, pass), math, threads, result_is_null);
  const ConvShape even = in_even_rows(shape);
  const std::size_t bytes =
      pass == ConvPass::WeightGrad
          ? correlate_weights_workspace(even, math, threads)
          : correlate_workspace(correlation_of(even, pass == ConvPass::InputGrad, result_is_null),
                                math, threads);
  return has_small_maps(shape, math) ? std::max(bytes, small_maps_workspace(shape, pass, threads))
                                     : bytes;
}

}  // namespace tenon::cpu
