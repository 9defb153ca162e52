// Runs loop and branch bodies. Before each step the body's values are bound: carries alternate
// between two buffers, rows of xs and ys are bound inside the stacked tensors, so nothing is
// copied.
#include "plan/steps/loop_engine.h"

#include <deque>
#include <vector>

#include "base/index.h"
#include "base/per_thread.h"
#include "graph/attrs.h"
#include "plan/steps/calls.h"

namespace tenon {
namespace {

constexpr std::int64_t kCarryAlign = 64;

// Value pointers of the bodies that a thread currently runs, one frame for each nesting depth.
// Frames keep their memory, so a step allocates nothing once the sizes have settled.
class Frame {
 public:
  explicit Frame(std::size_t values) {
    if (frames().size() <= depth()) frames().emplace_back();
    values_ = &frames()[depth()++];
    values_->assign(values, nullptr);
  }
  ~Frame() { --depth(); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  std::byte*& operator[](ValueId id) { return (*values_)[at(id)]; }
  std::byte* const* data() const { return values_->data(); }

 private:
  static std::deque<std::vector<std::byte*>>& frames() {
    static const PerThread<std::deque<std::vector<std::byte*>>> instance;
    return instance.get();
  }
  static std::size_t& depth() {
    thread_local std::size_t instance = 0;
    return instance;
  }
  std::vector<std::byte*>* values_;
};

void bind(Frame& frame, ValueId id, std::byte* address) {
  if (id != kNoValue) frame[id] = address;
}

void bind_arena(Frame& frame, const Program& body, std::byte* arena) {
  for (std::size_t k = 0; k < body.values.size(); ++k)
    if (body.values[k].kind == Value::Kind::Arena)
      frame[static_cast<ValueId>(k)] = arena + body.values[k].offset;
}

void run_steps(const Program& body, const Frame& frame, std::byte* arena, void* stream) {
  run_calls(body, frame.data(), arena, stream);
}

class ScanKernel final : public Kernel {
 public:
  explicit ScanKernel(const Opaque& scan) : scan_(scan), body_(*scan.bodies[0]) {
    const ScanAttrs& attrs = scan.attrs.as<ScanAttrs>();
    length_ = attrs.length;
    reverse_ = attrs.reverse != 0;
    carries_ = attrs.carries;
    rows_ = attrs.rows;
    for (std::int64_t k = 0; k < carries_; ++k) {
      carry_offset_.push_back(static_cast<std::int64_t>(workspace_bytes));
      carry_bytes_.push_back(
          round_up(body_.values[at(body_.outputs[at(k)].value)].bytes, kCarryAlign));
      workspace_bytes += 2 * static_cast<std::size_t>(carry_bytes_.back());
    }
    arena_offset_ = static_cast<std::int64_t>(workspace_bytes);
    workspace_bytes += static_cast<std::size_t>(body_.arena_bytes);
  }

  void run(const Binding& binding) const override {
    Frame frame(body_.values.size());
    std::byte* arena = binding.workspace + arena_offset_;
    bind_arena(frame, body_, arena);
    for (std::size_t s = at(carries_ + rows_); s < body_.slots.size(); ++s)
      bind(frame, body_.slots[s], binding.values[scan_.inputs[s]]);
    for (std::int64_t t = 0; t < length_; ++t) {
      bind_carries(frame, binding, t);
      bind_rows(frame, binding, reverse_ ? length_ - 1 - t : t);
      run_steps(body_, frame, arena, binding.stream);
    }
  }

 private:
  std::byte* carry_place(const Binding& binding, std::int64_t k, std::int64_t t) const {
    return binding.workspace + carry_offset_[at(k)] + (t & 1) * carry_bytes_[at(k)];
  }

  void bind_carries(Frame& frame, const Binding& binding, std::int64_t t) const {
    for (std::int64_t k = 0; k < carries_; ++k) {
      bind(frame, body_.slots[at(k)],
           t == 0 ? binding.values[scan_.inputs[at(k)]] : carry_place(binding, k, t - 1));
      const ValueId last = scan_.outs[at(k)];
      frame[body_.outputs[at(k)].value] =
          t + 1 == length_ && last != kNoValue ? binding.values[last] : carry_place(binding, k, t);
    }
  }

  void bind_rows(Frame& frame, const Binding& binding, std::int64_t row) const {
    for (std::int64_t k = carries_; k < carries_ + rows_; ++k) {
      const ValueId id = body_.slots[at(k)];
      if (id != kNoValue)
        frame[id] = binding.values[scan_.inputs[at(k)]] + row * body_.values[at(id)].bytes;
    }
    for (std::size_t k = at(carries_); k < body_.outputs.size(); ++k) {
      const ValueId id = body_.outputs[k].value;
      frame[id] = binding.values[scan_.outs[k]] + row * body_.values[at(id)].bytes;
    }
  }

  const Opaque scan_;
  const Program& body_;
  std::int64_t length_ = 0;
  bool reverse_ = false;
  std::int64_t carries_ = 0, rows_ = 0;
  std::vector<std::int64_t> carry_offset_, carry_bytes_;
  std::int64_t arena_offset_ = 0;
};

// Only where the thread that queues the work can read the predicate: on the CPU.
class CondKernel final : public Kernel {
 public:
  explicit CondKernel(const Opaque& cond) : cond_(cond) {
    for (const auto& body : cond.bodies)
      workspace_bytes = std::max(workspace_bytes, static_cast<std::size_t>(body->arena_bytes));
  }

  void run(const Binding& binding) const override {
    const bool holds = *reinterpret_cast<const bool*>(binding.values[cond_.inputs[0]]);
    const Program& body = *cond_.bodies[holds ? 0 : 1];
    Frame frame(body.values.size());
    bind_arena(frame, body, binding.workspace);
    const CondAttrs& attrs = cond_.attrs.as<CondAttrs>();
    for (std::int64_t s = 0; s < std::ssize(body.slots); ++s)
      bind(frame, body.slots[at(s)],
           binding.values[cond_.inputs[at(attrs.input_of(holds, s) + 1)]]);
    for (std::size_t k = 0; k < body.outputs.size(); ++k)
      bind(frame, body.outputs[k].value, binding.values[cond_.outs[k]]);
    run_steps(body, frame, binding.workspace, binding.stream);
  }

 private:
  const Opaque cond_;
};

class LoopEngine final : public Engine {
 public:
  const char* name() const override { return "loop"; }

  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && !region.opaque.bodies.empty();
    if (!mine) *why = "runs loops and branches only";
    return mine;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value>,
                                  int) const override {
    if (region.opaque.op == Op::Cond) return std::make_unique<CondKernel>(region.opaque);
    return std::make_unique<ScanKernel>(region.opaque);
  }
};

}  // namespace

const Engine& loop_engine() {
  static const LoopEngine engine;
  return engine;
}

}  // namespace tenon
