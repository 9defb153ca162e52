// Linear algebra, for functions.cpp.
#include <cstdlib>
#include <optional>
#include <string>

#include <tenon/linalg.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"

using namespace tenon;

namespace conformance {
namespace {

linalg::Tolerance limits(const json& a) {
  const auto limit = [&](const char* key) {
    return a.contains(key)
               ? std::optional(std::strtod(a.at(key).get<std::string>().c_str(), nullptr))
               : std::nullopt;
  };
  return {.atol = limit("atol"), .rtol = limit("rtol")};
}

// As BEFORE in linalg_adapters.py.
Tensor symmetric(const In& in) { return tensor(in, 0) + transpose(tensor(in, 0)); }

Out parts(const linalg::Checked& checked) { return {checked.result, checked.info}; }
Out parts(const linalg::Lu& f) { return {f.p, f.l, f.u}; }

using One = Tensor (*)(const Tensor&);

void add_solutions(Functions& f) {
  f["linalg.solve"] = [](const In& in, const json& a) -> Out {
    return {linalg::solve(tensor(in, 0), tensor(in, 1), flag(a, "left"))};
  };
  f["linalg.solve_ex"] = [](const In& in, const json& a) {
    return parts(linalg::solve_ex(tensor(in, 0), tensor(in, 1), flag(a, "left")));
  };
  f["linalg.solve_triangular"] = [](const In& in, const json& a) -> Out {
    return {linalg::solve_triangular(tensor(in, 0), tensor(in, 1),
                                     {flag(a, "upper"), flag(a, "left"), flag(a, "unit")})};
  };
  f["linalg.inv_ex"] = [](const In& in, const json&) {
    return parts(linalg::inv_ex(tensor(in, 0)));
  };
  f["linalg.lstsq"] = [](const In& in, const json&) -> Out {
    return {linalg::lstsq(tensor(in, 0), tensor(in, 1)).solution};
  };
  f["linalg.pinv"] = [](const In& in, const json& a) -> Out {
    return {linalg::pinv(tensor(in, 0), limits(a))};
  };
  f["linalg.matrix_rank"] = [](const In& in, const json& a) -> Out {
    return {linalg::matrix_rank(tensor(in, 0), limits(a))};
  };
  f["linalg.tensorinv"] = [](const In& in, const json& a) -> Out {
    return {linalg::tensorinv(tensor(in, 0), a.at("axes"))};
  };
  f["linalg.tensorsolve"] = [](const In& in, const json& a) -> Out {
    return {linalg::tensorsolve(tensor(in, 0), tensor(in, 1), ints(a, "moved"))};
  };
}

void add_triangular_factors(Functions& f) {
  f["linalg.cholesky"] = [](const In& in, const json& a) -> Out {
    return {linalg::cholesky(tensor(in, 0), flag(a, "upper"))};
  };
  f["linalg.cholesky_ex"] = [](const In& in, const json& a) {
    return parts(linalg::cholesky_ex(tensor(in, 0), flag(a, "upper")));
  };
  f["linalg.cholesky_solve"] = [](const In& in, const json& a) -> Out {
    return {linalg::cholesky_solve(tensor(in, 0), tensor(in, 1), flag(a, "upper"))};
  };
  f["linalg.cholesky_inverse"] = [](const In& in, const json& a) -> Out {
    return {linalg::cholesky_inverse(tensor(in, 0), flag(a, "upper"))};
  };
  f["linalg.lu"] = [](const In& in, const json&) { return parts(linalg::lu(tensor(in, 0))); };
  f["linalg.lu_factor"] = [](const In& in, const json&) -> Out {
    const linalg::LuFactor out = linalg::lu_factor(tensor(in, 0));
    return {out.factors, out.pivots};
  };
  f["linalg.lu_unpack"] = [](const In& in, const json&) {
    return parts(linalg::lu_unpack({tensor(in, 0), tensor(in, 1)}));
  };
  f["linalg.lu_solve"] = [](const In& in, const json& a) -> Out {
    return {linalg::lu_solve({tensor(in, 0), tensor(in, 1)}, tensor(in, 2), flag(a, "left"),
                             flag(a, "transposed"))};
  };
  f["linalg.slogdet"] = [](const In& in, const json&) -> Out {
    const linalg::SignAndLog out = linalg::slogdet(tensor(in, 0));
    return {out.sign, out.logabsdet};
  };
}

void add_symmetric_factors(Functions& f) {
  f["linalg.ldl_factor"] = [](const In& in, const json&) -> Out {
    const linalg::LdlFactor out = linalg::ldl_factor(tensor(in, 0));
    return {out.factors, out.pivots};
  };
  f["linalg.ldl_factor_ex"] = [](const In& in, const json&) -> Out {
    const linalg::CheckedLdl out = linalg::ldl_factor_ex(tensor(in, 0));
    return {out.factor.factors, out.factor.pivots, out.info};
  };
  f["linalg.ldl_solve"] = [](const In& in, const json&) -> Out {
    return {linalg::ldl_solve({tensor(in, 0), tensor(in, 1)}, tensor(in, 2))};
  };
}

linalg::MatrixNorm norm_named(const json& a) {
  return a.at("norm") == "nuc" ? linalg::MatrixNorm::Nuclear : linalg::MatrixNorm::Frobenius;
}

void add_matrix_norms(Functions& f) {
  f["linalg.matrix_power"] = [](const In& in, const json& a) -> Out {
    return {linalg::matrix_power(tensor(in, 0), a.at("n"))};
  };
  f["linalg.matrix_norm"] = [](const In& in, const json& a) -> Out {
    const Ints axes = ints(a, "axes");
    if (a.contains("norm"))
      return {linalg::matrix_norm(tensor(in, 0), norm_named(a), axes, flag(a, "keepdim"))};
    return {linalg::matrix_norm(tensor(in, 0), real(a, "p"), axes, flag(a, "keepdim"))};
  };
  f["linalg.cond"] = [](const In& in, const json& a) -> Out {
    if (a.contains("norm")) return {linalg::cond(tensor(in, 0), norm_named(a))};
    return {linalg::cond(tensor(in, 0), real(a, "p"))};
  };
}

// Without the signs of vectors, which an implementation may choose.
void add_orthogonal_factors(Functions& f) {
  f["linalg.qr"] = [](const In& in, const json& a) -> Out {
    const linalg::Qr out = linalg::qr(
        tensor(in, 0), flag(a, "complete") ? linalg::QrMode::Complete : linalg::QrMode::Reduced);
    return {out.q, out.r};
  };
  f["linalg.geqrf"] = [](const In& in, const json&) -> Out {
    const linalg::QrFactor out = linalg::geqrf(tensor(in, 0));
    return {out.packed, out.tau};
  };
  f["linalg.householder_product"] = [](const In& in, const json&) -> Out {
    return {linalg::householder_product(tensor(in, 0), tensor(in, 1))};
  };
  f["linalg.ormqr"] = [](const In& in, const json& a) -> Out {
    return {linalg::ormqr({tensor(in, 0), tensor(in, 1)}, tensor(in, 2), flag(a, "left"),
                          flag(a, "transposed"))};
  };
  f["linalg.svd"] = [](const In& in, const json& a) -> Out {
    const linalg::Svd out = linalg::svd(tensor(in, 0), flag(a, "full"));
    return {abs(out.u), out.s, abs(out.vh)};
  };
  f["linalg.eigh"] = [](const In& in, const json& a) -> Out {
    const linalg::Eigh out = linalg::eigh(symmetric(in), flag(a, "upper"));
    return {out.values, abs(out.vectors)};
  };
  f["linalg.eigvalsh"] = [](const In& in, const json& a) -> Out {
    return {linalg::eigvalsh(symmetric(in), flag(a, "upper"))};
  };
  f["linalg.matrix_sqrth"] = [](const In& in, const json&) -> Out {
    return {linalg::matrix_sqrth(symmetric(in))};
  };
  f["linalg.polar"] = [](const In& in, const json&) -> Out {
    const linalg::Polar out = linalg::polar(tensor(in, 0));
    return {out.u, out.p};
  };
}

}  // namespace

void add_linear_algebra(Functions& f) {
  add_solutions(f);
  add_triangular_factors(f);
  add_orthogonal_factors(f);
  add_symmetric_factors(f);
  add_matrix_norms(f);
  const std::pair<const char*, One> functions[] = {
      {"linalg.inv", linalg::inv},         {"linalg.det", linalg::det},
      {"linalg.logdet", linalg::logdet},   {"linalg.matrix_exp", linalg::matrix_exp},
      {"linalg.svdvals", linalg::svdvals},
  };
  for (const auto& [name, function] : functions)
    f[name] = [function = function](const In& in, const json&) -> Out {
      return {function(tensor(in, 0))};
    };
}

}  // namespace conformance
