// Loop nests as device code: a struct of arguments and a function that one or more blocks call.
// map_kernel assembles whole kernels from these parts.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/engines/maps/loop_nests.h"
#include "cuda/engines/maps/map_layout.h"
#include "cuda/engines/maps/print_instrs.h"

namespace tenon::cuda {

/// `code` defines struct Arguments and
///   __device__ void nest(const Arguments& a, unsigned block, unsigned blocks)
/// for blocks of `threads` threads, all of which must call it. The bits do not depend on the number
/// of blocks. Blocks that work on one result count in `tickets` variables of the module; argument
/// word `ticket_word` holds the number of the first. Launches that may run concurrently must have
/// different tickets.
struct Part {
  std::string code, includes;
  ArgumentBlock arguments;
  int threads = 256;
  // Least number of blocks that a multiprocessor should hold; 0: the compiler decides. Without a
  // number the compiler schedules for as many blocks as possible, and then saves registers that
  // loads in flight need.
  int resident = 0;
  std::int64_t shared_bytes = 0;  // of dynamic shared memory
  std::int64_t blocks = 1;        // as many as are worth while
  std::int64_t tickets = 0;
  int ticket_word = 0;
};

inline constexpr std::int64_t kTickets = 16384;  // of a module
inline constexpr std::int64_t kArrivals = 1024;  // likewise

/// How a part runs: with `threads` threads a block, or in a single block with other parts after it.
struct PartOptions {
  int threads = 256;
  bool one_block = false;
  std::span<const ValueId> written = {};  // by other parts of the launch, earlier or later
  // A row that every block of the launch computes for itself. All blocks store the row's results;
  // only the first block stores the values computed from its elements in the last pass.
  bool in_every_block = false;
  // For a kernel over columns: the program that the block with a result applies to it
  // (merge_column_results).
  const MapProgram* then = nullptr;
  std::int64_t shared_bytes = 0;  // that a block may ask for
};

Part print_part(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_elements(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_rows(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_columns(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
/// For one element of a vector; `code` defines
///   Held<N> hold<N>(const Arguments& a, Index c0)
///   void finish<N>(const Arguments& a, Index c0, const Held<N>& held, float given0, ...)
/// where the caller passes the elements of `given`.
Part print_results(const MapProgram& map, std::span<const ValueId> given, const ValueTable& values);

// ---- For the printers of parts -----------------------------------------------------------------

/// Adds the words of another struct, which is the last member.
void append(ArgumentBlock& to, const ArgumentBlock& from);

/// Number of neighbours along the last axis that a thread handles with vector accesses: 1, 2, 4 or
/// 8. `divides`: it must divide the length of the last axis.
int vector_width(const MapProgram& map, const ValueTable& values, bool divides);

/// Names c0, c1, … for the coordinates.
Coordinates coordinates_of(const MapProgram& map);
/// Prints "const Index c1 = …" for `axes`. `linear` counts their coordinates in row-major order;
/// the last axis of the iteration space is counted in steps of `wide`.
void print_coordinates(CodeWriter& out, Arguments& arguments, const MapProgram& map,
                       const std::string& linear, const std::vector<int>& axes, int wide);
std::vector<int> axes_where(const MapProgram& map, std::uint32_t mask, bool in_mask);
std::int64_t size_of(const MapProgram& map, const std::vector<int>& axes);

/// The statements that compute N neighbours along the last axis; N is a constant of the printed
/// function.
class ElementPrinter {
 public:
  ElementPrinter(InstrPrinter& printer, const MapProgram& map);
  /// Prints the loads and everything that is the same for the N neighbours. `position`: the index
  /// of the first neighbour in the iteration space, for random numbers.
  void before(CodeWriter& out, const std::string& position);
  /// The same without the loads, which the caller prints.
  void prepare(CodeWriter& out, const std::string& position);
  /// Prints the instructions that vary along the last axis, for neighbour i.
  void inside(CodeWriter& out);
  bool uses_position() const { return uses_position_; }

 private:
  InstrPrinter& printer_;
  const MapProgram& map_;
  std::vector<Level> levels_;
  bool uses_position_ = false;
};

}  // namespace tenon::cuda
