// Program: a planned graph. It holds the ordered steps, the place of every value, and the slots
// that a run must fill. It is immutable once planned: many threads may run one Program, each with
// its own arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/tensor.h>

#include "device/traits.h"
#include "plan/graph/graph_record.h"
#include "plan/program/engine.h"
#include "plan/program/passes.h"
#include "plan/program/region.h"
#include "plan/program/tune.h"

namespace tenon {

struct Step {
  Region region;
  const Engine* engine = nullptr;
  std::shared_ptr<const Kernel> kernel;
  std::vector<ValueId> bound;         // the values of a shared kernel (plan/steps/calls.h)
  std::int64_t workspace_offset = 0;  // offset in the arena
  std::string passed_over;            // engines that were asked before, and why each declined
  std::string configuration;          // configuration of the engine; empty: its own choice
  std::string choice;                 // for a contraction on a GPU: how its engine was chosen
};

/// A step as a run executes it. The kernel is bound to Program::call_values from `first` on, or,
/// without `first`, to all of the program's values.
struct KernelCall {
  const Kernel* kernel = nullptr;
  std::int64_t workspace_offset = 0;
  std::uint32_t first = 0, bound = 0;
};

/// One result of the program, in the order in which results were requested.
struct OutputSlot {
  ValueId value = kNoValue;
  DType dtype = DType::Float32;
  Shape shape;
  bool is_variable = false;  // the result of an assignment: it is stored in the variable
};

struct PassRecord {
  std::string name;
  double ms = 0;
  int before = 0, after = 0;  // number of nodes, regions, or KiB; `unit` says which
  std::string unit;
};

/// A decision that a pass made by comparing a size with `most`, or by testing for a multiple of it.
/// Every pass that compares a size of the graph with a constant of its own records the decision
/// here. A plan for another size is the same plan if all decisions are (plan/steps/sized_plan.h).
struct SizeLimit {
  std::int64_t size = 0, most = 0;
  bool multiple = false;

  bool holds(std::int64_t of) const { return multiple ? of % most == 0 : of <= most; }
};

struct Program {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<ValueId>
      slots;  // leaf k of the graph (in order of first visit) is this value; kNoValue if unused
  std::vector<OutputSlot> outputs;
  std::vector<ValueId> assigned;  // variables that the program writes
  std::vector<Device> devices;    // all devices of the program; `device` is the first
  Device device;
  DeviceTraits traits;                // traits of `device`
  int threads = 1;                    // workers that the kernels' workspaces serve
  std::int64_t arena_bytes = 0;       // bytes of intermediates and workspaces
  std::int64_t workspace_offset = 0;  // offset of the workspace that sequential steps share
  std::int64_t leaf_bytes = 0, output_bytes = 0;
  std::vector<std::vector<int>> before;  // by step in planning order: the steps that it waits for
  std::vector<int> order;                // order[k]: the planning number of the step that runs k-th
  std::vector<KernelCall> calls;         // the steps, in the order and form that a run executes
  std::vector<ValueId> call_values;
  std::vector<SizeLimit> limits;
  bool rebound = false;            // derived from plans of other sizes, without their texts
  std::vector<TakenChoice> taken;  // engines of contractions on a GPU
  std::string joining;             // what the pass `join` did, or why it did nothing
  std::vector<PassRecord> passes;
  GraphRecord graph;
  int node_count = 0;
  double planning_ms = 0;

  std::int64_t peak_bytes() const { return arena_bytes + leaf_bytes + output_bytes; }
};

/// A weight and its rounded copy, which products read instead: a 16-bit variable with the same
/// values, rounded. Filters [K, C, R, S] that are read in NHWC are stored as [K, R*S, C].
struct RoundedCopy {
  const Node* weight = nullptr;
  Tensor copy;
};

struct PlanOptions {
  std::span<const Engine* const> engines;  // asked in order; the last one must claim every region
  int threads = 1;
  Device device;                        // where the program runs
  DeviceTraits traits;                  // traits of that kind of device
  Tuning* tuning = nullptr;             // null: engines by estimate alone
  std::span<const RoundedCopy> copies;  // rounded copies of weights that the program reads
  PassSet disabled;                     // passes that are switched off
  std::int64_t memory_limit = 0;        // set by the user, in bytes; 0: none
  std::int64_t device_memory = 0;       // in bytes; 0: unknown
  bool results_apart = false;           // no two results share a value, as loop bodies require
  // NHWC activations (plan/layout/layout.h); plan_program() decides once
  bool channels_last = false;
  // The graph or the regions are checked after each pass, as builds without NDEBUG always do.
  bool checks_passes = false;
  bool enabled(PassId pass) const { return !disabled.contains(pass); }
  /// Whether the user's limit is smaller than the device's memory.
  bool limited_by_user() const {
    return memory_limit > 0 && (device_memory == 0 || memory_limit < device_memory);
  }
  /// The most bytes that a program may take; 0: no limit.
  std::int64_t most_memory() const { return limited_by_user() ? memory_limit : device_memory; }
  /// "the limit of 2 GiB" or "the 16 GiB of the device", whichever is smaller.
  std::string most_memory_text() const;
  /// What to do if a program takes more.
  std::string less_memory_advice() const;
};

/// Plans the evaluation of `roots`. `leaves` receives the graph's leaves in the order in which a
/// run will bind them.
std::shared_ptr<const Program> plan_program(std::span<const Tensor> roots,
                                            std::span<Node* const> leaves,
                                            const PlanOptions& options);

/// The values that take the most memory, with their layers: "9.1 MiB for float32[64, 6, 28, 28] of
/// layer 0, …".
std::string largest_values(const Program& program);

/// Text of a program: one line for each node, step and arena value.
std::string print_graph(const Program& program);
std::string print_steps(const Program& program);
std::string print_engines(const Program& program);
std::string print_arena(const Program& program);
std::string print_fusion(const Program& program);
std::string print_passes(const Program& program);

}  // namespace tenon
