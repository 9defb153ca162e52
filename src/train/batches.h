// Batches of a loader on the compute device, and the time spent waiting for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <tenon/data.h>
#include <tenon/eval.h>

#include "device/uploads.h"

namespace tenon::train {

/// Takes samples out of a batch that there are none of: images of the set that could not be
/// decoded. False when none is left.
bool leave_out_absent(data::Batch& batch, const data::Dataset& set);
/// Inputs [N, views, …] as those of N * views samples.
Tensor views_as_examples(const Tensor& input);

/// On a GPU bytes that threads prepare are sent as they are, beside the work, and scaled there.
class Batches {
 public:
  explicit Batches(data::Loader& loader);
  /// As Loader::next().
  bool next(data::Batch& batch);
  /// Seconds that the device did nothing because a batch was not there.
  double waited();

 private:
  data::Loader& loader_;
  bool stored_ = false, scales_ = false;
  std::unique_ptr<IdleClock> clock_;  // null: the host's own tells
  CompiledFunction scale_;
  std::chrono::duration<double> waited_{};
};

}  // namespace tenon::train
