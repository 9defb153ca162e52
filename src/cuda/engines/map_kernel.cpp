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
             "(const __grid_constant__ tenon::cuda::Arguments a) {\n");
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

/// Independent parts side by side, each with a range of blocks; equal ones are one function.
PrintedLaunch launch_together(std::span<const Titled> parts) {
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
  PrintedLaunch launch;
  launch.threads = kJoinedThreads;
  launch.blocks = 0;
  launch.source.entry = cat("together_", groups.size());
  std::string code, members, calls;
  std::vector<Part> functions;
  int resident = groups[0].first->part.resident;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t count = groups[g].members.size();
    code += cat("// ", groups[g].first->title, "\n", in_namespace(groups[g].first->part, g));
    members += cat("  part", g, "::Arguments part", g, "[", count, "];\n  long long end", g, "[",
                   count, "];\n");
    for (const Part* part : groups[g].members) {
      if (part->tickets > 0)
        launch.first_tickets.push_back(
            {static_cast<int>(launch.arguments.words.size()) + part->ticket_word, launch.tickets});
      launch.tickets += part->tickets;
      append(launch.arguments, part->arguments);
    }
    for (const Part* part : groups[g].members) {
      launch.blocks += part->blocks;
      launch.arguments.words.push_back(static_cast<std::uint64_t>(launch.blocks));
    }
    calls +=
        cat("#pragma unroll 1\n  for (int k = 0; k < ", count,
            "; ++k) {\n    const unsigned end = static_cast<unsigned>(a.end", g,
            "[k]);\n    if (blockIdx.x < end)\n      return tenon::cuda::part", g, "::sweep(a.part",
            g, "[k], blockIdx.x - start, end - start);\n    start = end;\n  }\n");
    functions.push_back(groups[g].first->part);
    resident = std::min(resident, functions.back().resident);
  }
  launch.source.text = cat("// Regions that do not depend on one another.\n",
                           includes_of(functions), "\nnamespace tenon::cuda {\n\n", code,
                           "struct Arguments {\n", members, "};\n\n}  // namespace tenon::cuda\n\n",
                           head(launch.source.entry, launch.threads, resident),
                           "  unsigned start = 0;\n", calls, "}\n");
  return launch;
}

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

PrintedMap print_together(std::span<const Region> regions, std::span<const Value> values) {
  if (regions.size() == 1) return print_map(regions[0], values);
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
    std::string why;
    if (!can_join(region, values, &why))
      throw InternalError(cat(region.title, " cannot share a launch: it ", why));
    Sweeps sweeps = cut_into_sweeps(region.map, values);
    Part part = print_part(sweeps.sweeps[0], sweeps, {kJoinedThreads, false});
    if (part.blocks == 0) continue;
    const std::size_t more = part.arguments.words.size() + 1;
    if (words + more > kLaunchWords || tickets + part.tickets > kTickets) flush();
    words += more;
    tickets += part.tickets;
    take_temporaries(out, sweeps, &part.arguments);
    parts.push_back({std::move(part), region.title});
  }
  flush();
  out.launches = finished(std::move(launches)).launches;
  return out;
}

}  // namespace tenon::cuda
