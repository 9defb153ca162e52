// The passes of the planner: their names in pipeline order, and sets of them. passes.cpp holds the
// table; pipeline.cpp runs the passes.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tenon {

enum PassId : std::uint8_t {
  kChannelsLast,
  kVerifyGraph,
  kInlineBranches,
  kMergeLoops,
  kDropLoopResults,
  kPadLoopRows,
  kLegalize,
  kFillChannels,
  kRemoveStrides,
  kSplitGroups,
  kFoldConstants,
  kConvolutionsToProducts,
  kDropNoops,
  kMergeViews,
  kMoveTransposes,
  kFactors,
  kShare,
  kBeforePooling,
  kRoundLoopOperands,
  kAutocast,
  kSumRounded,
  kRoundLoopResults,
  kDecompose,
  kPadLogitRows,
  kLowerArgumentPrecision,
  kLowerProductPrecision,
  kLowerResidualPrecision,
  kLowerActivationPrecision,
  kLayout,
  kSumDeviations,
  kPermuteFilters,
  kSkipCasts,
  kPoolingNhwc,
  kMultiplyPixels,
  kElementwiseNhwc,
  kShortenIndices,
  kShrinkScatterBases,
  kLowerFilterPrecision,
  kRecomputeCentered,
  kUpdateRows,
  kFuse,
  kEpilogue,
  kColumnSums,
  kSink,
  kRecompute,
  kEmit,
  kMergeLoads,
  kCollapseAxes,
  kConcats,
  kPrologue,
  kReductions,
  kVectors,
  kJoin,
  kPhases,
  kChain,
  kOverwrites,
  kChooseEngine,
  kOrder,
  kChecksFirst,
  kDelayLeafSteps,
  kPlanMemory,
  kVerifyProgram,
  kPassCount
};

/// Facts about a pass.
struct PassInfo {
  const char* name;
  const char* required;  // why the pass cannot be switched off; null: it can
  const char* why_here;  // the reason for its position
};
const PassInfo& pass_info(int pass);

/// A set of passes.
class PassSet {
 public:
  constexpr PassSet() = default;
  constexpr PassSet(std::initializer_list<PassId> passes) {
    for (const PassId pass : passes) insert(pass);
  }
  /// One bit for each pass, in pipeline order (Context::disabled_passes).
  static constexpr PassSet of_bits(std::uint64_t bits) {
    PassSet set;
    set.bits_ = bits;
    return set;
  }
  static constexpr std::uint64_t bit(int pass) { return std::uint64_t{1} << pass; }
  constexpr void insert(PassId pass) { bits_ |= bit(pass); }
  constexpr bool contains(PassId pass) const { return (bits_ & bit(pass)) != 0; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(kPassCount <= 64, "one bit of Context::disabled_passes for each pass");

}  // namespace tenon
