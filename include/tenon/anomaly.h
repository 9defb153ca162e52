// DetectAnomaly: finds the operation that makes the first NaN or infinity.
#pragma once

#include <tenon/export.h>

namespace tenon {

/// While it lives, each evaluation by this thread is checked before it takes effect: if a requested
/// value or a value that would be assigned has a NaN or an infinity, NumericError names the
/// operation and the layer that made the first one, in the forward computation or in a gradient, or
/// the parameter or input that contained it. No variable is then assigned. An infinity that does
/// not reach a result, as in a mask, is no error. Compiled functions run their C++ function at each
/// call instead of their plan. The Trainer adds the number of the step. Evaluations take more than
/// twice the time and memory. Inside the body of a loop, the error names the loop. Nests. PyTorch:
/// `torch.autograd.detect_anomaly`.
class TENON_API DetectAnomaly {
 public:
  DetectAnomaly() noexcept;                                 ///< Begins.
  ~DetectAnomaly();                                         ///< Ends.
  DetectAnomaly(const DetectAnomaly&) = delete;             ///< Not copyable.
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;  ///< Not copyable.

  /// Whether a DetectAnomaly lives in this thread.
  static bool is_on() noexcept;

 private:
  const bool before_;
};

}  // namespace tenon
