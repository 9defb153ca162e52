// The table of the planner's passes. A pass that is required lowers the graph to what engines run;
// without it a plan could not be made or run. All others only make plans better.
#include "plan/program/passes.h"

namespace tenon {
namespace {

constexpr const char* kOptional = nullptr;

constexpr PassInfo kPasses[kPassCount] = {
    {"channels_last", kOptional,
     "first: on convolutions as the user wrote them, because later passes rewrite them; the "
     "library for this layout loads in the background meanwhile"},
    {"verify_graph", kOptional,
     "before all rewrites: an invalid node is reported before passes rewrite it; again after the "
     "last graph pass"},
    {"inline_branches",
     "a GPU cannot select a branch: it computes both branches of a cond and selects one result",
     "before the other rewrites, which then see the operations of the branches"},
    {"merge_loops", kOptional,
     "before the other rewrites: the requested results of a loop decide what its body is"},
    {"drop_loop_results", "a loop's kernel writes all results of a step, also those without memory",
     "after merge_loops, which drops them too"},
    {"pad_loop_rows", "the kernels of a GPU expect each row of a loop's values to be aligned",
     "after merge_loops, which decides which rows a loop has"},
    {"legalize", "no engine of the device runs the operations that the pass replaces",
     "before the clean-up: the new nodes are cleaned and shared like the rest"},
    {"fill_channels", kOptional,
     "before the clean-up, like legalize; on convolutions with strides"},
    {"remove_strides", kOptional,
     "after fill_channels, which removes strides in its own way; before the clean-up"},
    {"split_groups", kOptional, "after remove_strides, which handles whole convolutions only"},
    {"fold_constants", kOptional,
     "before share: folded numbers become equal nodes; again after the precision rewrites"},
    {"convolutions_to_products", kOptional,
     "in one walk with drop_noops, which removes the views that it adds; again after the precision "
     "rewrites"},
    {"drop_noops", kOptional,
     "before share: nodes without effect hide equal nodes; again after the precision rewrites"},
    {"merge_views", kOptional,
     "in one walk with drop_noops: views of views hide equal nodes; again after the precision "
     "rewrites"},
    {"move_transposes", kOptional,
     "in one walk with merge_views: a view between product and transpose is gone; again after the "
     "precision rewrites"},
    {"factors", kOptional,
     "before share: sums that differ only in constant factors become equal nodes; after "
     "merge_views, which merges views of the factors"},
    {"share", kOptional,
     "after the clean-up, so that equal nodes look equal; again after the precision rewrites"},
    {"before_pooling", kOptional,
     "after share, so that a mask and the pooling's gradient read one node; the pooling that it "
     "adds is shared with the forward pass later"},
    {"round_loop_operands", kOptional,
     "before autocast, which then leaves the rounded values as they are"},
    {"autocast", kOptional,
     "on contractions as the user wrote them; their operands are rounded where they are packed"},
    {"sum_rounded", kOptional, "directly after autocast, which knows the values that it rounded"},
    {"round_loop_results", kOptional, "after autocast: the casts of the readers are in the graph"},
    {"decompose", "engines run primitive operations, and the pass replaces composite ones by them",
     "after engines could claim whole composites; before the precision rewrites and fusion"},
    {"pad_logit_rows", kOptional,
     "after decompose: the softmax of a loss is written in its reductions"},
    {"lower_argument_precision", kOptional,
     "after pad_logit_rows, whose rows are rounded already; before products lose their precision"},
    {"lower_product_precision", kOptional,
     "before lower_residual_precision, which looks for rounded products"},
    {"lower_residual_precision", kOptional, "after lower_product_precision"},
    {"lower_activation_precision", kOptional,
     "last of the precision rewrites: casts that cancel are removed by the clean-up behind it"},
    {"layout", kOptional,
     "folds views into strides, so that fusion sees how values are really read"},
    {"sum_deviations", kOptional,
     "before the walk of layout: the deviations, which are not needed, get no items"},
    {"permute_filters", kOptional,
     "in the walk of layout, which knows the readers of a rounded filter"},
    {"skip_casts", kOptional,
     "in the walk of layout, before a cast gets an item: it has none if only convolutions read it"},
    {"pooling_nhwc", kOptional,
     "in the walk of layout, which knows the images that are stored in NHWC"},
    {"multiply_pixels", kOptional,
     "in the walk of layout: a matrix of pixels is a view of images in NHWC"},
    {"elementwise_nhwc", kOptional,
     "in the walk of layout, which knows the images that are stored in NHWC"},
    {"shorten_indices", kOptional,
     "in the walk of layout, where strides show that an index is constant along an axis"},
    {"shrink_scatter_bases", kOptional,
     "in the walk of layout, where strides show that a base is one number"},
    {"lower_filter_precision", kOptional,
     "in the walk of layout, after strides of the filters are known"},
    {"recompute_centered", kOptional,
     "in the walk of layout: each reader gets a copy of the item; before fuse joins copy and "
     "reader"},
    {"update_rows", kOptional,
     "in the walk of layout, where assignments are ordered behind the readers of their variables"},
    {"fuse", kOptional,
     "before engines are chosen: they claim regions, not operations; before memory: fused values "
     "need none"},
    {"epilogue", kOptional,
     "on the groups that fuse made, so that a whole loop nest becomes the epilogue"},
    {"column_sums", kOptional,
     "after epilogue: the sums behind a contraction read what its epilogue stores"},
    {"sink", kOptional,
     "last on the groups: it needs to know which values are stored for other readers"},
    {"recompute", kOptional, "on the groups that fuse made; before they become regions"},
    {"emit", "engines run regions, and the pass writes them",
     "after all passes over groups: it writes each group as one region"},
    {"merge_loads", kOptional,
     "on regions, where an operand is a view; before collapse_axes, which then visits fewer views"},
    {"collapse_axes", kOptional,
     "before the merges, which compare the spaces of regions; engines compute fewer indices"},
    {"concats", kOptional, "first of the merges: the inputs of a concatenation are still maps"},
    {"prologue", kOptional,
     "on regions, because engines say which prologues they support; before join, which would put "
     "the same maps into shared launches"},
    {"reductions", kOptional,
     "on regions, because engines say which reductions they support; before join, which would put "
     "the same maps into shared launches"},
    {"vectors", kOptional, "after reductions, whose sums it finishes where they are read"},
    {"join", kOptional,
     "on regions, before kernels are compiled: a region in a shared launch has no kernel of its "
     "own"},
    {"phases", kOptional,
     "after join, which puts independent regions side by side; before kernels are compiled"},
    {"chain", kOptional,
     "on regions, because engines say which slices they support; before memory: values that stay "
     "in cache need none"},
    {"overwrites", kOptional, "last of the merges: on the steps that will run"},
    {"choose_engine", "it prepares the kernels that a run calls",
     "after the merges; a prepared kernel determines its workspace"},
    {"order", kOptional, "after the merges, because it orders steps; least live memory first"},
    {"checks_first", "without it, a call with an invalid index could still advance a step counter",
     "while steps are ordered"},
    {"delay_leaf_steps", kOptional, "on the order of all steps; before memory is planned"},
    {"plan_memory", kOptional,
     "after the order gives lifetimes; the arena's size is the peak, known before anything runs"},
    {"verify_program", kOptional,
     "last: regions are complete, every value is written before it is read and has a reader, live "
     "values do not overlap"},
};

}  // namespace

const PassInfo& pass_info(int pass) { return kPasses[pass]; }

}  // namespace tenon
