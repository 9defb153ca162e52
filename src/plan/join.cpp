// Who may wait for whom is a question of times; a join contracts some nodes.
#include "plan/join.h"

#include <algorithm>
#include <utility>

#include "base/str.h"
#include "plan/times.h"

namespace tenon {
namespace {

// What a larger region reads should not be kept until others are ready.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

// Of a launch: more arguments and text than anything gains.
constexpr std::size_t kMostParts = 256;
// Launches that a region looks at, and those that it asks who waits for what, before it opens one
// of its own.
constexpr int kMostSeen = 2048, kMostAsked = 64;

struct Launch {
  std::vector<int> steps;
  bool large = false;  // one of them
  int opened = 0;      // when the first could begin: no launch begins earlier than it was opened
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
    std::vector<int> begin(p_.steps.size());
    for (int s : candidates) begin[at(s)] = times_.earliest(s);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&begin](int a, int b) { return begin[at(a)] > begin[at(b)]; });
    for (int s : candidates) place(s, begin[at(s)]);
    rewrite(maps);
  }

 private:
  // Whether the engine that runs the region takes joined ones.
  bool joins(const Region& region, std::string* why) const {
    const Engine* engine = first_that_claims(options_.engines, region, p_.values);
    if (engine == nullptr) return false;
    const char* refusal = engine->capabilities(region, p_.values).no_shared_launch;
    if (refusal != nullptr) *why = refusal;
    return refusal == nullptr;
  }

  // The first launch that takes the region, of those that could begin before it must: launches are
  // opened the latest first.
  void place(int s, int opened) {
    const bool large = p_.steps[at(s)].region.map.space.numel() > kMostElements;
    const int own = times_.node(s);
    auto launch = std::partition_point(
        launches_.begin(), launches_.end(),
        [last = times_.latest(own)](const Launch& l) { return l.opened > last; });
    int asked = 0;
    const auto end = launches_.end() - launch > kMostSeen ? launch + kMostSeen : launches_.end();
    for (; launch != end && asked < kMostAsked; ++launch) {
      const int there = times_.node(launch->steps[0]);
      if ((large || launch->large) && times_.earliest(there) != times_.earliest(own)) continue;
      if (launch->steps.size() == kMostParts) continue;
      if (!ready_together(launch->steps[0], s) && !may_join(there, own)) continue;
      ++asked;
      if (times_.graph().depends(there, own) || !times_.contract(there, own)) continue;
      launch->steps.push_back(s);
      launch->large = launch->large || large;
      return;
    }
    launches_.push_back({{s}, large, opened});
  }

  // Whether the two begin at the same time and take equally long.
  bool ready_together(int s, int other) const {
    return times_.earliest(times_.node(s)) == times_.earliest(times_.node(other)) &&
           p_.steps[at(s)].region.map.space == p_.steps[at(other)].region.map.space;
  }

  // Neither becomes later than it may, and nothing urgent waits for more than it must.
  bool may_join(int a, int b) {
    if (std::max(times_.earliest(a), times_.earliest(b)) >
        std::min(times_.latest(a), times_.latest(b)))
      return false;
    if (times_.is_urgent(a) && !times_.serves_no_other(a, b)) return false;
    return !times_.is_urgent(b) || times_.serves_no_other(b, a);
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
      add_accesses(all, part);
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
