// A contraction takes the first of its readers' groups that can be its epilogue. Groups that cannot
// say why not in the contraction's notes.
#include "plan/regions/epilogues.h"

#include "base/str.h"
#include "ops/table.h"
#include "plan/regions/rows.h"

namespace tenon {
namespace {

/// Empty if group b can become the epilogue of contraction c; the two are then adjacent in the
/// order.
std::string refusal_of(Grouping& groups, int c, int b, const Shape& space) {
  const Group& grp = groups.group(b);
  const Item& contraction = groups.item(c);
  if (contraction.dtype != DType::Float32)
    return cat("only a float32 result has one, and this result is ", contraction.dtype);
  if (grp.row_axes != 0) return "it reduces rows";
  if (grp.space.numel() != contraction.shape.numel())
    return "it has another number of elements than the result";
  std::int64_t scratch[kMaxRank];
  for (int i : grp.items) {
    const Item& item = groups.item(i);
    if (groups.role(i) != Role::Element) return "it reduces its elements";
    if (item.op == Op::Random) return "it draws random numbers";
    for (const Ref& arg : item.args) {
      if (arg.item == c) {
        if (!is_linear(arg, contraction.shape)) return "it reads the result in another order";
      } else if (groups.owner(arg.item) != b && groups.item(arg.item).op != Op::Constant &&
                 !reshape_strides(arg.shape, arg.stride, space, scratch)) {
        return "an operand of it cannot be read by strides over [batch, rows, columns]";
      }
    }
  }
  if (!groups.assignments_allow(groups.owner(c), b))
    return "the contraction reads the variable that it assigns";
  if (!groups.make_adjacent(c, grp.items[0]))
    return "it needs a result that depends on this contraction";
  return "";
}

/// Whether the contraction got an epilogue.
bool attach(Grouping& groups, int c) {
  const Item& contraction = groups.item(c);
  const Shape space = epilogue_space(contraction);
  for (int user : contraction.users) {
    const int b = groups.owner(user);
    if (b < 0 || groups.group(b).kind != RegionKind::Map) continue;
    const int a = groups.owner(c);
    const std::string refusal = refusal_of(groups, c, b, space);
    if (!refusal.empty()) {
      groups.note(a,
                  cat("no element-wise epilogue ", item_title(groups.item(user)), ": ", refusal));
      continue;
    }
    groups.group(a).space = groups.group(b).space;
    groups.absorb(a, b);
    return true;
  }
  return false;
}

}  // namespace

int attach_epilogues(Grouping& groups) {
  int count = 0;
  for (int k = 0; k < groups.item_count(); ++k)
    if (groups.item(k).kind == OpKind::Contraction) count += attach(groups, k) ? 1 : 0;
  return count;
}

}  // namespace tenon
