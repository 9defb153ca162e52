// Phases: a map step that waits for another map step becomes a later phase of the same launch, if
// one launch in phases is expected to be faster than two launches (Engine::saves). Example: the
// clipping factor computed from a gradient norm, and the weight updates that use the factor. No
// other step is delayed by this.
//
// Sequences grow pair by pair, the pair with the largest gain first. Only neighbours are compared,
// once, and again after one of them has grown.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "base/str.h"
#include "plan/merge/merge.h"

namespace tenon {
namespace {

class Phaser {
 public:
  explicit Phaser(Merger& merger) : m_(merger), times_(merger.times) {}

  void run() {
    row_of_.assign(at(m_.size()), -1);
    std::string why;
    for (int s = 0; s < m_.size(); ++s) {
      if (m_.shared(s, &why).empty()) continue;
      row_of_[at(s)] = static_cast<int>(rows_.size());
      rows_.push_back({{s}, 0, 0});
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) weigh_with_later(static_cast<int>(r));
    while (!pairs_.empty()) grow();
    rewrite();
  }

 private:
  /// A sequence of steps in one launch, and the time that it saves.
  struct Row {
    std::vector<int> steps;  // empty: part of another sequence
    double saved = 0;
    int grown = 0;  // how often it has grown
  };
  /// Two sequences, of which the second waits for the first, in the state in which the gain was
  /// estimated.
  struct Pair {
    double gain = 0;
    int first = -1, second = -1;
    int first_grown = 0, second_grown = 0;
    bool operator<(const Pair& o) const {
      if (gain != o.gain) return gain < o.gain;
      return first != o.first ? first > o.first : second > o.second;
    }
  };

  int node_of(int row) const { return times_.node(rows_[at(row)].steps[0]); }

  void weigh(int first, int second) {
    const double gain = gain_of(rows_[at(first)], rows_[at(second)]);
    if (gain > 0)
      pairs_.push({gain, first, second, rows_[at(first)].grown, rows_[at(second)].grown});
  }
  void weigh_with_later(int row) {
    for (int next : times_.after(node_of(row)))
      if (row_of_[at(next)] >= 0) later_.push_back(row_of_[at(next)]);
    std::sort(later_.begin(), later_.end());
    for (int next : later_) weigh(row, next);
    later_.clear();
  }

  /// Joins the pair with the largest gain, and estimates the gain with its new neighbours.
  void grow() {
    const Pair best = pairs_.top();
    pairs_.pop();
    Row &first = rows_[at(best.first)], &second = rows_[at(best.second)];
    std::string why;
    if (first.steps.empty() || second.steps.empty() || first.grown != best.first_grown ||
        second.grown != best.second_grown ||
        !may_wait(node_of(best.first), node_of(best.second), &why) ||
        !times_.contract_in_a_row(node_of(best.first), node_of(best.second)))
      return;
    first = {in_a_row(first, second), first.saved + second.saved + best.gain, first.grown + 1};
    second.steps.clear();
    weigh_with_later(best.first);
    for (int need : times_.needs(node_of(best.first)))
      if (row_of_[at(need)] >= 0) earlier_.push_back(row_of_[at(need)]);
    for (int row : earlier_) weigh(row, best.first);
    earlier_.clear();
  }

  static std::vector<int> in_a_row(const Row& first, const Row& second) {
    std::vector<int> both = first.steps;
    both.insert(both.end(), second.steps.begin(), second.steps.end());
    return both;
  }

  double gain_of(const Row& first, const Row& second) {
    const int from = times_.node(first.steps[0]), to = times_.node(second.steps[0]);
    std::string why;
    const double saved = may_wait(from, to, &why) ? saves(in_a_row(first, second), &why) : 0;
    if (saved > first.saved + second.saved) return saved - first.saved - second.saved;
    if (!why.empty()) refused_[second.steps[0]].insert(std::move(why));
    return 0;
  }

  /// Whether joining the two delays no other step.
  bool may_wait(int first, int second, std::string* why) {
    const int begin = std::max(times_.earliest(first), times_.latest(second) - times_.time(first));
    *why = "another step waits only for the previous step";
    for (int other : times_.after(first)) {
      if (other == second) continue;
      if (times_.graph().reaches(other, second) || !times_.graph().reaches(second, other, false))
        return false;
    }
    *why = "it also waits for a step that ends later";
    for (int other : times_.needs(second))
      if (other != first && times_.earliest(other) + times_.time(other) > begin) return false;
    why->clear();
    return true;
  }

  double saves(const std::vector<int>& steps, std::string* why) {
    const Engine* engine = m_.shared(steps[0], why)[0].engine;
    std::vector<LaunchPart> parts;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const std::vector<Merger::Shared>& shared = m_.shared(steps[k], why);
      for (std::size_t i = 0; i < shared.size(); ++i) {
        if (shared[i].engine != engine) {
          *why = "another engine runs it than the first phase";
          return 0;
        }
        parts.push_back({&parts_of(m_.region(steps[k]))[i], shared[i].share, static_cast<int>(k)});
      }
    }
    why->clear();
    return engine->saves(parts, why);
  }

  static std::span<Region> parts_of(Region& region) {
    return region.kind == RegionKind::Joined ? std::span(region.parts) : std::span(&region, 1);
  }

  /// One phase for each step.
  std::vector<Region> take_parts(const std::vector<int>& steps) {
    std::vector<Region> parts;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (Region& part : parts_of(m_.region(steps[k]))) {
        parts.push_back(std::move(part));
        parts.back().phase = static_cast<int>(k);
      }
    }
    return parts;
  }

  void rewrite() {
    for (const Row& row : rows_)
      if (row.steps.size() == 1) say_refusals(m_.region(row.steps[0]), row.steps[0]);
    std::vector<std::vector<int>> groups;
    std::size_t steps = 0;
    for (const Row& row : rows_) {
      if (row.steps.size() < 2) continue;
      steps += row.steps.size();
      groups.push_back(row.steps);
    }
    if (groups.empty()) return;
    m_.replace(groups, [this](const std::vector<int>& members) { return in_phases(members); });
    m_.program.joining += cat("; ", steps, " of these launches are phases of ", groups.size());
  }

  void say_refusals(Region& region, int first) const {
    const auto found = refused_.find(first);
    if (found == refused_.end()) return;
    std::string text;
    for (const std::string& why : found->second) text += cat(text.empty() ? "" : ", ", why);
    note(region, cat("is not a later phase of a launch: ", text));
  }

  Step in_phases(const std::vector<int>& members) {
    Step step;
    Region& all = step.region;
    all.kind = RegionKind::Joined;
    for (int s : members) add_accesses(all, m_.region(s));
    all.parts = take_parts(members);
    all.title = cat(all.parts.size(), " regions in ", members.size(), " phases");
    all.why =
        "share a launch: each phase waits for the previous one, no other step is delayed, and one "
        "launch is faster than several";
    say_refusals(all, members[0]);
    return step;
  }

  Merger& m_;
  Times& times_;
  std::vector<Row> rows_;
  std::vector<int> row_of_;  // by step: the sequence that starts with it; -1 if it shares no launch
  std::priority_queue<Pair> pairs_;
  std::vector<int> earlier_, later_;
  std::map<int, std::set<std::string>> refused_;  // by the first step of a sequence
};

}  // namespace

void merge_in_a_row(Merger& merger) {
  const PlanOptions& options = merger.options;
  if (!options.enabled(kPhases)) merger.program.joining += "; no phases: the pass is switched off";
  if (options.enabled(kPhases) && options.enabled(kJoin)) Phaser(merger).run();
}

}  // namespace tenon
