// Copying a set to the card, and the graph that takes batches from it.
#include "train/resident.h"

#include <numeric>

#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "graph/node.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;

}  // namespace

Shape with_count(std::int64_t count, const Shape& shape) {
  Shape out{count};
  for (std::int64_t extent : shape) out.push_back(extent);
  return out;
}

Tensor ResidentSet::input(const Tensor& numbers) const {
  const Tensor stored = index_select(inputs, 0, numbers);
  return scaled ? cast(stored, DType::Float32) * factor + offset : stored;
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
  const data::LoaderOptions& o = loader.options();
  out.scaled = o.scale && set.input_dtype() == DType::UInt8;
  out.factor = static_cast<float>(1.0 / (255.0 * o.std));
  out.offset = static_cast<float>(-o.mean / o.std);
  return out;
}

}  // namespace tenon::train
