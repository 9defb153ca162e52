// Walks over shapes from the innermost axis outwards.
#include "plan/program/strides.h"

namespace tenon {

void contiguous_strides(const Shape& shape, std::int64_t* stride) {
  std::int64_t step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    stride[d] = step;
    step *= shape[d];
  }
}

bool is_contiguous(const View& view, const Shape& space) {
  std::int64_t step[kMaxRank];
  contiguous_strides(space, step);
  for (int d = 0; d < space.rank(); ++d)
    if (space[d] != 1 && view.stride[d] != step[d]) return false;
  return view.offset == 0;
}

bool same_elements(const View& a, const View& b, const Shape& space) {
  for (int d = 0; d < space.rank(); ++d)
    if (space[d] != 1 && a.stride[d] != b.stride[d]) return false;
  return a.offset == b.offset;
}

bool reshape_strides(const Shape& from, const std::int64_t* stride, const Shape& to,
                     std::int64_t* out) {
  if (from.numel() != to.numel()) return false;
  if (from.numel() == 0) {
    contiguous_strides(to, out);
    return true;
  }
  // Walks both shapes from the innermost axis, matching groups of axes with equal element counts.
  // Inside a group the old axes must follow each other in memory without gaps.
  int f = from.rank() - 1, t = to.rank() - 1;
  while (f >= 0 || t >= 0) {
    while (f >= 0 && from[f] == 1) --f;
    if (f < 0) {
      for (; t >= 0; --t) out[t] = 0;  // only axes of size 1 are left
      break;
    }
    std::int64_t old_count = from[f], new_count = 1;
    const std::int64_t inner = stride[f];
    std::int64_t span = stride[f] * from[f];
    int lowest = t + 1;
    while (true) {
      if (new_count < old_count) {
        if (t < 0) return false;
        new_count *= to[t--];
        lowest = t + 1;
      } else if (old_count < new_count) {
        do --f;
        while (f >= 0 && from[f] == 1);
        if (f < 0 || stride[f] != span) return false;
        old_count *= from[f];
        span *= from[f];
      } else {
        break;
      }
    }
    std::int64_t step = inner, covered = 1;
    int d = lowest;
    while (covered < old_count) covered *= to[d++];
    for (int k = d - 1; k >= lowest; --k) {
      out[k] = step;
      step *= to[k];
    }
    --f;
  }
  return true;
}

}  // namespace tenon
