// Assembles parts into whole kernels as text. Each part is in its own namespace: part0, part1, …
// The arguments of the parts are members of one struct that the launch passes by value.
#include "cuda/engines/maps/map_kernel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/str.h"
#include "cuda/engines/maps/column_results.h"
#include "cuda/engines/maps/print_loop_nest.h"
#include "plan/program.h"
#include "plan/region_key.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kOneBlockElements = 4096;  // of a region whose kernels one block can do
constexpr int kOneBlockThreads = 1024;
constexpr int kJoinedThreads = 256;
constexpr std::int64_t kLongestByAll = 4096;  // longest row that every block of a launch computes
constexpr std::size_t kPartWords = 125;       // of a part of a launch
constexpr std::size_t kFewParts = 8;          // of one text: beyond, a block searches for its own
constexpr std::int64_t kFewBlocks = 4;        // whose work behind others' one block does

/// "rows_max_sub_exp": the name that a profiler shows.
std::string entry_name(const char* kind, const MapProgram& map) {
  std::string name = kind;
  Op last = Op::Data;
  int shown = 0;
  const auto add = [&](Op op) {
    if (op == last || shown == 5) return;
    name += cat('_', op_row(op).name);
    last = op;
    ++shown;
  };
  for (const MapInstr& instr : map.instrs)
    if (instr.code == MapCode::Compute || instr.code == MapCode::RowReduce ||
        instr.code == MapCode::Random)
      add(instr.op);
  for (const MapReduce& reduce : map.reduces) add(reduce.deviations ? Op::Square : reduce.op);
  return shown == 0 ? name + "_copy" : name;
}

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

/// Include lines, each once.
std::string includes_of(std::span<const Part> parts) {
  std::set<std::string> lines;
  for (const Part& part : parts) {
    std::istringstream stream(part.includes);
    for (std::string line; std::getline(stream, line);) lines.insert(line);
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::string in_namespace(const Part& part, std::size_t number) {
  return cat("namespace part", number, " {\n\n", part.code, "\n}  // namespace part", number,
             "\n\n");
}

void check_size(const ArgumentBlock& arguments, std::size_t most, const std::string& title) {
  if (arguments.words.size() > most)
    throw NotSupported(cat("the fused region ", title, " takes ", arguments.words.size(),
                           " arguments as one device kernel, more than ", most,
                           ": switch the pass fuse off"));
}

std::string head(const std::string& entry, int threads, int resident) {
  return cat("extern \"C\" __global__ void __launch_bounds__(", threads,
             resident > 0 ? cat(", ", resident) : "", ") ", entry,
             "(const __grid_constant__ tenon::cuda::Arguments a) {\n", kAwaitKernels);
}

/// Parts one after another; several parts run in one block.
PrintedLaunch launch_of(std::span<const Part> parts, const std::string& entry,
                        const std::string& title, std::size_t most_words) {
  PrintedLaunch launch;
  launch.source.entry = entry;
  launch.threads = parts[0].threads;
  launch.shared_bytes = parts[0].shared_bytes;
  launch.blocks = parts.size() == 1 ? parts[0].blocks : 1;
  std::string code, members, calls;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    code += in_namespace(parts[k], k);
    members += cat("  part", k, "::Arguments part", k, ";\n");
    if (k != 0) calls += "  __syncthreads();\n";
    calls += cat("  tenon::cuda::part", k, "::nest(a.part", k, ", ",
                 parts.size() == 1 ? "blockIdx.x, gridDim.x" : "0, 1", ");\n");
    append(launch.arguments, parts[k].arguments);
  }
  if (parts.size() == 1 && parts[0].tickets > 0) {
    launch.tickets = parts[0].tickets;
    launch.first_tickets.push_back({parts[0].ticket_word, 0});
  }
  launch.source.text =
      cat("// ", title, "\n", includes_of(parts), "\nnamespace tenon::cuda {\n\n", code,
          "struct Arguments {\n", members, "};\n\n}  // namespace tenon::cuda\n\n",
          head(entry, launch.threads, parts.size() == 1 ? parts[0].resident : 0), calls, "}\n");
  check_size(launch.arguments, most_words, title);
  return launch;
}

struct Titled {
  Part part;
  std::string title;
};

/// Parts in one launch, each with a range of blocks; equal parts share one function.
struct Side {
  std::string code, members;
  // With `start` 0: the calls for one block; a call returns if the block had work. In phases: all
  // of the block's work in every part, from number `block` on in steps of `step`.
  std::string calls;
  bool searches = false;  // in phases.cuh
  std::vector<Part> functions;
  std::int64_t blocks = 0;
};

std::string calls_in_phases(std::size_t g, std::size_t count) {
  return cat("#pragma unroll 1\n  for (int k = 0; k < ", count,
             "; ++k) {\n    const unsigned end = start + min(static_cast<unsigned>(a.most", g,
             "[k]), gridDim.x);\n#pragma unroll 1\n    for (; block < end; block += step)\n      "
             "tenon::cuda::part",
             g, "::nest(a.part", g, "[k], block - start, end - start);\n    start = end;\n  }\n");
}

std::string calls_of_few(std::size_t g, std::size_t count) {
  return cat("#pragma unroll 1\n  for (int k = 0; k < ", count,
             "; ++k) {\n    const unsigned end = static_cast<unsigned>(a.end", g,
             "[k]);\n    if (blockIdx.x < end)\n      return tenon::cuda::part", g, "::nest(a.part",
             g, "[k], blockIdx.x - start, end - start);\n    start = end;\n  }\n");
}

std::string calls_of_many(std::size_t g, std::size_t count) {
  return cat("  if (blockIdx.x < static_cast<unsigned>(a.end", g, "[", count - 1,
             "])) {\n    const int k = tenon::cuda::first_above(a.end", g, ", ", count,
             ", blockIdx.x);\n    const unsigned end = static_cast<unsigned>(a.end", g,
             "[k]);\n    if (k > 0) start = static_cast<unsigned>(a.end", g,
             "[k - 1]);\n    return tenon::cuda::part", g, "::nest(a.part", g,
             "[k], blockIdx.x - start, end - start);\n  }\n  start = static_cast<unsigned>(a.end",
             g, "[", count - 1, "]);\n");
}

/// Adds arguments and tickets to the launch. The functions are numbered from `first` on. With
/// `phases` (few blocks do the work of many) a part has at most as many blocks as there are, so
/// that all blocks have equal shares of a large part.
Side side_by_side(std::span<const Titled> parts, std::size_t first, bool phases,
                  PrintedLaunch& launch) {
  struct Group {
    const Titled* first;
    std::vector<const Part*> members;
  };
  std::vector<Group> groups;
  std::map<std::string, std::size_t> group_of;
  for (const Titled& one : parts) {
    const auto [found, fresh] = group_of.try_emplace(one.part.code, groups.size());
    if (fresh) groups.push_back({&one, {}});
    groups[found->second].members.push_back(&one.part);
  }
  Side side;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const std::size_t count = groups[k].members.size(), g = first + k;
    side.code += cat("// ", groups[k].first->title, "\n", in_namespace(groups[k].first->part, g));
    const std::string limit = cat(phases ? "most" : "end", g);
    side.members += cat("  part", g, "::Arguments part", g, "[", count, "];\n  long long ", limit,
                        "[", count, "];\n");
    for (const Part* part : groups[k].members) {
      if (part->tickets > 0)
        launch.first_tickets.push_back(
            {static_cast<int>(launch.arguments.words.size()) + part->ticket_word, launch.tickets});
      launch.tickets += part->tickets;
      append(launch.arguments, part->arguments);
    }
    for (const Part* part : groups[k].members) {
      side.blocks += part->blocks;
      launch.arguments.words.push_back(
          static_cast<std::uint64_t>(phases ? part->blocks : side.blocks));
    }
    side.calls += phases               ? calls_in_phases(g, count)
                  : count <= kFewParts ? calls_of_few(g, count)
                                       : calls_of_many(g, count);
    side.searches = side.searches || (!phases && count > kFewParts);
    side.functions.push_back(groups[k].first->part);
  }
  return side;
}

int least_resident(std::span<const Part> parts) {
  int resident = parts[0].resident;
  for (const Part& part : parts) resident = std::min(resident, part.resident);
  return resident;
}

/// Independent parts in one launch.
PrintedLaunch launch_together(std::span<const Titled> parts) {
  PrintedLaunch launch;
  launch.threads = kJoinedThreads;
  const Side side = side_by_side(parts, 0, false, launch);
  launch.blocks = side.blocks;
  launch.source.entry = cat("together_", side.functions.size());
  launch.source.text =
      cat("// Regions that do not depend on one another.\n", includes_of(side.functions),
          side.searches ? "#include \"cuda/kernels/phases.cuh\"\n" : "",
          "\nnamespace tenon::cuda {\n\n", side.code, "struct Arguments {\n", side.members,
          "};\n\n}  // namespace tenon::cuda\n\n",
          head(launch.source.entry, launch.threads, least_resident(side.functions)),
          "  unsigned start = 0;\n", side.calls, "}\n");
  return launch;
}

/// Phases of one launch in which no block waits for another. First every block computes a row for
/// itself (`by_all`), then many blocks work, then the last block to finish does the rest. If there
/// is no work for many blocks, one block does everything.
struct PhaseForm {
  std::vector<bool> alone;  // by phase that has something to do: whether it is one block's work
  bool by_all = false;      // every block computes the first phase for itself

  /// The phase in which many blocks may work.
  std::size_t wide() const { return by_all ? 1 : 0; }
  bool ends_last() const { return wide() + 1 < alone.size() && !alone[wide()]; }
  /// True if no block has to wait for another.
  bool wait_for_none() const {
    for (std::size_t p = wide() + 1; p < alone.size(); ++p)
      if (!alone[p]) return false;
    return true;
  }
};

struct Phases {
  PhaseForm form;
  std::vector<std::vector<Titled>> phases;
};

class PhasePrinter {
 public:
  explicit PhasePrinter(const Phases& all)
      : form_(all.form), phases_(all.phases), wide_(all.form.wide()) {
    launch_.threads = kJoinedThreads;
    launch_.resident = form_.by_all;
  }

  PrintedLaunch print() {
    for (std::size_t p = 0; p < phases_.size(); ++p) add_functions(p);
    const bool ends = form_.ends_last();
    if (form_.by_all) {
      print_call(0, "0", "1");
      calls_ += "  __syncthreads();\n";
    }
    print_call(wide_, "blockIdx.x", "gridDim.x");
    if (ends) {
      launch_.arrival_word = static_cast<int>(launch_.arguments.words.size());
      launch_.arguments.words.push_back(0);
      members_ += "  long long arrival;\n";
      calls_ += "  if (!tenon::cuda::ends_last(&tenon::cuda::arrivals[a.arrival])) return;\n";
    }
    for (std::size_t p = wide_ + 1; p < phases_.size(); ++p) {
      if (!ends || p != wide_ + 1) calls_ += "  __syncthreads();\n";
      print_call(p, "0", "1");
    }
    launch_.source.entry = cat("phases_", phases_.size());
    launch_.source.effort = static_cast<int>(functions_.size()) / 2;
    launch_.source.text =
        cat("// Regions in phases.\n", includes_of(functions_),
            "#include \"cuda/kernels/phases.cuh\"\n", "\nnamespace tenon::cuda {\n\n", code_,
            "struct Arguments {\n", members_, "};\n\n",
            ends ? cat("__device__ unsigned arrivals[", kArrivals, "];\n\n") : "", dispatch_,
            "}  // namespace tenon::cuda\n\n",
            head(launch_.source.entry, launch_.threads, least_resident(functions_)), calls_, "}\n");
    return std::move(launch_);
  }

 private:
  void add_functions(std::size_t p) {
    const Side side = side_by_side(phases_[p], functions_.size(), true, launch_);
    code_ += side.code;
    members_ += side.members;
    functions_.insert(functions_.end(), side.functions.begin(), side.functions.end());
    dispatch_ += cat("__device__ __forceinline__ void phase", p,
                     "(const Arguments& a, unsigned block, unsigned step) {\n  unsigned start = "
                     "0;\n",
                     side.calls, "}\n\n");
    if (p == wide_) launch_.blocks = side.blocks;
  }

  void print_call(std::size_t p, const char* first, const char* step) {
    calls_ += cat("  tenon::cuda::phase", p, "(a, ", first, ", ", step, ");\n");
  }

  const PhaseForm& form_;
  const std::vector<std::vector<Titled>>& phases_;
  const std::size_t wide_;
  PrintedLaunch launch_;
  std::vector<Part> functions_;
  std::string code_, members_, dispatch_, calls_;
};

/// Removes launches without blocks.
PrintedMap finished(std::vector<PrintedLaunch> launches) {
  PrintedMap out;
  for (PrintedLaunch& launch : launches)
    if (launch.blocks > 0) out.launches.push_back(std::move(launch));
  return out;
}

/// Adds the temporaries of a region to the map's temporaries. The region's arguments number
/// temporaries from the program's values on; they get their final places here.
void take_temporaries(PrintedMap& map, const LoopNests& nests, ArgumentBlock* arguments) {
  const auto taken = static_cast<ValueId>(map.temporaries.size());
  for (const Value& temporary : nests.values.temporaries())
    map.temporaries.push_back(map.workspace_bytes + temporary.offset);
  map.workspace_bytes += nests.temporary_bytes;
  if (arguments == nullptr) return;
  for (auto& [word, value] : arguments->pointers)
    if (value >= static_cast<ValueId>(nests.values.own_size())) value += taken;
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
  take_temporaries(out, nests, nullptr);
  return out;
}

namespace {

LaunchShare share_of(const Part& part) {
  return {part.blocks, std::ssize(part.arguments.words), part.tickets};
}

const char* refusal_of(const Part& part) {
  if (part.threads != kJoinedThreads) return "keeps rows in blocks of another size";
  return part.arguments.words.size() <= kPartWords ? nullptr : "takes too many arguments";
}

}  // namespace

const char* share_of(const Region& region, std::span<const Value> values, LaunchShare& share) {
  if (region.kind != RegionKind::Map) return "not a map";
  LoopNests nests = split_into_loop_nests(region.map, values);
  if (nests.nests.size() != 1) return "takes several kernels";
  const Part part = print_part(nests.nests[0], nests, {kJoinedThreads, false});
  share = share_of(part);
  return refusal_of(part);
}

namespace {

void add_written(const MapProgram& map, std::vector<ValueId>& out) {
  for (const MapStore& store : map.stores) out.push_back(store.view.value);
  for (const MapReduce& reduce : map.reduces) out.push_back(reduce.value);
}

/// The only part of a region that can join; its temporaries become the map's.
Part joined_part(const Region& region, std::span<const Value> values, const PartOptions& options,
                 PrintedMap& out) {
  LoopNests nests = split_into_loop_nests(region.map, values);
  Part part = print_part(nests.nests[0], nests, options);
  if (nests.nests.size() != 1 || refusal_of(part) != nullptr)
    throw InternalError(cat(region.title, " cannot share a launch"));
  if (part.blocks > 0) take_temporaries(out, nests, &part.arguments);
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
    const auto is_temporary = [this](const auto& pointer) {
      return at(pointer.second) >= values_.size();
    };
    if (std::any_of(known.part.arguments.pointers.begin(), known.part.arguments.pointers.end(),
                    is_temporary))
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
bool can_be_by_all(const MapProgram& map, std::span<const LaunchPart> parts) {
  if (!map.has_rows || !map.reduces.empty() || map.space.rank() != 1 ||
      map.space.numel() > kLongestByAll)
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
  std::vector<char> counts(map.instrs.size(), 0);  // needed for the results of the row
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

/// `few`: number of blocks whose work after the first phase one block takes over.
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
  form.by_all = form.alone.size() > 1 && form.alone[0] && !form.alone[1] &&
                can_be_by_all(first->region->map, parts);
  return form;
}

PhaseForm form_of(std::span<const LaunchPart> parts) {
  PhaseForm form = form_of(parts, 1);
  return form.wait_for_none() ? form : form_of(parts, kFewBlocks);
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
  if (all.form.by_all)
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
      made_of_columns(nests.nests[0], regions.subspan(1), values);
  if (!then) return {};
  std::vector<ValueId> written;
  for (const Region& region : regions) add_written(region.map, written);
  PartOptions options{kJoinedThreads, false, written};
  options.then = &*then;
  const Part part = print_part(nests.nests[0], nests, options);
  PrintedMap out;
  out.launches.push_back(
      launch_of({&part, 1}, entry_name("columns", first.map), first.title, most_words));
  take_temporaries(out, nests, nullptr);
  return out;
}

PrintedMap print_phases(std::span<const Region> regions, std::span<const Value> values,
                        std::size_t most_words) {
  if (std::optional<PrintedMap> one = print_columns_then(regions, values, most_words))
    return *std::move(one);
  PrintedMap out;
  const Phases all = phases_of(regions, values, out);
  if (all.phases.empty()) return out;
  if (!all.form.wait_for_none())
    throw InternalError(cat(regions[0].title, " and others are not phases of one launch"));
  out.launches.push_back(PhasePrinter(all).print());
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
  sizes.by_all = form.by_all;
  sizes.ends_last = form.ends_last();
  sizes.wait_for_none = form.wait_for_none();
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
