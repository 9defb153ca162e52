// The losses of losses.h, for functions.cpp.
#include <tenon/losses.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"

using namespace tenon;

namespace conformance {

void add_more_losses(Functions& f) {
  f["margin_ranking_loss"] = [](const In& in, const json& a) -> Out {
    return {margin_ranking_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2), real(a, "margin"),
                                reduction(a))};
  };
  f["hinge_embedding_loss"] = [](const In& in, const json& a) -> Out {
    return {hinge_embedding_loss(tensor(in, 0), tensor(in, 1), real(a, "margin"), reduction(a))};
  };
  f["soft_margin_loss"] = [](const In& in, const json& a) -> Out {
    return {soft_margin_loss(tensor(in, 0), tensor(in, 1), reduction(a))};
  };
  f["multi_margin_loss"] = [](const In& in, const json& a) -> Out {
    return {multi_margin_loss(tensor(in, 0), tensor(in, 1), a.at("p"), real(a, "margin"),
                              reduction(a))};
  };
  f["cosine_embedding_loss"] = [](const In& in, const json& a) -> Out {
    return {cosine_embedding_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2), real(a, "margin"),
                                  reduction(a))};
  };
  f["triplet_margin_loss"] = [](const In& in, const json& a) -> Out {
    return {triplet_margin_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2),
                                {.margin = real(a, "margin"),
                                 .p = real(a, "p"),
                                 .eps = real(a, "eps"),
                                 .swap = flag(a, "swap"),
                                 .reduction = reduction(a)})};
  };
  f["poisson_nll_loss"] = [](const In& in, const json& a) -> Out {
    return {poisson_nll_loss(tensor(in, 0), tensor(in, 1), flag(a, "log_input"), flag(a, "full"),
                             real(a, "eps"), reduction(a))};
  };
  f["gaussian_nll_loss"] = [](const In& in, const json& a) -> Out {
    return {gaussian_nll_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2), flag(a, "full"),
                              real(a, "eps"), reduction(a))};
  };
  f["multilabel_soft_margin_loss"] = [](const In& in, const json& a) -> Out {
    return {multilabel_soft_margin_loss(tensor(in, 0), tensor(in, 1),
                                        in.size() > 2 ? tensor(in, 2) : Tensor(), reduction(a))};
  };
  f["multilabel_margin_loss"] = [](const In& in, const json& a) -> Out {
    return {multilabel_margin_loss(tensor(in, 0), tensor(in, 1), reduction(a))};
  };
  f["ctc_loss"] = [](const In& in, const json& a) -> Out {
    return {ctc_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2), tensor(in, 3),
                     {.blank = a.at("blank"),
                      .reduction = reduction(a),
                      .zero_infinity = flag(a, "zero_infinity")})};
  };
}

}  // namespace conformance
