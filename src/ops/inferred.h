// What inference finds out about the result of an operation.
#pragma once

#include <tenon/dtype.h>
#include <tenon/shape.h>

namespace tenon {

struct Inferred {
  DType dtype;
  Shape shape;
};

}  // namespace tenon
