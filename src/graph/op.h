// Op: the primitive operations. Everything that Tenon computes is one of them or built from them.
// All facts about an op are in its row of op_table.inc; no other file lists ops or ranges of ops.
//
// Inference, gradients and decompositions are in ops/rules.inc; attributes are in attrs.h.
#pragma once

#include <cstdint>

namespace tenon {

enum class Op : std::uint8_t {
#define TENON_OP(op, ...) op,
#include "graph/op_table.inc"
  kCount
};

inline constexpr int kOpCount = static_cast<int>(Op::kCount);

enum class OpKind : std::uint8_t {
  Leaf,
  Elementwise,
  Reduction,
  ArgReduction,
  View,
  Movement,
  Transfer,
  Contraction,
  Attention,
  Pooling,
  Composite,
  Loop,
  Result,
  Effect,
  Host,
  Function
};

/// Properties of an op that passes and engines ask for.
enum OpTrait : std::uint32_t {
  kTruth = 1u << 0,       // the result is bool, whatever the inputs are
  kLogical = 1u << 1,     // operates on booleans
  kKeepsRange = 1u << 2,  // the result is in the dtype's range because the inputs are
  kFloatingOnly = 1u << 3,
  kRoundsToWhole = 1u << 4,  // rounds to whole numbers, so integer inputs stay unchanged
  kReadsWhole = 1u << 5,     // reads inputs from end to end: strided inputs are copied first
  kStochastic = 1u << 6,
  kIndexed = 1u << 7,  // input 1 contains positions along the axis in the attributes
  kAddsUp =
      1u << 8,  // sums of elements: not of boolean values, and 16-bit floats are cast to float32
  // read through Result nodes only; the node's own dtype is the first result's
  kSeveralResults = 1u << 9,
  kPicks = 1u << 10,  // pooling that moves elements of images: exact in 16 bits, in any layout
  // combines neighbouring channels: GPUs have one kernel for it, in any layout
  kAcrossChannels = 1u << 11,
  kFlat = 1u << 12,     // a staircase: the slope is 0, so no gradient passes
  kInOrder = 1u << 13,  // takes in one element after another, for which some devices have kernels
};
// Of domains of element-wise ops (op_table.inc).
inline constexpr std::uint32_t kDomainAny = 0, kDomainPaired = 0, kDomainFloating = kFloatingOnly,
                               kDomainPeriodic = kFloatingOnly,
                               kDomainRounding = kRoundsToWhole | kFlat;

/// What one element costs one CPU core, in hundredths of a nanosecond: for dtypes that fill vector
/// registers (float32, int32), and for float64, whose functions are mostly the C library's.
struct OpCost {
  std::int16_t f32 = 0, f64 = 0;
};
inline constexpr OpCost kStep{5, 10};  // one step of arithmetic
inline constexpr OpCost kQuotient{20, 60};
inline constexpr OpCost kTranscendental{60, 1500};  // a polynomial
inline constexpr OpCost kInDouble{200, 2000};       // needs float64 internally
inline constexpr OpCost kLibraryCall{1000, 1000};
inline constexpr OpCost kReduction{6, 6};
inline constexpr OpCost kArgReduction{20, 20};
inline constexpr OpCost kRandomNumber{150, 400};  // uniform; other kinds

/// The result of a reduction over no elements.
struct Neutral {
  double real = 0;
  std::int64_t whole = 0;
};
inline constexpr double kInfinity = __builtin_inf();

struct OpRow {
  Op op{};
  const char* name = nullptr;  // as printed: "add", "conv2d"
  OpKind kind{};
  std::int8_t arity = 0;  // -1: any number
  std::uint32_t traits = 0;
  OpCost cost{};
  const char* function = nullptr;  // in src/scalar, for element-wise ops; otherwise null
  // the function's header if not scalar/arithmetic.h; otherwise null
  const char* header = nullptr;
  Neutral neutral;  // for reductions
};

namespace detail {
constexpr const char* header_or_null(const char* text) { return *text == 0 ? nullptr : text; }
}  // namespace detail

inline constexpr OpRow kOpRows[] = {
#define TENON_OP(op, printed, kind, arity, traits, cost) \
  {Op::op, printed, OpKind::kind, arity, traits, cost, nullptr, nullptr, {}},
#define TENON_UNARY(op, printed, domain, function, header, cost, traits) \
  {Op::op,                                                               \
   printed,                                                              \
   OpKind::Elementwise,                                                  \
   1,                                                                    \
   (traits) | kDomain##domain,                                           \
   cost,                                                                 \
   #function,                                                            \
   detail::header_or_null(header),                                       \
   {}},
#define TENON_BINARY(op, printed, domain, function, header, cost, traits) \
  {Op::op,                                                                \
   printed,                                                               \
   OpKind::Elementwise,                                                   \
   2,                                                                     \
   (traits) | kDomain##domain,                                            \
   cost,                                                                  \
   #function,                                                             \
   detail::header_or_null(header),                                        \
   {}},
#define TENON_REDUCTION(op, printed, real, whole) \
  {Op::op, printed, OpKind::Reduction, 1, 0, kReduction, nullptr, nullptr, {real, whole}},
#include "graph/op_table.inc"
};

constexpr const OpRow& op_row(Op op) { return kOpRows[static_cast<int>(op)]; }
constexpr OpKind kind_of(Op op) { return op_row(op).kind; }
constexpr bool has_trait(Op op, OpTrait trait) { return (op_row(op).traits & trait) != 0; }
constexpr bool is_elementwise(Op op, int arity) {
  return kind_of(op) == OpKind::Elementwise && op_row(op).arity == arity;
}
/// One step of arithmetic: recomputing it costs less than storing it.
constexpr bool is_one_step(Op op) {
  return kind_of(op) == OpKind::Elementwise && op_row(op).cost.f32 <= kStep.f32;
}

}  // namespace tenon
