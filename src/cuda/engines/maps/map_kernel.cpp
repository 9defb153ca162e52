// Decides which parts of map regions one launch has, and in which form: one block, blocks next to
// one another, or phases.
#include "cuda/engines/maps/map_kernel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/str.h"
#include "cuda/engines/maps/column_results.h"
#include "cuda/engines/maps/print_loop_nest.h"
#include "plan/program/program.h"
#include "plan/program/region_key.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kOneBlockElements = 4096;  // most elements of a one-block region
constexpr int kOneBlockThreads = 1024;
constexpr std::int64_t kLongestRepeatedRow = 4096;  // computed by every block for itself
constexpr std::size_t kPartWords = 125;             // most words of one part's arguments
constexpr std::int64_t kFewBlocks = 4;  // a later phase of so few blocks may be done by one block

const char* loop_nest_name(const LoopNest& nest) {
  switch (nest.kind) {
    case LoopNestKind::Elements:
      return "map";
    case LoopNestKind::Rows:
      return "rows";
    case LoopNestKind::Columns:
      break;
  }
  return "columns";
}

/// Removes launches without blocks.
PrintedMap finished(std::vector<PrintedLaunch> launches) {
  PrintedMap out;
  for (PrintedLaunch& launch : launches)
    if (launch.blocks > 0) out.launches.push_back(std::move(launch));
  return out;
}

}  // namespace

PrintedMap print_map(const Region& region, std::span<const Value> values, std::size_t most_words,
                     std::int64_t most_shared) {
  LoopNests nests = split_into_loop_nests(region.map, values);
  const bool one_block = nests.nests.size() > 1 && region.map.space.numel() <= kOneBlockElements;
  PartOptions options;
  if (one_block)
    options = {kOneBlockThreads, true};
  else
    options.shared_bytes = most_shared;
  std::vector<Part> parts;
  std::vector<PrintedLaunch> launches;
  for (const LoopNest& nest : nests.nests) {
    parts.push_back(print_part(nest, nests, options));
    if (!one_block)
      launches.push_back(launch_of({&parts.back(), 1}, entry_name(loop_nest_name(nest), nest.map),
                                   region.title, most_words));
  }
  if (one_block)
    launches.push_back(launch_of(parts, entry_name(loop_nest_name(nests.nests[0]), region.map),
                                 region.title, most_words));
  PrintedMap out = finished(std::move(launches));
  out.workspace_bytes = nests.temporary_bytes;
  return out;
}

namespace {

LaunchShare share_of(const Part& part) {
  return {part.blocks, std::ssize(part.arguments.words), part.tickets};
}

const char* refusal_of(const Part& part) {
  if (part.threads != kJoinedThreads) return "needs thread blocks of another size";
  return part.arguments.words.size() <= kPartWords
             ? nullptr
             : "needs more arguments than a part of a launch can have";
}

}  // namespace

const char* share_of(const Region& region, std::span<const Value> values, LaunchShare& share) {
  if (region.kind != RegionKind::Map) return "is not a map region";
  LoopNests nests = split_into_loop_nests(region.map, values);
  if (nests.nests.size() != 1) return "needs several kernels";
  const Part part = print_part(nests.nests[0], nests, {kJoinedThreads, false});
  share = share_of(part);
  return refusal_of(part);
}

namespace {

void add_written(const MapProgram& map, std::vector<ValueId>& out) {
  for (const MapStore& store : map.stores) out.push_back(store.view.value);
  for (const MapReduce& reduce : map.reduces) out.push_back(reduce.value);
}

/// The only part of a region that can join; its temporaries follow those of earlier parts.
Part joined_part(const Region& region, std::span<const Value> values, const PartOptions& options,
                 PrintedMap& out) {
  LoopNests nests = split_into_loop_nests(region.map, values);
  Part part = print_part(nests.nests[0], nests, options);
  if (nests.nests.size() != 1 || refusal_of(part) != nullptr)
    throw InternalError(cat(region.title, " cannot share a launch"));
  if (part.blocks == 0) return part;
  for (auto& [word, offset] : part.arguments.temporaries) offset += out.workspace_bytes;
  out.workspace_bytes += nests.temporary_bytes;
  return part;
}

/// The parts of a launch without phases. In a large launch most parts compute the same on other
/// values and are printed once.
class JoinedParts {
 public:
  JoinedParts(std::span<const Value> values, PrintedMap& out)
      : values_(values), out_(out), renamed_(values.size(), kNoValue) {}

  Part make(const Region& region) {
    std::vector<ValueId> named = numbering_.named(region);
    const auto [place, fresh] = known_.try_emplace(numbering_.key(region, named, values_));
    Known& known = place->second;
    if (fresh) {
      known = {joined_part(region, values_, {kJoinedThreads, false}, out_), std::move(named)};
      return known.part;
    }
    if (!known.part.arguments.temporaries.empty())
      return joined_part(region, values_, {kJoinedThreads, false}, out_);
    for (std::size_t k = 0; k < named.size(); ++k) renamed_[at(known.named[k])] = named[k];
    Part part = known.part;
    part.arguments.rename(renamed_);
    return part;
  }

 private:
  struct Known {
    Part part;
    std::vector<ValueId> named;
  };
  const std::span<const Value> values_;
  PrintedMap& out_;
  RegionNumbering numbering_;
  std::unordered_map<RegionKey, Known, RegionKeyHash> known_;
  std::vector<ValueId> renamed_;
};

/// True if every block may compute the row of the first phase for itself at any time. The row's
/// results must not depend on anything that the launch writes. Values computed from its elements
/// come after the row, and nothing else may need them.
bool can_repeat_first_phase(const MapProgram& map, std::span<const LaunchPart> parts) {
  if (!map.has_rows || !map.reduces.empty() || map.space.rank() != 1 ||
      map.space.numel() > kLongestRepeatedRow)
    return false;
  const std::vector<int> depths = depths_of(map);
  const int last = *std::max_element(depths.begin(), depths.end());
  std::vector<ValueId> elements;
  for (const MapStore& store : map.stores) {
    const bool changes = loads(map, store.view.value);
    if (map.instrs[at(store.source)].per_row) {
      if (changes) return false;
    } else {
      if (!changes && depths[at(store.source)] != last) return false;
      elements.push_back(store.view.value);
    }
  }
  std::vector<char> counts(map.instrs.size(), 0);  // instructions that the results of the row need
  for (std::size_t i = map.instrs.size(); i-- > 0;) {
    const MapInstr& instr = map.instrs[i];
    if (instr.per_row || instr.code == MapCode::RowReduce) counts[i] = 1;
    if (counts[i] == 0) continue;
    if (instr.code == MapCode::Load && contains(elements, instr.view.value)) return false;
    for (const int arg : instr.args)
      if (arg >= 0) counts[at(arg)] = 1;
  }
  std::vector<ValueId> written;
  for (const LaunchPart& part : parts) {
    const MapProgram& other = part.region->map;
    if (&other == &map) continue;
    written.clear();
    add_written(other, written);
    for (const MapInstr& instr : map.instrs)
      if (instr.code == MapCode::Load && contains(written, instr.view.value)) return false;
    for (const ValueId value : elements)
      if (loads(other, value) || contains(written, value)) return false;
  }
  return true;
}

/// `few`: after the first phase, one block takes over the work of up to this many blocks.
PhaseForm form_of(std::span<const LaunchPart> parts, std::int64_t few) {
  std::map<int, std::int64_t> blocks;
  const LaunchPart* first = nullptr;
  for (const LaunchPart& part : parts) {
    if (part.share.blocks == 0) continue;
    if (first == nullptr || part.phase < first->phase) first = &part;
    blocks[part.phase] += part.share.blocks;
  }
  PhaseForm form;
  for (const auto& [phase, count] : blocks)
    form.alone.push_back(count <= (form.alone.empty() ? 1 : few));
  form.repeats_first_phase = form.alone.size() > 1 && form.alone[0] && !form.alone[1] &&
                             can_repeat_first_phase(first->region->map, parts);
  return form;
}

PhaseForm form_of(std::span<const LaunchPart> parts) {
  PhaseForm form = form_of(parts, 1);
  return form.never_waits() ? form : form_of(parts, kFewBlocks);
}

Phases phases_of(std::span<const Region> regions, std::span<const Value> values, PrintedMap& out) {
  std::vector<ValueId> written;
  for (const Region& region : regions) add_written(region.map, written);
  std::map<int, std::vector<Titled>> by_number;
  std::vector<LaunchPart> parts;
  const Region* first = nullptr;
  for (const Region& region : regions) {
    Part part = joined_part(region, values, {kJoinedThreads, false, written}, out);
    parts.push_back({&region, share_of(part), region.phase});
    if (part.blocks == 0) continue;
    if (first == nullptr || region.phase < first->phase) first = &region;
    by_number[region.phase].push_back({std::move(part), region.title});
  }
  Phases all{form_of(parts), {}};
  for (auto& [number, phase] : by_number) all.phases.push_back(std::move(phase));
  if (all.form.repeats_first_phase)
    all.phases[0][0].part =
        joined_part(*first, values, {kJoinedThreads, false, written, true}, out);
  return all;
}

/// A kernel over columns together with the regions that process its results, each in the block that
/// has the result; otherwise nothing.
std::optional<PrintedMap> print_columns_then(std::span<const Region> regions,
                                             std::span<const Value> values,
                                             std::size_t most_words) {
  const Region& first = regions[0];
  if (first.map.space.numel() == 0 || regions[1].phase == first.phase) return {};
  LoopNests nests = split_into_loop_nests(first.map, values);
  if (nests.nests.size() != 1 || nests.nests[0].kind != LoopNestKind::Columns) return {};
  const std::optional<MapProgram> then =
      merge_column_results(nests.nests[0], regions.subspan(1), values);
  if (!then) return {};
  std::vector<ValueId> written;
  for (const Region& region : regions) add_written(region.map, written);
  PartOptions options{kJoinedThreads, false, written};
  options.then = &*then;
  const Part part = print_part(nests.nests[0], nests, options);
  PrintedMap out;
  out.launches.push_back(
      launch_of({&part, 1}, entry_name("columns", first.map), first.title, most_words));
  out.workspace_bytes = nests.temporary_bytes;
  return out;
}

PrintedMap print_phases(std::span<const Region> regions, std::span<const Value> values,
                        std::size_t most_words) {
  if (std::optional<PrintedMap> one = print_columns_then(regions, values, most_words))
    return *std::move(one);
  PrintedMap out;
  const Phases all = phases_of(regions, values, out);
  if (all.phases.empty()) return out;
  if (!all.form.never_waits())
    throw InternalError(cat(regions[0].title, " and others are not phases of one launch"));
  out.launches.push_back(launch_in_phases(all));
  check_size(out.launches[0].arguments, most_words, regions[0].title);
  return out;
}

}  // namespace

PrintedMap print_together(std::span<const Region> regions, std::span<const Value> values,
                          std::size_t most_words) {
  if (regions.size() == 1) return print_map(regions[0], values, most_words, 0);
  if (std::any_of(regions.begin(), regions.end(),
                  [&](const Region& region) { return region.phase != regions[0].phase; }))
    return print_phases(regions, values, most_words);
  PrintedMap out;
  std::vector<Titled> parts;
  std::vector<PrintedLaunch> launches;
  std::size_t words = 0;
  std::int64_t tickets = 0;
  const auto flush = [&] {
    if (!parts.empty()) launches.push_back(launch_together(parts));
    parts.clear();
    words = 0;
    tickets = 0;
  };
  JoinedParts made(values, out);
  for (const Region& region : regions) {
    Part part = made.make(region);
    if (part.blocks == 0) continue;
    const std::size_t more = part.arguments.words.size() + 1;
    if (words + more > most_words || tickets + part.tickets > kTickets) flush();
    words += more;
    tickets += part.tickets;
    parts.push_back({std::move(part), region.title});
  }
  flush();
  out.launches = finished(std::move(launches)).launches;
  return out;
}

PhaseSizes sizes_of(std::span<const LaunchPart> parts, std::size_t most_words) {
  const PhaseForm form = form_of(parts);
  PhaseSizes sizes;
  sizes.phases = static_cast<int>(form.alone.size());
  sizes.repeats_first_phase = form.repeats_first_phase;
  sizes.ends_last = form.ends_last();
  sizes.never_waits = form.never_waits();
  std::int64_t words = 1, tickets = 0;
  for (const LaunchPart& part : parts) {
    if (part.share.blocks == 0) continue;
    words += part.share.arguments + 1;
    tickets += part.share.counters;
  }
  sizes.fits = words <= static_cast<std::int64_t>(most_words) && tickets <= kTickets;
  return sizes;
}

}  // namespace tenon::cuda
