// Simplifications of single nodes, which share one walk over the graph: convolutions that are
// products, nodes without effect, views of views, transposed products.
#pragma once

#include "plan/cleanup/rewrite.h"

namespace tenon {

/// Applies these passes, if they are switched on, to every node, inputs before users:
/// * kConvolutionsToProducts: a convolution whose filter covers its whole input becomes a matrix
///   product, and so do its gradients.
/// * kDropNoops: views and casts that change nothing go away.
/// * kMergeViews: a reshape of a reshape becomes one reshape, a permute of a permute one permute.
/// * kMoveTransposes: a transposed product is computed transposed in the first place.
Roots simplify(Roots roots, const PlanOptions& options, const RuleLog& log);

}  // namespace tenon
