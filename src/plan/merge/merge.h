// The merger: neighbours among a program's steps become one step, where they then share a launch,
// a way through memory or a tile in cache.
//
// Engines state what they can do (Capabilities) and what it costs (Engine::estimate, saves). Eight
// rules look at neighbours, one after another, over one graph of steps: concatenations into the
// maps that make their inputs (a part of fuse), maps into the operands of the products that read
// them (prologue), reductions into the products that make their elements (reductions), short maps
// of what these come to into the kernels that read that (vectors), maps into one launch, side by
// side (join) or in a row (phases), steps of any kind into slices of an axis (chain), and
// results of maps into what these read (a part of plan_memory). A new idea of fusion is a
// capability and a rule.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/program.h"
#include "plan/times.h"

namespace tenon {

/// The steps as they are now, and what rules ask of them. A rule says in the regions' why what it
/// merged and what it did not.
class Merger {
 public:
  /// `before`: for each step, the steps it waits for.
  Merger(Program& program, Lists& before, const PlanOptions& options);

  int size() const { return static_cast<int>(program.steps.size()); }
  Region& region(int step) { return program.steps[at(step)].region; }
  std::span<const Value> values() const { return program.values; }

  /// What the parts of a map step, or of one that is joined, take of a launch, and who runs them.
  struct Shared {
    const Engine* engine = nullptr;
    LaunchShare share;
  };
  /// Asks once. Empty, with *why, where the step can share no launch.
  const std::vector<Shared>& shared(int step, std::string* why);
  /// Asks about all maps that shared() has not been asked about, side by side.
  void ask_all();

  /// Whether any engine runs the region, which is told sooner than which one is the best.
  bool is_run(const Region& region) const;
  /// What the engine expects that runs the region; 0: none, or it has no model.
  double estimate(const Region& region) const;
  /// A value that nobody reads from memory any more.
  void elide(ValueId id);

  /// Makes each group of steps one, by `made` of its members, and leaves out those in `dropped`,
  /// for which nothing waits.
  void replace(const Lists& groups, const std::function<Step(const std::vector<int>&)>& made,
               const std::vector<char>& dropped = {});
  /// Looks anew at steps of which some regions have become others.
  void reindex();

  Program& program;
  Lists& before;
  const PlanOptions& options;
  Times times;
  std::vector<SmallIntVector> readers, writers;  // steps, by value

 private:
  void index();
  void close_gaps(std::vector<int>& number, int to_keep);
  void move_behind(const Lists& groups, const std::function<Step(const std::vector<int>&)>& made,
                   std::vector<int>& number, int to_keep);
  /// What an engine says of sharing a launch.
  struct Answer {
    const Engine* engine = nullptr;  // null: none runs it
    const char* refused = nullptr;   // why it can share none
    LaunchShare share;
  };
  Answer ask(const Region& region) const;
  /// Of a step.
  struct Sharing {
    bool asked = false;
    const char* refused = nullptr;
    std::vector<Shared> parts;

    void take(const Answer& answer);
  };
  std::vector<Sharing> shared_;  // by step
  std::vector<Step> spare_;      // keeps its memory, megabytes, from one replace() to the next
};

/// Runs a rule, if it is switched on.
void merge_concats(Merger& merger);
void merge_prologues(Merger& merger);
void merge_reductions(Merger& merger);
void merge_vectors(Merger& merger);
void merge_side_by_side(Merger& merger);
void merge_in_a_row(Merger& merger);
void merge_slices(Merger& merger);
void merge_overwrites(Merger& merger);

/// Adds the values that are not there yet.
void merge(std::vector<ValueId>& to, const std::vector<ValueId>& from);

/// Adds what a part reads and writes to a step that runs it behind the parts so far: what those
/// left for it, and what is local, is no input.
void add_accesses(Region& all, const Region& part);

/// Adds to what is said about a region.
void note(Region& region, const std::string& text);

}  // namespace tenon
