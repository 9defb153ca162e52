// Kernels as device code: a struct of arguments and a function that one or more blocks call. Whole
// kernels are put together from such parts in map_kernel.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/engines/maps/loop_nests.h"
#include "cuda/engines/maps/map_layout.h"
#include "cuda/engines/maps/print_instrs.h"

namespace tenon::cuda {

/// `code` defines struct Arguments and
///   __device__ void nest(const Arguments& a, unsigned block, unsigned blocks)
/// for blocks of `threads` threads, all of which must call it; any number of blocks gives the same
/// bits. Where several blocks work on one result they count in `tickets` variables of the module,
/// from the one on whose number stands in argument word `ticket_word`: launches that may run side
/// by side must have different ones.
struct Part {
  std::string code, includes;
  ArgumentBlock arguments;
  int threads = 256;
  // Blocks that a multiprocessor should at least hold, 0: whatever the compiler finds. It schedules
  // for as many as possible unless told, and then spares registers that loads under way need.
  int resident = 0;
  std::int64_t shared_bytes = 0;  // of dynamic shared memory
  std::int64_t blocks = 1;        // as many as are worth while
  std::int64_t tickets = 0;
  int ticket_word = 0;
};

inline constexpr std::int64_t kTickets = 16384;  // of a module
inline constexpr std::int64_t kArrivals = 1024;  // likewise

/// How a part is meant to run: `threads` a block, or alone in one block with other parts after it.
struct PartOptions {
  int threads = 256;
  bool one_block = false;
  std::span<const ValueId> written = {};  // by other parts of the launch, earlier or later
  // A row that every block of the launch makes for itself: what it comes to is stored by all of
  // them, what becomes of its elements, in the last pass over them, by the first alone.
  bool by_all = false;
  // Of a kernel over columns: what the block that has a result makes of it (made_of_columns).
  const MapProgram* then = nullptr;
  std::int64_t shared_bytes = 0;  // that a block may ask for
};

Part print_part(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_elements(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_rows(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
Part print_columns(const LoopNest& nest, LoopNests& nests, const PartOptions& options);
/// Of one element of a vector: `code` defines
///   Held<N> hold<N>(const Arguments& a, Index c0)
///   void finish<N>(const Arguments& a, Index c0, const Held<N>& held, float given0, ...)
/// where the elements of `given` are the caller's.
Part print_results(const MapProgram& map, std::span<const ValueId> given, const ValueTable& values);

// ---- For the printers of parts

/// Adds the words of another struct, which is the last member.
void append(ArgumentBlock& to, const ArgumentBlock& from);

/// Neighbours along the last axis that one thread handles with wide accesses: 1, 2, 4 or 8.
/// `divides`: their number must divide the last axis.
int vector_width(const MapProgram& map, const ValueTable& values, bool divides);

/// Names c0, c1, … for the coordinates.
Coordinates coordinates_of(const MapProgram& map);
/// Prints "const Index c1 = …" for `axes`, whose coordinates number `linear` counts in row-major
/// order; the last axis of the space is counted in steps of `wide`.
void print_coordinates(CodeWriter& out, Arguments& arguments, const MapProgram& map,
                       const std::string& linear, const std::vector<int>& axes, int wide);
std::vector<int> axes_where(const MapProgram& map, std::uint32_t mask, bool in_mask);
std::int64_t size_of(const MapProgram& map, const std::vector<int>& axes);

/// The statements that compute N neighbours along the last axis, N being a constant of the printed
/// function.
class ElementPrinter {
 public:
  ElementPrinter(InstrPrinter& printer, const MapProgram& map);
  /// Loads and everything that is the same for the N neighbours. `position`: of the first one in
  /// the space, for random numbers.
  void before(CodeWriter& out, const std::string& position);
  /// The same after loads that the caller prints.
  void prepare(CodeWriter& out, const std::string& position);
  /// Instructions that vary along the last axis, for neighbour i.
  void inside(CodeWriter& out);
  bool uses_position() const { return uses_position_; }

 private:
  InstrPrinter& printer_;
  const MapProgram& map_;
  std::vector<Level> levels_;
  bool uses_position_ = false;
};

}  // namespace tenon::cuda
