// The table of ops: joins each row of graph/op_table.inc with its functions from rules.inc.
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
#define TENON_SET_composite(name) \
  info.vjp = vjp_##name, info.decompose = decompose_##name, given.decompose = true
#define TENON_SET_loop(name)                                                             \
  info.infer_result = infer_##name##_result, info.result_count = count_##name##_results, \
  given.infer_result = true
#define TENON_SET_results(name) TENON_SET_loop(name), info.vjp_results = vjp_##name
#define TENON_SET_composites(name) \
  TENON_SET_results(name), info.decompose_result = decompose_##name, given.decompose_result = true

// Which functions a rule provides. Needed because under -fsanitize=undefined GCC does not compare a
// function's address with null in a constant expression.
struct Given {
  bool infer = false, decompose = false, infer_result = false, decompose_result = false;
};
struct Table {
  std::array<OpInfo, kOpCount> rows{};
  std::array<Given, kOpCount> given{};
};

constexpr Table make_table() {
  Table table{};
#define TENON_RULE(op, inference, gradient)                       \
  {                                                               \
    OpInfo& info = table.rows[static_cast<std::size_t>(Op::op)];  \
    Given& given = table.given[static_cast<std::size_t>(Op::op)]; \
    static_cast<OpRow&>(info) = op_row(Op::op);                   \
    info.infer = infer_##inference;                               \
    given.infer = true;                                           \
    TENON_SET_##gradient;                                         \
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
constexpr Table kTable = make_table();

constexpr int kRules = 0
#define TENON_RULE(...) +1
#include "ops/rules.inc"
    ;

constexpr bool is_complete() {
  for (std::size_t i = 0; i < kTable.rows.size(); ++i) {
    const OpInfo& info = kTable.rows[i];
    const Given& given = kTable.given[i];
    const bool several = has_trait(info.op, kSeveralResults);
    const bool composite = info.kind == OpKind::Composite;
    if (!given.infer || (composite && !several) != given.decompose ||
        (info.kind == OpKind::Attention || info.kind == OpKind::Function ||
         (composite && several)) != given.decompose_result ||
        several != given.infer_result)
      return false;
  }
  return kRules == kOpCount;
}
static_assert(is_complete(), "one rule for each op, of the kind that its row says");

}  // namespace

const OpInfo& op_info(Op op) { return kTable.rows[static_cast<std::size_t>(op)]; }

}  // namespace tenon
