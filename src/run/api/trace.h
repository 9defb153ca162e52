// A trace: a compiled function's program for one combination of input shapes, with everything that
// its calls need. Any thread may use it.
//
// A trace does not change once it is made. A call takes an arena from the function's pool,
// addresses from the trace's pool, and outputs that nobody holds any more. They belong to the call
// until it returns them, so concurrent calls share no memory that they write. Once the sizes have
// settled, a repeated call allocates nothing.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/compute.h>

#include "device/backend.h"
#include "graph/node.h"
#include "graph/random_trace.h"
#include "graph/tracing/traced_state.h"
#include "run/caches.h"
#include "run/leaf_use.h"
#include "run/rounded.h"

namespace tenon {

/// One input of a call, for one run.
struct Input {
  Shape shape;
  DType dtype;
  Device device;
  bool operator==(const Input&) const = default;
};
/// `runs` 0: a plain call. Otherwise the first axis of inputs and outputs is the run.
Input describe(const Tensor& t, int runs);
Shape stack_of(int runs, const Shape& row);

/// Arenas shared by all traces of one function: a call needs an arena only while it runs.
class ArenaPool final : public CacheEntry {
 public:
  ArenaPool() : CacheEntry(Kind::Arenas) {}
  /// An arena for the program. Waits while `at_once` others are in use. A MemoryError names the
  /// largest of the program's values.
  std::shared_ptr<Buffer> take(const Program& program, int at_once);
  void give_back(std::shared_ptr<Buffer> arena) noexcept;
  void leave(bool all) override;

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::shared_ptr<Buffer>> idle_;
  int in_use_ = 0;
};

/// The addresses of one call with a given number of runs.
struct Bound {
  Bound(const Program& program, std::span<Node* const> leaves, int runs_of_it)
      : runs(runs_of_it),
        values(program.values.size(), nullptr),
        strides(program.values.size(), 0),
        variables(program, leaves) {}
  const int runs;
  std::byte* arena = nullptr;
  std::vector<std::byte*> values;     // addresses of the first run
  std::vector<std::int64_t> strides;  // bytes to the next run
  std::shared_ptr<Buffer> random;     // states of the generator, kRandomStride apart
  std::vector<std::int64_t> states;   // the same states on the host
  LeafUse variables;
  std::vector<Buffer*>
      given;  // variables among the inputs, which the caller may pass as any tensor
  std::vector<std::int32_t> given_of_input;  // index in `given` of each input; -1: not a variable
  BufferUse given_use;
};
inline constexpr std::int64_t kRandomStride = 64;

struct Trace;

/// The outputs of one call. Idle outputs are kept in their trace; outputs in use hold a reference
/// to it.
struct Outputs::Held {
  std::atomic<int> users{0};
  int runs = 0;
  std::vector<Tensor> tensors;
  std::vector<std::int64_t> sizes;  // sizes of an inlined call; otherwise the trace has them
  std::shared_ptr<Trace> trace;
};

struct Trace final : CacheEntry, std::enable_shared_from_this<Trace> {
  /// The table that holds the traces of a function.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void drop(Trace& trace, bool all) = 0;
  };

  Trace() : CacheEntry(Kind::Trace) {}
  ~Trace() override;
  void leave(bool all) override;

  std::vector<Input> signature;
  std::uint64_t key = 0;     // hash of the signature and of everything that planning depends on
  std::uint64_t guards = 0;  // hash of the values of the function's guards
  StateReads state;          // what the function read besides tensors
  std::weak_ptr<Owner> owner;
  std::shared_ptr<const Program> program;
  std::vector<Tensor> leaves;      // by slot
  std::vector<int> input_of_slot;  // the input bound to a slot, or -1
  // Shapes of the caller's outputs; assignments of rounded copies come after these.
  std::vector<Shape> shapes;
  std::vector<std::int64_t> sizes;  // sizes of the lists among the results (run/result_sizes.h)
  std::vector<KeptWeight> kept;     // rounded copies that the program reads
  RandomTrace random;
  std::unique_ptr<Replay> replay;  // null: nothing to prepare

  /// Addresses for one call; new ones if all are in use. Returned addresses are kept for the next
  /// call with the same number of runs, up to a limit; those of numbers of runs that were least
  /// recently used are dropped first.
  std::unique_ptr<Bound> take_bound(int runs);
  void give_back(std::unique_ptr<Bound> bound) noexcept;
  Outputs::Held* take_outputs(int runs);
  void give_back(Outputs::Held* held) noexcept;
  /// Releases large idle outputs, because another trace of the function is in use now.
  void drop_idle_outputs();

 private:
  std::int64_t output_bytes(int runs) const;
  bool large(int runs) const;
  /// Removes idle outputs from the list to make room for outputs of this number of runs, and
  /// returns them.
  std::vector<Outputs::Held*> superfluous(int runs);
  void drop(std::span<Outputs::Held* const> gone);
  /// Drops references to the values of variables. The next assignment of a variable whose value
  /// nobody holds is then done in place.
  void release_variables(Outputs::Held& held) const noexcept;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Bound>> bounds_;
  std::vector<Outputs::Held*> outputs_;
};

/// Traces the function in its context and plans the result. `key` is the trace's. `anew`: does not
/// reuse a plan of another size.
std::shared_ptr<Trace> make_trace(const CompiledFunction::Body& function, const Context& context,
                                  std::vector<Input> signature, std::uint64_t key,
                                  bool anew = false);

/// Binds inputs and outputs, writes the generator's state, and refreshes rounded copies.
void bind(Trace& t, const std::vector<Tensor>& inputs, std::byte* arena, Bound& b,
          std::vector<Tensor>& outputs);
/// After the runs: publishes the assigned values, marks the variables as assigned, and gives the
/// outputs that are assignments their values.
void after_run(Trace& t, Bound& b, std::vector<Tensor>& outputs);

}  // namespace tenon
