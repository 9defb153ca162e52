// Evaluation: computing pending tensors, compiled functions, plans, the settings of the thread,
// caches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/tensor.h>

namespace tenon {

/// Progress of the measurements of Tune::Write.
struct TuneProgress {
  int done = 0;      ///< Measurements done.
  int total = 0;     ///< Measurements in all.
  std::string what;  ///< What is measured next; empty at the end.
};
/// Sets a function that is called while Tune::Write measures; an empty function removes it. The
/// function must not evaluate tensors.
TENON_API void on_tune(std::function<void(const TuneProgress&)> function);

/// Computes all tensors in one program. Loss, gradients and updates that are evaluated together
/// share common parts, and assignments take effect.
///
/// A pending tensor stands for the values that its variables had when it was built. If an evaluated
/// graph assigns variables, pending tensors inside this graph that the caller still holds are
/// computed too and keep the earlier values. A pending tensor outside this graph that reads an
/// assigned variable can no longer be computed: evaluating it throws ValueError that names the
/// variable. Evaluate it before or together with the update, or build it again. A tensor without a
/// value throws ValueError.
TENON_API void compute(TensorList tensors);

/// Run time of one step of a program.
struct StepTime {
  std::string title;     ///< What the step computes.
  std::string label;     ///< Path of the layer that built it.
  std::string engine;    ///< The engine that runs it.
  double median_ms = 0;  ///< Median time in milliseconds.
  double min_ms = 0;     ///< Shortest time in milliseconds.
  double gflop = 0;      ///< 10^9 operations (2 per multiply-add) of a contraction; 0 for others.
};

/// The results of one call of a compiled function. Copies share them. The values stay unchanged as
/// long as this object or a tensor taken from it lives; afterwards a later call reuses their
/// memory.
class TENON_API Outputs {
 public:
  /// The storage of the results. For the library's own use.
  struct Held;
  /// Takes the results. For the library's own use.
  explicit Outputs(Held* held) noexcept;
  /// Shares the results.
  Outputs(const Outputs& other) noexcept;
  /// Moves the results.
  Outputs(Outputs&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  /// Replaces the results.
  Outputs& operator=(Outputs other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Outputs();

  /// Number of results.
  std::size_t size() const noexcept;
  /// Result k.
  /// @{
  const Tensor& operator[](std::size_t k) const& noexcept;
  Tensor operator[](std::size_t k) const&& noexcept;
  /// @}
  /// The first result.
  const Tensor* begin() const noexcept;
  /// The end of the results.
  const Tensor* end() const noexcept;
  /// Sizes of the lists among the results of a typed function (compile.h). For the library's own
  /// use.
  const std::vector<std::int64_t>& sizes() const noexcept;
  /// The results as a list.
  operator std::vector<Tensor>() const { return {begin(), end()}; }  // NOLINT: is a list of tensors
  /// The storage of the results. For the library's own use.
  Held& held() const noexcept { return *held_; }

 private:
  Held* held_;
};

/// A function that is traced once for each combination of input shapes and dtypes; later calls bind
/// the inputs and replay the program, without building a graph or allocating memory. PyTorch:
/// `torch.compile`, with CUDA graphs on a GPU.
///
/// Variables are read and assigned at each call. Assignments that must take effect (updates) must
/// be among the function's results. Random draws advance the generator by the same count at each
/// call. Results are values without a graph: compute gradients inside the function, not from its
/// results.
///
/// A trace is valid while the state that the function read is unchanged: training mode, precision
/// and children of modules, frozen parameters. After a change the function is traced again; if the
/// earlier state is restored, the earlier trace is used again. Numbers and other C++ variables that
/// the function reads cannot be observed: list them as guards, or pass them as inputs
/// (docs/compile.md).
///
/// The function is traced, planned and run in the context that was current when it was compiled,
/// whichever thread calls it. Any number of threads may call it at once; each call has its own
/// memory. On the CPU, as many calls run at once as there are CPUs, and further calls wait; on a
/// GPU, calls are queued in order. Calls that assign variables run one after another.
class TENON_API CompiledFunction {
 public:
  /// The form of the function: input tensors to result tensors.
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  /// Returns the C++ values that the function depends on, always in the same order.
  using Guards = std::function<std::vector<double>()>;
  /// An empty function.
  CompiledFunction() = default;
  /// Compiles `f` at its first call. Throws ValueError if `f` is empty. `guards` is called at each
  /// call: if its values differ from those that a trace was made with, the function is traced
  /// again. Each combination of shapes, dtypes and devices keeps at most 16 traces of different
  /// state or guards; the least recently used one is dropped.
  explicit CompiledFunction(Body f, Guards guards = {});
  /// Calls the function.
  Outputs operator()(const std::vector<Tensor>& inputs) const;
  /// Runs the function `runs` times in a row, with the same bits as separate calls. On a GPU all
  /// runs are one launch, which removes the launch cost of steps of a few dozen microseconds; on
  /// the CPU they run one after another. The first axis of every input is the run (run r gets row
  /// r), or has size 1 if all runs share the input. The first axis of every output is the run too,
  /// except for variables.
  Outputs run_many(int runs, const std::vector<Tensor>& inputs) const;
  /// The plan for inputs of these shapes and dtypes; runs nothing.
  class Plan plan(const std::vector<Tensor>& inputs) const;
  /// Times every step, in the order of the plan: runs the function `repeats` times, or fewer if 5 s
  /// have passed. Assignments take effect.
  std::vector<StepTime> profile(const std::vector<Tensor>& inputs, int repeats = 50) const;
  /// Number of traces that the function holds, one for each combination of shapes, dtypes, state
  /// and guards.
  int traced() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};
/// Compiles a function; see CompiledFunction.
TENON_API CompiledFunction compile(CompiledFunction::Body f, CompiledFunction::Guards guards = {});

/// A planned program as numbers and text; made by plan() and CompiledFunction::plan().
class TENON_API Plan {
 public:
  /// Peak memory in bytes: arena (workspace included), outputs and leaves.
  std::int64_t peak_bytes() const;
  /// Bytes of the arena, which holds all intermediates.
  std::int64_t arena_bytes() const;
  /// Bytes of the leaves: inputs and variables.
  std::int64_t leaf_bytes() const;
  /// Number of steps.
  int step_count() const;
  /// Number of graph nodes.
  int node_count() const;
  /// Planning time in milliseconds.
  double planning_ms() const;
  /// The graph after the graph passes, one node a line.
  std::string graph() const;
  /// The steps with engine, shapes and buffers.
  std::string steps() const;
  /// The engine of each step, and which engines declined it and why.
  std::string engines() const;
  /// The values in the arena: offset and lifetime.
  std::string arena() const;
  /// For each region, why it was fused or not.
  std::string fusion() const;
  /// The passes with time and effect.
  std::string passes() const;

  /// The plan itself. For the library's own use.
  struct Impl;
  /// For the library's own use.
  explicit Plan(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};
/// Plans the evaluation of these tensors; runs nothing.
TENON_API Plan plan(TensorList tensors);

/// Waits until all queued work of the GPUs is done. Needed for timing; data() and item() wait for
/// their value without it. PyTorch: `torch.cuda.synchronize`.
TENON_API void synchronize();

// ---- Settings of the calling thread's context (context.h)
/// Sets the number of threads of a program; 0: all CPUs of the process.
TENON_API void set_threads(int threads);
/// The number of threads that was set.
TENON_API int threads();
/// Sets the precision of products that are built from now on, unless a PrecisionScope or a layer
/// sets another one.
TENON_API void set_precision(Precision precision);
/// The precision of the thread's context.
TENON_API Precision precision();
/// Sets how engines are chosen on a GPU.
TENON_API void set_tune(Tune tune);
/// How engines are chosen on a GPU.
TENON_API Tune tune();
/// Sets the limit of a program's peak memory in bytes, leaves included. Programs above it are
/// refused before they run; 0: no limit.
TENON_API void set_memory_limit(std::int64_t bytes);
/// Sets the engines: "fast" (default), or "reference", plain loops on the CPU, one operation at a
/// time.
TENON_API void set_engine(const std::string& name);
/// The engines: "fast" or "reference".
TENON_API std::string engine();
/// Enables or disables a pass of the planner by name ("fuse", "share", …), to find faults and for
/// tests. Throws ValueError for an unknown name, and if a pass that is required ("decompose",
/// "checks_first", …) is to be disabled.
TENON_API void set_pass_enabled(const std::string& pass, bool enabled);
/// The names of all passes.
TENON_API std::vector<std::string> pass_names();

// ---- Statistics and caches
/// Counts and memory of all evaluations.
struct RunnerStats {
  std::int64_t programs_planned = 0;  ///< Programs planned (cache misses).
  std::int64_t programs_run = 0;      ///< Programs run.
  double planning_ms = 0;             ///< Total planning time in milliseconds.
  std::int64_t peak_memory = 0;       ///< Largest number of bytes of host tensors so far.
  std::int64_t memory_in_use = 0;     ///< Bytes of host tensors now.
};
/// The statistics of the process.
TENON_API RunnerStats runner_stats();

/// Size of the caches, which all threads share.
struct CacheStats {
  /// One cache.
  struct Part {
    std::int64_t count = 0;  ///< Number of entries.
    std::int64_t bytes = 0;  ///< Their bytes.
  };
  Part programs;  ///< Programs of compute() and of functions that read values.
  Part traces;    ///< Compiled functions: programs, and outputs that wait for a call.
  Part arenas;    ///< Free arenas of compiled functions; `count` is the number of functions.
  std::int64_t limit = 0;  ///< Limit of the bytes of programs and traces.
};
/// The size of the caches.
TENON_API CacheStats cache_stats();
/// Sets the limit of programs and traces in bytes; the default is 512 MiB. Beyond the limit, the
/// least recently used entries are removed. The trace that each compiled function ran last is
/// always kept. Arenas are not limited: each is as large as its function's largest program needs,
/// one for each call that runs at once. Throws ValueError for a negative limit.
TENON_API void set_cache_limit(std::int64_t bytes);
/// Empties all caches and frees unused host memory. Running programs are not disturbed; a program
/// that is needed again is planned again.
TENON_API void clear_caches();

}  // namespace tenon
