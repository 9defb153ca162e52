// The merger: combines neighbouring steps of a program into one step, if they then share a launch,
// a pass over memory, or a tile in cache.
//
// Engines state what they can do (Capabilities) and what it costs (Engine::estimate,
// Engine::saves). Eight passes run one after another over one graph of steps:
// * concats: concatenations into the maps that compute their inputs
// * prologue: maps into the operands of the products that read them
// * reductions: reductions into the products that compute their elements
// * vectors: short maps of such sums into the maps that read their results
// * join: maps into one launch, side by side
// * phases: maps into one launch, one after another
// * chain: steps of any kind into slices of an axis
// * overwrites: results of maps into the memory of their operands
//
// A new kind of fusion is one capability and one rule.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/program/program.h"
#include "plan/program/times.h"

namespace tenon {

/// The current steps and the queries that rules need. A rule notes in Region::why what it merged
/// and why it did not merge.
class Merger {
 public:
  /// `before`: for each step, the steps that it waits for.
  Merger(Program& program, Lists& before, const PlanOptions& options);

  int size() const { return static_cast<int>(program.steps.size()); }
  Region& region(int step) { return program.steps[at(step)].region; }
  std::span<const Value> values() const { return program.values; }

  /// The needs of each part of a map step or a joined step if it shares a launch, and the engine
  /// that runs the part.
  struct Shared {
    const Engine* engine = nullptr;
    LaunchShare share;
  };
  /// The answer is cached. Empty, with *why, if the step cannot share a launch.
  const std::vector<Shared>& shared(int step, std::string* why);
  /// Asks in parallel about all maps that shared() has not been called for.
  void ask_all();

  /// Whether any engine runs the region. Faster than finding the best engine.
  bool is_run(const Region& region) const;
  /// The estimate of the engine that runs the region, in microseconds; 0: no engine runs it, or the
  /// engine has no model.
  double estimate(const Region& region) const;
  /// Marks a value that is no longer read from memory.
  void elide(ValueId id);

  /// Replaces each group of steps by the step that `made` builds from its members. Removes the
  /// steps in `dropped`; nothing may wait for them.
  void replace(const Lists& groups, const std::function<Step(const std::vector<int>&)>& made,
               const std::vector<char>& dropped = {});
  /// Updates the tables after regions of some steps have changed.
  void reindex();

  Program& program;
  Lists& before;
  const PlanOptions& options;
  Times times;
  std::vector<SmallIntVector> readers, writers;  // steps, by value

 private:
  void index();
  void close_gaps(std::vector<int>& number, int to_keep);
  void move_groups_after(const Lists& groups,
                         const std::function<Step(const std::vector<int>&)>& made,
                         std::vector<int>& number, int to_keep);
  /// An engine's answer about sharing a launch.
  struct Answer {
    const Engine* engine = nullptr;  // null: no engine runs it
    const char* refused = nullptr;   // why the launch cannot be shared
    LaunchShare share;
  };
  Answer ask(const Region& region) const;
  /// The answers for one step.
  struct Sharing {
    bool asked = false;
    const char* refused = nullptr;
    std::vector<Shared> parts;

    void take(const Answer& answer);
  };
  std::vector<Sharing> shared_;  // by step
  std::vector<Step> spare_;      // keeps its memory (megabytes) between calls of replace()
};

/// Each function runs one rule, if the rule is switched on.
void merge_concats(Merger& merger);
void merge_prologues(Merger& merger);
void merge_reductions(Merger& merger);
void merge_vectors(Merger& merger);
void merge_side_by_side(Merger& merger);
void merge_in_a_row(Merger& merger);
void merge_slices(Merger& merger);
void merge_overwrites(Merger& merger);

/// Appends the values that are missing.
void merge(std::vector<ValueId>& to, const std::vector<ValueId>& from);

/// Adds a part's reads and writes to a step that runs the part after its previous parts. Results of
/// earlier parts and local values are not inputs.
void add_accesses(Region& all, const Region& part);

/// Appends text to a region's `why`.
void note(Region& region, const std::string& text);

}  // namespace tenon
