// How much work an op is.
#include "cuda/engines/model.h"

namespace tenon::cuda {

double element_work(Op op) {
  switch (op) {
    case Op::Div:
    case Op::Reciprocal:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Remainder:
      return 10;
    case Op::Exp:
    case Op::Expm1:
    case Op::Log:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tanh:
    case Op::Sigmoid:
    case Op::Erf:
      return 30;
    case Op::Pow:
      return 80;
    default:
      return 1.5;
  }
}

}  // namespace tenon::cuda
