// Prints offsets, loads, stores and single instructions.
#include "cuda/engines/maps/print_instrs.h"

#include <algorithm>
#include <array>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/maps/map_layout.h"
#include "graph/element_code.h"

namespace tenon::cuda {
namespace {

/// For the expressions of own operations.
constexpr std::array<const char*, 6> kFunctionHeaders = {"scalar/arc.h", "scalar/erf.h",
                                                         "scalar/exp.h", "scalar/log.h",
                                                         "scalar/pow.h", "scalar/trig.h"};

}  // namespace

InstrPrinter::InstrPrinter(const MapProgram& map, const ValueTable& values, Coordinates coordinates,
                           Arguments& arguments, std::string prefix, std::string index)
    : map_(map),
      values_(values),
      coordinates_(std::move(coordinates)),
      arguments_(arguments),
      prefix_(std::move(prefix)),
      index_(std::move(index)),
      expressions_(map.instrs.size()),
      stored_(map.instrs.size()),
      coordinate_(map.instrs.size()),
      near_(map.instrs.size()),
      only_rounded_(map.instrs.size()) {
  find_near();
  find_only_rounded();
  for (const MapStore& store : map.stores) written_.insert(store.view.value);
  for (const MapReduce& reduce : map.reduces) written_.insert(reduce.value);
}

void InstrPrinter::find_near() {
  for (std::size_t i = 0; i < near_.size(); ++i) {
    const MapInstr& instr = map_.instrs[i];
    const bool rounds =
        instr.code == MapCode::Load || (instr.code == MapCode::Compute && instr.op == Op::Cast);
    near_[i] = rounds && is_16_bit_float(instr.dtype);
    if (instr.code != MapCode::Compute && instr.code != MapCode::RowReduce) continue;
    for (const int arg : instr.args)
      if (arg >= 0 && near_[at(arg)] && is_floating(instr.dtype)) near_[i] = true;
  }
}

void InstrPrinter::find_only_rounded() {
  for (std::size_t i = only_rounded_.size(); i-- > 0;) {
    bool used = false, only = true;
    const auto use = [&](bool rounds) {
      used = true;
      only = only && rounds;
    };
    for (const MapStore& store : map_.stores)
      if (at(store.source) == i) use(is_16_bit_float(values_[at(store.view.value)].dtype));
    for (const MapReduce& reduce : map_.reduces)
      if (at(reduce.source) == i) use(false);
    for (std::size_t u = i + 1; u < only_rounded_.size(); ++u) {
      const MapInstr& user = map_.instrs[u];
      for (const int arg : user.args) {
        if (arg < 0 || at(arg) != i) continue;
        const bool rounds = user.op == Op::Cast && is_16_bit_float(user.dtype);
        const bool scales = user.op == Op::Mul || user.op == Op::Neg;
        use(user.code == MapCode::Compute && (rounds || (scales && only_rounded_[u])));
      }
    }
    only_rounded_[i] = used && only;
  }
}

std::string InstrPrinter::name(char kind, int instr) { return cat(kind, instr); }

std::string InstrPrinter::pointer(ValueId value) {
  const auto [found, fresh] = pointers_.try_emplace(value, cat("p", pointers_.size()));
  if (fresh) {
    const std::string type = memory_type(values_[at(value)].dtype);
    arguments_.pointer(cat(written_.count(value) != 0 ? "" : "const ", type, "*"), found->second,
                       value);
  }
  return prefix_ + found->second;
}

const std::string& InstrPrinter::layout(const View& view) {
  std::vector<std::int64_t> key{view.offset};
  for (int d = 0; d < coordinates_.rank(); ++d) key.push_back(stride(view, d));
  return layouts_.try_emplace(key, cat("s", layouts_.size())).first->second;
}

std::int64_t InstrPrinter::stride(const View& view, int axis) const {
  return coordinates_.sizes[at(axis)] == 1 ? 0 : view.stride[axis];
}

std::string InstrPrinter::member(const std::string& name, std::int64_t value,
                                 const std::string& type) {
  arguments_.number(name, value);
  return type == "long long" ? prefix_ + name : cat(type, "(", prefix_, name, ")");
}

std::string InstrPrinter::sum(const View& view, int axes, const std::string& type,
                              const std::string& step) {
  const std::string& name = layout(view);
  std::string text;
  if (view.offset != 0) text = member(name + "_offset", view.offset, type);
  for (int d = 0; d < axes; ++d) {
    if (stride(view, d) == 0) continue;
    std::string coordinate = coordinates_.names[at(d)];
    if (d == coordinates_.rank() - 1 && !step.empty()) coordinate += " + " + step;
    if (type != index_) coordinate = cat("static_cast<", type, ">(", coordinate, ")");
    if (!text.empty()) text += " + ";
    text += coordinate;
    if (stride(view, d) != 1) text += " * " + member(cat(name, "_", d), stride(view, d), type);
  }
  return text.empty() ? "0" : text;
}

std::string InstrPrinter::offset(const View& view, bool inner) {
  return sum(view, coordinates_.rank() - (inner ? 0 : 1), index_, "");
}

InnerStep InstrPrinter::inner_step(const View& view) const {
  const int last = coordinates_.rank() - 1;
  if (last < 0 || stride(view, last) == 0) return InnerStep::None;
  return view.stride[last] == 1 ? InnerStep::One : InnerStep::Other;
}

std::string InstrPrinter::inner_stride(const View& view) {
  const int last = coordinates_.rank() - 1;
  return member(cat(layout(view), "_", last), view.stride[last], index_);
}

int InstrPrinter::alignment(const View& view) const {
  std::int64_t bits = view.offset | 8;
  for (int d = 0; d + 1 < coordinates_.rank(); ++d) bits |= stride(view, d);
  return static_cast<int>(std::min(bits & -bits, widest_));
}

std::string InstrPrinter::address(const View& view, bool inner) {
  const std::string elements = offset(view, inner), base = pointer(view.value);
  return elements == "0" ? base : cat(base, " + ", elements);
}

void InstrPrinter::set_numbers() {
  for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (instr.code != MapCode::Number) continue;
    const std::uint64_t word = number_word(instr.dtype, instr.attrs.as<ConstantAttrs>().value);
    if (word == 0) {
      set(i, zero_of(instr.dtype));
      continue;
    }
    const std::string word_name = name('n', i);
    arguments_.word(cat("Word<", compute_type(instr.dtype), ">"), word_name, word);
    set(i, cat(prefix_, word_name, ".value"));
  }
}

std::string InstrPrinter::load_function(const View& view) const {
  const bool constant = written_.count(view.value) == 0 && changing_.count(view.value) == 0;
  return constant_loads_ && constant ? "load_constant" : "load";
}

void InstrPrinter::load_row(CodeWriter& out, int instr) {
  const View& view = map_.instrs[at(instr)].view;
  const std::string x = name('x', instr);
  if (inner_step(view) == InnerStep::None) {
    out.line(cat("const ", type(instr), " ", x, " = ", load_function(view), "(",
                 address(view, true), ");"));
    return set(instr, x);
  }
  set(instr, x + "[i]");
  out.line(cat(type(instr), " ", x, "[N];"));
  if (inner_step(view) == InnerStep::One)
    return out.line(cat(load_function(view), "_row<", alignment(view), ">(", x, ", ",
                        address(view, true), ");"));
  out.line("#pragma unroll");
  out.line(cat("for (int i = 0; i < N; ++i) ", x, "[i] = ", load_function(view), "(",
               address(view, true), " + i * ", inner_stride(view), ");"));
}

int InstrPrinter::packed_bytes(const View& view) const {
  const DType dtype = values_[at(view.value)].dtype;
  const bool packs = inner_step(view) == InnerStep::One && alignment(view) >= 8 &&
                     (is_16_bit_float(dtype) || dtype == DType::Bool);
  return packs ? static_cast<int>(item_size(dtype)) : 0;
}

void InstrPrinter::hold_row(CodeWriter& members, CodeWriter& loads, int instr, bool packs) {
  const View& view = map_.instrs[at(instr)].view;
  const std::string x = name('x', instr), from = address(view, true);
  const InnerStep step = inner_step(view);
  if (packs && packed_bytes(view) == 1) {
    members.line(cat("PackedMask<N> ", x, ";"));
    set(instr, cat("element_of(held.", x, ", i)"));
    return loads.line(cat("held.", x, " = ", load_function(view), "_mask<N>(", from, ");"));
  }
  if (packs && packed_bytes(view) > 0) {
    const char* memory = memory_type(values_[at(view.value)].dtype);
    members.line(cat("Packed<", memory, ", N> ", x, ";"));
    set(instr, cat("upcast(held.", x, ".element[i])"));
    return loads.line(cat("held.", x, " = ", load_function(view), "_packed<N>(", from, ");"));
  }
  members.line(cat(type(instr), " ", x, step == InnerStep::None ? ";" : "[N];"));
  set(instr, cat("held.", x, step == InnerStep::None ? "" : "[i]"));
  if (step == InnerStep::None)
    return loads.line(cat("held.", x, " = ", load_function(view), "(", from, ");"));
  if (step == InnerStep::One)
    return loads.line(
        cat(load_function(view), "_row<", alignment(view), ">(held.", x, ", ", from, ");"));
  loads.line("#pragma unroll");
  loads.line(cat("for (int i = 0; i < N; ++i) held.", x, "[i] = ", load_function(view), "(", from,
                 " + i * ", inner_stride(view), ");"));
}

void InstrPrinter::save_row(CodeWriter& out, std::size_t store) {
  const View& view = map_.stores[store].view;
  const std::string y = name('y', static_cast<int>(store));
  switch (inner_step(view)) {
    case InnerStep::None:
      return out.line(cat("save(", address(view, true), ", ", y, "[N - 1]);"));
    case InnerStep::One:
      return out.line(cat("save_row<", alignment(view), ">(", address(view, true), ", ", y, ");"));
    case InnerStep::Other:
      out.line("#pragma unroll");
      return out.line(cat("for (int i = 0; i < N; ++i) save(", address(view, true), " + i * ",
                          inner_stride(view), ", ", y, "[i]);"));
  }
}

std::string InstrPrinter::compute(int instr) {
  const MapInstr& op = map_.instrs[at(instr)];
  std::vector<std::string> args;
  std::vector<DType> from;
  for (const int arg : op.args) {
    if (arg < 0) continue;
    if (!is_set(arg)) throw InternalError(cat("map printer: argument ", arg, " is not there yet"));
    args.push_back(get(arg));
    from.push_back(map_.instrs[at(arg)].dtype);
  }
  const std::string result = name('t', instr);
  const std::string by = cheaper(instr, args);
  std::string text = cat("const ", type(instr), " ", result, " = ",
                         by.empty() ? print_compute(op, args, from) : by, ";");
  set(instr, result);
  if (op.op == Op::Cast && is_16_bit_float(op.dtype) && is_floating(from[0]) &&
      from[0] != DType::Float64)
    stored_[at(instr)] = args[0];
  return text;
}

std::string InstrPrinter::cheaper(int instr, const std::vector<std::string>& args) const {
  const MapInstr& op = map_.instrs[at(instr)];
  if (op.op == Op::Eq) {
    for (const int side : {0, 1}) {
      const std::string& coordinate = coordinate_[at(op.args[at(side)])];
      if (coordinate.empty() || map_.instrs[at(op.args[at(1 - side)])].code != MapCode::Load)
        continue;
      return cat("as_coordinate(", args[at(1 - side)], ") == ", coordinate, " ? 1 : 0");
    }
    return {};
  }
  if (op.args[0] < 0 || op.dtype == DType::Float64) return {};
  if (!near_[at(op.args[0])] && !only_rounded_[at(instr)]) return {};
  switch (op.op) {
    case Op::Exp:
      return cat("exp_near(", args[0], ")");
    case Op::Tanh:
      return cat("tanh_near(", args[0], ")");
    case Op::Sigmoid:
      return cat("sigmoid_near(", args[0], ")");
    default:
      return {};
  }
}

bool InstrPrinter::is_last_coordinate(const MapInstr& instr) const {
  const int last = coordinates_.rank() - 1;
  if (instr.code != MapCode::Affine || instr.view.offset != 0 || last < 0) return false;
  for (int d = 0; d < last; ++d)
    if (stride(instr.view, d) != 0) return false;
  return stride(instr.view, last) == 1;
}

bool InstrPrinter::is_coordinate(const MapInstr& instr) const {
  return index_ == "Index" && fits_int(map_) && instr.dtype == DType::Int64 &&
         is_last_coordinate(instr);
}

bool InstrPrinter::is_column(int instr) const {
  return map_.instrs[at(instr)].dtype == DType::Int32 && is_last_coordinate(map_.instrs[at(instr)]);
}

std::string InstrPrinter::affine(int i, const std::string& step) {
  const MapInstr& instr = map_.instrs[at(i)];
  if (is_coordinate(instr)) coordinate_[at(i)] = sum(instr.view, coordinates_.rank(), index_, step);
  // In 64 bits whatever the index type is, because an iota may start anywhere.
  std::string number = sum(instr.view, coordinates_.rank(), "long long", step);
  if (is_bool(instr.dtype)) return cat("static_cast<int>((", number, ") != 0)");
  if (instr.dtype == DType::Int64) return number;
  const std::string text = cat("static_cast<", compute_type(instr.dtype), ">(", number, ")");
  return needs_rounding(instr.dtype) ? cat("rounded<", memory_type(instr.dtype), ">(", text, ")")
                                     : text;
}

std::string InstrPrinter::random_draw(int instr) {
  const MapInstr& random = map_.instrs[at(instr)];
  const std::string offset = name('d', instr);
  arguments_.number(offset, random.attrs.as<RandomAttrs>().offset);
  return cat("const RandomDraw ", name('r', instr), " = random_draw(", pointer(random.view.value),
             ", ", prefix_, offset, ");");
}

std::string InstrPrinter::random_element(int instr, const std::string& block,
                                         const std::string& word) const {
  const MapInstr& random = map_.instrs[at(instr)];
  const RandomKind kind = random.attrs.as<RandomAttrs>().kind;
  const char* function = kind == RandomKind::Uniform  ? "uniform_of"
                         : kind == RandomKind::Normal ? "normal_of"
                                                      : "bits_of_word";
  const DType drawn = kind == RandomKind::Bits ? DType::Int64 : DType::Float32;
  return print_cast(cat(function, "(", block, ", ", word, ")"), drawn, random.dtype);
}

std::string InstrPrinter::includes() const {
  std::set<std::string> headers{"cuda/kernels/maps/map.cuh"}, definitions;
  for (const MapInstr& instr : map_.instrs) {
    if (const auto* own = instr.attrs.get_if<ElementAttrs>()) {
      headers.insert(kFunctionHeaders.begin(), kFunctionHeaders.end());
      definitions.insert(own->code->definition);
    }
    if (instr.code == MapCode::Random) headers.insert("cuda/kernels/philox.cuh");
    const bool floating = instr.code == MapCode::Compute;
    if (const char* header = op_row(instr.op).header; floating && header != nullptr)
      headers.insert(header);
  }
  std::string text;
  for (const std::string& header : headers) text += cat("#include \"", header, "\"\n");
  for (const std::string& definition : definitions) text += definition;
  return text;
}

}  // namespace tenon::cuda
