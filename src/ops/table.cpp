// The table of ops: a row of graph/op_table.inc and the functions of rules.inc each.
#include "ops/table.h"

#include <array>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr const char* kLeaf = "a leaf has no inputs";
constexpr const char* kBool = "its result is bool, which has no gradient";
constexpr const char* kIndex = "its result is an index, which has no gradient";
constexpr const char* kStops = "it stops the gradient by definition";

#define TENON_SET_vjp(name) info.vjp = vjp_##name
#define TENON_SET_none(reason) info.no_grad_reason = reason
#define TENON_SET_composite(name) info.vjp = vjp_##name, info.decompose = decompose_##name
#define TENON_SET_loop(name) \
  info.infer_result = infer_##name##_result, info.result_count = count_##name##_results
#define TENON_SET_results(name) TENON_SET_loop(name), info.vjp_results = vjp_##name
#define TENON_SET_composites(name) TENON_SET_results(name), info.decompose_result = decompose_##name

constexpr std::array<OpInfo, kOpCount> make_table() {
  std::array<OpInfo, kOpCount> table{};
  const auto fresh = [&table](Op op, Infer& infer) -> OpInfo& {
    OpInfo& info = table[static_cast<std::size_t>(op)];
    static_cast<OpRow&>(info) = op_row(op);
    info.infer = infer;
    return info;
  };
#define TENON_RULE(op, inference, gradient)          \
  {                                                  \
    OpInfo& info = fresh(Op::op, infer_##inference); \
    TENON_SET_##gradient;                            \
  }
#include "ops/rules.inc"
#undef TENON_SET_vjp
#undef TENON_SET_none
#undef TENON_SET_composite
#undef TENON_SET_loop
#undef TENON_SET_results
#undef TENON_SET_composites
  return table;
}
constexpr std::array<OpInfo, kOpCount> kTable = make_table();

constexpr int kRules = 0
#define TENON_RULE(...) +1
#include "ops/rules.inc"
    ;

constexpr bool is_complete() {
  for (const OpInfo& info : kTable)
    if (info.infer == nullptr || (info.kind == OpKind::Composite) != (info.decompose != nullptr) ||
        (info.kind == OpKind::Attention) != (info.decompose_result != nullptr) ||
        has_trait(info.op, kSeveralResults) != (info.infer_result != nullptr))
      return false;
  return kRules == kOpCount;
}
static_assert(is_complete(), "one rule for each op, of the kind that its row says");

}  // namespace

const OpInfo& op_info(Op op) { return kTable[static_cast<std::size_t>(op)]; }

}  // namespace tenon
