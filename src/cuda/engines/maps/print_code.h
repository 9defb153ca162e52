// Building blocks of generated CUDA C++: element types, functions of ops, and the arguments that a
// kernel takes as 8-byte words.
//
// The source depends on patterns only. Sizes, strides and numbers become arguments.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/index.h"
#include "cuda/engines/maps/print_map.h"

namespace tenon::cuda {

/// The type of an element in registers ("float") and in memory ("BF16").
const char* compute_type(DType dtype);
const char* memory_type(DType dtype);
/// "Kind::BFloat16": the stored type of a contraction's operand, for gemm_stage.cuh and
/// conv_patch.cuh.
const char* stored_kind(DType dtype);
/// "0.0f" and similar literals.
std::string zero_of(DType dtype);
/// True if a register's number may be one that memory of this dtype cannot hold.
bool needs_rounding(DType dtype);
/// True for bfloat16 and float16.
bool is_16_bit_float(DType dtype);

/// An expression for a Compute instruction; `args` are expressions of its arguments, whose dtypes
/// are `from`. The result is rounded or wrapped to the instruction's dtype.
std::string print_compute(const MapInstr& instr, std::span<const std::string> args,
                          std::span<const DType> from);
/// `expression` of one dtype converted to another, as Op::Cast does.
std::string print_cast(const std::string& expression, DType from, DType to);
/// Approximate number of instructions of an element-wise op per element.
double element_work(Op op);
/// The word that holds a Number: its value as the dtype's compute type.
std::uint64_t number_word(DType dtype, Scalar number);
/// Multiplier and shift of cuda/kernels/maps/map.cuh's Divider; 1 <= divisor < 2^31.
std::uint64_t divider_word(std::int64_t divisor);

/// Members of an argument struct, and their words.
class Arguments {
 public:
  /// Adds a member of an 8-byte type. A name that exists is not added again.
  void word(const std::string& type, const std::string& name, std::uint64_t value);
  void number(const std::string& name, std::int64_t value) {
    word("long long", name, static_cast<std::uint64_t>(value));
  }
  void pointer(const std::string& type, const std::string& name, ValueId value);
  /// One line per member.
  std::string members() const { return members_; }
  const ArgumentBlock& block() const { return block_; }

 private:
  std::set<std::string> names_;
  std::string members_;
  ArgumentBlock block_;
};

/// Lines of printed code, indented by braces.
class CodeWriter {
 public:
  explicit CodeWriter(int depth = 0) : depth_(depth) {}
  void line(const std::string& text);
  void line(const char* text);  // most lines are literals, and a caller's temporary is more code
  void raw(const std::string& text) { text_ += text; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace tenon::cuda
