// Scaling on the device, and the clocks.
#include "train/batches.h"

#include "device/backend.h"
#include "train/resident.h"

namespace tenon::train {

Batches::Batches(data::Loader& loader) : loader_(loader) {
  const Device device = current_device();
  if (device.kind == Device::Kind::Cpu) return;
  clock_ = backend_of(device).make_idle_clock(device.index);
  const data::Dataset& set = loader.dataset();
  // What lies in memory is small, and not worth a kernel.
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
