// Fractional max pooling: windows at random places, read by one gather for each axis.
#include <vector>

#include <tenon/error.h>
#include <tenon/pooling.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// Where the windows begin along an axis, [N, C, output], for samples [N, C] in [0, 1). The last
// window ends at the border.
Tensor beginnings(const Tensor& sample, std::int64_t size, std::int64_t kernel,
                  std::int64_t output) {
  const Tensor last = full({}, size - kernel, DType::Int64);
  const Shape shape{sample.size(0), sample.size(1), output};
  if (output == 1) return broadcast_to(last, shape);
  const double step = static_cast<double>(size - kernel) / static_cast<double>(output - 1);
  const Tensor number = arange(0, output), at = unsqueeze(sample, 2);
  const Tensor begin = cast(floor((cast(number, sample.dtype()) + at) * step), DType::Int64) -
                       cast(floor(at * step), DType::Int64);
  return where(eq(number, output - 1), last, begin);
}

ValuesAndIndices pooled(const char* op, const Tensor& x, const Ints& kernel, const Ints& output,
                        const Tensor& samples) {
  const int axes = static_cast<int>(kernel.size());
  Tensor values = x, places = zeros({1}, DType::Int64);
  std::int64_t window = 1;
  Ints split{x.size(0), x.size(1)}, order{0, 1}, shape = split;
  for (int d = 0; d < axes; ++d) {
    const auto k = static_cast<std::size_t>(d);
    const std::int64_t size = x.size(d + 2);
    if (kernel[k] < 1 || output[k] < 1 || output[k] + kernel[k] - 1 > size)
      throw make_error<ShapeError>(where(op), ": ", output[k], " windows of ", kernel[k],
                                   " elements on an axis of ", size, " of ", x.shape(),
                                   "; they must fit without leaving the axis");
    // In two dimensions PyTorch's first sample is for the width.
    const Tensor begin =
        beginnings(select(samples, 2, axes == 2 ? 1 - d : d), size, kernel[k], output[k]);
    Ints column(static_cast<std::size_t>(axes + 2), 1);
    column[0] = x.size(0), column[1] = x.size(1), column[k + 2] = output[k] * kernel[k];
    const Tensor index = reshape(unsqueeze(begin, 3) + arange(0, kernel[k]), column);
    Shape read = values.shape();
    read[d + 2] = output[k] * kernel[k];
    values = gather(values, d + 2, broadcast_to(index, read));
    places = places * size + index;
    window *= kernel[k];
    split.push_back(output[k]), split.push_back(kernel[k]);
    order.push_back(2 + 2 * d), shape.push_back(output[k]);
  }
  for (int d = 0; d < axes; ++d) order.push_back(3 + 2 * d);
  shape.push_back(window);
  const auto windows = [&](const Tensor& t) {
    return reshape(permute(reshape(t, split), order), shape);
  };
  const ValuesAndIndices found = max(windows(values), -1, true);
  const Tensor at = gather(windows(broadcast_to(places, values.shape())), axes + 2, found.indices);
  return {squeeze(found.values, -1), squeeze(at, -1)};
}

ValuesAndIndices pool(const char* op, const Tensor& x, const Ints& kernel, const Ints& output,
                      const Tensor& samples, const OptionalGenerator& generator) {
  const Called called(op);
  require_defined(op, x);
  const int axes = static_cast<int>(kernel.size());
  if (has_no_batch(x, axes + 2)) {
    const ValuesAndIndices out = pool(op, unsqueeze(x, 0), kernel, output, samples, generator);
    return {squeeze(out.values, 0), squeeze(out.indices, 0)};
  }
  if (x.rank() != axes + 2)
    throw make_error<ShapeError>(where(op), ": takes ", axes + 2, " axes, [N, C, ..], not ",
                                 x.shape());
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
  const Shape drawn{x.size(0), x.size(1), axes};
  if (samples.defined() && samples.shape() != drawn)
    throw make_error<ShapeError>(where(op), ": samples ", samples.shape(), " for x ", x.shape(),
                                 "; they must be ", drawn);
  return pooled(op, x, kernel, output,
                samples.defined() ? cast(detach(samples),
                                         x.dtype() == DType::Float64 ? x.dtype() : DType::Float32)
                                  : rand(drawn, DType::Float32, generator));
}

}  // namespace

ValuesAndIndices fractional_max_pool2d(const Tensor& x, Pair kernel, Pair output,
                                       const Tensor& samples, const OptionalGenerator& generator) {
  return pool("fractional_max_pool2d", x, {kernel.h, kernel.w}, {output.h, output.w}, samples,
              generator);
}
ValuesAndIndices fractional_max_pool3d(const Tensor& x, Triple kernel, Triple output,
                                       const Tensor& samples, const OptionalGenerator& generator) {
  return pool("fractional_max_pool3d", x, {kernel.d, kernel.h, kernel.w},
              {output.d, output.h, output.w}, samples, generator);
}

}  // namespace tenon
