// The space of a group's epilogue.
#include "plan/regions/groups.h"

namespace tenon {

Shape epilogue_space(Op op, const Shape& s, bool channels_last) {
  if (channels_last) return {1, s[0] * s[1] * s[2], s[3]};
  if (op == Op::Matmul) {
    std::int64_t batch = 1;
    for (int d = 0; d < s.rank() - 2; ++d) batch *= s[d];
    return {batch, s[s.rank() - 2], s[s.rank() - 1]};
  }
  if (op == Op::Conv2dWeightGrad) return {1, s[0], s[1] * s[2] * s[3]};
  return {s[0], s[1], s[2] * s[3]};
}

Shape epilogue_space(const Item& contraction) {
  return epilogue_space(contraction.op, contraction.shape, contraction.channels_last);
}

}  // namespace tenon
