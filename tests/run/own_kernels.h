// Own kernels for tests on the CPU and on GPUs: element-wise formulas, and an operation on rows.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test {

/// x sigmoid(b x) as one expression, with first and second derivatives with respect to x and b.
inline const ElementwiseKernel& swish() {
  static const ElementwiseKernel xx(
      "swish_dxdx", ElementFormula(
                        [](auto x, auto b) {
                          using T = decltype(x);
                          const T s = T(1) / (T(1) + std::exp(-b * x));
                          return b * s * (T(1) - s) * (T(2) + b * x * (T(1) - 2 * s));
                        },
                        "const T s = T(1) / (T(1) + exp(-b * x));\n"
                        "return b * s * (T(1) - s) * (T(2) + b * x * (T(1) - 2 * s));  // a body",
                        {"x", "b"})),
      xb("swish_dxdb", ElementFormula(
                           [](auto x, auto b) {
                             using T = decltype(x);
                             const T s = T(1) / (T(1) + std::exp(-b * x));
                             return x * s * (T(1) - s) * (T(2) + b * x * (T(1) - 2 * s));
                           },
                           "const T s = T(1) / (T(1) + exp(-b * x));\n"
                           "return x * s * (T(1) - s) * (T(2) + b * x * (T(1) - 2 * s));",
                           {"x", "b"})),
      bb("swish_dbdb", ElementFormula(
                           [](auto x, auto b) {
                             using T = decltype(x);
                             const T s = T(1) / (T(1) + std::exp(-b * x));
                             return x * x * x * s * (T(1) - s) * (T(1) - 2 * s);
                           },
                           "const T s = T(1) / (T(1) + exp(-b * x));\n"
                           "return x * x * x * s * (T(1) - s) * (T(1) - 2 * s);",
                           {"x", "b"})),
      dx("swish_dx",
         TENON_ELEMENTWISE(
             (x, b), (1 + exp(-b * x) * (1 + b * x)) / ((1 + exp(-b * x)) * (1 + exp(-b * x)))),
         {xx, xb}),
      db("swish_db",
         TENON_ELEMENTWISE((x, b), x * x * exp(-b * x) / ((1 + exp(-b * x)) * (1 + exp(-b * x)))),
         {xb, bb}),
      f("swish", TENON_ELEMENTWISE((x, b), x / (1 + exp(-b * x))), {dx, db});
  return f;
}

/// a b + c, with derivatives of the first order.
inline const ElementwiseKernel& blend() {
  static const ElementwiseKernel da("blend_da", TENON_ELEMENTWISE((a, b, c), b)),
      db("blend_db", TENON_ELEMENTWISE((a, b, c), a)),
      dc("blend_dc", TENON_ELEMENTWISE((a, b, c), T(1))),
      f("blend", TENON_ELEMENTWISE((a, b, c), a * b + c), {da, db, dc});
  return f;
}

/// A function without a gradient that calls one function of each kind.
inline const ElementwiseKernel& many_functions() {
  static const ElementwiseKernel f(
      "many_functions",
      TENON_ELEMENTWISE((x), abs(x) + exp(-x * x) + log1p(x * x) + sqrt(x * x + 1) + sin(x) +
                                 cos(x) + tanh(x) + erf(x) + floor(x) + pow(abs(x) + 1, T(1.5)) +
                                 atan2(x, T(2))));
  return f;
}
inline Tensor composed_functions(const Tensor& x) {
  return abs(x) + exp(-x * x) + log1p(x * x) + sqrt(x * x + 1) + sin(x) + cos(x) + tanh(x) +
         erf(x) + floor(x) + pow(abs(x) + 1, 1.5) + atan2(x, full_like(x, 2));
}

inline double widened(double x) { return x; }
inline double widened(float x) { return static_cast<double>(x); }
inline double widened(float16 x) { return static_cast<double>(static_cast<float>(x)); }
inline double widened(bfloat16 x) { return static_cast<double>(static_cast<float>(x)); }
inline void store(double& to, double x) { to = x; }
template <class T>
void store(T& to, double x) {
  to = static_cast<T>(static_cast<float>(x));
}

template <class T>
void row_norms_as(std::span<const HostInput> in, std::span<const HostOutput> out) {
  const T* const x = static_cast<const T*>(in[0].data());
  T* const scaled = static_cast<T*>(out[0].data());
  T* const norms = static_cast<T*>(out[1].data());
  const std::int64_t columns = in[0].shape()[1];
  parallel_for(0, in[0].shape()[0], 4, [&](std::int64_t row, std::int64_t end) {
    for (; row < end; ++row) {
      double sum = 0;
      for (std::int64_t k = 0; k < columns; ++k)
        sum += widened(x[row * columns + k]) * widened(x[row * columns + k]);
      const double norm = std::sqrt(sum);
      store(norms[row], norm);
      for (std::int64_t k = 0; k < columns; ++k)
        store(scaled[row * columns + k], widened(x[row * columns + k]) / norm);
    }
  });
}

inline void row_norms_on_host(std::span<const HostInput> in, std::span<const HostOutput> out) {
  switch (in[0].dtype()) {
    case DType::Float16:
      return row_norms_as<float16>(in, out);
    case DType::BFloat16:
      return row_norms_as<bfloat16>(in, out);
    case DType::Float32:
      return row_norms_as<float>(in, out);
    default:
      return row_norms_as<double>(in, out);
  }
}

inline const char* row_norms_source() {
  return R"(
// One block a row. Sums in a fixed order: a tree over the threads.
extern "C" __global__ void row_norms(const T* x, Result0* scaled, Result1* norms, long long columns) {
  __shared__ Real sums[64];
  const long long row = blockIdx.x;
  Real sum = 0;
  for (long long k = threadIdx.x; k < columns; k += 64) {
    const Real value = x[row * columns + k];
    sum += value * value;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const Real norm = tenon::scalar::sqrt(sums[0]);
  if (threadIdx.x == 0) norms[row] = norm;
  for (long long k = threadIdx.x; k < columns; k += 64) {
    const Real value = x[row * columns + k];
    scaled[row * columns + k] = value / norm;
  }
}
)";
}

/// Rows divided by their norm, and the norms.
inline const Operation& row_norms() {
  static const Operation operation(
      "row_norms", {.infer =
                        [](std::span<const TensorType> in) {
                          if (in.size() != 1 || in[0].shape.rank() != 2)
                            throw ShapeError("takes one matrix");
                          return std::vector<TensorType>{in[0], {in[0].dtype, {in[0].shape[0], 1}}};
                        },
                    .cpu = row_norms_on_host,
                    .cuda = {.source = row_norms_source(),
                             .entry = "row_norms",
                             .launch =
                                 [](const KernelTypes& types) {
                                   const Shape& shape = types.inputs[0].shape;
                                   return CudaLaunch{
                                       .grid = {shape[0]}, .block = {64}, .numbers = {shape[1]}};
                                 }},
                    .gradient =
                        [](const FunctionContext& context, const Tensor& g, const Tensor& g_norm) {
                          const Tensor &y = context.results()[0], &norm = context.results()[1];
                          return (g - y * sum(g * y, 1, true)) / norm + g_norm * y;
                        }});
  return operation;
}

/// The same composed of the library's operations.
inline std::vector<Tensor> composed_row_norms(const Tensor& x) {
  const Tensor norm = sqrt(sum(x * x, 1, true));
  return {x / norm, norm};
}

}  // namespace tenon::test
