// Builds keys. Values are numbered while the key is built, so that no region is copied for its key.
#include "plan/program/region_key.h"

#include <algorithm>
#include <unordered_map>

#include "base/index.h"
#include "base/thread_pool.h"
#include "plan/program/program_sizes.h"

namespace tenon {
namespace {

/// Calls f(id) for every value id in the region; f may change the id if the region is not const.
template <class M, class F>
void each_value_of_map(M& map, F&& f) {
  for (auto& instr : map.instrs) f(instr.view.value);
  for (auto& store : map.stores) f(store.view.value);
  for (auto& reduce : map.reduces) f(reduce.value);
}
template <class R, class F>
void each_value(R& region, F&& f) {
  for (auto* list : {&region.reads, &region.writes, &region.local})
    for (auto& id : *list) f(id);
  each_value_of_map(region.map, f);
  each_value_of_map(region.prologue_a, f);
  each_value_of_map(region.prologue_b, f);
  f(region.contraction.a.value);
  f(region.contraction.b.value);
  f(region.contraction.out);
  for (auto* list : {&region.opaque.inputs, &region.opaque.outs})
    for (auto& id : *list) f(id);
  for (auto* list : {&region.opaque.views, &region.opaque.out_views})
    for (auto& view : *list) f(view.value);
  for (auto& part : region.parts) each_value(part, f);
}

/// Labels are only for printing, except where a kernel names the layer of an index that is out of
/// range.
bool needs_label(const Region& region) { return region.kind == RegionKind::Opaque; }

void drop_labels(Region& region) {
  if (!needs_label(region)) region.label = 0;
  for (Region& part : region.parts) drop_labels(part);
}

/// Most numbers of a view are zeros. Zeros are left out; a bit mask marks the others.
struct CollectKey {
  RegionKey& key;
  const std::vector<ValueId>& number;
  void fixed(std::uint64_t word) { key.push_back(word); }
  void size(std::int64_t size) { key.push_back(static_cast<std::uint64_t>(size)); }
  void id(ValueId id) { fixed(numbered(id)); }
  void label(const Region& region) { fixed(needs_label(region) ? region.label : 0); }
  void view(const View& view) {
    std::uint64_t words[kMaxRank + 2];
    std::uint64_t* end = words + 1;
    std::uint64_t present = 0;
    const auto add = [&](std::int64_t part) {
      present <<= 1;
      if (part == 0) return;
      present |= 1;
      *end++ = static_cast<std::uint64_t>(part);
    };
    add(view.offset);
    for (const std::int64_t stride : view.stride) add(stride);
    words[0] = numbered(view.value) << 32 | present;
    key.insert(key.end(), words, end);
  }
  void shape(const Shape& shape) {
    fixed(static_cast<std::uint64_t>(shape.rank()));
    key.insert(key.end(), shape.begin(), shape.end());
  }
  std::uint64_t numbered(ValueId id) const {
    return static_cast<std::uint32_t>(id == kNoValue ? id : number[at(id)]);
  }
};

}  // namespace

std::size_t RegionKeyHash::operator()(const RegionKey& key) const {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

void RegionNumbering::number(const std::vector<ValueId>& named) {
  for (std::size_t k = 0; k < named.size(); ++k) number_[at(named[k])] = static_cast<ValueId>(k);
}
void RegionNumbering::forget(const std::vector<ValueId>& named) {
  for (const ValueId id : named) number_[at(id)] = kNoValue;
}

std::vector<ValueId> RegionNumbering::named(const Region& region) {
  std::vector<ValueId> named;
  each_value(region, [&](ValueId id) {
    if (id == kNoValue) return;
    if (at(id) >= number_.size())
      number_.resize(std::max(at(id) + 1, 2 * number_.size()), kNoValue);
    if (number_[at(id)] != kNoValue) return;
    number_[at(id)] = static_cast<ValueId>(named.size());
    named.push_back(id);
  });
  forget(named);
  return named;
}

RegionKey RegionNumbering::key(const Region& region, const std::vector<ValueId>& named,
                               std::span<const Value> values) {
  number(named);
  words_.clear();
  CollectKey collect{words_, number_};
  ProgramSizes<CollectKey> sizes(collect);
  sizes.region(region);
  for (const ValueId id : named) {
    const Value value = without_name(values[at(id)]);
    sizes.value(value);
  }
  forget(named);
  return words_;
}

Region RegionNumbering::numbered(const Region& region, const std::vector<ValueId>& named) {
  number(named);
  Region own = region;
  each_value(own, [this](ValueId& id) {
    if (id != kNoValue) id = number_[at(id)];
  });
  forget(named);
  drop_labels(own);
  return own;
}

EqualSteps::EqualSteps(const Program& program)
    : first_(program.steps.size()),
      named_(program.steps.size()),
      renamed_(program.values.size(), kNoValue) {
  std::vector<RegionKey> keys(program.steps.size());  // empty: equal to no other region
  constexpr std::int64_t kAtOnce = 64;
  const std::int64_t steps = std::ssize(keys);
  parallel_for(divide_up(steps, kAtOnce), [&](std::int64_t k, int) {
    RegionNumbering numbering;
    for (std::size_t s = at(k * kAtOnce); s < at(std::min((k + 1) * kAtOnce, steps)); ++s) {
      const Region& region = program.steps[s].region;
      if (!region.opaque.bodies.empty()) continue;
      named_[s] = numbering.named(region);
      keys[s] = numbering.key(region, named_[s], program.values);
    }
  });
  std::unordered_map<RegionKey, int, RegionKeyHash> known;
  for (std::size_t s = 0; s < first_.size(); ++s) {
    first_[s] = static_cast<int>(s);
    if (!keys[s].empty())
      first_[s] = known.try_emplace(std::move(keys[s]), first_[s]).first->second;
  }
}

std::span<const ValueId> EqualSteps::renamed(std::size_t step) {
  const std::vector<ValueId>& from = named_[at(first_[step])];
  for (std::size_t k = 0; k < from.size(); ++k) renamed_[at(from[k])] = named_[step][k];
  return renamed_;
}

void rename_value(Region& region, ValueId from, ValueId to) {
  each_value(region, [=](ValueId& id) {
    if (id == from) id = to;
  });
}

Value without_name(const Value& value) {
  Value out = value;
  out.label = 0;
  out.slot = -1;
  return out;
}

}  // namespace tenon
