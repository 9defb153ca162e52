// Delays steps that read only leaves. The greedy order, which leaves the least memory live after
// each step, makes small values before large ones. Without this pass all rounded or permuted
// weights would therefore be live beside the first layers' activations, which are the largest
// values.
#include "plan/steps/delay_leaf_steps.h"

#include <algorithm>
#include <span>

#include "base/index.h"

namespace tenon {
namespace {

/// Steps are delayed only if the peak falls by at least kWorthwhile bytes and by at least 1/kPart.
constexpr std::int64_t kWorthwhile = std::int64_t{8} << 20, kPart = 16;

bool is_in_arena(const Program& program, ValueId id) {
  return program.values[at(id)].kind == Value::Kind::Arena;
}

/// The peak number of live arena bytes in this order.
std::int64_t peak_of(const Program& program, std::span<const int> order) {
  std::vector<int> first(program.values.size(), -1), last(program.values.size(), -1);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Region& region = program.steps[at(order[k])].region;
    for (const std::vector<ValueId>* ids : {&region.reads, &region.writes})
      for (ValueId id : *ids) {
        if (first[at(id)] < 0) first[at(id)] = static_cast<int>(k);
        last[at(id)] = static_cast<int>(k);
      }
  }
  std::vector<std::int64_t> change(order.size() + 1, 0);
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].kind != Value::Kind::Arena || first[v] < 0) continue;
    change[at(first[v])] += program.values[v].bytes;
    change[at(last[v]) + 1] -= program.values[v].bytes;
  }
  std::int64_t live = 0, peak = 0;
  for (std::int64_t bytes : change) peak = std::max(peak, live += bytes);
  return peak;
}

bool reads_leaves(const Program& program, const Region& region) {
  const auto in_arena = [&](ValueId id) { return is_in_arena(program, id); };
  return (region.kind == RegionKind::Map || region.kind == RegionKind::Joined) &&
         std::none_of(region.reads.begin(), region.reads.end(), in_arena) &&
         std::all_of(region.writes.begin(), region.writes.end(), in_arena);
}

}  // namespace

int delay_leaf_steps(const Program& program, const std::vector<std::vector<int>>& after,
                     std::vector<int>& order) {
  std::vector<int> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) place[at(order[k])] = static_cast<int>(k);
  const auto earlier = [&](int a, int b) { return place[at(a)] < place[at(b)]; };
  // by step: steps that move to directly before it
  std::vector<std::vector<int>> delayed(order.size());
  std::vector<char> moves(order.size(), 0);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int s = *it;
    const std::vector<int>& waiting = after[at(s)];
    if (waiting.empty() || !reads_leaves(program, program.steps[at(s)].region)) continue;
    const int reader = *std::min_element(waiting.begin(), waiting.end(), earlier);
    if (moves[at(reader)] != 0) continue;
    delayed[at(reader)].push_back(s);
    moves[at(s)] = 1;
  }
  std::vector<int> late;
  for (int s : order) {
    if (moves[at(s)] != 0) continue;
    late.insert(late.end(), delayed[at(s)].rbegin(), delayed[at(s)].rend());
    late.push_back(s);
  }
  const std::int64_t peak = peak_of(program, order), less = peak - peak_of(program, late);
  if (less <= std::max(kWorthwhile, peak / kPart)) return 0;
  order = std::move(late);
  return static_cast<int>(std::count(moves.begin(), moves.end(), 1));
}

}  // namespace tenon
