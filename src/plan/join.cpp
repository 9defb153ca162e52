// Who may wait for whom is a question of times; a join contracts some nodes.
#include "plan/join.h"

#include <algorithm>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "plan/times.h"

namespace tenon {
namespace {

// What a larger region reads should not be kept until others are ready.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

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
    const Engine* engine = first_that_claims(options_.engines, region, p_.values);
    return engine != nullptr && engine->joins(region, p_.values, why);
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
    std::vector<std::vector<int>> groups;
    std::size_t joined = 0;
    for (Launch& launch : launches_) {
      std::sort(launch.steps.begin(), launch.steps.end());
      if (launch.steps.size() == 1) {
        note(p_.steps[at(launch.steps[0])].region,
             "stands beside no other: none could wait for it, or it for another");
        continue;
      }
      joined += launch.steps.size();
      groups.push_back(launch.steps);
    }
    replace_steps(p_, before_, groups,
                  [this](const std::vector<int>& members) { return together(members); });
    p_.joining = cat(joined, " of ", maps, " map regions in ", groups.size(),
                     groups.size() == 1 ? " launch" : " launches");
  }

  Step together(const std::vector<int>& members) {
    Step step;
    Region& all = step.region;
    all.kind = RegionKind::Joined;
    all.title = cat(members.size(), " regions");
    all.why = "share a launch: none depends on another, and the longest path does not grow";
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
