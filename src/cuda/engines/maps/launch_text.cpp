// Prints whole kernels from their parts.
#include "cuda/engines/maps/launch_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "graph/element_code.h"

namespace tenon::cuda {

namespace {

constexpr std::size_t kFewParts = 8;  // more parts of one text are found by a search

/// Include lines and the definitions of own functions, each once.
std::string includes_of(std::span<const Part> parts) {
  std::set<std::string> lines, definitions;
  for (const Part& part : parts) {
    std::istringstream stream(part.includes);
    std::string definition;
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with("#include")) {
        lines.insert(line);
        continue;
      }
      definition += line + '\n';
      if (line == kDefinitionEnd) definitions.insert(std::exchange(definition, {}));
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  for (const std::string& definition : definitions) text += definition;
  return text;
}

std::string in_namespace(const Part& part, std::size_t number) {
  return cat("namespace part", number, " {\n\n", part.code, "\n}  // namespace part", number,
             "\n\n");
}

std::string head(const std::string& entry, int threads, int resident) {
  return cat("extern \"C\" __global__ void __launch_bounds__(", threads,
             resident > 0 ? cat(", ", resident) : "", ") ", entry,
             "(const __grid_constant__ tenon::cuda::Arguments a) {\n", kAwaitKernels);
}

/// Parts in one launch, each with a range of blocks; equal parts share one function.
struct Side {
  std::string code, members;
  // Without phases, `start` is 0: the calls for one block, of which the one that has work returns.
  // In phases: the block's work in every part, from number `block` on in steps of `step`.
  std::string calls;
  bool searches = false;  // whether the calls search, with a function of phases.cuh
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

class PhasePrinter {
 public:
  explicit PhasePrinter(const Phases& all)
      : form_(all.form), phases_(all.phases), wide_(all.form.wide()) {
    launch_.threads = kJoinedThreads;
    launch_.resident = form_.repeats_first_phase;
  }

  PrintedLaunch print() {
    for (std::size_t p = 0; p < phases_.size(); ++p) add_functions(p);
    const bool ends = form_.ends_last();
    if (form_.repeats_first_phase) {
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
            "#include \"cuda/kernels/maps/phases.cuh\"\n", "\nnamespace tenon::cuda {\n\n", code_,
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

}  // namespace

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

void check_size(const ArgumentBlock& arguments, std::size_t most, const std::string& title) {
  if (arguments.words.size() > most)
    throw NotSupported(cat("the fused region ", title, " takes ", arguments.words.size(),
                           " arguments as one device kernel, more than ", most,
                           ": switch the pass fuse off"));
}

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

PrintedLaunch launch_together(std::span<const Titled> parts) {
  PrintedLaunch launch;
  launch.threads = kJoinedThreads;
  const Side side = side_by_side(parts, 0, false, launch);
  launch.blocks = side.blocks;
  launch.source.entry = cat("together_", side.functions.size());
  launch.source.text =
      cat("// Regions that do not depend on one another.\n", includes_of(side.functions),
          side.searches ? "#include \"cuda/kernels/maps/phases.cuh\"\n" : "",
          "\nnamespace tenon::cuda {\n\n", side.code, "struct Arguments {\n", side.members,
          "};\n\n}  // namespace tenon::cuda\n\n",
          head(launch.source.entry, launch.threads, least_resident(side.functions)),
          "  unsigned start = 0;\n", side.calls, "}\n");
  return launch;
}

PrintedLaunch launch_in_phases(const Phases& phases) { return PhasePrinter(phases).print(); }

}  // namespace tenon::cuda
