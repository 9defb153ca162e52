// A trace: a compiled function's program for one combination of input shapes, with what its calls
// need, ready to be taken by any thread.
//
// The trace itself does not change once it is made. A call takes an arena from its function's pool,
// addresses from the trace's, and outputs that nobody holds any more; all of these are its own
// until it gives them back, so calls share nothing that they write. A settled call allocates
// nothing.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/eval.h>

#include "device/backend.h"
#include "graph/node.h"
#include "graph/random_trace.h"
#include "run/caches.h"
#include "run/leaf_use.h"
#include "run/rounded.h"

namespace tenon {

/// What a call is given by the caller, one run's worth.
struct Input {
  Shape shape;
  DType dtype;
  Device device;
  bool operator==(const Input&) const = default;
};
/// `runs` 0: a plain call; else inputs and outputs have the runs as their first axis.
Input describe(const Tensor& t, int runs);
Shape stack_of(int runs, const Shape& row);

/// Memory for intermediates: of all traces of one function, since a call needs it only while it
/// runs.
class ArenaPool final : public CacheEntry {
 public:
  ArenaPool() : CacheEntry(Kind::Arenas) {}
  /// An arena for the program; waits while `at_once` others are in use. A MemoryError names the
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

/// Addresses that one call of so many runs binds.
struct Bound {
  Bound(const Program& program, std::span<Node* const> leaves, int runs_of_it)
      : runs(runs_of_it),
        values(program.values.size(), nullptr),
        strides(program.values.size(), 0),
        variables(program, leaves) {}
  const int runs;
  std::byte* arena = nullptr;
  std::vector<std::byte*> values;     // of the first run
  std::vector<std::int64_t> strides;  // bytes to the next run
  std::shared_ptr<Buffer> random;     // states of the generator, kRandomStride apart
  std::vector<std::int64_t> states;   // the same on the host
  LeafUse variables;
  std::vector<Buffer*>
      given;  // variables among the inputs, which the caller may pass as any tensor
  BufferUse given_use;
};
inline constexpr std::int64_t kRandomStride = 64;

struct Trace;

/// The outputs of one call. Idle ones stand in their trace; others hold a share in it.
struct Outputs::Held {
  std::atomic<int> users{0};
  int runs = 0;
  std::vector<Tensor> tensors;
  std::shared_ptr<Trace> trace;
};

struct Trace final : CacheEntry, std::enable_shared_from_this<Trace> {
  /// Where traces of a function stand.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void drop(Trace& trace, bool all) = 0;
  };

  Trace() : CacheEntry(Kind::Trace) {}
  ~Trace() override;
  void leave(bool all) override;

  std::vector<Input> signature;
  std::uint64_t key = 0;  // of the signature and of what planning depends on
  std::weak_ptr<Owner> owner;
  std::shared_ptr<const Program> program;
  std::vector<Tensor> leaves;      // by slot
  std::vector<int> input_of_slot;  // the input bound to a slot, or -1
  std::vector<Shape> shapes;       // of the caller's outputs; assignments of copies stand behind
  std::vector<KeptWeight> kept;    // rounded copies that the program reads
  RandomTrace random;
  std::unique_ptr<Replay> replay;  // null where there is nothing to prepare

  /// A call's own; made when all are in use. What is given back waits for the next call of so many
  /// runs, up to limits: those of numbers of runs that were not asked for lately make way.
  std::unique_ptr<Bound> take_bound(int runs);
  void give_back(std::unique_ptr<Bound> bound) noexcept;
  Outputs::Held* take_outputs(int runs);
  void give_back(Outputs::Held* held) noexcept;
  /// Lets go of idle outputs that are large: another trace of the function is being used now.
  void rest();

 private:
  std::int64_t output_bytes(int runs) const;
  bool large(int runs) const;
  /// Takes idle outputs that make way for those of so many runs off the list.
  std::vector<Outputs::Held*> superfluous(int runs);
  void drop(std::span<Outputs::Held* const> gone);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Bound>> bounds_;
  std::vector<Outputs::Held*> outputs_;
};

/// Traces the function in its context and plans what it gives; `key` is the trace's. `anew`: a plan
/// of another size does not serve.
std::shared_ptr<Trace> make_trace(const CompiledFunction::Body& function, const Context& context,
                                  std::vector<Input> signature, std::uint64_t key,
                                  bool anew = false);

/// Binds inputs and outputs, feeds the generator's state, and brings rounded copies up to date.
void bind(Trace& t, const std::vector<Tensor>& inputs, std::byte* arena, Bound& b,
          std::vector<Tensor>& outputs);
/// After the runs: what was assigned is seen by others, and marked.
void after_run(Trace& t, Bound& b);

}  // namespace tenon
