// Compiles a map program to a tile program: the order of the steps, and the programs that have
// loops.
#include <algorithm>
#include <bit>

#include "base/str.h"

#include "cpu/engines/compile/tile_compiler.h"
#include "device/cpu_model.h"
#include "graph/element_code.h"

namespace tenon::cpu {

namespace {

// The axes of [batch, rows, columns] that an epilogue reduces: one result per row.
constexpr std::uint32_t kReducedAxes = 0b101;

constexpr std::int64_t kTileBytes = kCpu.first_cache;  // preferred size of all registers together
constexpr std::int64_t kColumnRows = 4;                // that a sum over the rows takes in at once
constexpr std::int64_t kTallTileBytes = kCpu.second_cache / 2;

RandomKind random_kind(const MapInstr& instr) { return instr.attrs.as<RandomAttrs>().kind; }

bool is_random(const MapInstr& instr) {
  const RandomKind kind = random_kind(instr);
  return instr.dtype == (kind == RandomKind::Bits ? DType::Int64 : DType::Float32);
}

}  // namespace

std::int64_t tile_number(DType dtype, Scalar number) {
  const std::int64_t whole = number.whole();
  switch (dtype) {
    case DType::Bool:
      return !number.is_zero();
    case DType::UInt8:
      return static_cast<std::uint8_t>(whole);
    case DType::Int8:
      return static_cast<std::uint32_t>(static_cast<std::int8_t>(whole));
    case DType::Int32:
      return static_cast<std::uint32_t>(whole);
    case DType::Int64:
      return whole;
    case DType::Float16:  // computed in float32 and rounded when the result is stored
    case DType::BFloat16:
    case DType::Float32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(number.real()));
    default:
      return std::bit_cast<std::int64_t>(number.real());
  }
}

std::int64_t cost_of(const MapInstr& instr) {
  const OpCost cost = op_row(instr.op).cost;
  switch (instr.code) {
    case MapCode::Random:
      return random_kind(instr) == RandomKind::Uniform ? kRandomNumber.f32 : kRandomNumber.f64;
    case MapCode::RowReduce:
    case MapCode::Compute:
      return tile_type(instr.dtype) == TileType::F64 ? cost.f64 : cost.f32;
    default:
      return 10;
  }
}

TileLoop loop_of(const TileTable& table, const MapInstr& instr, TileType type) {
  if (instr.op != Op::OwnElement) return table.op[code(instr.op)][code(type)];
  const ElementCode& own = *instr.attrs.as<ElementAttrs>().code;
  return type == TileType::F32 ? own.f32 : type == TileType::F64 ? own.f64 : nullptr;
}

void TileCompiler::compile() {
  p_.table_ = &tile_table();
  merge_axes();
  make_views();
  find_levels();
  const bool sums = std::all_of(map_.reduces.begin(), map_.reduces.end(),
                                [](const MapReduce& reduce) { return reduce.op == Op::Sum; });
  least_rows_ = map_.reduces.empty() || epilogue_ || !sums ? 1 : kColumnRows;
  for (std::int64_t elements = kTileElements;;) {
    choose_tile(elements);
    emit();
    if (register_bytes_ <= (tall_ ? kTallTileBytes : kTileBytes)) break;
    if (least_rows_ == 1 && elements <= 256) break;
    if (least_rows_ == 1) elements /= 2;
    least_rows_ = 1;
  }
  choose_chunks();
}

TileProgram::TileProgram(const MapProgram& map, std::span<const Value> values, TileUse use) {
  TileCompiler(*this, map, values, use).compile();
}

bool tile_program_claims(const MapProgram& map, bool epilogue, std::string* why) {
  const auto refuse = [why](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return false;
  };
  const TileTable& table = tile_table_base();
  for (const MapInstr& instr : map.instrs) {
    const TileType type =
        instr.args[0] < 0
            ? TileType::F32
            : tile_type(
                  map.instrs[at(instr.op == Op::Where ? instr.args[1] : instr.args[0])].dtype);
    if (instr.code == MapCode::Accumulator && !epilogue)
      return refuse("it reads an accumulator outside of an epilogue");
    if (instr.code == MapCode::Random && !is_random(instr))
      return refuse("unknown kind of random numbers");
    if (instr.code == MapCode::RowReduce && epilogue)
      return refuse("a row reduction in an epilogue");
    if (instr.code == MapCode::RowReduce && kind_of(instr.op) != OpKind::Reduction &&
        kind_of(instr.op) != OpKind::ArgReduction)
      return refuse("no row reduction");
    if (instr.code == MapCode::Compute && instr.op != Op::Cast &&
        loop_of(table, instr, type) == nullptr)
      return refuse(cat("no loop for ", op_row(instr.op).name, " of this dtype"));
  }
  for (const MapReduce& reduce : map.reduces)
    if (reduce.deviations) return refuse("a sum of deviations");
  const bool by_rows = std::all_of(map.reduces.begin(), map.reduces.end(),
                                   [](const auto& reduce) { return reduce.axes == kReducedAxes; });
  if (epilogue && !by_rows) return refuse("a reduction in an epilogue that is not a row's");
  if (epilogue && map.space.rank() != 3) return refuse("an epilogue's space has three axes");
  return true;
}

}  // namespace tenon::cpu
