// The Merger: tables of readers and writers, questions to engines, and the replacement of steps.
// The rules have files of their own.
#include "plan/merge/merge.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/contains.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "plan/program/region_key.h"

namespace tenon {

Merger::Merger(Program& p, Lists& waits, const PlanOptions& o)
    : program(p), before(waits), options(o), times(p, waits) {
  index();
}

void Merger::index() {
  readers.assign(program.values.size(), {});
  writers.assign(program.values.size(), {});
  for (int s = 0; s < size(); ++s) {
    for (ValueId id : region(s).reads) readers[at(id)].push_back(s);
    for (ValueId id : region(s).writes) writers[at(id)].push_back(s);
  }
  shared_.resize(program.steps.size());
}

const std::vector<Merger::Shared>& Merger::shared(int step, std::string* why) {
  Sharing& sharing = shared_[at(step)];
  if (!sharing.asked && region(step).kind == RegionKind::Map) sharing.take(ask(region(step)));
  if (sharing.refused != nullptr) *why = sharing.refused;
  return sharing.parts;
}

void Merger::Sharing::take(const Answer& answer) {
  asked = true;
  refused = answer.refused;
  if (refused == nullptr && answer.engine != nullptr)
    parts.push_back({answer.engine, answer.share});
}

// A GPU engine generates a kernel to answer what it needs of a launch, so it is asked once about
// equal regions. On devices without launches, asking takes less time than finding equal regions.
void Merger::ask_all() {
  if (!options.traits.launches_kernels) return;
  RegionNumbering numbering;
  std::unordered_map<RegionKey, Answer, RegionKeyHash> answers;
  std::vector<std::pair<const Region*, Answer*>> questions;
  std::vector<std::pair<int, const Answer*>> asked;
  for (int s = 0; s < size(); ++s) {
    const Region& r = region(s);
    if (shared_[at(s)].asked || r.kind != RegionKind::Map) continue;
    const auto [place, fresh] = answers.try_emplace(numbering.key(r, numbering.named(r), values()));
    if (fresh) questions.emplace_back(&r, &place->second);
    asked.emplace_back(s, &place->second);
  }
  std::optional<OnlyThread> alone;
  if (questions.size() < kManyQuestions) alone.emplace();
  parallel_for(static_cast<std::int64_t>(questions.size()), [&](std::int64_t k, int) {
    const auto& [about, answer] = questions[at(k)];
    *answer = ask(*about);
  });
  for (const auto& [s, answer] : asked) shared_[at(s)].take(*answer);
}

Merger::Answer Merger::ask(const Region& r) const {
  Answer answer;
  answer.engine = first_that_claims(options.engines, r, values());
  if (answer.engine == nullptr) return answer;
  const Capabilities can = answer.engine->capabilities(r, values());
  answer.refused = can.no_shared_launch;
  answer.share = can.share;
  return answer;
}

bool Merger::is_run(const Region& r) const {
  std::string why;
  return std::any_of(options.engines.begin(), options.engines.end(),
                     [&](const Engine* engine) { return runs(*engine, r, values(), &why); });
}

double Merger::estimate(const Region& r) const {
  const Engine* engine = preferred(options.engines, r, values());
  return engine == nullptr ? 0 : engine->estimate(r, values());
}

void Merger::elide(ValueId id) {
  program.values[at(id)].kind = Value::Kind::Elided;
  program.values[at(id)].bytes = 0;
}

void Merger::replace(const Lists& groups, const std::function<Step(const std::vector<int>&)>& made,
                     const std::vector<char>& dropped) {
  constexpr int kKept = -1, kDropped = -2;
  std::vector<int> number(program.steps.size(), kKept);
  for (std::size_t s = 0; s < dropped.size(); ++s)
    if (dropped[s] != 0) number[s] = kDropped;
  if (groups.empty())
    close_gaps(number, kKept);
  else
    move_groups_after(groups, made, number, kKept);
  Lists waits(program.steps.size());
  for (std::size_t s = 0; s < before.size(); ++s)
    for (int b : before[s])
      if (number[at(b)] != number[s]) waits[at(number[s])].push_back(number[at(b)]);
  for (std::vector<int>& list : waits) sort_out(list);
  before = std::move(waits);
  reindex();
}

// Renumbers the kept steps in place.
void Merger::close_gaps(std::vector<int>& number, int to_keep) {
  std::size_t count = 0;
  for (std::size_t s = 0; s < number.size(); ++s) {
    if (number[s] != to_keep) continue;
    number[s] = static_cast<int>(count);
    if (count != s) {
      program.steps[count] = std::move(program.steps[s]);
      shared_[count] = std::move(shared_[s]);
    }
    ++count;
  }
  program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(count),
                      program.steps.end());
  shared_.resize(count);
}

// Numbers the merged steps, and the kept steps after them.
void Merger::move_groups_after(const Lists& groups,
                               const std::function<Step(const std::vector<int>&)>& made,
                               std::vector<int>& number, int to_keep) {
  std::size_t count =
      groups.size() + at(static_cast<int>(std::count(number.begin(), number.end(), to_keep)));
  for (const std::vector<int>& group : groups) count -= group.size();
  std::vector<Step>& steps = spare_;
  std::vector<Sharing> parts;
  steps.reserve(count);
  parts.reserve(count);
  for (const std::vector<int>& group : groups) {
    parts.push_back({true, nullptr, {}});
    for (int s : group) {
      number[at(s)] = static_cast<int>(steps.size());
      const std::vector<Shared>& own = shared_[at(s)].parts;
      parts.back().parts.insert(parts.back().parts.end(), own.begin(), own.end());
    }
    steps.push_back(made(group));
  }
  for (int s = 0; s < size(); ++s) {
    if (number[at(s)] != to_keep) continue;
    number[at(s)] = static_cast<int>(steps.size());
    steps.push_back(std::move(program.steps[at(s)]));
    parts.push_back(std::move(shared_[at(s)]));
  }
  program.steps.swap(spare_);
  spare_.clear();
  shared_ = std::move(parts);
}

void Merger::reindex() {
  times = Times(program, before);
  index();
}

void merge(std::vector<ValueId>& to, const std::vector<ValueId>& from) {
  for (ValueId id : from)
    if (!contains(to, id)) to.push_back(id);
}

void add_accesses(Region& all, const Region& part) {
  for (ValueId id : part.reads)
    if (!contains(all.writes, id) && !contains(all.local, id)) merge(all.reads, {id});
  for (ValueId id : part.writes)
    if (!contains(all.local, id)) merge(all.writes, {id});
}

void note(Region& region, const std::string& text) {
  region.why += cat(region.why.empty() ? "" : "; ", text);
}

}  // namespace tenon
