// DeviceTraits: what plans of a kind of device go by. Touches no device.
#pragma once

#include <cstdint>

namespace tenon {

/// What planning must know of a kind of device; engines know the rest. Defaults are the host's.
struct DeviceTraits {
  /// Work is queued and done in the order of the queue, after the call that gives it: the host
  /// sees no value before it waits, and one call at a time is under way.
  bool is_queued = false;
  /// Steps that do not wait for one another run side by side, where their memory is not shared.
  bool overlaps_steps = false;
  /// Operands of float32 products are rounded ahead of the product, to any 16-bit type.
  bool rounds_operands = false;
  /// An engine knows attention in floating types of 32 bits and less.
  bool knows_attention = false;
  /// Elements of the longest row that one sweep reduces and uses again.
  std::int64_t longest_row = 16384;
};

}  // namespace tenon
