// How much work an op is.
#include "cuda/engines/model.h"

#include "cuda/engines/print_code.h"

namespace tenon::cuda {

double element_work(Op op) {
  if (scalar_header(op) != nullptr) return 30;  // a series of its own
  switch (op) {
    case Op::Div:
    case Op::Reciprocal:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Remainder:
      return 10;
    default:
      return 1.5;
  }
}

}  // namespace tenon::cuda
