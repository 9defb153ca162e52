// Region: what one step of a program computes, as data. The fuse pass makes regions; engines read
// them; nothing here runs.
//
// A map region is one kernel over an iteration space: loads, element-wise instructions, reductions
// along the last axis whose results can be used in the same kernel (rows), reductions over other
// axes as outputs (columns), stores. A contraction is a matrix product, a convolution or one of its
// gradients, with an optional map region over its result as epilogue and optional ones over its
// operands as prologues. Map regions may be joined, to share a launch: side by side where they do
// not depend on one another, in phases where they do. Regions of all kinds may be chained,
// to hand slices of an axis on in cache. Whatever else there is, is one op in an opaque region.
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

/// A piece of memory of the program: a leaf given at each run, a result, or an intermediate in the
/// arena. Contiguous, row-major.
struct Value {
  // Elided: has no memory, because all that read it compute it themselves or are in a chain with
  // what does.
  enum class Kind : std::uint8_t { Leaf, Variable, Arena, Output, Elided };
  Kind kind = Kind::Arena;
  DType dtype = DType::Float32;
  Shape shape;
  Device device = {};  // in whose memory it lies
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // Arena: where in the arena
  int slot = -1;            // Leaf and Variable: index of the slot; Output: index of the output
  int first_step = -1, last_step = -1;  // steps that write and that last read it
  std::uint32_t label = 0;
};

/// How a value is read or written over an iteration space: element at coordinates c lies at offset
/// + sum c[d] * stride[d]. Strides are in elements; 0 broadcasts; negative ones flip.
struct View {
  ValueId value = kNoValue;
  std::int64_t offset = 0;
  std::int64_t stride[kMaxRank] = {};
};

enum class MapCode : std::uint8_t {
  Load,         // element of `view`, in the dtype of its value
  Accumulator,  // epilogues: the contraction's result at this element, float32 or float64;
                // prologues: the operand's element as it stands in memory
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
  DType dtype = DType::Float32;  // of the result; Cast: converts args[0] to it
  bool per_row = false;          // one value a row: a RowReduce, or computed from such values alone
  int args[3] = {-1, -1, -1};    // earlier instructions
  Attrs attrs;
  View view;
};

/// Writes instruction `source` (converted to the value's dtype, which equals the instruction's). A
/// per-row instruction is written once a row (its stride along the last axis is ignored).
struct MapStore {
  int source = -1;
  View view;
};

/// Reduces instruction `source` over the axes of the space in `axes` (bit mask), by Sum, Prod, Max
/// or Min, into a contiguous value that holds the other axes in order. Its result is not usable
/// inside the region.
struct MapReduce {
  int source = -1;
  Op op = Op::Sum;
  std::uint32_t axes = 0;
  ValueId value = kNoValue;
  bool deviations = false;  // Sum: of squared deviations from the mean of what is reduced
  // An epilogue's, over [batch, rows, columns] by columns: so many neighbouring rows come to a
  // result each, the value holds [rows / these, columns]. 0: all of them come to one.
  int rows = 0;
  // Of a kernel over such results, deviations: the source is the mean of `rows` numbers each, this
  // instruction the sum of their squared deviations from it.
  int within = -1;
};

struct MapProgram {
  Shape space;  // neighbouring axes that every view crosses contiguously are merged; the row axis
                // (last) never when rows matter
  bool has_rows = false;
  std::vector<MapInstr> instrs;  // arguments before users
  std::vector<MapStore> stores;
  std::vector<MapReduce> reduces;
};

struct Contraction {
  Op op = Op::Matmul;
  ContractionAttrs attrs;
  DType dtype = DType::Float32;  // of the result
  View a, b;                     // over the operands' own axes; what prologues start from
  Shape a_shape, b_shape, out_shape;
  ValueId out = kNoValue;  // contiguous; kNoValue when the epilogue is the only reader
  bool has_epilogue =
      false;  // then Region::map runs over [batch, rows, columns]: matmul [B, M, N], convolution
              // [N, K, P*Q], input gradient [N, C, H*W], weight gradient [1, K, C/g*R*S]
  bool channels_last = false;  // the result's images are out_shape [N, H, W, C] in memory, and the
                               // map runs over [1, N*H*W, C]; shapes of operands never are

  /// The result's images as [N, C, H, W]; of others their shape.
  Shape result_shape() const {
    if (!channels_last) return out_shape;
    return {out_shape[0], out_shape[3], out_shape[1], out_shape[2]};
  }

  /// What operands are multiplied as: 16-bit types where they are rounded to them (sums are
  /// float32), else the result's.
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
  /// float32 operands may be rounded to TF32.
  bool tf32() const { return attrs.precision == Precision::Tf32; }
};

struct Opaque {
  Op op = Op::Data;
  Attrs attrs;
  std::vector<ValueId> inputs;  // contiguous; of attention as the views say
  std::vector<View> views;      // of attention: how it reads each input; else empty
  std::vector<Shape> shapes;    // of the inputs as the op sees them (a reshape may be folded away);
                                // the index of Gather and of scatters has rank 1 when it is the
                                // same along all other axes, a scatter's base rank 0 when it is
                                // one number everywhere
  std::vector<ValueId> outs;    // one each result; kNoValue where nobody reads one of several; of
                                // an attention's gradients that are parts of one value, a fourth:
                                // sums of neighbouring rows (Capabilities::reduced_rows)
  std::vector<View> out_views;  // of an attention's gradients: where each is written, when some are
                                // parts of one value; else empty, and each is contiguous
  std::vector<std::shared_ptr<const Program>> bodies;  // of loops and branches
  bool channels_last = false;  // pooling over images [N, H, W, C], as all shapes are then
  ValueId out() const { return outs[0]; }
};

enum class RegionKind : std::uint8_t { Map, Contraction, Opaque, Joined, Chain };

struct Region {
  RegionKind kind = RegionKind::Map;
  MapProgram map;
  // Of a contraction, empty without: what is done to each element of an operand before it is
  // multiplied. The space is the operand's own axes; the last instruction is the element; no rows,
  // no stores. What a convolution pads with is zero behind the prologue.
  MapProgram prologue_a, prologue_b;
  Contraction contraction;
  Opaque opaque;
  std::vector<Region> parts;  // Joined: maps, by phase; Chain: by phase, one each
  int phase = 0;  // of a part: parts wait for all of the phases before, and for none of their own
  int axis = 0;   // of a chain's part: which axis of its map's space slices are cut along
  int rows_axis = 0;           // of a part of a chain in bands: which axis of that space rows are
  std::int64_t samples = 0;    // Chain: entries of that axis
  std::int64_t slice = 0;      // Chain: how many of them at a time; the last slice may be smaller
  std::int64_t band = 0;       // Chain: rows of the last part's result at a time, of one entry; the
                               // last band may be smaller; 0: whole entries
  std::vector<ValueId> local;  // Chain: values of which it keeps a slice only
  std::vector<ValueId> reads, writes;  // each once; filled by the lowering
  std::uint32_t label = 0;
  std::string title;  // "map[640] log_softmax+sum", for people
  std::string why;    // why it holds what it holds and not more

  bool has_prologue() const { return !prologue_a.instrs.empty() || !prologue_b.instrs.empty(); }
};

/// What a map, a contraction or an opaque region reads and writes by its instructions, each once.
void list_values(const Region& region, std::vector<ValueId>& reads, std::vector<ValueId>& writes);

/// The type of an operand's elements behind its prologue, when it has one.
inline DType operand_dtype(const MapProgram& prologue, DType memory) {
  return prologue.instrs.empty() ? memory : prologue.instrs.back().dtype;
}

}  // namespace tenon
