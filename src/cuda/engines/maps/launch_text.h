// The text of whole kernels: parts in one block, next to one another, or in phases. Each part is in
// its own namespace: part0, part1, … The arguments of the parts are members of one struct that the
// launch passes by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/engines/maps/print_loop_nest.h"
#include "cuda/jit/jit.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

constexpr int kJoinedThreads = 256;  ///< of a block that parts share

/// One launch: the source and the launch parameters.
struct PrintedLaunch {
  Source source;
  ArgumentBlock arguments;
  int threads = 256;
  std::int64_t shared_bytes = 0;  // of dynamic shared memory
  std::int64_t blocks = 1;
  // The tickets that the launch counts in, and the words for the number of each part's first
  // ticket.
  std::int64_t tickets = 0;
  bool resident = false;  // whether no more blocks are launched than the GPU holds at once
  int arrival_word = -1;  // for the number of the counter of blocks that have ended, or -1
  struct FirstTicket {
    int word;
    std::int64_t number;  // of the part's first ticket, among the launch's tickets
  };
  std::vector<FirstTicket> first_tickets;
};

/// A part and the title of its region, for comments in the text.
struct Titled {
  Part part;
  std::string title;
};

/// Phases of one launch in which no block waits for another. First every block computes a row for
/// itself (`repeats_first_phase`), then many blocks work, then the last block to finish does the
/// rest. If there is no work for many blocks, one block does everything.
struct PhaseForm {
  std::vector<bool> alone;           // by phase with work: whether one block does all of it
  bool repeats_first_phase = false;  // every block computes the first phase for itself

  /// The phase in which many blocks may work.
  std::size_t wide() const { return repeats_first_phase ? 1 : 0; }
  bool ends_last() const { return wide() + 1 < alone.size() && !alone[wide()]; }
  /// True if no block has to wait for another.
  bool never_waits() const {
    for (std::size_t p = wide() + 1; p < alone.size(); ++p)
      if (!alone[p]) return false;
    return true;
  }
};

struct Phases {
  PhaseForm form;
  std::vector<std::vector<Titled>> phases;
};

/// "rows_max_sub_exp": the name that a profiler shows.
std::string entry_name(const char* kind, const MapProgram& map);

/// Throws NotSupported if the arguments are more than `most` words.
void check_size(const ArgumentBlock& arguments, std::size_t most, const std::string& title);

/// Parts one after another; several parts run in one block.
PrintedLaunch launch_of(std::span<const Part> parts, const std::string& entry,
                        const std::string& title, std::size_t most_words);

/// Independent parts in one launch, each with a range of blocks.
PrintedLaunch launch_together(std::span<const Titled> parts);

/// Parts in phases in one launch.
PrintedLaunch launch_in_phases(const Phases& phases);

}  // namespace tenon::cuda
