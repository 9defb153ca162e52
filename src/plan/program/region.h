// Region: what one step of a program computes, as data. The pass fuse makes regions and engines
// read them. No code in this file runs a region.
//
// A map region is one loop nest over an iteration space: loads, element-wise instructions,
// reductions along the last axis whose results are usable in the same loop nest (rows), reductions
// over other axes as outputs (columns), stores. A contraction is a matrix product, a convolution or
// one of its gradients, optionally with a map over its result (epilogue) and maps over its operands
// (prologues). Map regions may be joined to share a launch: side by side if they are independent,
// in phases if they are not. Regions of all kinds may be chained, to pass slices of an axis on in
// cache. Every other op is an opaque region.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/shape.h>

#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

struct Program;

/// Index into the program's table of values.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

/// A contiguous, row-major block of memory of the program: a leaf bound at each run, a result, or
/// an intermediate in the arena.
struct Value {
  // Elided: the value has no memory. All its readers compute it themselves, or are in one chain
  // with its producer.
  enum class Kind : std::uint8_t { Leaf, Variable, Arena, Output, Elided };
  Kind kind = Kind::Arena;
  DType dtype = DType::Float32;
  Shape shape;
  Device device = {};  // whose memory holds it
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // Arena: byte offset in the arena
  int slot = -1;            // Leaf and Variable: index of the slot; Output: index of the output
  int first_step = -1, last_step = -1;  // first step that writes it, last step that reads it
  std::uint32_t label = 0;
};

/// How a value is read or written over an iteration space: the element at coordinates c is at
/// offset + sum c[d] * stride[d]. Offset and strides are in elements; stride 0 broadcasts; a
/// negative stride flips.
struct View {
  ValueId value = kNoValue;
  std::int64_t offset = 0;
  std::int64_t stride[kMaxRank] = {};
};

enum class MapCode : std::uint8_t {
  Load,         // the element of `view`, in the dtype of its value
  Accumulator,  // epilogues: the contraction's result at this element, float32 or float64;
                // prologues: the operand's element as stored in memory
  Affine,       // view.offset + sum coordinate * view.stride: iota (view.value is kNoValue)
  Number,       // ConstantAttrs
  Random,   // Philox: attrs as of Op::Random; view.value = the int64[2] (seed, counter); indexed by
            // the row-major position (prologues: by view.offset + sum coordinate * view.stride)
  Compute,  // `op` on args: element-wise, Cast included
  RowReduce,  // Sum, Prod, Max, Min, ArgMax, ArgMin of args[0] along the last axis of the space
};

struct MapInstr {
  MapCode code = MapCode::Load;
  Op op = Op::Data;
  DType dtype = DType::Float32;  // dtype of the result; Cast converts args[0] to it
  bool per_row = false;  // one value per row: a RowReduce, or computed from per-row values only
  int args[3] = {-1, -1, -1};  // indices of earlier instructions
  Attrs attrs;
  View view;
};

/// Writes instruction `source`, whose dtype equals the value's. A per-row instruction is written
/// once for each row (its stride along the last axis is ignored).
struct MapStore {
  int source = -1;
  View view;
};

/// Reduces instruction `source` over the axes in the bit mask `axes`, by Sum, Prod, Max or Min,
/// into a contiguous value that holds the other axes in order. The result is not usable inside the
/// region.
struct MapReduce {
  int source = -1;
  Op op = Op::Sum;
  std::uint32_t axes = 0;
  ValueId value = kNoValue;
  bool deviations = false;  // Sum: of squared deviations from the mean of the reduced elements
  // In an epilogue over [batch, rows, columns], by columns: number of neighbouring rows that are
  // reduced to one result; the value then holds [rows / this number, columns]. 0: all rows are
  // reduced to one.
  int rows = 0;
  // For a map over such partial results, with deviations: `source` is the mean of `rows` numbers
  // each, and this instruction is the sum of their squared deviations from that mean.
  int within = -1;
};

struct MapProgram {
  Shape space;  // at least one axis; if has_rows, the last one is the row
  bool has_rows = false;
  std::vector<MapInstr> instrs;  // arguments come before users
  std::vector<MapStore> stores;
  std::vector<MapReduce> reduces;
};

struct Contraction {
  Op op = Op::Matmul;
  ContractionAttrs attrs;
  DType dtype = DType::Float32;  // dtype of the result
  View a, b;                     // over the operands' own axes; where a prologue starts
  Shape a_shape, b_shape, out_shape;
  ValueId out = kNoValue;  // contiguous; kNoValue if only the epilogue reads the result
  // If true, Region::map runs over [batch, rows, columns]: matmul [B, M, N], convolution
  // [N, K, P*Q], input gradient [N, C, H*W], weight gradient [1, K, C/g*R*S].
  bool has_epilogue = false;
  bool channels_last = false;  // the result's images are out_shape [N, H, W, C] in memory, and the
                               // map runs over [1, N*H*W, C]; shapes of operands never are

  /// The result's shape as [N, C, H, W] for convolutions; otherwise out_shape.
  Shape result_shape() const {
    if (!channels_last) return out_shape;
    return {out_shape[0], out_shape[3], out_shape[1], out_shape[2]};
  }

  /// The dtype in which operands are multiplied: a 16-bit dtype if they are rounded to it (sums are
  /// float32), otherwise the result's dtype.
  DType compute() const {
    switch (attrs.precision) {
      case Precision::Bf16:
        return DType::BFloat16;
      case Precision::Fp16:
        return DType::Float16;
      default:
        return dtype;
    }
  }
  /// Whether float32 operands may be rounded to TF32.
  bool tf32() const { return attrs.precision == Precision::Tf32; }
};

struct Opaque {
  Op op = Op::Data;
  Attrs attrs;
  std::vector<ValueId> inputs;  // contiguous; for attention as `views` says
  std::vector<View> views;      // for attention: how it reads each input; otherwise empty
  // Shapes of the inputs as the op sees them (a reshape may be folded away). The index of Gather
  // and of scatters has rank 1 if it is constant along all other axes. A scatter's base has rank 0
  // if it is one number everywhere.
  std::vector<Shape> shapes;
  // One for each result; kNoValue for a result without readers. Gradients of attention that are
  // parts of one value have a fourth: sums of neighbouring rows (Capabilities::reduced_rows).
  std::vector<ValueId> outs;
  // For gradients of attention that are parts of one value: where each is written. Otherwise empty,
  // and every result is contiguous.
  std::vector<View> out_views;
  std::vector<std::shared_ptr<const Program>> bodies;  // bodies of loops and branches
  bool channels_last = false;  // pooling over [N, H, W, C]; all shapes are then in that order
  ValueId out() const { return outs[0]; }
};

enum class RegionKind : std::uint8_t { Map, Contraction, Opaque, Joined, Chain };

struct Region {
  RegionKind kind = RegionKind::Map;
  MapProgram map;
  // For a contraction, optional: what is done to each element of an operand before it is
  // multiplied. The space is the operand's own axes, the last instruction is the element, and there
  // are no rows and no stores. The padding of a convolution is zero after the prologue.
  MapProgram prologue_a, prologue_b;
  Contraction contraction;
  Opaque opaque;
  std::vector<Region> parts;  // Joined: maps, by phase; Chain: one part for each phase
  // Phase of a part: parts wait for all earlier phases and for no part of their own phase.
  int phase = 0;
  int axis = 0;  // part of a chain: the axis of its map's space that is cut into slices
  // of a part of a chain in bands: the axis of that space that holds rows
  int rows_axis = 0;
  std::int64_t samples = 0;    // Chain: entries of that axis
  std::int64_t slice = 0;      // Chain: entries of a slice; the last slice may be smaller
  std::int64_t band = 0;       // Chain: rows of the last part's result at a time, of one entry; the
                               // last band may be smaller; 0: whole entries
  std::vector<ValueId> local;  // Chain: values of which only one slice exists at a time
  std::vector<ValueId> reads, writes;  // each once; filled by the lowering
  std::uint32_t label = 0;
  std::string title;  // for printing, "map[640] log_softmax+sum"
  std::string why;    // why it contains what it contains and not more

  bool has_prologue() const { return !prologue_a.instrs.empty() || !prologue_b.instrs.empty(); }
};

/// Whether the op is a scatter that writes into the value itself, which is its base.
inline bool updates_rows(const Opaque& op, ValueId id) {
  const bool scatters = op.op == Op::Scatter || op.op == Op::ScatterAdd;
  return scatters && op.outs[0] == id && op.inputs[0] == id && op.inputs[1] != id &&
         op.inputs[2] != id;
}

/// Appends what a map, a contraction or an opaque region reads and writes in its instructions, each
/// value once.
void list_values(const Region& region, std::vector<ValueId>& reads, std::vector<ValueId>& writes);

/// The dtype of an operand's elements after its prologue, if it has one; otherwise `memory`.
inline DType operand_dtype(const MapProgram& prologue, DType memory) {
  return prologue.instrs.empty() ? memory : prologue.instrs.back().dtype;
}

}  // namespace tenon
