// Joining: small independent map regions become parts of one step and share a launch, where an
// engine allows it (Capabilities::no_shared_launch).
//
// The longest path through the steps never grows: a region joins others only if it need not wait
// for a late operand and nothing urgent has to wait for it. plan/program/times.h models the times;
// a join contracts nodes of that graph.
#include <algorithm>
#include <utility>

#include "base/sort.h"
#include "base/str.h"
#include "plan/merge/merge.h"

namespace tenon {
namespace {

// Limits on the size of a region. The operands of a larger region would stay live until the other
// regions are ready. A large update gains nothing from a shared launch, and it can run beside other
// steps if it starts early.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22, kMostUpdated = std::int64_t{1} << 20;

// Parts of one launch. More parts would need more arguments and source code, which costs more than
// a launch.
constexpr std::size_t kMostParts = 256;
// Launches that a region considers, and launches that it checks for dependencies, before it opens a
// new one.
constexpr int kMostSeen = 2048, kMostAsked = 64;

struct Launch {
  int node = 0;        // the node of its contracted steps: that of the first step
  bool large = false;  // whether a part is large
  int opened = 0;      // earliest start of the first part; no launch starts earlier
  std::vector<int> steps;
};

class Joiner {
 public:
  explicit Joiner(Merger& merger) : m_(merger), times_(merger.times) {}

  void run() {
    std::vector<int> candidates;
    std::vector<std::pair<int, std::string>> refused;
    int maps = 0;
    m_.ask_all();
    for (int s = 0; s < m_.size(); ++s) {
      if (m_.region(s).kind != RegionKind::Map) continue;
      ++maps;
      std::string why;
      if (!m_.shared(s, &why).empty())
        candidates.push_back(s);
      else
        refused.emplace_back(s, std::move(why));
    }
    if (candidates.empty()) {
      m_.program.joining = cat("nothing", refused.empty() ? "" : ": a region ",
                               refused.empty() ? "" : refused[0].second);
      return;
    }
    for (const auto& [s, why] : refused)
      note(m_.region(s), cat("has a launch of its own: it ", why));
    // Take the latest start first: more steps can wait for a late launch than for an early one.
    std::vector<int> begin(at(m_.size()));
    for (int s : candidates) begin[at(s)] = times_.earliest(s);
    sort_stably(candidates, [&begin](int a, int b) { return begin[at(a)] > begin[at(b)]; });
    for (int s : candidates) place(s, begin[at(s)]);
    rewrite(maps);
  }

 private:
  bool is_large(const Region& region) const {
    const bool updates = std::any_of(
        region.writes.begin(), region.writes.end(),
        [this](ValueId id) { return m_.values()[at(id)].kind == Value::Kind::Variable; });
    return region.map.space.numel() > (updates ? kMostUpdated : kMostElements);
  }

  // Puts the region into the first launch that accepts it, among launches that can start early
  // enough. Launches are sorted by latest start.
  void place(int s, int opened) {
    const bool large = is_large(m_.region(s));
    const int own = times_.node(s);
    const Window window = window_of(own);
    auto launch =
        std::partition_point(launches_.begin(), launches_.end(),
                             [last = window.latest](const Launch& l) { return l.opened > last; });
    int asked = 0;
    const auto end = launches_.end() - launch > kMostSeen ? launch + kMostSeen : launches_.end();
    for (; launch != end && asked < kMostAsked; ++launch) {
      const int there = launch->node;
      if ((large || launch->large) && times_.earliest(there) != window.earliest) continue;
      if (launch->steps.size() == kMostParts) continue;
      if (!ready_together(there, s, window) && !may_join(there, own, window)) continue;
      ++asked;
      if (times_.graph().depends(there, own) || !times_.contract(there, own)) continue;
      launch->steps.push_back(s);
      launch->large = launch->large || large;
      return;
    }
    launches_.push_back({own, large, opened, {s}});
  }

  // When a node may start, and whether delaying it delays the program.
  struct Window {
    int earliest, latest;
    bool urgent;
  };
  Window window_of(int node) {
    const int earliest = times_.earliest(node), latest = times_.latest(node);
    return {earliest, latest, earliest == latest && !times_.after(node).empty()};
  }

  // Whether a launch and a step start at the same time and take equally long.
  bool ready_together(int launch, int s, const Window& of_s) const {
    return times_.earliest(launch) == of_s.earliest &&
           m_.region(launch).map.space == m_.region(s).map.space;
  }

  // Whether both can still start in time, and nothing urgent waits longer than necessary.
  bool may_join(int a, int b, const Window& of_b) {
    if (of_b.latest < times_.earliest(a)) return false;
    const Window of_a = window_of(a);
    if (of_a.latest < of_b.earliest) return false;
    if (of_a.urgent && !times_.followers_also_wait_for(a, b)) return false;
    return !of_b.urgent || times_.followers_also_wait_for(b, a);
  }

  void rewrite(int maps) {
    std::vector<std::vector<int>> groups;
    std::size_t joined = 0;
    for (Launch& launch : launches_) {
      std::sort(launch.steps.begin(), launch.steps.end());
      if (launch.steps.size() == 1) {
        note(m_.region(launch.steps[0]),
             "shares no launch: no other region can wait for it, and it can wait for no other");
        continue;
      }
      joined += launch.steps.size();
      groups.push_back(launch.steps);
    }
    if (!groups.empty())
      m_.replace(groups, [this](const std::vector<int>& members) { return together(members); });
    m_.program.joining = cat(joined, " of ", maps, " map regions in ", groups.size(),
                             groups.size() == 1 ? " launch" : " launches");
  }

  Step together(const std::vector<int>& members) {
    Step step;
    Region& all = step.region;
    all.kind = RegionKind::Joined;
    all.title = cat(members.size(), " regions");
    all.why = "share a launch: none depends on another, and the longest path does not grow";
    for (int s : members) {
      Region& part = m_.region(s);
      add_accesses(all, part);
      all.parts.push_back(std::move(part));
    }
    return step;
  }

  Merger& m_;
  Times& times_;
  std::vector<Launch> launches_;
};

}  // namespace

void merge_side_by_side(Merger& merger) {
  if (merger.options.enabled(kJoin))
    Joiner(merger).run();
  else
    merger.program.joining = "nothing: the pass is switched off";
}

}  // namespace tenon
