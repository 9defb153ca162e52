// Evaluation: planning and running what is pending; compiled functions; caches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/tensor.h>

namespace tenon {

/// Where measuring stands: `what` is measured next; empty at the end.
struct TuneProgress {
  int done = 0, total = 0;
  std::string what;
};
/// Called while Tune::Write measures; an empty function ends that. It must not evaluate anything.
TENON_API void on_tune(std::function<void(const TuneProgress&)> function);

/// Computes all of these in one program: loss, gradients and updates together share what they have
/// in common, and assignments take effect.
///
/// A pending tensor stands for the values that its variables had when it was built. Pending tensors
/// inside the graph evaluated here that the caller still holds are computed along with an
/// assignment and keep those values. One outside of it cannot be computed any more once a variable
/// that it reads was assigned: evaluating it then throws ValueError, which names the variable.
/// Evaluate it before the update or together with it, or build it anew. A tensor that was never
/// assigned is a ValueError.
TENON_API void eval(std::span<const Tensor> tensors);
TENON_API void eval(std::initializer_list<Tensor> tensors);

/// How long one step of a program takes.
struct StepTime {
  std::string title, label, engine;
  double median_ms = 0, min_ms = 0;
  double gflop = 0;  ///< multiply-adds times two of a contraction; 0 for other steps
};

/// What a call of a compiled function gave. Copies share it. The values are this call's and stay so
/// as long as it, or a tensor taken from it, lives; then their memory serves a later call.
class TENON_API Outputs {
 public:
  struct Held;
  explicit Outputs(Held* held) noexcept;  ///< (library use)
  Outputs(const Outputs& other) noexcept;
  Outputs(Outputs&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Outputs& operator=(Outputs other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Outputs();

  std::size_t size() const noexcept;
  const Tensor& operator[](std::size_t k) const& noexcept;
  Tensor operator[](std::size_t k) const&& noexcept;
  const Tensor* begin() const noexcept;
  const Tensor* end() const noexcept;
  operator std::vector<Tensor>() const { return {begin(), end()}; }  // NOLINT: is a list of tensors
  Held& held() const noexcept { return *held_; }                     ///< (library use)

 private:
  Held* held_;
};

/// A function traced once for each combination of input shapes and dtypes; later calls bind the
/// inputs and replay the program: no graph is built and nothing is allocated. Variables are read
/// and assigned at each call; effects that must run (updates) are returned among the outputs.
/// Random draws advance the generator by the same counts at each call. What it returns are values
/// without a graph: gradients are asked for inside of it, not of what comes out.
///
/// The function is traced, planned and run in the context that was current when it was compiled,
/// whoever calls it. Any number of threads may call it at once: each call has memory of its own. On
/// the CPU as many run at once as there are CPUs, further ones wait; on a GPU they are queued in
/// the order of the calls. Calls that assign variables run one after another.
class TENON_API CompiledFunction {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  CompiledFunction() = default;
  /// Throws ValueError when `f` is empty.
  explicit CompiledFunction(Body f);
  Outputs operator()(const std::vector<Tensor>& inputs) const;
  /// Runs it `runs` times in a row, with the bits of as many calls: on a GPU in one launch, which
  /// is what steps of a few dozen microseconds need; on the CPU one after another. Every input has
  /// the runs as its first axis, of which run r takes row r, or a first axis of 1 for what all runs
  /// share. The outputs have the runs as their first axis too, but for variables.
  Outputs run_many(int runs, const std::vector<Tensor>& inputs) const;
  /// The plan for inputs of these shapes, without running it.
  class Plan plan(const std::vector<Tensor>& inputs) const;
  /// Runs it `repeats` times, or fewer when 5 s have gone by (assignments take effect), and times
  /// every step, in order of the plan.
  std::vector<StepTime> profile(const std::vector<Tensor>& inputs, int repeats = 50) const;
  /// Traces that it holds.
  int traced() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};
TENON_API CompiledFunction compile(CompiledFunction::Body f);

/// What a plan tells about itself; made by plan() and by CompiledFunction::plan().
class TENON_API Plan {
 public:
  std::int64_t peak_bytes() const;  ///< arena (workspace included), outputs and leaves
  std::int64_t arena_bytes() const;
  std::int64_t leaf_bytes() const;  ///< inputs and variables
  int step_count() const;
  int node_count() const;
  double planning_ms() const;
  std::string graph() const;    ///< the graph after the graph passes, a node a line
  std::string steps() const;    ///< steps with engine, shapes, buffers
  std::string engines() const;  ///< who runs each step, and who declined it and why
  std::string arena() const;    ///< who lives where and when
  std::string fusion() const;   ///< why each region fused or stopped
  std::string passes() const;   ///< passes with time and effect

  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};
/// Plans the evaluation of these tensors without running it.
TENON_API Plan plan(std::span<const Tensor> tensors);

/// Waits until the GPUs have done all work that is queued. Values read by data() and item() need
/// no such wait; timings do.
TENON_API void synchronize();

/// Settings of the calling thread's context (context.h).
TENON_API void set_threads(int threads);  ///< 0: all CPUs this process may use
TENON_API int threads();
/// Of products built from now on that no PrecisionScope and no layer has an own precision for.
TENON_API void set_precision(Precision precision);
TENON_API Precision precision();
TENON_API void set_tune(Tune tune);
TENON_API Tune tune();
/// Programs whose peak (leaves included) would exceed this many bytes are refused before they run;
/// 0: no limit.
TENON_API void set_memory_limit(std::int64_t bytes);
/// "fast" (default) or "reference": plain loops, every op, one at a time.
TENON_API void set_engine(const std::string& name);
TENON_API std::string engine();
/// Switches a pass on or off by name ("fuse", "share", …): for finding faults and for tests. Throws
/// ValueError for another name.
TENON_API void set_pass_enabled(const std::string& pass, bool enabled);
TENON_API std::vector<std::string> pass_names();

struct RunnerStats {
  std::int64_t programs_planned = 0;  ///< cache misses
  std::int64_t programs_run = 0;
  double planning_ms = 0;
  std::int64_t peak_memory = 0;  ///< bytes of host tensors at the highest point
  std::int64_t memory_in_use = 0;
};
TENON_API RunnerStats runner_stats();

/// What is kept so as not to be recomputed, by all threads together.
struct CacheStats {
  struct Part {
    std::int64_t count = 0, bytes = 0;
  };
  Part programs;  ///< of eval() and of what reads values
  Part traces;    ///< of compiled functions: programs, outputs that wait for a call
  Part arenas;    ///< free memory for intermediates of compiled functions; `count`: functions
  std::int64_t limit = 0;  ///< of the bytes of programs and traces
};
TENON_API CacheStats cache_stats();
/// Beyond so many bytes (512 MiB at the start) what was used least recently goes; only the trace
/// that each compiled function ran last is kept whatever its size. An arena is as large as its
/// function's largest program needs, one for each call that runs at once. Throws ValueError below
/// 0.
TENON_API void set_cache_limit(std::int64_t bytes);
/// Lets go of all of it and of host memory that is free. What runs is not disturbed; what is asked
/// for again is planned anew.
TENON_API void clear_caches();

}  // namespace tenon
