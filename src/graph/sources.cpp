// Collects sources by a walk that ends as soon as the list is full.
#include "graph/sources.h"

#include <algorithm>
#include <unordered_set>

#include "graph/node.h"

namespace tenon {
namespace {

constexpr std::size_t kMostSources = 256;

// Whether a gradient with respect to the node, or to what it was computed from, can be asked for.
bool takes_gradient(const Node& node) {
  return !node.is_constant && node.op != Op::StopGradient && node.op != Op::Assign &&
         (is_floating(node.dtype) || has_trait(node.op, kSeveralResults));
}

}  // namespace

std::unique_ptr<const Sources> Sources::of(const Node& node) {
  if (!takes_gradient(node) || node.input_count == 0) return nullptr;
  auto out = std::make_unique<Sources>();
  std::unordered_set<std::uint64_t> found;
  std::vector<const Node*> open(node.in().begin(), node.in().end());
  while (!open.empty() && found.size() <= kMostSources) {
    const Node* next = open.back();
    open.pop_back();
    if (!takes_gradient(*next) || !found.insert(next->built_at).second) continue;
    open.insert(open.end(), next->in().begin(), next->in().end());
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

bool Sources::may_hold(const Node& node) const {
  // A value that was computed from such a tensor has kept its inputs.
  if (node.tracked || node.op == Op::Variable) return false;
  return node.built_at < before_ || std::binary_search(times_.begin(), times_.end(), node.built_at);
}

}  // namespace tenon
