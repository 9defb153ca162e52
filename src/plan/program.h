// Program: a planned graph. Ordered steps, where every value lives, which slots a run must fill.
// Immutable once planned, so many threads may run one Program, each with its own arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/tensor.h>

#include "device/traits.h"
#include "plan/engine.h"
#include "plan/graph_record.h"
#include "plan/region.h"
#include "plan/tune.h"

namespace tenon {

struct Step {
  Region region;
  const Engine* engine = nullptr;
  std::shared_ptr<const Kernel> kernel;
  std::vector<ValueId> bound;  // the kernel's values, where it serves several steps (plan/calls.h)
  std::int64_t workspace_offset = 0;  // in the arena
  std::string passed_over;            // engines asked before this one, and why they declined
  std::string configuration;          // of the engine; empty: its own choice
  std::string choice;                 // of a contraction on a GPU: what decided
};

/// A step as it is run: its kernel, bound to `bound` of Program::call_values from `first` on, or
/// (none) to all of the program's values.
struct KernelCall {
  const Kernel* kernel = nullptr;
  std::int64_t workspace_offset = 0;
  std::uint32_t first = 0, bound = 0;
};

/// One result of the program, in the order in which it was asked for.
struct OutputSlot {
  ValueId value = kNoValue;
  DType dtype = DType::Float32;
  Shape shape;
  bool is_variable = false;  // the value of an assignment: it lives in the variable
};

struct PassRecord {
  std::string name;
  double ms = 0;
  int before = 0, after = 0;  // nodes, regions or bytes in KiB: `unit` says which
  std::string unit;
};

/// A decision that a pass made by whether a size is at most `most`, or a multiple of it. Passes
/// that compare a size of the graph with a number of their own say so here: a plan for another size
/// is the same where all of its decisions are (plan/sized_plan.h).
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
  std::vector<Device> devices;    // that it touches; `device` is the first of them
  Device device;
  DeviceTraits traits;                // of the device
  int threads = 1;                    // that its kernels' workspaces serve
  std::int64_t arena_bytes = 0;       // intermediates, workspace included
  std::int64_t workspace_offset = 0;  // of the workspace that steps which follow one another share
  std::int64_t leaf_bytes = 0, output_bytes = 0;
  std::vector<std::vector<int>> before;  // steps that a step waits for, as numbered before `order`
  std::vector<int> order;                // number of the step that runs k-th
  std::vector<KernelCall> calls;         // the steps, as a run goes through them
  std::vector<ValueId> call_values;
  std::vector<SizeLimit> limits;
  bool rebound = false;            // from a plan of other sizes, whose texts it has not
  std::vector<TakenChoice> taken;  // engines of contractions on a GPU
  std::string joining;             // what the pass join did, or why nothing
  std::vector<PassRecord> passes;
  GraphRecord graph;
  int node_count = 0;
  double planning_ms = 0;

  std::int64_t peak_bytes() const { return arena_bytes + leaf_bytes + output_bytes; }
};

enum PassId : std::uint32_t {
  kVerifyGraph,
  kLoops,
  kLegalize,
  kFoldConstants,
  kDropNoops,
  kFactors,
  kShare,
  kBeforePooling,
  kAutocast,
  kDecompose,
  kLayout,
  kFuse,
  kPrologue,
  kReductions,
  kJoin,
  kPhases,
  kChain,
  kChooseEngine,
  kOrder,
  kPlanMemory,
  kVerifyProgram,
  kPassCount
};

/// Name, and whether the pass may be switched off, in pipeline order.
struct PassInfo {
  const char* name;
  bool optional;
  const char* why_here;
};
const PassInfo& pass_info(int pass);

/// A weight and what products read instead where they round it: a variable of 16 bits with its
/// values, rounded; [K, R*S, C] of filters [K, C, R, S] that are read with the channels last.
struct RoundedCopy {
  const Node* weight = nullptr;
  Tensor copy;
};

struct PlanOptions {
  std::span<const Engine* const> engines;  // asked in order; the last must claim everything
  int threads = 1;
  Device device;                        // where the program runs
  DeviceTraits traits;                  // of that kind of device
  Tuning* tuning = nullptr;             // null: engines by estimate alone
  std::span<const RoundedCopy> copies;  // of weights that the program reads
  std::uint32_t disabled = 0;           // bit mask of PassId
  std::int64_t memory_limit = 0;        // 0: none
  bool results_apart = false;           // no two results share a value, as bodies of loops need it
  bool channels_last = false;           // of images (plan/layout.h): plan_program() decides, once
  bool enabled(PassId pass) const { return (disabled >> pass & 1u) == 0; }
};

/// Plans the evaluation of `roots`. `leaves` are the graph's leaves in the order in which a run
/// will bind them.
std::shared_ptr<const Program> plan_program(std::span<const Tensor> roots,
                                            std::span<Node* const> leaves,
                                            const PlanOptions& options);

/// The values that take most memory, with their layers: "9.1 MiB for float32[64, 6, 28, 28] of 0,
/// …".
std::string largest_values(const Program& program);

/// Text of a program for people: one line a node, a step, and a value of the arena.
std::string print_graph(const Program& program);
std::string print_steps(const Program& program);
std::string print_engines(const Program& program);
std::string print_arena(const Program& program);
std::string print_fusion(const Program& program);
std::string print_passes(const Program& program);

}  // namespace tenon
