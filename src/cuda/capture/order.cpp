// Orders steps by the memory that they touch: values by number, the arena by byte ranges.
#include "cuda/capture/order.h"
#include "base/index.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>

namespace tenon::cuda {
namespace {

// A range of memory: `space` is -1 for the arena, otherwise the value.
struct Stretch {
  int space;
  std::int64_t begin, end;
  bool meets(const Stretch& o) const { return space == o.space && begin < o.end && o.begin < end; }
};

struct Touches {
  std::vector<Stretch> reads, writes;
};

bool meet(const std::vector<Stretch>& a, const std::vector<Stretch>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const Stretch& x) {
    return std::any_of(b.begin(), b.end(), [&x](const Stretch& y) { return x.meets(y); });
  });
}

Stretch stretch_of(const Program& p, ValueId id) {
  const Value& v = p.values[at(id)];
  if (v.kind == Value::Kind::Arena)
    return {-1, v.offset, v.offset + std::max<std::int64_t>(v.bytes, 1)};
  return {id, 0, 1};
}

std::vector<Touches> touches_of(const Program& p) {
  std::vector<Touches> out;
  for (const Step& step : p.steps) {
    Touches t;
    for (ValueId id : step.region.reads) t.reads.push_back(stretch_of(p, id));
    for (ValueId id : step.region.writes) t.writes.push_back(stretch_of(p, id));
    if (const auto bytes = static_cast<std::int64_t>(step.kernel->workspace_bytes); bytes > 0)
      t.writes.push_back({-1, step.workspace_offset, step.workspace_offset + bytes});
    out.push_back(std::move(t));
  }
  return out;
}

bool ordered(const Touches& a, const Touches& b) {
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

/// For each step the length of the longest path of steps that use its results.
std::vector<int> paths_of(const Program& p) {
  std::vector<int> path(p.steps.size(), 0);
  // By value: steps of the longest path that begins with a reader of the value.
  std::vector<int> of_value(p.values.size(), 0);
  for (std::size_t s = p.steps.size(); s-- > 0;) {
    const Region& region = p.steps[s].region;
    for (ValueId id : region.writes) path[s] = std::max(path[s], of_value[at(id)]);
    for (ValueId id : region.reads) of_value[at(id)] = std::max(of_value[at(id)], path[s] + 1);
  }
  return path;
}

}  // namespace

std::vector<std::vector<int>> waits(const Program& program, int runs) {
  const std::vector<Touches> touches = touches_of(program);
  const int steps = static_cast<int>(program.steps.size()), total = steps * runs;
  std::vector<std::vector<int>> out(at(total));
  // Row e: the entries that e waits for, directly or indirectly. A step conflicts with itself in
  // the next run, so one previous run is enough.
  std::vector<std::vector<char>> after(at(total), std::vector<char>(at(total), 0));
  for (int e = 0; e < total; ++e) {
    const int first = std::max(0, (e / steps - 1) * steps);
    for (int before = e - 1; before >= first; --before) {
      if (after[at(e)][at(before)] || !ordered(touches[at(before % steps)], touches[at(e % steps)]))
        continue;
      out[at(e)].push_back(before);
      after[at(e)][at(before)] = 1;
      for (int k = first; k < before; ++k)
        if (after[at(before)][at(k)] != 0) after[at(e)][at(k)] = 1;
    }
  }
  return out;
}

std::vector<int> short_paths_last(const Program& program,
                                  const std::vector<std::vector<int>>& before) {
  // The path after a weight gradient: the update and the rounded copy of the weight.
  constexpr int kShortPath = 2;
  const std::vector<int> path = paths_of(program);
  const int steps = static_cast<int>(program.steps.size());
  std::vector<std::vector<int>> after(before.size());
  std::vector<std::size_t> left(before.size());
  using Ready = std::tuple<int, bool, int>;  // run, whether the path is short, entry
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto offer = [&](int e) { ready.emplace(e / steps, path[at(e % steps)] <= kShortPath, e); };
  for (std::size_t e = 0; e < before.size(); ++e) {
    left[e] = before[e].size();
    for (int b : before[e]) after[at(b)].push_back(static_cast<int>(e));
    if (left[e] == 0) offer(static_cast<int>(e));
  }
  std::vector<int> order;
  order.reserve(before.size());
  while (!ready.empty()) {
    const int e = std::get<2>(ready.top());
    ready.pop();
    order.push_back(e);
    for (int next : after[at(e)])
      if (--left[at(next)] == 0) offer(next);
  }
  return order;
}

}  // namespace tenon::cuda
