// Names of types and functions, casts, and argument words.
#include "cuda/engines/maps/print_code.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <tenon/error.h>

#include "base/str.h"
#include "graph/element_code.h"

namespace tenon::cuda {

namespace {

bool is_predicate(Op op) { return has_trait(op, kTruth); }

const char* infix(Op op) {
  switch (op) {
    case Op::Add:
      return " + ";
    case Op::Sub:
      return " - ";
    case Op::Mul:
      return " * ";
    case Op::Div:
      return " / ";
    default:
      return nullptr;
  }
}

std::string rounded(const std::string& expression, DType dtype) {
  return needs_rounding(dtype) ? cat("rounded<", memory_type(dtype), ">(", expression, ")")
                               : expression;
}

}  // namespace

const char* compute_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return "float";
    case DType::Float64:
      return "double";
    case DType::Int64:
      return "long long";
    default:
      return "int";
  }
}

const char* stored_kind(DType dtype) {
  return dtype == DType::BFloat16  ? "Kind::BFloat16"
         : dtype == DType::Float16 ? "Kind::Float16"
                                   : "Kind::Float32";
}

const char* memory_type(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "bool";
    case DType::UInt8:
      return "unsigned char";
    case DType::Int8:
      return "signed char";
    case DType::Int32:
      return "int";
    case DType::Int64:
      return "long long";
    case DType::Float16:
      return "F16";
    case DType::BFloat16:
      return "BF16";
    case DType::Float32:
      return "float";
    default:
      return "double";
  }
}

std::string zero_of(DType dtype) {
  const std::string type = compute_type(dtype);
  if (type == "float") return "0.0f";
  if (type == "double") return "0.0";
  return type == "int" ? "0" : "0ll";
}

bool needs_rounding(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 || dtype == DType::UInt8 ||
         dtype == DType::Int8;
}

bool is_16_bit_float(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

std::string print_compute(const MapInstr& instr, std::span<const std::string> args,
                          std::span<const DType> from) {
  if (instr.op == Op::Cast) return print_cast(args[0], from[0], instr.dtype);
  if (instr.op == Op::Where) return cat(args[0], " != 0 ? ", args[1], " : ", args[2]);
  if (instr.op == Op::OwnElement) {
    std::string list;
    for (const std::string& arg : args) list += cat(list.empty() ? "" : ", ", arg);
    return cat("scalar::own::", instr.attrs.as<ElementAttrs>().code->function, "<",
               compute_type(instr.dtype), ">(", list, ")");
  }
  if (instr.op == Op::StopGradient ||
      (has_trait(instr.op, kRoundsToWhole) && !is_floating(from[0])))
    return args[0];
  std::string text;
  if (const char* sign = infix(instr.op); sign != nullptr && is_floating(from[0])) {
    text = cat(args[0], sign, args[1]);
  } else {
    text = cat("scalar::", op_row(instr.op).function, "(", args[0]);
    if (args.size() > 1) text += cat(", ", args[1]);
    text += ')';
  }
  if (is_bool(instr.dtype) && !is_predicate(instr.op)) return cat("scalar::ne(", text, ", 0)");
  // 16-bit floating-point values stay in float32 until they are stored or cast; integers wrap at
  // once.
  const bool in_range =
      is_floating(instr.dtype) || (op_row(instr.op).traits & (kTruth | kKeepsRange)) != 0;
  return in_range ? text : rounded(text, instr.dtype);
}

std::string print_cast(const std::string& expression, DType from, DType to) {
  if (from == to) return expression;
  const std::string source = compute_type(from), target = compute_type(to);
  if (is_bool(to)) return cat("static_cast<int>(", expression, " != ", zero_of(from), ")");
  std::string text = expression;
  if (is_floating(from) && !is_floating(to)) {
    text = cat("scalar::to_int64(", text, ")");
    if (target != "long long") text = cat("static_cast<", target, ">(", text, ")");
  } else if (source != target) {
    text = cat("static_cast<", target, ">(", text, ")");
  }
  return is_bool(from) ? text : rounded(text, to);
}

double element_work(Op op) {
  if (op_row(op).header != nullptr) return 30;  // the function is a series
  return op_row(op).cost.f32 > kStep.f32 ? 10 : 1.5;
}

std::uint64_t number_word(DType dtype, Scalar number) {
  const auto small = [](auto value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  };
  const std::int64_t whole = number.whole();
  switch (dtype) {
    case DType::Bool:
      return small(std::int32_t{!number.is_zero()});
    case DType::UInt8:
      return small(std::int32_t{static_cast<std::uint8_t>(whole)});
    case DType::Int8:
      return small(std::int32_t{static_cast<std::int8_t>(whole)});
    case DType::Int32:
      return small(static_cast<std::int32_t>(whole));
    case DType::Int64:
      return small(whole);
    case DType::Float16:  // computed in float32 and rounded when the result is stored
    case DType::BFloat16:
    case DType::Float32:
      return small(static_cast<float>(number.real()));
    default:
      return small(number.real());
  }
}

std::uint64_t divider_word(std::int64_t divisor) {
  const auto d = static_cast<std::uint64_t>(divisor);
  const auto shift = static_cast<std::uint64_t>(std::bit_width(d - 1));
  const std::uint64_t multiplier = ((((std::uint64_t{1} << shift) - d) << 32) / d) + 1;
  return multiplier | shift << 32;
}

void Arguments::word(const std::string& type, const std::string& name, std::uint64_t value) {
  if (!names_.insert(name).second) return;
  members_ += cat("  ", type, " ", name, ";\n");
  block_.words.push_back(value);
}

void Arguments::pointer(const std::string& type, const std::string& name, ValueId value) {
  if (names_.count(name) != 0) return;
  block_.pointers.emplace_back(static_cast<int>(block_.words.size()), value);
  word(type, name, 0);
}

void CodeWriter::line(const std::string& text) {
  const bool closes = !text.empty() && text[0] == '}';
  if (closes) --depth_;
  const bool flat = text.empty() || text[0] == '#';
  if (!flat) text_.append(at(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
  if (!text.empty() && text.back() == '{') ++depth_;
}

void CodeWriter::line(const char* text) { line(std::string(text)); }

}  // namespace tenon::cuda
