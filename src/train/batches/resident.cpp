// Copies a dataset to the GPU and builds the graph that gathers batches from it.
#include "train/batches/resident.h"

#include <numeric>

#include <tenon/ops.h>
#include <tenon/shapes_only.h>

#include "device/buffer.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;

}  // namespace

Shape with_count(std::int64_t count, const Shape& shape) {
  Shape out{count};
  for (std::int64_t extent : shape) out.push_back(extent);
  return out;
}

Tensor PixelScale::operator()(const Tensor& stored) const {
  if (factor.empty()) return stored;
  const Tensor numbers = cast(stored, DType::Float32);
  if (factor.size() == 1) return numbers * factor[0] + offset[0];
  const Shape channels{std::ssize(factor), 1, 1};
  return numbers * Tensor::from(factor, channels) + Tensor::from(offset, channels);
}

PixelScale pixel_scale(const data::Loader& loader) {
  const data::LoaderOptions& o = loader.options();
  if (!o.scale || loader.dataset().input_dtype() != DType::UInt8) return {};
  const bool by_channel = !o.channel_mean.empty();
  const std::vector<double> mean = by_channel ? o.channel_mean : std::vector{o.mean},
                            std = by_channel ? o.channel_std : std::vector{o.std};
  PixelScale out;
  for (std::size_t k = 0; k < mean.size(); ++k) {
    out.factor.push_back(static_cast<float>(1.0 / (255.0 * std[k])));
    out.offset.push_back(static_cast<float>(-mean[k] / std[k]));
  }
  return out;
}

Tensor ResidentSet::input(const Tensor& numbers) const {
  return scale(index_select(inputs, 0, numbers));
}

Tensor ResidentSet::target(const Tensor& numbers) const {
  return index_select(targets, 0, numbers);
}

std::optional<ResidentSet> resident_set(const data::Loader& loader) {
  const data::Dataset& set = loader.dataset();
  if (current_device().kind == Device::Kind::Cpu || loader.options().augment.any() ||
      !(set.in_memory() || set.made_on_demand()))
    return std::nullopt;
  const Shape inputs = with_count(set.size(), set.input_shape()),
              targets = with_count(set.size(), set.target_shape());
  const auto bytes = [](const Shape& shape, DType dtype) {
    return shape.numel() * static_cast<std::int64_t>(item_size(dtype));
  };
  const std::int64_t input_bytes = bytes(inputs, set.input_dtype()),
                     target_bytes = bytes(targets, set.target_dtype());
  if (input_bytes + target_bytes > kMostBytes) return std::nullopt;
  ResidentSet out;
  if (ShapesOnly::is_on()) {
    out.inputs = without_memory(inputs, set.input_dtype(), current_device());
    out.targets = without_memory(targets, set.target_dtype(), current_device());
  } else {
    const auto x = Buffer::allocate(static_cast<std::size_t>(input_bytes)),
               y = Buffer::allocate(static_cast<std::size_t>(target_bytes));
    std::vector<std::int64_t> all(static_cast<std::size_t>(set.size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    set.get(all, x->data(), y->data());
    out.inputs = Tensor::from_data(x->data(), inputs, set.input_dtype());
    out.targets = Tensor::from_data(y->data(), targets, set.target_dtype());
  }
  out.scale = pixel_scale(loader);
  return out;
}

}  // namespace tenon::train
