// Binds one call: the addresses of inputs, outputs, intermediates and random-generator states. The
// steps themselves run in runner.cpp.
#include <algorithm>
#include <bit>

#include "base/index.h"
#include "run/api/trace.h"
#include "run/runner.h"

namespace tenon {
namespace {

// Releases the other outputs that share the value of output `first`, whatever their shape. Returns
// whether the caller has kept one of them.
bool release_same(const Program& p, std::vector<Tensor>& outputs, std::size_t first) {
  bool kept = false;
  for (std::size_t l = first + 1; l < outputs.size(); ++l) {
    if (!outputs[l].defined() || p.outputs[l].is_variable ||
        p.outputs[l].value != p.outputs[first].value)
      continue;
    const bool shared = outputs[first].defined() && outputs[l].node() == outputs[first].node();
    kept |= !shared && outputs[l].node()->refs.load(std::memory_order_acquire) != 1;
    outputs[l] = Tensor();
  }
  return kept;
}

// An output buffer is reused if nobody else holds it. A buffer that the caller has kept is left
// alone and replaced. Outputs that are one value with different shapes share memory.
void bind_outputs(const Trace& t, Bound& b, std::vector<Tensor>& outputs) {
  const Program& p = *t.program;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputSlot& slot = p.outputs[k];
    Tensor& out = outputs[k];
    if (slot.is_variable) continue;  // bound after the run
    const Shape shape = b.runs == 0 ? t.shapes[k] : stack_of(b.runs, t.shapes[k]);
    std::size_t same = 0;
    while (p.outputs[same].is_variable || p.outputs[same].value != slot.value) ++same;
    if (same != k) {
      const Tensor& first = outputs[same];
      out = first.shape() == shape ? first : make_data(first.node()->value, shape, slot.dtype);
      continue;
    }
    const Value& value = p.values[at(slot.value)];
    const std::int64_t bytes = value.bytes;
    const bool kept = release_same(p, outputs, k);
    if (kept || !out.defined() || out.node()->refs.load(std::memory_order_acquire) != 1)
      out = make_data(
          Buffer::allocate(static_cast<std::size_t>(bytes * std::max(b.runs, 1)), value.device),
          shape, slot.dtype);
    // A host copy belongs to the previous call.
    if (LeafState* leaf = out.node()->leaf.get()) leaf->host_copy.reset();
    b.values[at(slot.value)] = static_cast<std::byte*>(out.node()->value->data());
    b.strides[at(slot.value)] = b.runs > 1 ? bytes : 0;
  }
}

// Each run continues the generator where the previous run stopped. Draws that no output needs are
// not inputs of the program, but they advance the generator too.
void feed_random(RandomTrace& random, Bound& b, ValueId value, Device device) {
  constexpr std::size_t kWords = kRandomStride / sizeof(std::int64_t);
  const auto runs = static_cast<std::size_t>(std::max(b.runs, 1));
  const auto draws = static_cast<std::uint64_t>(random.draws);
  const std::uint64_t first = random.generator->advance(draws * runs);
  if (value == kNoValue) return;
  if (b.random == nullptr) {
    b.states.assign(kWords * runs, 0);
    b.random = Buffer::allocate(b.states.size() * sizeof(std::int64_t), device);
  }
  for (std::size_t r = 0; r < runs; ++r) {
    b.states[r * kWords] = std::bit_cast<std::int64_t>(random.generator->seed());
    b.states[r * kWords + 1] = std::bit_cast<std::int64_t>(first + r * draws);
  }
  b.random->write(b.states.data(), b.states.size() * sizeof(std::int64_t));
  b.values[at(value)] = static_cast<std::byte*>(b.random->data());
  b.strides[at(value)] = runs > 1 ? kRandomStride : 0;
}

// An input that is a variable keeps its present value during the call.
void hold_given(const std::vector<Tensor>& inputs, Bound& b) {
  b.given.clear();
  b.given_of_input.assign(inputs.size(), -1);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (const Tensor& input = inputs[k];
        input.device().kind == Device::Kind::Cpu && may_change(*input.node())) {
      b.given_of_input[k] = static_cast<std::int32_t>(b.given.size());
      b.given.push_back(input.node()->value.get());
    }
  if (!b.given.empty()) b.given_use.begin({}, b.given);
}

}  // namespace

void bind(Trace& t, const std::vector<Tensor>& inputs, std::byte* arena, Bound& b,
          std::vector<Tensor>& outputs) {
  const Program& p = *t.program;
  if (b.arena != arena) bind_arena(p, arena, b.values);
  b.arena = arena;
  refresh(t.kept);
  b.variables.keep_held_values();
  hold_given(inputs, b);
  ValueId random = kNoValue;
  for (std::size_t s = 0; s < p.slots.size(); ++s) {
    if (p.slots[s] == kNoValue || b.variables.is_variable(s)) continue;
    const std::size_t value = at(p.slots[s]);
    const int input = t.input_of_slot[s];
    if (input < 0 && t.leaves[s].node() == t.random.leaf.node()) {
      random = p.slots[s];
      continue;
    }
    const Tensor& source = input >= 0 ? inputs[at(input)] : t.leaves[s];
    const std::int32_t given = input >= 0 ? b.given_of_input[at(input)] : -1;
    b.values[value] = given < 0 ? leaf_memory(*source.node()) : b.given_use.read(at(given));
    b.strides[value] =
        input >= 0 && b.runs > 1 && source.size(0) == b.runs ? p.values[value].bytes : 0;
  }
  if (t.random.draws > 0) feed_random(t.random, b, random, t.random.leaf.device());
  bind_outputs(t, b, outputs);
  b.variables.begin(b.values);
}

void after_run(Trace& t, Bound& b, std::vector<Tensor>& outputs) {
  const std::uint64_t now = advance_clock();
  b.variables.end();
  b.given_use.end();
  for (ValueId id : t.program->assigned)
    mark_assigned(*t.leaves[at(t.program->values[at(id)].slot)].node(), now);
  mark_fresh(t.kept, now);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputSlot& slot = t.program->outputs[k];
    if (!slot.is_variable) continue;
    const Node& variable = *t.leaves[at(t.program->values[at(slot.value)].slot)].node();
    Tensor& out = outputs[k];
    if (!out.defined()) out = make_data(Buffer::none(variable.device), variable.shape, slot.dtype);
    hold_value(*out.node()->value, *variable.value);
  }
}

}  // namespace tenon
