// Batches of a loader on the compute device, and the time spent waiting for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <tenon/data.h>
#include <tenon/eval.h>

#include "device/uploads.h"

namespace tenon::train {

/// Removes invalid samples from a batch: images that could not be decoded. Returns false if no
/// sample is left.
bool leave_out_absent(data::Batch& batch, const data::Dataset& set);
/// Reshapes inputs [N, views, …] to N * views samples.
Tensor views_as_examples(const Tensor& input);

/// On a GPU, threads prepare bytes, which are copied asynchronously and scaled on the device.
class Batches {
 public:
  explicit Batches(data::Loader& loader);
  /// As Loader::next().
  bool next(data::Batch& batch);
  /// Seconds that the device was idle because no batch was ready.
  double waited();

 private:
  data::Loader& loader_;
  bool stored_ = false, scales_ = false;
  std::unique_ptr<IdleClock> clock_;  // null: use the host's clock
  CompiledFunction scale_;
  std::chrono::duration<double> waited_{};
};

}  // namespace tenon::train
