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
  /// The engine generates the random numbers of dropout while it computes the scores.
  bool generates_dropout = false;
};

/// When elements are recomputed by their readers instead of stored.
struct RecomputeTraits {
  /// The most that the arithmetic of one element may cost (OpCost); 0: nothing is recomputed.
  std::int64_t most_cost = 0;
  /// If a value has one reader, the reader may load up to this many times the value's bytes in
  /// addition to recompute the value, because the store is saved.
  std::int64_t store = 0;
  /// Arithmetic costs little beside memory traffic: centred activations and the deviations of a
  /// batch are recomputed by their readers, and masks count double.
  bool is_cheap = false;
};

/// What planning must know about a kind of device; engines know the rest. Defaults are the host's.
struct DeviceTraits {
  /// A call queues its work and returns; the work runs in queue order. One call runs at a time, so
  /// all calls share one arena.
  bool queues_calls = false;
  /// The host sees values while a call runs: it runs only the taken branch of a `cond`, and an
  /// index out of range stops the call before later assignments. Otherwise both branches are
  /// computed.
  bool host_sees_values = true;
  /// A step is a launch of a kernel that an engine generates for its region. The engine is
  /// asked once for equal regions, kernels are generated in parallel, and saving a launch pays; no
  /// two steps share a kernel.
  bool launches_kernels = false;
  /// Values start at the alignment of an allocation: rows of loops are padded to it.
  bool aligns_loop_rows = false;
  /// In 16-bit precision, large logits, products, residuals, scores and activations are stored in
  /// 16 bits (pad_logit_rows.cpp and the lower_*.cpp of src/plan).
  bool stores_16_bits = false;
  /// Convolutions are rewritten for libraries: with stride 1, by groups, and of 1 x 1 pixels as
  /// matrix products.
  bool rewrites_convolutions = false;
  /// An engine computes local response normalization as one step.
  bool has_response_norm = false;
  /// An engine takes in elements one after another (kInOrder), as processors of few threads do
  /// best: running sums, linear recurrences, extremes that are scattered. Otherwise they are
  /// composed of steps over all elements. Concatenations also read parts of values in place.
  bool runs_in_order = false;
  /// A map region may overwrite a large input that nothing reads afterwards.
  bool overwrites_inputs = false;
  /// Independent steps run concurrently if their memory is not shared.
  bool overlaps_steps = false;
  /// Operands of float32 products are rounded ahead of the product, to any 16-bit dtype.
  bool rounds_operands = false;
  /// Products round their operands to bfloat16. Large matrices that the program does not assign are
  /// rounded once and stored.
  bool keeps_bf16_matrices = false;
  /// 16-bit convolutions with filters larger than 1 x 1 are fast over NHWC activations.
  bool convolves_channels_last = false;
  /// Large 16-bit products are fastest in a library that needs rows padded to whole memory lines
  /// and has no epilogue: operations on the result need a separate kernel.
  bool has_product_library = false;
  RecomputeTraits recompute = {};
  /// The attention that an engine supports.
  AttentionTraits attention = {};
  /// Elements of the longest row that one kernel can reduce and use again.
  std::int64_t longest_row = 16384;
};

}  // namespace tenon
