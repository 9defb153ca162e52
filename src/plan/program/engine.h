// Engine: one way to run regions. Engines are peers. The pass choose_engine selects one of them for
// each step; engines do not know each other.
//
// claims() is pure and touches no device. prepare() does all work that is needed only once
// (instruction tables, packing decisions) and returns a Kernel. A Kernel is immutable and
// re-entrant: many threads may run it, each with its own Binding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/program/region.h"

namespace tenon {

/// Pointers for one run: values by ValueId, and the step's workspace (64-byte aligned,
/// uninitialised). All are addresses on the program's device.
struct Binding {
  std::byte* const* values = nullptr;
  std::byte* workspace = nullptr;
  // the stream that work is queued on; null where the call itself does the work
  void* stream = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Does the work. On a GPU: queues the work on the binding's stream and returns.
  virtual void run(const Binding& binding) const = 0;
  /// The source code that the kernel compiled at run time, for printing and fixtures; empty if it
  /// compiled none.
  virtual std::string source() const { return {}; }
  /// A kernel for a region that computes the same on other values of the program. `renamed` gives
  /// the new value for each value of this kernel. Null if the engine has to prepare a new kernel.
  virtual std::unique_ptr<Kernel> on_values(std::span<const ValueId> /*renamed*/) const {
    return nullptr;
  }
  std::size_t workspace_bytes = 0;
};

/// From this number of questions on, engines are asked in parallel. Fewer questions are answered
/// faster than other threads wake up.
inline constexpr std::size_t kManyQuestions = 32;

/// What a map region needs from a launch that several regions share.
struct LaunchShare {
  std::int64_t blocks = 0;  // useful number of thread blocks; 0: the region has no work
  std::int64_t arguments = 0, counters = 0;
};

/// What an engine can do with a region besides running it alone. The merge passes decide how to use
/// these capabilities. Each no_… text says why the engine cannot; null means that it can. The text
/// completes a sentence: no_prologues and no_reductions begin with the engine's name, the others
/// with the region's title.
struct Capabilities {
  /// Applies the prologues of a contraction while it loads the operands.
  const char* no_prologues = "reads operands as stored, without a prologue";
  /// Reduces the whole result of a contraction while it writes the result (Region::map.reduces).
  const char* no_reductions = "does not reduce its result while writing it";
  /// Number of neighbouring rows of the result that it reduces together, column by column
  /// (MapReduce::rows); 0: none.
  int reduced_rows = 0;
  /// Runs a map region as a part of a Joined region. The engine must then claim the Joined region
  /// too.
  const char* no_shared_launch =
      "is a function call on this device, so there is no launch to share";
  LaunchShare share;  // valid if no_shared_launch is null
  /// Runs the region for a few entries of one axis at a time. In a map this may be any axis but the
  /// row's. In other regions it is the first axis of the result and of the operands in a bit mask;
  /// each slice reads all other operands whole.
  const char* no_slices = "runs on an engine that computes it as a whole";
  std::uint32_t sliced_inputs = 0;
  bool sums_slices = false;  // the result of a contraction is the sum over the slices
  /// Runs the region for some rows of a feature map, with different padding above and below. In a
  /// map this may be a part of any axis; in other regions it is a contiguous range of rows of the
  /// first operand.
  const char* no_bands = "runs on an engine that computes whole images";
  /// Runs chains of regions, slice by slice. Other engines claim the parts.
  bool runs_chains = false;

  bool slices_input(std::size_t k) const { return k < 32 && (sliced_inputs >> k & 1u) != 0; }
};

/// One part of a launch in phases (Region::phase).
struct LaunchPart {
  const Region* region = nullptr;
  LaunchShare share;
  int phase = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  /// Whether the engine runs the region. If not, *why gives the reason, which completes a sentence
  /// that begins with the engine's name: "runs convolutions only".
  virtual bool claims(const Region& region, std::span<const Value> values,
                      std::string* why) const = 0;
  /// Whether the engine can run the region at all, even if claims() leaves it to a faster engine.
  /// An incomplete batch uses the engine that the whole batch used. Pure, like claims().
  virtual bool is_able(const Region& region, std::span<const Value> values) const {
    std::string why;
    return claims(region, values, &why);
  }
  /// Called before claims(), with the region as it would become. Pure, like claims().
  virtual Capabilities capabilities(const Region&, std::span<const Value>) const { return {}; }
  /// Microseconds that one launch of these parts is expected to save over one launch for each
  /// phase. Returns 0, with a reason in *why, where the shared launch is not faster or not
  /// possible. The number comes from a model. Pure, like claims().
  virtual double saves(std::span<const LaunchPart>, std::string* why) const {
    *why = Capabilities().no_shared_launch;
    return 0;
  }
  /// Microseconds that a region which the engine runs is expected to take, by a model (GpuModel);
  /// 0: no model. Only good for comparing two ways to compute the same. Pure, like claims().
  virtual double estimate(const Region&, std::span<const Value>) const { return 0; }
  /// `threads` is the largest number of workers that the kernel's workspace must serve: the size of
  /// the thread pool at planning. If the pool grows later, the runner plans again. May throw
  /// NotSupported where only a device's library knows the answer; then the next engine is asked.
  virtual std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                          int threads) const = 0;
  /// Ways to run a region that the engine claims, the most promising first, by short names that
  /// stay stable between versions ("64x64x32-256/4"). Empty if there is only the way of prepare().
  /// Pure, like claims().
  virtual std::vector<std::string> configurations(const Region&, std::span<const Value>) const {
    return {};
  }
  /// prepare() with one configuration. "" leaves the choice to the engine. kReferenceConfiguration
  /// requests the sums of the definition, however slow. Throws NotSupported for an unknown
  /// configuration.
  virtual std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                             std::span<const Value> values, int threads) const;
  /// Starts to load a library that the kernels need in the background, if loading takes long, and
  /// returns at once. The caller prepares kernels as soon as it has the regions.
  virtual void start() const {}
  /// Announces that prepare_as() may soon be called for this region, or for a region that more is
  /// merged into. The engine may start slow work (a library's query) in the background and returns
  /// at once.
  virtual void announce(const std::string& /*configuration*/, const Region&,
                        std::span<const Value>) const {}
  /// The version that configuration names depend on, for example that of a library.
  virtual std::string version() const { return {}; }
};

/// Whether the engine claims the region together with the prologues and result reductions that the
/// region has. If not, *why gives the reason.
bool runs(const Engine& engine, const Region& region, std::span<const Value> values,
          std::string* why);

/// The same for a choice that is already made: whether the engine is able to run the region.
bool can_run(const Engine& engine, const Region& region, std::span<const Value> values);

/// The engines that run the region, fastest first by estimate, then engines without an estimate.
/// Ties keep the given order. `passed_over` receives the reasons of all other engines.
std::vector<const Engine*> by_estimate(std::span<const Engine* const> engines, const Region& region,
                                       std::span<const Value> values,
                                       std::string* passed_over = nullptr);

/// The first of by_estimate(): the engine that runs the region unless another one was measured to
/// be faster. Null if there is none.
const Engine* preferred(std::span<const Engine* const> engines, const Region& region,
                        std::span<const Value> values);

/// The first engine that claims the region; null if none does.
const Engine* first_that_claims(std::span<const Engine* const> engines, const Region& region,
                                std::span<const Value> values);

/// The configuration that other configurations are compared with. It is never chosen.
inline constexpr char kReferenceConfiguration[] = "reference";

}  // namespace tenon
