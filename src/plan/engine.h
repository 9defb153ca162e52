// Engine: one way to run regions. Engines are peers; choosing between them is the choose_engine
// pass's work.
//
// claims() is pure and touches no device. prepare() does once what can be done once (instruction
// tables, packing decisions) and returns a Kernel that is immutable and re-entrant: many threads
// may run it, each with its own binding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/region.h"

namespace tenon {

/// Pointers for one run: values by ValueId, and the step's workspace (64-byte aligned,
/// uninitialised). They are addresses of the program's device.
struct Binding {
  std::byte* const* values = nullptr;
  std::byte* workspace = nullptr;
  void* stream = nullptr;  // what work is queued on; null where the call does it
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Does the work; on a GPU, queues it on the binding's stream and returns.
  virtual void run(const Binding& binding) const = 0;
  /// The source that it compiles at run time, for people and fixtures; empty when there is none.
  virtual std::string source() const { return {}; }
  /// The kernel of a region that computes the same on other values of the program, `renamed` of
  /// each that this one names; null where the engine prepares that anew.
  virtual std::unique_ptr<Kernel> on_values(std::span<const ValueId> /*renamed*/) const {
    return nullptr;
  }
  std::size_t workspace_bytes = 0;
};

/// So many questions to engines are asked side by side; fewer are answered in the time that other
/// threads take to wake up and warm up.
inline constexpr std::size_t kManyQuestions = 32;

/// What a map region takes of a launch that it shares.
struct LaunchShare {
  std::int64_t blocks = 0;  // as many as are worth while; 0: it has nothing to do
  std::int64_t arguments = 0, counters = 0;
};

/// What an engine can do with a region besides running it alone, stated once; what becomes of that
/// is the merger's work. Where it cannot, why not, in a few words; else null.
struct Capabilities {
  /// Applies the prologues of a contraction while it loads operands.
  const char* no_prologues = "reads operands as they stand in memory";
  /// Reduces the whole result of a contraction while it writes it (Region::map.reduces).
  const char* no_reductions = "only writes its result";
  /// Reduces so many neighbouring rows of that at a time, column by column (MapReduce::rows); 0:
  /// none.
  int reduced_rows = 0;
  /// Runs a map region as a part of a Joined one, which it then claims too.
  const char* no_shared_launch = "a region starts with a call, so there is no launch to share";
  LaunchShare share;  // where it does
  /// Runs the region for some entries of an axis alone, others at other times: of a map any axis
  /// but a row's, of others the first of the result and of these operands (bits); each slice reads
  /// the rest whole.
  const char* no_slices = "runs whole regions";
  std::uint32_t sliced_inputs = 0;
  bool sums_slices = false;  // a contraction's result is the sum of what slices give
  /// Runs the region for some rows of an image alone, where that pads above other than below: of a
  /// map for any part of an axis, of others for rows of their first operand in one piece.
  const char* no_bands = "runs whole images";
  /// Runs chains of regions that others claim, slice by slice.
  bool runs_chains = false;

  bool slices_input(std::size_t k) const { return k < 32 && (sliced_inputs >> k & 1u) != 0; }
};

/// A part of a launch in phases (Region::phase).
struct LaunchPart {
  const Region* region = nullptr;
  LaunchShare share;
  int phase = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  /// Whether it can run the region; if not, *why says so in a few words.
  virtual bool claims(const Region& region, std::span<const Value> values,
                      std::string* why) const = 0;
  /// Whether it can run the region even where claims() says that others would be faster: an
  /// incomplete batch takes what the whole one took. Pure, as claims().
  virtual bool is_able(const Region& region, std::span<const Value> values) const {
    std::string why;
    return claims(region, values, &why);
  }
  /// Asked before claims(), with the region as it would be; pure, as that.
  virtual Capabilities capabilities(const Region&, std::span<const Value>) const { return {}; }
  /// Microseconds that a launch of parts which share it is expected to save over a launch for each
  /// phase; 0, with a few words in *why, where that is not better or cannot be. A model's; pure, as
  /// claims().
  virtual double saves(std::span<const LaunchPart>, std::string* why) const {
    *why = Capabilities().no_shared_launch;
    return 0;
  }
  /// Microseconds that it expects to need for a region that it runs, by a model (GpuModel); 0: it
  /// has none. Only good for weighing two ways of computing the same. Pure, as claims().
  virtual double estimate(const Region&, std::span<const Value>) const { return 0; }
  /// `threads` bounds the workers that the kernel's workspace must serve (the pool's size when it
  /// was planned; a pool that has grown since makes the runner plan anew). May throw NotSupported
  /// where only a device's library knows: the next engine is asked then.
  virtual std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                          int threads) const = 0;
  /// Ways to run a region that it claims, by short names that last ("64x64x32-256/4"), the most
  /// promising first; empty when prepare()'s is the only one. Pure, as claims().
  virtual std::vector<std::string> configurations(const Region&, std::span<const Value>) const {
    return {};
  }
  /// prepare() in one of these ways; "" leaves the choice to the engine, kReferenceConfiguration
  /// asks for its defining sums, however slow. Throws NotSupported for a way that it has not.
  virtual std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                             std::span<const Value> values, int threads) const;
  /// Begins to start what its kernels need (a library), where that takes long, and returns: the
  /// caller will ask for some when it has made its regions.
  virtual void start() const {}
  /// Tells that prepare_as() may soon be asked for this region, or for one that more is merged
  /// into: what takes long of that (a library's answer) may begin, and the call returns.
  virtual void expect(const std::string& /*configuration*/, const Region&,
                      std::span<const Value>) const {}
  /// What the names of its configurations depend on beside the GPU: a library's version.
  virtual std::string version() const { return {}; }
};

/// Whether the engine claims the region and takes the prologues and the reductions of a
/// contraction's result that it has; if not, *why says so.
bool runs(const Engine& engine, const Region& region, std::span<const Value> values,
          std::string* why);

/// The same where a choice has been made already: whether it can.
bool can_run(const Engine& engine, const Region& region, std::span<const Value> values);

/// The engines that run the region, in the order in which they are expected to be fast: by
/// estimate, then those without one; of equal ones the first. Tells `passed_over` why the others do
/// not.
std::vector<const Engine*> by_estimate(std::span<const Engine* const> engines, const Region& region,
                                       std::span<const Value> values,
                                       std::string* passed_over = nullptr);

/// The first of these: who runs the region unless something else was measured to be faster. Null
/// when none does.
const Engine* preferred(std::span<const Engine* const> engines, const Region& region,
                        std::span<const Value> values);

/// The first of the engines that claims the region; null when none does.
const Engine* first_that_claims(std::span<const Engine* const> engines, const Region& region,
                                std::span<const Value> values);

/// A configuration that is never chosen: what others are compared with.
inline constexpr char kReferenceConfiguration[] = "reference";

}  // namespace tenon
