// The operations that Tenon composes from others, for functions.cpp.
#include "conformance/composed_functions.h"

#include <tenon/creation.h>
#include <tenon/rearrange.h>
#include <tenon/statistics.h>

#include "conformance/arguments.h"

using namespace tenon;

namespace conformance {
namespace {

WindowOptions windows(const json& a) {
  return {.kernel = pair(a, "kernel"),
          .dilation = pair(a, "dilation"),
          .padding = pair(a, "padding"),
          .stride = pair(a, "stride")};
}

void add_statistics(Functions& f) {
  f["eye"] = [](const In&, const json& a) -> Out {
    return {eye(a.at("rows").get<std::int64_t>(), a.at("columns").get<std::int64_t>(), dtype(a))};
  };
  f["full_like"] = [](const In& in, const json& a) -> Out {
    return {full_like(tensor(in, 0), number(a.at("value")))};
  };
  f["median"] = [](const In& in, const json& a) -> Out {
    if (!a.contains("axis")) return {median(tensor(in, 0))};
    return both(median(tensor(in, 0), a.at("axis").get<int>(), flag(a, "keepdim")));
  };
  f["quantile"] = [](const In& in, const json& a) -> Out {
    const Ints axes = ints(a, "axes");
    const std::optional<int> axis =
        axes.empty() ? std::optional<int>() : std::optional(static_cast<int>(axes[0]));
    const auto mode = static_cast<QuantileMode>(a.at("mode").get<int>());
    if (in.size() > 1)
      return {quantile(tensor(in, 0), tensor(in, 1), axis, flag(a, "keepdim"), mode)};
    return {quantile(tensor(in, 0), real(a, "q"), axis, flag(a, "keepdim"), mode)};
  };
  f["histc"] = [](const In& in, const json& a) -> Out {
    return {histc(tensor(in, 0), a.at("bins"), real(a, "low"), real(a, "high"))};
  };
  f["bincount"] = [](const In& in, const json& a) -> Out {
    return {bincount(tensor(in, 0), in.size() > 1 ? tensor(in, 1) : Tensor(), a.at("length"))};
  };
  f["searchsorted"] = [](const In& in, const json& a) -> Out {
    return {searchsorted(tensor(in, 0), tensor(in, 1), flag(a, "right"))};
  };
  f["unique"] = [](const In& in, const json&) -> Out {
    const UniqueElements found = unique(tensor(in, 0));
    return {found.values, found.inverse, found.counts};
  };
  f["cummax"] = [](const In& in, const json& a) {
    return both(cummax(tensor(in, 0), a.at("axis")));
  };
  f["cummin"] = [](const In& in, const json& a) {
    return both(cummin(tensor(in, 0), a.at("axis")));
  };
  f["logcumsumexp"] = [](const In& in, const json& a) -> Out {
    return {logcumsumexp(tensor(in, 0), a.at("axis"))};
  };
  f["diff"] = [](const In& in, const json& a) -> Out {
    return {diff(tensor(in, 0), a.at("n"), a.at("axis"))};
  };
  f["trapezoid"] = [](const In& in, const json& a) -> Out {
    if (in.size() > 1) return {trapezoid(tensor(in, 0), tensor(in, 1), a.at("axis").get<int>())};
    return {trapezoid(tensor(in, 0), real(a, "dx"), a.at("axis").get<int>())};
  };
  f["normalize"] = [](const In& in, const json& a) -> Out {
    return {normalize(tensor(in, 0), real(a, "p"), a.at("axis"), real(a, "eps"))};
  };
  f["cdist"] = [](const In& in, const json& a) -> Out {
    return {cdist(tensor(in, 0), tensor(in, 1), real(a, "p"))};
  };
}

void add_products(Functions& f) {
  f["einsum"] = [](const In& in, const json& a) -> Out {
    return {einsum(a.at("equation").get<std::string>(), tensors(in))};
  };
  f["tensordot"] = [](const In& in, const json& a) -> Out {
    if (a.contains("count"))
      return {tensordot(tensor(in, 0), tensor(in, 1), a.at("count").get<int>())};
    return {tensordot(tensor(in, 0), tensor(in, 1), ints(a, "axes_a"), ints(a, "axes_b"))};
  };
  f["outer"] = [](const In& in, const json&) -> Out {
    return {outer(tensor(in, 0), tensor(in, 1))};
  };
  f["kron"] = [](const In& in, const json&) -> Out { return {kron(tensor(in, 0), tensor(in, 1))}; };
  f["trace"] = [](const In& in, const json&) -> Out { return {trace(tensor(in, 0))}; };
  f["diagonal"] = [](const In& in, const json& a) -> Out {
    return {diagonal(tensor(in, 0), a.at("offset"), a.at("a"), a.at("b"))};
  };
  f["diag_embed"] = [](const In& in, const json& a) -> Out {
    return {diag_embed(tensor(in, 0), a.at("offset"))};
  };
}

void add_sliding_windows(Functions& f) {
  f["unfold"] = [](const In& in, const json& a) -> Out {
    return {unfold(tensor(in, 0), windows(a))};
  };
  f["fold"] = [](const In& in, const json& a) -> Out {
    return {fold(tensor(in, 0), pair(a, "output"), windows(a))};
  };
  f["pad_mode"] = [](const In& in, const json& a) -> Out {
    return {pad(tensor(in, 0), ints(a, "padding"), static_cast<PadMode>(a.at("mode").get<int>()))};
  };
  f["pixel_shuffle"] = [](const In& in, const json& a) -> Out {
    return {pixel_shuffle(tensor(in, 0), a.at("by"))};
  };
  f["pixel_unshuffle"] = [](const In& in, const json& a) -> Out {
    return {pixel_unshuffle(tensor(in, 0), a.at("by"))};
  };
  f["channel_shuffle"] = [](const In& in, const json& a) -> Out {
    return {channel_shuffle(tensor(in, 0), a.at("by"))};
  };
  f["masked_select"] = [](const In& in, const json&) -> Out {
    return {masked_select(tensor(in, 0), tensor(in, 1))};
  };
  f["masked_scatter"] = [](const In& in, const json&) -> Out {
    return {masked_scatter(tensor(in, 0), tensor(in, 1), tensor(in, 2))};
  };
  f["nonzero"] = [](const In& in, const json&) -> Out { return {nonzero(tensor(in, 0))}; };
}

}  // namespace

void add_composed(Functions& f) {
  add_statistics(f);
  add_products(f);
  add_sliding_windows(f);
}

}  // namespace conformance
