// The operations of elementwise.h and joining.h, for functions.cpp.
#include <optional>

#include <tenon/elementwise.h>
#include <tenon/joining.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"

using namespace tenon;

namespace conformance {
namespace {

std::optional<double> maybe(const json& args, const char* key) {
  return args.contains(key) ? std::optional(real(args, key)) : std::nullopt;
}

void add_elementwise(Functions& f) {
#define TENON_CALL(name, ...)                         \
  f[#name] = [](const In& in, const json& a) -> Out { \
    (void)in, (void)a;                                \
    return {name(__VA_ARGS__)};                       \
  };
#define TENON_A tensor(in, 0)
#define TENON_B tensor(in, 1)
#define TENON_C tensor(in, 2)
  // clang-format off
  TENON_CALL(frac, TENON_A) TENON_CALL(rad2deg, TENON_A) TENON_CALL(deg2rad, TENON_A)
  TENON_CALL(entr, TENON_A) TENON_CALL(ndtr, TENON_A) TENON_CALL(isposinf, TENON_A)
  TENON_CALL(isneginf, TENON_A) TENON_CALL(tanhshrink, TENON_A)
  TENON_CALL(fmax, TENON_A, TENON_B) TENON_CALL(fmin, TENON_A, TENON_B)
  TENON_CALL(fmod, TENON_A, TENON_B) TENON_CALL(heaviside, TENON_A, TENON_B)
  TENON_CALL(ldexp, TENON_A, TENON_B) TENON_CALL(logaddexp2, TENON_A, TENON_B)
  TENON_CALL(xlogy, TENON_A, TENON_B) TENON_CALL(xlog1py, TENON_A, TENON_B)
  TENON_CALL(float_power, TENON_A, TENON_B)
  TENON_CALL(clamp_min, TENON_A, number(a.at("low")))
  TENON_CALL(clamp_max, TENON_A, number(a.at("high")))
  TENON_CALL(logit, TENON_A, maybe(a, "eps"))
  TENON_CALL(nan_to_num, TENON_A, real(a, "nan"), maybe(a, "positive"), maybe(a, "negative"))
  TENON_CALL(softshrink, TENON_A, real(a, "lambd")) TENON_CALL(hardshrink, TENON_A, real(a, "lambd"))
  TENON_CALL(threshold, TENON_A, number(a.at("threshold")), number(a.at("value")))
  TENON_CALL(softmin, TENON_A, a.at("axis")) TENON_CALL(isin, TENON_A, TENON_B, flag(a, "invert"))
  TENON_CALL(addcmul, TENON_A, TENON_B, TENON_C, number(a.at("value")))
  TENON_CALL(addcdiv, TENON_A, TENON_B, TENON_C, number(a.at("value")))
  TENON_CALL(addmm, TENON_A, TENON_B, TENON_C, number(a.at("beta")), number(a.at("alpha")))
  TENON_CALL(addmv, TENON_A, TENON_B, TENON_C, number(a.at("beta")), number(a.at("alpha")))
  TENON_CALL(addr, TENON_A, TENON_B, TENON_C, number(a.at("beta")), number(a.at("alpha")))
  TENON_CALL(baddbmm, TENON_A, TENON_B, TENON_C, number(a.at("beta")), number(a.at("alpha")))
  TENON_CALL(addbmm, TENON_A, TENON_B, TENON_C, number(a.at("beta")), number(a.at("alpha")))
  TENON_CALL(dist, TENON_A, TENON_B, real(a, "p"))
  TENON_CALL(pairwise_distance, TENON_A, TENON_B, real(a, "p"), real(a, "eps"), flag(a, "keepdim"))
  TENON_CALL(cross, TENON_A, TENON_B, a.at("axis"))
  TENON_CALL(hstack, tensors(in)) TENON_CALL(vstack, tensors(in)) TENON_CALL(dstack, tensors(in))
  TENON_CALL(column_stack, tensors(in)) TENON_CALL(block_diag, tensors(in))
  TENON_CALL(cartesian_prod, tensors(in))
  TENON_CALL(movedim, TENON_A, ints(a, "from"), ints(a, "to"))
  TENON_CALL(rot90, TENON_A, a.at("times"), a.at("a"), a.at("b"))
  TENON_CALL(unflatten, TENON_A, a.at("axis"), ints(a, "sizes"))
  TENON_CALL(take, TENON_A, TENON_B)
  TENON_CALL(index_copy, TENON_A, a.at("axis"), TENON_B, TENON_C)
  TENON_CALL(index_fill, TENON_A, a.at("axis"), TENON_B, number(a.at("value")))
  TENON_CALL(select_scatter, TENON_A, TENON_B, a.at("axis"), a.at("index"))
  TENON_CALL(slice_scatter, TENON_A, TENON_B, a.at("axis"), a.at("start"), a.at("end"), a.at("step"))
  TENON_CALL(diag, TENON_A, a.at("offset"))
  TENON_CALL(tril_indices, a.at("rows"), a.at("columns"), a.at("offset"))
  TENON_CALL(triu_indices, a.at("rows"), a.at("columns"), a.at("offset"))
  TENON_CALL(count_nonzero, TENON_A, ints(a, "axes"))
  TENON_CALL(nansum, TENON_A, ints(a, "axes"), flag(a, "keepdim"))
  TENON_CALL(nanmean, TENON_A, ints(a, "axes"), flag(a, "keepdim"))
  TENON_CALL(msort, TENON_A) TENON_CALL(corrcoef, TENON_A) TENON_CALL(cov, TENON_A, real(a, "correction"))
  TENON_CALL(cumulative_trapezoid, TENON_A, real(a, "dx"), a.at("axis"))
  // clang-format on
#undef TENON_CALL
#undef TENON_A
#undef TENON_B
#undef TENON_C
}

void add_several(Functions& f) {
  f["tensor_split"] = [](const In& in, const json& a) -> Out {
    const int axis = a.at("axis");
    if (a.contains("count"))
      return tensor_split(tensor(in, 0), a.at("count").get<std::int64_t>(), axis);
    return tensor_split(tensor(in, 0), ints(a, "places"), axis);
  };
  f["aminmax"] = [](const In& in, const json& a) {
    return both(aminmax(tensor(in, 0), ints(a, "axes"), flag(a, "keepdim")));
  };
  f["var_mean"] = [](const In& in, const json& a) {
    return both(
        var_mean(tensor(in, 0), ints(a, "axes"), flag(a, "keepdim"), real(a, "correction")));
  };
  f["std_mean"] = [](const In& in, const json& a) {
    return both(
        std_mean(tensor(in, 0), ints(a, "axes"), flag(a, "keepdim"), real(a, "correction")));
  };
  f["kthvalue"] = [](const In& in, const json& a) -> Out {
    const ValuesAndIndices found =
        kthvalue(tensor(in, 0), a.at("k"), a.at("axis"), flag(a, "keepdim"));
    return {found.values, found.indices};
  };
}

}  // namespace

void add_named_as_pytorch(Functions& f) {
  add_elementwise(f);
  add_several(f);
}

}  // namespace conformance
