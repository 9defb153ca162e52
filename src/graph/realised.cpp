// Collects sources by a walk that ends as soon as the list is full.
#include "graph/realised.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/sources.h"

namespace tenon {
namespace {

constexpr std::size_t kMostSources = 256;

// Whether a gradient propagates from the node to its inputs.
bool passes_on(const Node& node) {
  return !node.is_constant && node.op != Op::StopGradient && !has_trait(node.op, kFlat) &&
         (is_floating(node.dtype) || has_trait(node.op, kSeveralResults));
}

// The inputs that the value was computed from: without the variable of an assignment, and without
// the assignments that a value carries.
std::span<Node* const> read_by(const Node& node) {
  const std::span<Node* const> in = node.in();
  if (node.op == Op::Assign && !in.empty()) return in.last(1);
  return node.op == Op::WithUpdates && !in.empty() ? in.first(1) : in;
}

bool has_released_inputs(const Node& assignment) {
  return assignment.op == Op::Assign && assignment.input_count == 0;
}

// The tensors below a pending node that gradients could reach, and the sources of those that have
// released their inputs. Null if there are none. Reads at most a few hundred nodes.
std::unique_ptr<const Sources> sources_of(const Node& node) {
  // An optimizer evaluates many assignments, and their results are rarely read (may_have_read()).
  if (!passes_on(node) || node.input_count == 0 || node.op == Op::Assign) return nullptr;
  auto out = std::make_unique<Sources>();
  std::unordered_set<std::uint64_t> found;
  std::vector<const Node*> open(read_by(node).begin(), read_by(node).end());
  while (!open.empty() && found.size() <= kMostSources) {
    const Node* next = open.back();
    open.pop_back();
    // A gradient with respect to a detached tensor can be requested, but does not propagate
    // further.
    const bool passes = passes_on(*next);
    if (!passes && !is_floating(next->dtype)) continue;
    if (!found.insert(next->built_at).second || !passes) continue;
    const std::span<Node* const> read = read_by(*next);
    open.insert(open.end(), read.begin(), read.end());
    if (has_released_inputs(*next)) out->before = std::max(out->before, next->built_at);
    const Sources* theirs = next->sources();
    if (theirs == nullptr) continue;
    found.insert(theirs->times.begin(), theirs->times.end());
    out->before = std::max(out->before, theirs->before);
  }
  if (found.size() > kMostSources) {
    out->before = node.built_at;
  } else {
    out->times.assign(found.begin(), found.end());
    std::sort(out->times.begin(), out->times.end());
  }
  if (out->times.empty() && out->before == 0) return nullptr;
  return out;
}

}  // namespace

void set_realised(Node& node, std::shared_ptr<Buffer> buffer) {
  if (node.tracked) return place(node, std::move(buffer));
  std::unique_ptr<const Sources> sources = sources_of(node);
  place(node, std::move(buffer));
  Node* dropped[256];
  const int count = node.input_count;
  std::copy_n(node.inputs(), count, dropped);
  node.input_count = 0;
  node.inputs_heap.reset();
  node.has_sources = sources != nullptr;
  if (node.has_sources) node.own_sources = sources.release();
  for (int k = 0; k < count; ++k) release(dropped[k]);
}

bool may_have_read(const Node& value, const Node& tensor) {
  if (has_released_inputs(value)) return passes_on(value) && tensor.built_at < value.built_at;
  // A value that was computed from such a tensor has kept its inputs.
  const bool keeps = tensor.tracked || tensor.op == Op::Variable;
  const Sources* own = value.sources();
  if (own == nullptr || (keeps && !value.reads_assigned)) return false;
  return tensor.built_at < own->before ||
         std::binary_search(own->times.begin(), own->times.end(), tensor.built_at);
}

bool may_have_read_any(const Node& value) {
  return has_released_inputs(value) ? passes_on(value) : value.sources() != nullptr;
}

}  // namespace tenon
