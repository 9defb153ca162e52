// Strides and titles of items.
#include "plan/regions/items.h"

#include "base/str.h"
#include "graph/node.h"

namespace tenon {

bool is_linear(const Ref& ref, const Shape& base) {
  if (ref.offset != 0 || ref.shape.numel() != base.numel()) return false;
  std::int64_t step = 1;
  for (int d = ref.shape.rank() - 1; d >= 0; --d) {
    if (ref.shape[d] != 1 && ref.stride[d] != step) return false;
    step *= ref.shape[d];
  }
  return true;
}

std::string item_title(const Item& item) {
  const std::string& label = label_text(item.label);
  return label.empty() ? op_info(item.op).name : cat(op_info(item.op).name, " (", label, ")");
}

}  // namespace tenon
