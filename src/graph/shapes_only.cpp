// One flag for each thread.
#include <tenon/shapes_only.h>

#include <utility>

#include "graph/node.h"

namespace tenon {
namespace {
thread_local bool t_shapes_only = false;
}  // namespace

ShapesOnly::ShapesOnly() noexcept : before_(std::exchange(t_shapes_only, true)) {}
ShapesOnly::~ShapesOnly() { t_shapes_only = before_; }
bool ShapesOnly::is_on() noexcept { return t_shapes_only; }

Tensor without_memory(const Shape& shape, DType dtype, Device device) {
  return make_data(Buffer::none(device), shape, dtype);
}

}  // namespace tenon
