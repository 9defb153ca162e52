// Factors of symmetric matrices that need not be definite.
#include <algorithm>

#include <tenon/creation.h>
#include <tenon/function.h>

#include "linalg/call.h"
#include "linalg/checks.h"
#include "linalg/routines.h"

namespace tenon::linalg {
namespace {

using Tensors = std::vector<Tensor>;

// The same numbers as the result of host code, so that grad() refuses a path through them: a
// derivative by the packed factors is not available.
Tensor without_derivative(const Tensor& x) {
  const auto copy = [](auto element, Inputs in, Outputs out) {
    using T = decltype(element);
    const auto from = in[0].values<T>();
    std::copy(from.begin(), from.end(), out[0].values<T>().begin());
  };
  return call({x}, {{x.dtype(), x.shape()}}, copy)[0];
}

// A is symmetric, so the gradient of b is the solution for the gradient of x.
Tensor solution_of(const Tensor& ld, const Tensor& pivots, const Tensor& b) {
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) { return Tensors{solve_ldl(in[0], in[1], in[2])}; },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensors& in = context.arguments();
        return Tensors{zeros_like(in[0]), {}, solution_of(in[0], in[1], g[0])};
      });
  return function(ld, pivots, b);
}

}  // namespace

LdlFactor ldl_factor(const Tensor& a) {
  const Called called("linalg::ldl_factor");
  require_square(a);
  const LdlFactors out = factor_ldl(a, Failure::Throw);
  return {out.ld, out.pivots};
}

CheckedLdl ldl_factor_ex(const Tensor& a) {
  const Called called("linalg::ldl_factor_ex");
  require_square(a);
  const LdlFactors out = factor_ldl(a, Failure::Info);
  return {{out.ld, out.pivots}, out.info};
}

Tensor ldl_solve(const LdlFactor& factor, const Tensor& b) {
  const Called called("linalg::ldl_solve");
  require_square(factor.factors);
  require_matrices(b);
  require_same_dtype(factor.factors, b);
  const Tensor& a = factor.factors;
  if (b.size(-2) != a.size(-1))
    throw make_error<ShapeError>(where("linalg"), ": matrices ", a.shape(), " need ", a.size(-1),
                                 " rows on the right-hand side, which is ", b.shape());
  if (factor.pivots.dtype() != DType::Int32)
    throw make_error<DTypeError>(where("linalg"), ": pivots of ", factor.pivots.dtype(),
                                 ", must be int32");
  if (factor.pivots.shape() != with_last(a.shape(), 1, {}))
    throw make_error<ShapeError>(where("linalg"), ": factors ", a.shape(), " need pivots ",
                                 with_last(a.shape(), 1, {}), ", not ", factor.pivots.shape());
  const auto [factors, sides] = with_common_batch(without_derivative(a), b);
  const Tensor pivots = broadcast_to(factor.pivots, with_last(factors.shape(), 1, {}));
  return solution_of(factors, pivots, sides);
}

}  // namespace tenon::linalg
