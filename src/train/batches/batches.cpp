// Scaling of batches on the device, and measurement of the time spent waiting for data.
#include "train/batches/batches.h"

#include <algorithm>

#include <tenon/ops.h>

#include "device/backend.h"
#include "train/batches/resident.h"

namespace tenon::train {

bool leave_out_absent(data::Batch& batch, const data::Dataset& set) {
  // Targets of another type are computed from the class by a user's function.
  if (!set.any_broken() || batch.target.dtype() != DType::Int64 || batch.target.numel() == 0)
    return true;
  const std::vector<std::int64_t> targets = batch.target.to_vector<std::int64_t>();
  const std::ptrdiff_t each = std::ssize(targets) / batch.size;
  std::vector<std::int64_t> there;
  for (std::int64_t k = 0; k < batch.size; ++k) {
    const auto first = targets.begin() + k * each;
    if (std::count(first, first + each, data::kIgnoredTarget) < each) there.push_back(k);
  }
  if (std::ssize(there) == batch.size) return true;
  batch.size = std::ssize(there);
  if (there.empty()) return false;
  const Tensor numbers = Tensor::from(there, {batch.size});
  batch.input = index_select(batch.input, 0, numbers).compute();
  batch.target = index_select(batch.target, 0, numbers).compute();
  return true;
}

Tensor views_as_examples(const Tensor& input) {
  Ints sizes{input.size(0) * input.size(1)};
  for (int axis = 2; axis < input.rank(); ++axis) sizes.push_back(input.size(axis));
  return reshape(input, sizes);
}

Batches::Batches(data::Loader& loader) : loader_(loader) {
  const Device device = current_device();
  if (device.kind == Device::Kind::Cpu) return;
  clock_ = backend_of(device).make_idle_clock(device.index);
  const data::Dataset& set = loader.dataset();
  // A dataset in memory is small, and not worth a kernel.
  stored_ = loader.options().augment.any() || !(set.in_memory() || set.made_on_demand());
  const PixelScale scale = stored_ ? pixel_scale(loader) : PixelScale();
  scales_ = !scale.factor.empty();
  if (scales_)
    scale_ = compile([scale](const std::vector<Tensor>& in) { return std::vector{scale(in[0])}; });
}

bool Batches::next(data::Batch& batch) {
  const auto asked = std::chrono::steady_clock::now();
  if (clock_) clock_->begin();
  const bool any = stored_ ? loader_.next_stored(batch) : loader_.next(batch);
  if (clock_)
    clock_->end();
  else
    waited_ += std::chrono::steady_clock::now() - asked;
  if (any && scales_) batch.input = scale_({batch.input})[0];
  return any;
}

double Batches::waited() { return clock_ ? clock_->seconds() : waited_.count(); }

}  // namespace tenon::train
