// The parts of the reference engine: arrays of double or int64 that carry a dtype, and the three
// kinds of region over them.
//
// This code is written to be obviously correct: whole arrays, one instruction at a time, sums in
// double, no threads. Speed does not matter here. Every result is rounded to the dtype that the
// region states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/program/engine.h"

namespace tenon::cpu::reference {

/// Elements of one dtype in row-major order, all representable in the dtype: floating-point ones in
/// `real`, integers and bools in `whole`.
struct Array {
  DType dtype = DType::Float32;
  std::vector<double> real;
  std::vector<std::int64_t> whole;

  Array() = default;
  Array(DType type, std::int64_t count);
  bool floating() const { return is_floating(dtype); }
  std::int64_t size() const;
  /// The element as a number of the other kind; floating-point values out of range follow
  /// to_whole().
  double real_at(std::int64_t i) const;
  std::int64_t whole_at(std::int64_t i) const;
  /// Stores a number, rounded or wrapped to dtype.
  void set(std::int64_t i, double value);
  void set(std::int64_t i, std::int64_t value);
  void set(std::int64_t i, const Scalar& value);
};

/// Sets element i of `out` to element j of `from`.
void copy_element(Array& out, std::int64_t i, const Array& from, std::int64_t j);

/// The value nearest in dtype (floating), or wrapped to its width (integers); bool is value != 0.
double round_to(DType dtype, double value);
std::int64_t wrap_to(DType dtype, std::int64_t value);
/// Truncates; NaN gives 0, and values beyond int64 give its nearest limit.
std::int64_t to_whole(double value);

/// Calls f(position, offset) for the elements of `space` in row-major order; offset is the view's,
/// in elements.
template <class F>
void for_each(const Shape& space, const View& view, F&& f) {
  std::int64_t coordinate[kMaxRank] = {}, offset = view.offset;
  const std::int64_t count = space.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    f(i, offset);
    for (int d = space.rank() - 1; d >= 0; --d) {
      offset += view.stride[d];
      if (++coordinate[d] < space[d]) break;
      offset -= view.stride[d] * space[d];
      coordinate[d] = 0;
    }
  }
}

/// The view of a contiguous value of this shape.
View contiguous(const Shape& shape, ValueId id = kNoValue);

/// Elements of `space` as `view` reads them from memory of `dtype`.
Array read(const std::byte* data, DType dtype, const Shape& space, const View& view);
/// A whole contiguous value.
Array read(const Binding& binding, std::span<const Value> values, ValueId id);
void write(const Array& array, std::byte* data, const Shape& space, const View& view);
void write(const Array& array, const Binding& binding, std::span<const Value> values, ValueId id);
/// Converts as Op::Cast does.
Array convert(const Array& array, DType dtype);

/// One element-wise instruction over `count` elements. An argument with fewer elements has one
/// value per row. compute_own() is for Op::OwnElement.
Array compute_own(const ElementCode& code, std::span<const Array* const> args, std::int64_t count);
Array compute(Op op, DType dtype, std::span<const Array* const> args, std::int64_t count);

/// Reduces by Sum, Prod, Max, Min, ArgMax or ArgMin. Elements are added in ascending order of i.
class Reducer {
 public:
  Reducer(Op op, DType dtype, std::int64_t results);
  /// `position` is the result of ArgMax and ArgMin.
  void add(std::int64_t result, const Array& array, std::int64_t i, std::int64_t position);
  Array finish() const;

 private:
  void add_real(std::size_t r, double value, std::int64_t position);
  void add_whole(std::size_t r, std::int64_t value, std::int64_t position);
  Op op_;
  DType dtype_;
  std::vector<double> real_;
  std::vector<std::int64_t> whole_;
  std::vector<std::int64_t> position_;
  std::vector<bool> seen_;
};

/// Philox numbers of an Op::Random with these attributes; `state` is its (seed, counter).
Array random(const RandomAttrs& attrs, DType dtype, const std::int64_t* state, std::int64_t count);

/// Runs a map program; `accumulator` is the contraction's result, for epilogues.
void run_map(const MapProgram& map, std::span<const Value> values, const Binding& binding,
             const Array* accumulator);
/// The last instruction of a prologue over its whole space; `operand`: the input of the prologue.
Array run_prologue(const MapProgram& map, std::span<const Value> values, const Binding& binding,
                   const Array& operand);
void run_contraction(const Region& region, std::span<const Value> values, const Binding& binding);
/// Movement, pooling, softmax: all other ops reach engines in map regions and contractions.
bool knows_opaque(Op op);
void run_opaque(const Region& region, std::span<const Value> values, const Binding& binding);

/// Attention and its gradients.
void run_attention(const Opaque& o, std::span<const Value> values, const Binding& binding);

Array pool(Op op, const PoolAttrs& attrs, std::span<const Array> inputs,
           std::span<const Shape> shapes, const Shape& out_shape);

}  // namespace tenon::cpu::reference
