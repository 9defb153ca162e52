// The von Mises distribution.
#include <tenon/creation.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// The angle in [-π, π).
Tensor wrapped(const Tensor& angle) {
  return remainder(angle + std::numbers::pi, kTurn) - std::numbers::pi;
}
// The mean of cos(x - loc).
Tensor resultant(const State& d) { return i1e(d[1]) / i0e(d[1]); }

}  // namespace

static const Family kVonMises{
    .name = "VonMises",
    .parameters = {{"loc"}, {"concentration", Range::Positive}},
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return wrapped(d[0] + von_mises_sample(broadcast_to(d[1], shape), generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          // cos(x) - 1, accurate near 0
          const Tensor below_1 = square(sin((x - d[0]) * 0.5)) * -2;
          return d[1] * below_1 - log(i0e(d[1])) - std::log(kTurn);
        },
    .mean = [](const State& d) { return d[0]; },
    .variance = [](const State& d) { return 1 - resultant(d); },
    .mode = [](const State& d) { return d[0]; },
    .entropy =
        [](const State& d) { return d[1] * (1 - resultant(d)) + log(i0e(d[1])) + std::log(kTurn); },
};
VonMises::VonMises(const Argument& loc, const Argument& concentration)
    : Distribution(made(kVonMises, {loc, concentration})) {}

}  // namespace tenon::distributions
