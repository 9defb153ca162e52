// Prints the instructions of a map program: offsets of elements, loads, and the statements that
// compute one element.
//
// The printers of whole kernels decide the order of loads and the number of elements per thread.
// They pass the names of coordinates as text.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cuda/engines/maps/loop_nests.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

/// Sizes of the iteration space and the names of its coordinates ("column"), outermost first.
struct Coordinates {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  int rank() const { return static_cast<int>(sizes.size()); }
};

/// How a view's offset depends on the innermost coordinate.
enum class InnerStep : std::uint8_t { None, One, Other };

class InstrPrinter {
 public:
  /// `prefix` precedes members of the argument struct ("a."); `index` is the type of offsets.
  InstrPrinter(const MapProgram& map, const ValueTable& values, Coordinates coordinates,
               Arguments& arguments, std::string prefix, std::string index);

  /// The member that points to a value.
  std::string pointer(ValueId value);
  /// The view's offset as an expression, without the last axis if `inner` is false; "0" if there is
  /// no offset. Strides become arguments; equal strides share one.
  std::string offset(const View& view, bool inner);
  InnerStep inner_step(const View& view) const;
  /// The stride along the last axis, as an expression.
  std::string inner_stride(const View& view);
  /// The largest power of two up to 8 that divides the offset and every stride except the last
  /// axis's; smaller where a larger one does not matter.
  int alignment(const View& view) const;
  /// The most neighbours that a thread has. Finer patterns of alignment would only create more
  /// sources.
  void limit_alignment(int elements) { widest_ = elements; }
  /// From now on, values that the program does not write are loaded as constant memory. Nothing
  /// else in the launch may write these values; `written_by_others` lists the exceptions.
  void allow_constant_loads(std::span<const ValueId> written_by_others) {
    constant_loads_ = true;
    changing_.insert(written_by_others.begin(), written_by_others.end());
  }
  /// "load" or "load_constant".
  std::string load_function(const View& view) const;
  /// Pointer plus offset.
  std::string address(const View& view, bool inner);

  /// Sets the expression of an instruction's result from now on.
  void set(int instr, std::string expression) {
    if (expression != get(instr)) stored_[at(instr)].clear();
    expressions_[at(instr)] = std::move(expression);
  }
  const std::string& get(int instr) const { return expressions_[at(instr)]; }
  /// The expression for a store, which rounds: a value that the store rounds need not be rounded
  /// before.
  const std::string& get_stored(int instr) const {
    return stored_[at(instr)].empty() ? get(instr) : stored_[at(instr)];
  }
  /// The unrounded expression of an instruction whose rounded expression is set.
  void set_stored(int instr, std::string expression) { stored_[at(instr)] = std::move(expression); }
  bool is_set(int instr) const { return !expressions_[at(instr)].empty(); }
  void forget(int instr) { expressions_[at(instr)].clear(); }

  /// Sets the expressions of Number instructions: members, or the literal 0.
  void set_numbers();
  /// Declares and loads a Load's values for N neighbours along the last axis: x4[N], or one x4 for
  /// all. Sets the expression for neighbour i.
  void load_row(CodeWriter& out, int instr);
  /// The same as a member of a struct with a parameter N, and the statements that load it into an
  /// object named `held`, so that loads can start long before they are used. `packs`: 16-bit
  /// numbers and masks stay as stored until then.
  void hold_row(CodeWriter& members, CodeWriter& loads, int instr, bool packs = false);
  /// Bytes of an element that hold_row packs; 0 if it does not pack.
  int packed_bytes(const View& view) const;
  /// Stores y0[N], the N results of store 0.
  void save_row(CodeWriter& out, std::size_t store);
  /// "const float t4 = …;" for a Compute, whose arguments are set; sets it.
  std::string compute(int instr);
  /// The coordinate's function as the instruction's dtype; `step` is added to the last coordinate.
  std::string affine(int instr, const std::string& step);
  /// True if an instruction's value is the last coordinate itself, as int32.
  bool is_column(int instr) const;
  /// "const RandomDraw r4 = …;"
  std::string random_draw(int instr);
  /// The random number of the element at a position, from a block that holds it.
  std::string random_element(int instr, const std::string& block, const std::string& word) const;
  /// Names of registers: the result of an instruction, or a row of loaded elements.
  static std::string name(char kind, int instr);
  const char* type(int instr) const { return compute_type(map_.instrs[at(instr)].dtype); }
  /// Include lines for the functions that the program uses, then the definitions of own functions.
  std::string includes() const;
  const MapProgram& map() const { return map_; }
  const std::string& index_type() const { return index_; }

 private:
  void find_near();
  void find_only_rounded();
  /// A cheaper form of the function that is accurate enough here; empty: use the function itself.
  std::string cheaper(int instr, const std::vector<std::string>& args) const;
  bool is_last_coordinate(const MapInstr& instr) const;
  /// True if the instruction's value is a coordinate as int.
  bool is_coordinate(const MapInstr& instr) const;
  /// The name of a view's strides; equal strides share a name.
  const std::string& layout(const View& view);
  std::int64_t stride(const View& view, int axis) const;
  std::string member(const std::string& name, std::int64_t value, const std::string& type);
  std::string sum(const View& view, int axes, const std::string& type, const std::string& step);

  const MapProgram& map_;
  ValueTable values_;
  Coordinates coordinates_;
  Arguments& arguments_;
  std::string prefix_, index_;
  bool constant_loads_ = false;
  std::int64_t widest_ = 8;
  std::vector<std::string> expressions_, stored_;
  std::vector<std::string> coordinate_;  // as int, of instructions that are one
  std::vector<bool> near_;               // computed from numbers that were rounded to 16 bits
  std::vector<bool> only_rounded_;       // only rounded to 16 bits, after products at most
  std::set<ValueId> written_, changing_;
  std::map<ValueId, std::string> pointers_;
  std::map<std::vector<std::int64_t>, std::string> layouts_;
};

}  // namespace tenon::cuda
