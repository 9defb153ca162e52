// DeviceTraits: what plans of a kind of device go by. Touches no device.
#pragma once

#include <cstdint>

namespace tenon {

struct AttentionTraits {
  /// Sizes of heads up to this one and multiples of the step are known; rows of 16-bit operands
  /// begin at multiples of the step too.
  std::int64_t largest_size = 0, size_step = 1;
  /// Of all texts together; 0: any number.
  std::int64_t most_heads = 0;
};

/// Elements that are recomputed where they are read, instead of stored.
struct RemakeTraits {
  /// The most that the arithmetic of one may cost (OpCost); 0: none is recomputed.
  std::int64_t most_cost = 0;
  /// A lone reader may read so many times the value's bytes more, for what its store costs.
  std::int64_t store = 0;
};

/// What planning must know of a kind of device; engines know the rest. Defaults are the host's.
struct DeviceTraits {
  /// Work is queued and done in the order of the queue, after the call that gives it: the host
  /// sees no value before it waits, and one call at a time is under way.
  bool is_queued = false;
  /// Steps that do not wait for one another run side by side, where their memory is not shared.
  bool overlaps_steps = false;
  /// Operands of float32 products are rounded ahead of the product, to any 16-bit type.
  bool rounds_operands = false;
  /// Products round to bfloat16 what they read; of large matrices that nobody assigns meanwhile,
  /// they read a copy that is kept rounded.
  bool keeps_bf16_matrices = false;
  /// Convolutions of 16 bits by filters of several pixels are fast over images that lie with their
  /// channels last.
  bool convolves_channels_last = false;
  /// Large products of 16 bits are fastest by a library that wants rows of whole lines and leaves
  /// what becomes of a result to a kernel.
  bool has_product_library = false;
  RemakeTraits remake = {};
  /// What attention an engine knows.
  AttentionTraits attention = {};
  /// Elements of the longest row that one kernel reduces and uses again.
  std::int64_t longest_row = 16384;
};

}  // namespace tenon
