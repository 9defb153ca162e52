// DeviceTraits: facts about a kind of device that planning depends on. Touches no device.
#pragma once

#include <cstdint>

namespace tenon {

struct AttentionTraits {
  /// The largest supported head size, and the step that head sizes must be a multiple of; rows of
  /// 16-bit operands must start at multiples of the step too.
  std::int64_t largest_size = 0, size_step = 1;
  /// The most heads of a whole batch; 0: any number.
  std::int64_t most_heads = 0;
};

/// When elements are recomputed by their readers instead of stored.
struct RemakeTraits {
  /// The most that the arithmetic of one element may cost (OpCost); 0: nothing is recomputed.
  std::int64_t most_cost = 0;
  /// A single reader may read this many times the value's bytes in addition, to save the store.
  std::int64_t store = 0;
};

/// What planning must know about a kind of device; engines know the rest. Defaults are the host's.
struct DeviceTraits {
  /// Work is queued and runs in queue order, after the call returns. The host sees no value before
  /// it waits, and one call runs at a time.
  bool is_queued = false;
  /// Independent steps run concurrently if their memory is not shared.
  bool overlaps_steps = false;
  /// Operands of float32 products are rounded ahead of the product, to any 16-bit dtype.
  bool rounds_operands = false;
  /// Products round their operands to bfloat16. For large matrices that are not assigned, products
  /// read a stored rounded copy.
  bool keeps_bf16_matrices = false;
  /// 16-bit convolutions with filters larger than 1 x 1 are fast over NHWC activations.
  bool convolves_channels_last = false;
  /// Large 16-bit products are fastest in a library that needs rows padded to whole memory lines
  /// and leaves work on the result to a separate kernel.
  bool has_product_library = false;
  RemakeTraits remake = {};
  /// The attention that an engine supports.
  AttentionTraits attention = {};
  /// Elements of the longest row that one kernel can reduce and use again.
  std::int64_t longest_row = 16384;
};

}  // namespace tenon
