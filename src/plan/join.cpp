// Steps as a graph with times: a join contracts some of its nodes.
#include "plan/join.h"

#include <algorithm>
#include <utility>

#include "base/index.h"
#include "base/str.h"

namespace tenon {
namespace {

// What a larger region reads should not be kept until others are ready.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
// Duration of a contraction where that of another step is 1: several launches' time.
constexpr int kContractionTime = 4;

// The steps, of which some are contracted to one node: that of its first member.
class Times {
 public:
  Times(const Program& program, const std::vector<std::vector<int>>& before)
      : before_(before),
        node_(program.steps.size()),
        time_(program.steps.size(), 1),
        is_map_(program.steps.size()) {
    for (int s = 0; s < size(); ++s) {
      const RegionKind kind = program.steps[at(s)].region.kind;
      node_[at(s)] = s;
      is_map_[at(s)] = kind == RegionKind::Map ? 1 : 0;
      if (kind == RegionKind::Contraction) time_[at(s)] = kContractionTime;
    }
    update();
  }

  int node(int step) const { return node_[at(step)]; }
  /// When a node may begin at the earliest, and at the latest if nothing is to end later. What
  /// other steps than maps wait for is not put off at all: there may be more of them than run side
  /// by side.
  int earliest(int node) const { return earliest_[at(node)]; }
  int latest(int node) const { return latest_[at(node)]; }
  /// Whether a delay of the node delays what waits for it, and so the whole.
  bool is_urgent(int node) const {
    return earliest(node) == latest(node) && !after_[at(node)].empty();
  }
  /// Whether all that waits for a waits for b too.
  bool serves_no_other(int a, int b) const {
    return std::includes(after_[at(b)].begin(), after_[at(b)].end(), after_[at(a)].begin(),
                         after_[at(a)].end());
  }
  bool depends(int a, int b) const { return reaches(a, b) || reaches(b, a); }

  void contract(int a, int b) {
    for (int& n : node_)
      if (n == b) n = a;
    update();
  }

 private:
  int size() const { return static_cast<int>(node_.size()); }

  void update() {
    after_.assign(node_.size(), {});
    std::vector<std::vector<int>> needs(node_.size());
    for (int s = 0; s < size(); ++s)
      for (int b : before_[at(s)])
        if (node(b) != node(s)) needs[at(node(s))].push_back(node(b));
    std::vector<int> waiting(node_.size(), 0), order;
    for (int n = 0; n < size(); ++n) {
      std::sort(needs[at(n)].begin(), needs[at(n)].end());
      needs[at(n)].erase(std::unique(needs[at(n)].begin(), needs[at(n)].end()), needs[at(n)].end());
      for (int b : needs[at(n)]) after_[at(b)].push_back(n);
      waiting[at(n)] = static_cast<int>(needs[at(n)].size());
      if (node(n) == n && needs[at(n)].empty()) order.push_back(n);
    }
    earliest_.assign(node_.size(), 0);
    int end = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int n = order[k], done = earliest(n) + time_[at(n)];
      end = std::max(end, done);
      for (int next : after_[at(n)]) {
        earliest_[at(next)] = std::max(earliest(next), done);
        if (--waiting[at(next)] == 0) order.push_back(next);
      }
    }
    latest_.assign(node_.size(), end);
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      for (int next : after_[at(*n)]) latest_[at(*n)] = std::min(latest(*n), latest(next));
      latest_[at(*n)] -= time_[at(*n)];
    }
    std::vector<char> waits(node_.size(), 1);
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      for (int next : after_[at(*n)])
        if (is_map_[at(next)] == 0 || waits[at(next)] == 0) waits[at(*n)] = 0;
      if (waits[at(*n)] == 0) latest_[at(*n)] = earliest(*n);
    }
  }

  bool reaches(int from, int to) const {
    std::vector<char> seen(node_.size(), 0);
    std::vector<int> stack{from};
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      for (int next : after_[at(n)])
        if (!std::exchange(seen[at(next)], 1)) stack.push_back(next);
    }
    return false;
  }

  const std::vector<std::vector<int>>& before_;
  std::vector<int> node_, time_;
  std::vector<char> is_map_;
  std::vector<int> earliest_, latest_;
  std::vector<std::vector<int>> after_;
};

struct Launch {
  std::vector<int> steps;
  bool large = false;  // one of them
};

class Joiner {
 public:
  Joiner(Program& program, std::vector<std::vector<int>>& before, const PlanOptions& options)
      : p_(program), before_(before), options_(options), times_(program, before) {}

  void run() {
    std::vector<int> candidates;
    std::vector<std::pair<int, std::string>> refused;
    int maps = 0;
    for (int s = 0; s < static_cast<int>(p_.steps.size()); ++s) {
      Region& region = p_.steps[at(s)].region;
      if (region.kind != RegionKind::Map) continue;
      ++maps;
      std::string why;
      if (joins(region, &why))
        candidates.push_back(s);
      else
        refused.emplace_back(s, std::move(why));
    }
    if (candidates.empty()) {
      p_.joining =
          cat("nothing", refused.empty() ? "" : ": ", refused.empty() ? "" : refused[0].second);
      return;
    }
    for (const auto& [s, why] : refused)
      note(p_.steps[at(s)].region, cat("has a launch of its own: it ", why));
    // The latest first: others can wait for them, more often than the reverse.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [this](int a, int b) { return times_.earliest(a) > times_.earliest(b); });
    for (int s : candidates) place(s);
    rewrite(maps);
  }

 private:
  // Whether the engine that runs the region takes joined ones.
  bool joins(const Region& region, std::string* why) const {
    for (const Engine* engine : options_.engines)
      if (std::string unused; engine->claims(region, p_.values, &unused))
        return engine->joins(region, p_.values, why);
    return false;
  }

  static void note(Region& region, const std::string& text) {
    region.why += cat(region.why.empty() ? "" : "; ", text);
  }

  void place(int s) {
    const bool large = p_.steps[at(s)].region.map.space.numel() > kMostElements;
    for (Launch& launch : launches_) {
      const int there = times_.node(launch.steps[0]), own = times_.node(s);
      if ((large || launch.large) && times_.earliest(there) != times_.earliest(own)) continue;
      if (!ready_together(launch.steps[0], s) && !may_join(there, own)) continue;
      launch.steps.push_back(s);
      launch.large = launch.large || large;
      times_.contract(there, own);
      return;
    }
    launches_.push_back({{s}, large});
  }

  // Whether the two begin at the same time and take equally long.
  bool ready_together(int s, int other) const {
    const int a = times_.node(s), b = times_.node(other);
    return times_.earliest(a) == times_.earliest(b) && !times_.depends(a, b) &&
           p_.steps[at(s)].region.map.space == p_.steps[at(other)].region.map.space;
  }

  // Neither becomes later than it may, and nothing urgent waits for more than it must.
  bool may_join(int a, int b) const {
    if (std::max(times_.earliest(a), times_.earliest(b)) >
        std::min(times_.latest(a), times_.latest(b)))
      return false;
    if (times_.is_urgent(a) && !times_.serves_no_other(a, b)) return false;
    if (times_.is_urgent(b) && !times_.serves_no_other(b, a)) return false;
    return !times_.depends(a, b);
  }

  void rewrite(int maps) {
    std::vector<Step> steps;
    std::vector<int> number(p_.steps.size(), -1);
    int joined = 0, shared = 0;
    for (Launch& launch : launches_) {
      std::sort(launch.steps.begin(), launch.steps.end());
      if (launch.steps.size() == 1) {
        note(p_.steps[at(launch.steps[0])].region,
             "has a launch of its own: no other could wait for it, or it for another");
        continue;
      }
      for (int s : launch.steps) number[at(s)] = static_cast<int>(steps.size());
      joined += static_cast<int>(launch.steps.size());
      ++shared;
      steps.push_back(together(launch.steps));
    }
    for (int s = 0; s < static_cast<int>(p_.steps.size()); ++s)
      if (number[at(s)] < 0) {
        number[at(s)] = static_cast<int>(steps.size());
        steps.push_back(std::move(p_.steps[at(s)]));
      }
    std::vector<std::vector<int>> before(steps.size());
    for (std::size_t s = 0; s < before_.size(); ++s)
      for (int b : before_[s])
        if (number[at(b)] != number[s]) before[at(number[s])].push_back(number[at(b)]);
    for (std::vector<int>& list : before) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    p_.steps = std::move(steps);
    before_ = std::move(before);
    p_.joining = cat(joined, " of ", maps, " map regions in ", shared,
                     shared == 1 ? " launch" : " launches");
  }

  Step together(const std::vector<int>& members) {
    Step step;
    Region& all = step.region;
    all.kind = RegionKind::Joined;
    all.title = cat(members.size(), " regions");
    all.why = "share a launch: none depends on another, and the longest path does not grow";
    const auto merge = [](std::vector<ValueId>& to, const std::vector<ValueId>& from) {
      for (ValueId id : from)
        if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
    };
    for (int s : members) {
      Region& part = p_.steps[at(s)].region;
      merge(all.reads, part.reads);
      merge(all.writes, part.writes);
      all.parts.push_back(std::move(part));
    }
    return step;
  }

  Program& p_;
  std::vector<std::vector<int>>& before_;
  const PlanOptions& options_;
  Times times_;
  std::vector<Launch> launches_;
};

}  // namespace

void join_regions(Program& program, std::vector<std::vector<int>>& before,
                  const PlanOptions& options) {
  if (!options.enabled(kJoin)) {
    program.joining = "nothing: the pass is switched off";
    return;
  }
  Joiner(program, before, options).run();
}

}  // namespace tenon
