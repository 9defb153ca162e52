// Parts as text of whole kernels. Parts stand in namespaces of their own, part0, part1, …; their
// arguments are members of one struct that the launch passes by value.
#include "cuda/engines/map_kernel.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/print_sweep.h"
#include "plan/program.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kOneBlockElements = 4096;  // of a region whose sweeps one block can do
constexpr int kOneBlockThreads = 1024;
constexpr int kJoinedThreads = 256;
constexpr std::size_t kLaunchWords = 500;  // of 4096 bytes that a launch may take

/// "rows_max_sub_exp": what a profiler shows.
std::string entry_name(const char* kind, const MapProgram& map) {
  std::string name = kind;
  Op last = Op::Data;
  int shown = 0;
  const auto add = [&](Op op) {
    if (op == last || shown == 5) return;
    name += cat('_', op_name(op));
    last = op;
    ++shown;
  };
  for (const MapInstr& instr : map.instrs)
    if (instr.code == MapCode::Compute || instr.code == MapCode::RowReduce ||
        instr.code == MapCode::Random)
      add(instr.op);
  for (const MapReduce& reduce : map.reduces) add(reduce.op);
  return shown == 0 ? name + "_copy" : name;
}

const char* sweep_name(const Sweep& sweep) {
  switch (sweep.kind) {
    case SweepKind::Elements:
      return "map";
    case SweepKind::Rows:
      return "rows";
    case SweepKind::Columns:
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

void append(ArgumentBlock& to, const ArgumentBlock& from) {
  const int first = static_cast<int>(to.words.size());
  to.words.insert(to.words.end(), from.words.begin(), from.words.end());
  for (const auto& [word, value] : from.pointers) to.pointers.emplace_back(first + word, value);
}

void check_size(const ArgumentBlock& arguments, const std::string& title) {
  if (arguments.words.size() > kLaunchWords)
    throw NotSupported(cat("the fused region ", title, " takes ", arguments.words.size(),
                           " arguments as one device kernel, more than ", kLaunchWords,
                           ": switch the pass fuse off"));
}

std::string head(const std::string& entry, int threads, int resident) {
  return cat("extern \"C\" __global__ void __launch_bounds__(", threads,
             resident > 0 ? cat(", ", resident) : "", ") ", entry,
             "(const __grid_constant__ tenon::cuda::Arguments a) {\n", kAwaitKernels);
}

/// Sweeps one after another, in one block where there are several.
PrintedLaunch launch_of(std::span<const Part> parts, const std::string& entry,
                        const std::string& title) {
  PrintedLaunch launch;
  launch.source.entry = entry;
  launch.threads = parts[0].threads;
  launch.blocks = parts.size() == 1 ? parts[0].blocks : 1;
  std::string code, members, calls;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    code += in_namespace(parts[k], k);
    members += cat("  part", k, "::Arguments part", k, ";\n");
    if (k != 0) calls += "  __syncthreads();\n";
    calls += cat("  tenon::cuda::part", k, "::sweep(a.part", k, ", ",
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
  check_size(launch.arguments, title);
  return launch;
}

struct Titled {
  Part part;
  std::string title;
};

/// Parts side by side, each with a range of blocks; equal ones are one function.
struct Side {
  std::string code, members;
  std::string calls;  // for block number `block`, `start` being 0
  std::vector<Part> functions;
  std::int64_t blocks = 0;
};

/// Adds arguments and tickets to the launch. The functions are numbered from `first` on.
Side side_by_side(std::span<const Titled> parts, std::size_t first, const std::string& block,
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
    side.members += cat("  part", g, "::Arguments part", g, "[", count, "];\n  long long end", g,
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
      launch.arguments.words.push_back(static_cast<std::uint64_t>(side.blocks));
    }
    side.calls +=
        cat("#pragma unroll 1\n  for (int k = 0; k < ", count,
            "; ++k) {\n    const unsigned end = static_cast<unsigned>(a.end", g, "[k]);\n    if (",
            block, " < end)\n      return tenon::cuda::part", g, "::sweep(a.part", g, "[k], ",
            block, " - start, end - start);\n    start = end;\n  }\n");
    side.functions.push_back(groups[k].first->part);
  }
  return side;
}

int least_resident(std::span<const Part> parts) {
  int resident = parts[0].resident;
  for (const Part& part : parts) resident = std::min(resident, part.resident);
  return resident;
}

/// Independent parts.
PrintedLaunch launch_together(std::span<const Titled> parts) {
  PrintedLaunch launch;
  launch.threads = kJoinedThreads;
  const Side side = side_by_side(parts, 0, "blockIdx.x", launch);
  launch.blocks = side.blocks;
  launch.source.entry = cat("together_", side.functions.size());
  launch.source.text =
      cat("// Regions that do not depend on one another.\n", includes_of(side.functions),
          "\nnamespace tenon::cuda {\n\n", side.code, "struct Arguments {\n", side.members,
          "};\n\n}  // namespace tenon::cuda\n\n",
          head(launch.source.entry, launch.threads, least_resident(side.functions)),
          "  unsigned start = 0;\n", side.calls, "}\n");
  return launch;
}

struct Phase {
  std::vector<Titled> parts;
  /// Whether it is one block's work.
  bool alone() const { return parts.size() == 1 && parts[0].part.blocks == 1; }
};

/// Phases one after another in one launch. A phase that is one block's work is done by the last
/// block of the phase before, while the others wait for it.
class PhasePrinter {
 public:
  explicit PhasePrinter(std::span<const Phase> phases) : phases_(phases) {
    for (const Phase& phase : phases) wide_.push_back(phase.alone() ? 0 : 1);
    one_block_ = std::count(wide_.begin(), wide_.end(), 1) == 0;
    wide_[0] = 1;
    launch_.threads = kJoinedThreads;
    launch_.blocks = 0;
    launch_.resident = std::count(wide_.begin(), wide_.end(), 1) > 1;
  }

  PrintedLaunch print() {
    for (std::size_t p = 0; p < phases_.size(); ++p) add_functions(p);
    if (!one_block_) add_gate();
    print_calls();
    launch_.source.entry = cat("phases_", phases_.size());
    launch_.source.effort = static_cast<int>(functions_.size()) / 2;
    launch_.source.text =
        cat("// Regions in phases, each of which waits for the one before.\n",
            includes_of(functions_), "#include \"cuda/kernels/phases.cuh\"\n",
            "\nnamespace tenon::cuda {\n\n", code_, "struct Arguments {\n", members_, "};\n\n",
            one_block_ ? "" : cat("__device__ Gate gates[", kGates, "];\n\n"), dispatch_,
            "}  // namespace tenon::cuda\n\n",
            head(launch_.source.entry, launch_.threads, least_resident(functions_)), calls_, "}\n");
    return std::move(launch_);
  }

 private:
  void add_functions(std::size_t p) {
    const Side side = side_by_side(phases_[p].parts, functions_.size(), "block", launch_);
    code_ += side.code;
    members_ += cat(side.members, "  long long blocks", p, ";\n");
    launch_.arguments.words.push_back(static_cast<std::uint64_t>(side.blocks));
    functions_.insert(functions_.end(), side.functions.begin(), side.functions.end());
    dispatch_ +=
        cat("__device__ __forceinline__ void phase", p,
            "(const Arguments& a, unsigned block) {\n  unsigned start = 0;\n", side.calls, "}\n\n");
    if (wide_[p] != 0) launch_.blocks = std::max(launch_.blocks, side.blocks);
  }

  void add_gate() {
    launch_.gate_word = static_cast<int>(launch_.arguments.words.size());
    launch_.arguments.words.push_back(0);
    members_ += "  long long gate;\n";
  }

  void print_calls() {
    std::size_t p = 0;
    for (int passes = 0; p < phases_.size(); ++passes) {
      calls_ += cat("  if (tenon::cuda::phase_runs(", passes, ")) {\n");
      print_loop(p++, "blockIdx.x", "gridDim.x");
      std::size_t next = p;
      while (next < phases_.size() && wide_[next] == 0) ++next;
      if (one_block_) {
        print_alone(p, next, true);
      } else if (next < phases_.size()) {
        calls_ += "    if (tenon::cuda::comes_last(&tenon::cuda::gates[a.gate])) {\n";
        print_alone(p, next, false);
        calls_ += "      tenon::cuda::open_gate(&tenon::cuda::gates[a.gate]);\n    }\n";
      } else if (next > p) {
        calls_ += "    if (tenon::cuda::ends_last(&tenon::cuda::gates[a.gate])) {\n";
        print_alone(p, next, false);
        calls_ += "    }\n";
      }
      calls_ += "  }\n";
      p = next;
    }
  }

  void print_alone(std::size_t from, std::size_t to, bool waits) {
    for (std::size_t p = from; p < to; ++p) {
      if (waits || p != from) calls_ += "    __syncthreads();\n";
      print_loop(p, "0", "1");
    }
  }

  void print_loop(std::size_t p, const char* first, const char* step) {
    calls_ += cat("    for (unsigned block = ", first, "; block < a.blocks", p, "; block += ", step,
                  ")\n      tenon::cuda::phase", p, "(a, block);\n");
  }

  std::span<const Phase> phases_;
  std::vector<char> wide_;
  bool one_block_ = false;
  PrintedLaunch launch_;
  std::vector<Part> functions_;
  std::string code_, members_, dispatch_, calls_;
};

/// Leaves launches without blocks out.
PrintedMap finished(std::vector<PrintedLaunch> launches) {
  PrintedMap out;
  for (PrintedLaunch& launch : launches)
    if (launch.blocks > 0) out.launches.push_back(std::move(launch));
  return out;
}

/// Adds the temporaries of a region to those of the map. Its arguments, which number them from the
/// program's values on, get their places.
void take_temporaries(PrintedMap& map, const Sweeps& sweeps, ArgumentBlock* arguments) {
  const auto taken = static_cast<ValueId>(map.temporaries.size());
  for (std::size_t v = sweeps.own_values; v < sweeps.values.size(); ++v)
    map.temporaries.push_back(map.workspace_bytes + sweeps.values[v].offset);
  map.workspace_bytes += sweeps.temporary_bytes;
  if (arguments == nullptr) return;
  for (auto& [word, value] : arguments->pointers)
    if (value >= static_cast<ValueId>(sweeps.own_values)) value += taken;
}

}  // namespace

PrintedMap print_map(const Region& region, std::span<const Value> values) {
  Sweeps sweeps = cut_into_sweeps(region.map, values);
  const bool one_block = sweeps.sweeps.size() > 1 && region.map.space.numel() <= kOneBlockElements;
  PartOptions options;
  if (one_block) options = {kOneBlockThreads, true};
  std::vector<Part> parts;
  std::vector<PrintedLaunch> launches;
  for (const Sweep& sweep : sweeps.sweeps) {
    parts.push_back(print_part(sweep, sweeps, options));
    if (!one_block)
      launches.push_back(
          launch_of({&parts.back(), 1}, entry_name(sweep_name(sweep), sweep.map), region.title));
  }
  if (one_block)
    launches.push_back(
        launch_of(parts, entry_name(sweep_name(sweeps.sweeps[0]), region.map), region.title));
  PrintedMap out = finished(std::move(launches));
  take_temporaries(out, sweeps, nullptr);
  return out;
}

bool can_join(const Region& region, std::span<const Value> values, std::string* why) {
  *why = "not a map";
  if (region.kind != RegionKind::Map) return false;
  Sweeps sweeps = cut_into_sweeps(region.map, values);
  *why = "takes several sweeps";
  if (sweeps.sweeps.size() != 1) return false;
  const Part part = print_part(sweeps.sweeps[0], sweeps, {kJoinedThreads, false});
  *why = "keeps long rows in wider blocks";
  if (part.threads != kJoinedThreads) return false;
  *why = "takes too many arguments";
  return part.arguments.words.size() <= kLaunchWords / 4;
}

namespace {

std::vector<ValueId> written_by(std::span<const Region> regions) {
  std::vector<ValueId> out;
  for (const Region& region : regions) {
    for (const MapStore& store : region.map.stores) out.push_back(store.view.value);
    for (const MapReduce& reduce : region.map.reduces) out.push_back(reduce.value);
  }
  return out;
}

/// The one part of a region that can join; its temporaries are the map's.
Part joined_part(const Region& region, std::span<const Value> values, const PartOptions& options,
                 PrintedMap& out) {
  std::string why;
  if (!can_join(region, values, &why))
    throw InternalError(cat(region.title, " cannot share a launch: it ", why));
  Sweeps sweeps = cut_into_sweeps(region.map, values);
  Part part = print_part(sweeps.sweeps[0], sweeps, options);
  if (part.blocks > 0) take_temporaries(out, sweeps, &part.arguments);
  return part;
}

/// Phases without parts that have something to do are left out.
std::vector<Phase> phases_of(std::span<const Region> regions, std::span<const Value> values,
                             PrintedMap& out) {
  const std::vector<ValueId> written = written_by(regions);
  std::map<int, Phase> by_number;
  for (const Region& region : regions) {
    Part part = joined_part(region, values, {kJoinedThreads, false, written}, out);
    if (part.blocks > 0) by_number[region.phase].parts.push_back({std::move(part), region.title});
  }
  std::vector<Phase> phases;
  phases.reserve(by_number.size());
  for (auto& [number, phase] : by_number) phases.push_back(std::move(phase));
  return phases;
}

PrintedMap print_phases(std::span<const Region> regions, std::span<const Value> values) {
  PrintedMap out;
  const std::vector<Phase> phases = phases_of(regions, values, out);
  if (phases.empty()) return out;
  out.launches.push_back(PhasePrinter(phases).print());
  check_size(out.launches[0].arguments, regions[0].title);
  return out;
}

}  // namespace

PrintedMap print_together(std::span<const Region> regions, std::span<const Value> values) {
  if (regions.size() == 1) return print_map(regions[0], values);
  if (std::any_of(regions.begin(), regions.end(),
                  [&](const Region& region) { return region.phase != regions[0].phase; }))
    return print_phases(regions, values);
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
  for (const Region& region : regions) {
    Part part = joined_part(region, values, {kJoinedThreads, false}, out);
    if (part.blocks == 0) continue;
    const std::size_t more = part.arguments.words.size() + 1;
    if (words + more > kLaunchWords || tickets + part.tickets > kTickets) flush();
    words += more;
    tickets += part.tickets;
    parts.push_back({std::move(part), region.title});
  }
  flush();
  out.launches = finished(std::move(launches)).launches;
  return out;
}

PhaseSizes sizes_of(std::span<const Region> regions, std::span<const Value> values) {
  PrintedMap unused;
  PhaseSizes sizes;
  std::int64_t tickets = 0;
  const std::vector<Phase> phases = phases_of(regions, values, unused);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    for (const Titled& one : phases[p].parts) {
      sizes.words += one.part.arguments.words.size() + 1;
      tickets += one.part.tickets;
    }
    sizes.alone.push_back(phases[p].alone());
  }
  sizes.words += phases.size() + 1;
  std::set<ValueId> touched;
  for (const Region& region : regions) {
    touched.insert(region.reads.begin(), region.reads.end());
    touched.insert(region.writes.begin(), region.writes.end());
  }
  for (const ValueId id : touched) sizes.bytes += values[static_cast<std::size_t>(id)].bytes;
  sizes.fits = sizes.words <= kLaunchWords && tickets <= kTickets;
  return sizes;
}

}  // namespace tenon::cuda
