// Collects sources by a walk that ends as soon as the list is full.
#include "graph/sources.h"

#include <algorithm>
#include <unordered_set>

#include "graph/node.h"

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

}  // namespace

std::unique_ptr<const Sources> Sources::of(const Node& node) {
  // An optimizer evaluates many assignments, and their results are rarely read (may_hold()).
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
    if (has_released_inputs(*next)) out->before_ = std::max(out->before_, next->built_at);
    const Sources* theirs = next->sources();
    if (theirs == nullptr) continue;
    found.insert(theirs->times_.begin(), theirs->times_.end());
    out->before_ = std::max(out->before_, theirs->before_);
  }
  if (found.size() > kMostSources) {
    out->before_ = node.built_at;
  } else {
    out->times_.assign(found.begin(), found.end());
    std::sort(out->times_.begin(), out->times_.end());
  }
  if (out->times_.empty() && out->before_ == 0) return nullptr;
  return out;
}

bool Sources::may_hold(const Node& value, const Node& tensor) {
  if (has_released_inputs(value)) return passes_on(value) && tensor.built_at < value.built_at;
  // A value that was computed from such a tensor has kept its inputs.
  const bool keeps = tensor.tracked || tensor.op == Op::Variable;
  const Sources* own = value.sources();
  if (own == nullptr || (keeps && !value.reads_assigned)) return false;
  return tensor.built_at < own->before_ ||
         std::binary_search(own->times_.begin(), own->times_.end(), tensor.built_at);
}

bool Sources::may_hold_any(const Node& value) {
  return has_released_inputs(value) ? passes_on(value) : value.sources() != nullptr;
}

}  // namespace tenon
