// Arena layout: the offsets of values and workspaces.
//
// Allocations whose lifetimes do not overlap may share bytes. Where independent steps run
// concurrently, sharing bytes adds a dependency between them. In that case all small allocations
// get bytes of their own. In a larger arena freed bytes are reused only after a while, unless this
// would raise the peak too much, or unless the next step already waits for all previous users.
#include <algorithm>
#include <bitset>
#include <map>
#include <set>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/sort.h"
#include "base/str.h"
#include "plan/steps/calls.h"
#include "plan/steps/schedule.h"

namespace tenon {
namespace {

constexpr std::int64_t kAlign = 64;
/// If a program's allocations take at most this many bytes, none share bytes. In larger programs,
/// freed bytes are reused only after this many more bytes were freed.
constexpr std::int64_t kApart = std::int64_t{64} << 20;
/// The reuse of smaller allocations is always delayed, without a check of the limits below.
constexpr std::int64_t kUnasked = std::int64_t{16} << 10;
/// A delay may raise the live bytes to kLittle or to the peak plus 1/kMore, whichever is larger.
constexpr std::int64_t kLittle = std::int64_t{384} << 20, kMore = 32;
std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::int64_t workspace_of(const Step& step) {
  return step.kernel == nullptr ? 0
                                : aligned(static_cast<std::int64_t>(step.kernel->workspace_bytes));
}

void find_lifetimes(Program& p) {
  for (Value& v : p.values) v.first_step = v.last_step = -1;
  for (int s = 0; s < static_cast<int>(p.steps.size()); ++s) {
    const Region& r = p.steps[at(s)].region;
    for (ValueId id : r.writes) {
      Value& v = p.values[at(id)];
      if (v.first_step < 0) v.first_step = s;
      v.last_step = std::max(v.last_step, s);
    }
    for (ValueId id : r.reads) p.values[at(id)].last_step = std::max(p.values[at(id)].last_step, s);
  }
}

/// A value of the arena or a step's workspace, with the range of steps during which it lives.
struct Allocation {
  std::int64_t bytes = 0;  // aligned
  int first = 0, last = 0;
  std::int64_t* offset = nullptr;
  // Steps that write or read it; only for allocations whose reuse may be delayed.
  std::vector<int> users;
};
using Allocations = std::vector<Allocation>;

// The largest allocations are placed by comparing all pairs of allocations that live at the same
// time. The limit keeps the time linear in the size of the plan.
constexpr std::size_t kMostPairs = 4096;

/// Placed allocations in order of their offsets, with their lifetimes.
class Places {
 public:
  /// The lowest offset that is free during the allocation's whole lifetime. Marks the bytes as
  /// used.
  std::int64_t take_lowest(const Allocation& allocation) {
    std::int64_t offset = 0;
    for (const Place& p : taken_) {
      if (p.first > allocation.last || p.last < allocation.first) continue;
      if (offset + allocation.bytes <= p.begin) break;
      offset = std::max(offset, p.end);
    }
    const Place own{offset, offset + allocation.bytes, allocation.first, allocation.last};
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), own), own);
    return offset;
  }

 private:
  struct Place {
    std::int64_t begin, end;
    int first, last;
    bool operator<(const Place& o) const {
      return begin != o.begin ? begin < o.begin : end < o.end;
    }
  };
  std::vector<Place> taken_;
};

/// Free ranges between the allocations that live now. Each allocation takes the smallest range that
/// fits.
class FreeRoom {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      const std::int64_t offset = end_;
      end_ += bytes;
      return offset;
    }
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      const auto [before, size] = *std::prev(next);
      remove(before, size);
      offset = before;
      bytes += size;
    }
    add(offset, bytes);
  }
  std::int64_t end() const { return end_; }

 private:
  void add(std::int64_t offset, std::int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }
  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t end_ = 0;
};

/// Places allocations from `base` on, step by step. Returns the end offset.
std::int64_t place_by_time(std::span<const Allocation> allocations, std::size_t steps,
                           std::int64_t base) {
  std::vector<std::vector<const Allocation*>> begin(steps), end(steps);
  for (const Allocation& a : allocations) {
    begin[at(a.first)].push_back(&a);
    end[at(a.last)].push_back(&a);
  }
  FreeRoom room;
  for (std::size_t s = 0; s < steps; ++s) {
    for (const Allocation* a : begin[s])
      if (a->bytes > 0) *a->offset = base + room.take(a->bytes);
    for (const Allocation* a : end[s])
      if (a->bytes > 0) room.give_back(*a->offset - base, a->bytes);
  }
  return base + room.end();
}

/// Places allocations, sorted by descending size. Returns the end offset.
std::int64_t place_together(std::span<const Allocation> allocations, std::size_t steps) {
  Places places;
  std::int64_t top = 0;
  const std::size_t pairs = std::min(allocations.size(), kMostPairs);
  for (const Allocation& a : allocations.first(pairs)) {
    *a.offset = places.take_lowest(a);
    top = std::max(top, *a.offset + a.bytes);
  }
  if (pairs == allocations.size()) return top;
  top = place_by_time(allocations.subspan(pairs), steps, top);
  // Many allocations of similar size may pack better in the order of time, so both orders are
  // tried.
  std::vector<std::int64_t> offsets;
  for (const Allocation& a : allocations) offsets.push_back(*a.offset);
  const std::int64_t top_in_time_order = place_by_time(allocations, steps, 0);
  if (top_in_time_order <= top) return top_in_time_order;
  for (std::size_t k = 0; k < allocations.size(); ++k) *allocations[k].offset = offsets[k];
  return top;
}

std::int64_t place_apart(std::span<const Allocation> allocations) {
  std::int64_t top = 0;
  for (const Allocation& a : allocations) {
    *a.offset = top;
    top += a.bytes;
  }
  return top;
}

/// Which earlier steps a step waits for, directly or through other steps.
class Waits {
 public:
  explicit Waits(const Program& p) : near_(p.steps.size()) {
    std::vector<int> place(p.order.size());
    for (std::size_t k = 0; k < place.size(); ++k) place[at(p.order[k])] = static_cast<int>(k);
    for (std::size_t k = 0; k < place.size(); ++k)
      for (const int earlier : p.before[at(p.order[k])])
        if (const std::size_t back = k - at(place[at(earlier)]); back < kNear)
          near_[k] |= near_[k - back] << back, near_[k].set(back);
  }
  /// A step more than kNear steps earlier has ended anyway.
  bool has(int step, int earlier) const {
    const std::size_t back = at(step) - at(earlier);
    return back >= kNear || near_[at(step)].test(back);
  }

 private:
  static constexpr std::size_t kNear = 256;
  // by step: which of the kNear steps before it, counted backwards
  std::vector<std::bitset<kNear>> near_;
};

/// Delays the reuse of freed bytes: an allocation is held back until kApart bytes have been freed
/// since. Steps that already wait for all its users may reuse the bytes at once. The delay never
/// raises the live bytes beyond `room`. Allocations under kUnasked skip these checks, so that the
/// work for each allocation is bounded.
void delay_reuse(Allocations& allocations, const Program& program) {
  const std::size_t steps = program.steps.size();
  const Waits waits(program);
  std::vector<char> begins(steps, 0);  // by step: whether it writes an allocation that is not small
  for (const Allocation& a : allocations)
    if (a.bytes >= kUnasked) begins[at(a.first)] = 1;
  const auto must_wait = [&](const Allocation& a, int step) {
    return begins[at(step)] != 0 && std::any_of(a.users.begin(), a.users.end(),
                                                [&](int user) { return !waits.has(step, user); });
  };
  std::vector<std::int64_t> freed(steps + 1, 0);  // before each step
  std::vector<std::int64_t> live(steps + 1, 0);   // at each step
  for (const Allocation& a : allocations) {
    freed[at(a.last) + 1] += a.bytes;
    live[at(a.first)] += a.bytes;
    live[at(a.last) + 1] -= a.bytes;
  }
  for (std::size_t s = 1; s <= steps; ++s) {
    freed[s] += freed[s - 1];
    live[s] += live[s - 1];
  }
  const std::int64_t peak = *std::max_element(live.begin(), live.end());
  const std::int64_t room = std::max(kLittle, peak + peak / kMore);
  for (Allocation& a : allocations) {
    const auto end = std::upper_bound(freed.begin(), freed.end(), freed[at(a.last)] + kApart);
    int last = static_cast<int>(end - freed.begin()) - 2;
    if (a.bytes < kUnasked) {
      a.last = std::max(a.last, last);
      continue;
    }
    while (last > a.last && !must_wait(a, last)) --last;
    while (a.last < last && live[at(a.last) + 1] + a.bytes <= room) live[at(++a.last)] += a.bytes;
  }
}

void check_limit(const Program& p, const PlanOptions& options) {
  const std::int64_t most = options.most_memory();
  if (most <= 0 || p.peak_bytes() <= most) return;
  throw MemoryError(cat("this would take ", size_text(p.peak_bytes()), " at its peak, more than ",
                        options.most_memory_text(), " (largest: ", largest_values(p),
                        "): ", options.less_memory_advice()));
}

Allocations values_of(Program& p) {
  Allocations allocations;
  for (Value& v : p.values) {
    if (v.kind != Value::Kind::Arena || v.last_step < 0) continue;
    if (v.first_step < 0)
      throw InternalError(cat("value ", &v - p.values.data(), " is read and never written"));
    allocations.push_back({aligned(v.bytes), v.first_step, v.last_step, &v.offset, {}});
  }
  return allocations;
}

/// Fills Allocation::users of values; the allocations are in the program's value order.
void find_users(const Program& p, Allocations& allocations) {
  std::vector<Allocation*> by_value(p.values.size(), nullptr);
  std::size_t k = 0;
  for (std::size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].kind == Value::Kind::Arena && p.values[v].last_step >= 0)
      by_value[v] = &allocations[k++];
  for (std::size_t s = 0; s < p.steps.size(); ++s)
    for (const auto* ids : {&p.steps[s].region.writes, &p.steps[s].region.reads})
      for (const ValueId id : *ids)
        if (Allocation* a = by_value[at(id)]; a != nullptr && a->bytes >= kUnasked)
          a->users.push_back(static_cast<int>(s));
}

void add_workspaces(Program& p, Allocations& allocations) {
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const int step = static_cast<int>(s);
    const std::int64_t bytes = workspace_of(p.steps[s]);
    if (bytes > 0) allocations.push_back({bytes, step, step, &p.steps[s].workspace_offset, {step}});
  }
}

/// Offsets of all values and workspaces in the arena.
void place_all(Program& program, bool shares, bool delays) {
  Allocations allocations = values_of(program);
  if (delays) find_users(program, allocations);
  if (program.traits.overlaps_steps) add_workspaces(program, allocations);
  if (delays) delay_reuse(allocations, program);
  sort_stably(allocations,
              [](const Allocation& a, const Allocation& b) { return a.bytes > b.bytes; });
  std::int64_t top =
      shares ? place_together(allocations, program.steps.size()) : place_apart(allocations);
  program.workspace_offset = top;
  // If steps run one after another, all steps share one workspace, as large as the largest.
  if (!program.traits.overlaps_steps)
    for (Step& step : program.steps) {
      step.workspace_offset = program.workspace_offset;
      top = std::max(top, program.workspace_offset + workspace_of(step));
    }
  program.arena_bytes = top;
}

}  // namespace

bool shares_no_memory(const Program& p) {
  if (!p.traits.overlaps_steps) return false;
  std::int64_t bytes = 0;
  for (const Value& v : p.values)
    if (v.kind == Value::Kind::Arena) bytes += aligned(v.bytes);
  for (const Step& step : p.steps) bytes += workspace_of(step);
  return bytes <= kApart;
}

std::string PlanOptions::most_memory_text() const {
  const std::string size = size_text(most_memory());
  return limited_by_user() ? cat("the limit of ", size) : cat("the ", size, " of the device");
}

std::string PlanOptions::less_memory_advice() const {
  return limited_by_user() ? "use a smaller batch or raise the limit"
                           : "use a smaller batch, a lower precision or a smaller network";
}

void plan_memory(Program& program, const PlanOptions& options) {
  find_lifetimes(program);
  const bool shares = options.enabled(kPlanMemory) && !shares_no_memory(program);
  const bool delays = shares && program.traits.overlaps_steps;
  place_all(program, shares, delays);
  // If only the delay exceeds the memory limit, plans again without the delay.
  if (delays && options.most_memory() > 0 && program.peak_bytes() > options.most_memory())
    place_all(program, shares, false);
  list_calls(program);
  check_limit(program, options);
}

}  // namespace tenon
