// Printing the instructions of a map program: where elements lie (offsets), how they are loaded,
// and the statements that compute one element.
//
// The printers of whole kernels decide what is loaded when, and how many elements a thread has; the
// words that they use for coordinates come in as text.
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

/// Sizes of the space and the words for its coordinates ("column"), outermost first.
struct Coordinates {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  int rank() const { return static_cast<int>(sizes.size()); }
};

/// How a view's offset depends on the innermost coordinate.
enum class InnerStep : std::uint8_t { None, One, Other };

class InstrPrinter {
 public:
  /// `prefix` stands before members of the argument struct ("a."); `index` is the type of offsets.
  InstrPrinter(const MapProgram& map, const ValueTable& values, Coordinates coordinates,
               Arguments& arguments, std::string prefix, std::string index);

  /// The member that points to a value.
  std::string pointer(ValueId value);
  /// The view's offset as an expression, without the last axis when `inner` is false; "0" when it
  /// is none. Strides become arguments; equal ones are one.
  std::string offset(const View& view, bool inner);
  InnerStep inner_step(const View& view) const;
  /// The stride along the last axis, as an expression.
  std::string inner_stride(const View& view);
  /// Largest power of two up to 8 that divides the offset and every stride but the last axis', or
  /// less where it does not matter.
  int alignment(const View& view) const;
  /// No thread has more neighbours than that: finer patterns of alignment would only give more
  /// texts.
  void limit_alignment(int elements) { widest_ = elements; }
  /// From now on, values that the program does not write are loaded as constant memory: nothing
  /// else in the launch may write them, but for those that are named.
  void allow_constant_loads(std::span<const ValueId> written_by_others) {
    constant_loads_ = true;
    changing_.insert(written_by_others.begin(), written_by_others.end());
  }
  /// "load" or "load_constant".
  std::string load_function(const View& view) const;
  /// Pointer plus offset.
  std::string address(const View& view, bool inner);

  /// The expression that stands for an instruction's result from now on.
  void set(int instr, std::string expression) {
    if (expression != get(instr)) stored_[at(instr)].clear();
    expressions_[at(instr)] = std::move(expression);
  }
  const std::string& get(int instr) const { return expressions_[at(instr)]; }
  /// The same for a store, which rounds: what is rounded once need not be rounded before.
  const std::string& get_stored(int instr) const {
    return stored_[at(instr)].empty() ? get(instr) : stored_[at(instr)];
  }
  /// What an instruction, whose expression is set, rounds to its dtype.
  void set_stored(int instr, std::string expression) { stored_[at(instr)] = std::move(expression); }
  bool is_set(int instr) const { return !expressions_[at(instr)].empty(); }
  void forget(int instr) { expressions_[at(instr)].clear(); }

  /// Sets expressions of Number instructions; they are members, or 0 itself.
  void set_numbers();
  /// Declares and loads what a Load gives to N neighbours along the last axis: x4[N], or one x4 for
  /// all; sets it for neighbour i.
  void load_row(CodeWriter& out, int instr);
  /// The same as a member of a struct with a parameter N, and the statements that load it into one
  /// named `held`: so loads can be under way long before they are used. `packs`: numbers of 16 bits
  /// and masks stay as they lie in memory until then.
  void hold_row(CodeWriter& members, CodeWriter& loads, int instr, bool packs = false);
  /// Bytes of an element that hold_row packs there; 0: it does not.
  int packed_bytes(const View& view) const;
  /// Stores y0[N], the N results of store 0.
  void save_row(CodeWriter& out, std::size_t store);
  /// "const float t4 = …;" for a Compute, whose arguments are set; sets it.
  std::string compute(int instr);
  /// The coordinate's function as the instruction's dtype; `step` is added to the last coordinate.
  std::string affine(int instr, const std::string& step);
  /// Whether an instruction gives the last coordinate itself, as int32.
  bool is_column(int instr) const;
  /// "const RandomDraw r4 = …;"
  std::string random_draw(int instr);
  /// The number of the element at a position, from a block that holds it.
  std::string random_element(int instr, const std::string& block, const std::string& word) const;
  /// Names of registers: of the result of an instruction, of a row of loaded elements.
  static std::string name(char kind, int instr);
  const char* type(int instr) const { return compute_type(map_.instrs[at(instr)].dtype); }
  /// Include lines for the functions that the program uses.
  std::string includes() const;
  const MapProgram& map() const { return map_; }
  const std::string& index_type() const { return index_; }

 private:
  void find_near();
  void find_only_rounded();
  /// A function by a cheaper way that serves here; empty: by its own.
  std::string cheaper(int instr, const std::vector<std::string>& args) const;
  bool is_last_coordinate(const MapInstr& instr) const;
  /// Whether the instruction gives that as int.
  bool is_coordinate(const MapInstr& instr) const;
  /// The name of a view's strides, the same for equal ones.
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
  std::vector<bool> near_;               // what is computed of numbers that were rounded to 16 bits
  std::vector<bool> only_rounded_;       // what is rounded to 16 bits, after products at most
  std::set<ValueId> written_, changing_;
  std::map<ValueId, std::string> pointers_;
  std::map<std::vector<std::int64_t>, std::string> layouts_;
};

}  // namespace tenon::cuda
