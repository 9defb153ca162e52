// Lowering of images that a GPU stores in NHWC (plan/layout/layout.h): convolutions, pooling, and
// ops that read their results.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/program/pass_tally.h"
#include "plan/regions/deviations.h"
#include "plan/regions/lowered_nodes.h"
#include "plan/rewrites/pool_rules.h"

namespace tenon {

class ImageLowering {
 public:
  ImageLowering(LoweredNodes& nodes, const PlanOptions& options, PassTally& tally);

  /// Finds filters and poolings whose readers decide how they are lowered.
  void look_ahead(std::span<Node* const> nodes, const DeviationSums& sums);

  /// A convolution, or a gradient of one, over NHWC images.
  bool is_convolution(const Node& node) const;
  void add_convolution(const Node& node);
  /// Whether only convolutions over NHWC images read this rounded filter. They permute it as they
  /// round it.
  bool is_rounded_filter(const Node& node) const { return rounded_filters_.count(&node) != 0; }
  /// A pooling or a normalisation across channels.
  bool is_pooling(const Node& node, const std::vector<Ref>& args) const;
  void add_pooling(const Node& node, std::vector<Ref> args);
  /// A convolution that is a matrix product of pixels by channels.
  bool is_product(const Node& node) const;
  void add_product(const Node& node, const std::vector<Ref>& args);
  /// An element-wise op, a reduction or a padding that reads, element by element, an image that is
  /// stored in NHWC. The op then iterates over NHWC, and the result is stored in NHWC too.
  bool is_elementwise(const Node& node, const std::vector<Ref>& args) const;
  /// Makes the arguments of such an op [N, H, W, C].
  void permute(std::vector<Ref>& args, std::uint32_t label);

  /// How users read an item that holds images [N, H, W, C].
  Ref images_of(int item, const Shape& shape);
  /// Recognises images that were spread for a strided gradient (plan/rewrites/strided.h), or a
  /// slice of them.
  void note_permuted(const Node& node, const Ref& images);

 private:
  bool is_channels_last(const Ref& arg) const;
  bool spans_images(const Ref& arg) const;
  Ref transposed_last(const Ref& arg, std::uint32_t label);
  Ref channels_inside(const Ref& ref, std::uint32_t label);
  Ref filters(const Node* node, std::uint32_t label);
  Ref pixels(const Ref& images, std::uint32_t label);
  int add_pool(const Node& node, const Ref& images, const Shape& pooled);
  int add_result(int of, int index, const Node& node);

  LoweredNodes& nodes_;
  PassTally& tally_;
  const bool convolves_, permutes_filters_, pools_images_, multiplies_, maps_;
  std::unordered_set<int> last_;  // items that hold images [N, H, W, C]
  std::unordered_set<const Node*> rounded_filters_;
  std::unordered_map<const Node*, int> laid_filters_;  // items that hold filters as [K, R, S, C]
  NumberedPools pools_;
};

/// The matrix with rows and columns exchanged.
Ref transposed(const Ref& matrix);

}  // namespace tenon
