// Rotary positional encoding, and its frequencies for long sequences.
#include <tenon/transformer.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/system/option_ranges.h"
#include "graph/node.h"

namespace tenon::nn {

Tensor rotary(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  if (!x.defined())
    throw make_error<ValueError>(where("rotary"), ": x has no value: it was never assigned");
  if (x.rank() < 2 || x.size(-1) % 2 != 0 || !is_floating(x.dtype()))
    throw make_error<ShapeError>(where("rotary"), ": x is ", x.dtype(), x.shape(),
                                 ", must be floating [.., L, size] with an even size");
  const std::int64_t length = x.size(-2), half = x.size(-1) / 2;
  if (positions.defined() && positions.shape() != Shape{length})
    throw make_error<ShapeError>(where("rotary"), ": the positions are ", positions.shape(),
                                 ", must be [", length, "]");
  const DType wide = x.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor at = cast(positions.defined() ? positions : arange(0, length), wide);
  if (!options.frequencies.empty() && std::ssize(options.frequencies) != half)
    throw make_error<ValueError>(where("rotary"), ": ", options.frequencies.size(),
                                 " frequencies for ", half, " pairs");
  const Tensor rates =
      options.frequencies.empty()
          ? exp(arange(0, half, 1, wide) * (-std::log(options.base) / static_cast<double>(half)))
          : cast(Tensor::from(options.frequencies, {half}), wide);
  const Tensor angle = unsqueeze(at, 1) * rates;  // [L, half]
  const bool scaled = options.scale != 1;
  const Tensor cosine = scaled ? cos(angle) * options.scale : cos(angle);
  const Tensor sine = scaled ? sin(angle) * options.scale : sin(angle), y = cast(x, wide);
  if (!options.interleaved) {
    const std::vector<Tensor> part = split(y, half, -1);
    return cast(concat({part[0] * cosine - part[1] * sine, part[1] * cosine + part[0] * sine}, -1),
                x.dtype());
  }
  Ints sizes(x.shape().begin(), x.shape().end()), pairs = sizes;
  pairs.back() = half;
  pairs.push_back(2);
  const Tensor split_pairs = reshape(y, pairs);
  const Tensor a = select(split_pairs, -1, 0), b = select(split_pairs, -1, 1);
  return cast(reshape(stack({a * cosine - b * sine, b * cosine + a * sine}, -1), sizes), x.dtype());
}

// ---- Long sequences -----------------------------------------------------------------------------

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

std::vector<double> frequencies_of(const char* name, std::int64_t size, double base) {
  if (size < 2 || size % 2 != 0)
    throw make_error<ValueError>(name, ": the size is ", size, ", must be even and at least 2");
  require_range(name, "base", base, finite_above(1));
  std::vector<double> out;
  for (std::int64_t k = 0; k < size; k += 2)
    out.push_back(std::pow(base, -static_cast<double>(k) / static_cast<double>(size)));
  return out;
}

RotaryOptions with(double base, std::vector<double> frequencies, double scale = 1) {
  return {.base = base, .frequencies = std::move(frequencies), .scale = scale};
}

constexpr Range kFactors = finite_from(1), kLengths = at_least(1);

}  // namespace

RotaryOptions rotary_linear(std::int64_t size, double factor, double base) {
  require_range("rotary_linear", "factor", factor, kFactors);
  std::vector<double> out = frequencies_of("rotary_linear", size, base);
  for (double& frequency : out) frequency /= factor;
  return with(base, std::move(out));
}

RotaryOptions rotary_dynamic(std::int64_t size, double factor, std::int64_t trained_length,
                             std::int64_t length, double base) {
  require_range("rotary_dynamic", "factor", factor, kFactors);
  require_range("rotary_dynamic", "trained_length", trained_length, kLengths);
  require_range("rotary_dynamic", "length", length, kLengths);
  if (size < 4)
    throw make_error<ValueError>("rotary_dynamic: the size is ", size, ", must be at least 4");
  const double ratio =
      std::max(1.0, static_cast<double>(length) / static_cast<double>(trained_length));
  const auto width = static_cast<double>(size);
  const double grown = base * std::pow(factor * ratio - (factor - 1), width / (width - 2));
  return with(grown, frequencies_of("rotary_dynamic", size, grown));
}

RotaryOptions rotary_yarn(std::int64_t size, const YarnOptions& o, double base) {
  static constexpr OptionRange<YarnOptions> kRanges[] = {
      {"factor", &YarnOptions::factor, kFactors},
      {"trained_length", &YarnOptions::trained_length, kLengths},
      {"beta_fast", &YarnOptions::beta_fast, finite_above(0)},
      {"beta_slow", &YarnOptions::beta_slow, finite_above(0)},
      {"attention_factor", &YarnOptions::attention_factor, finite_above(0)},
  };
  check_options("rotary_yarn", o, kRanges);
  std::vector<double> out = frequencies_of("rotary_yarn", size, base);
  // The index of the pair that rotates this many times in the trained length.
  const auto pair_of = [&](double rotations) {
    return static_cast<double>(size) *
           std::log(static_cast<double>(o.trained_length) / (rotations * kTurn)) /
           (2 * std::log(base));
  };
  double low = pair_of(o.beta_fast), high = pair_of(o.beta_slow);
  if (o.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(size) - 1);
  if (low == high) high += 0.001;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double slow = std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
    out[k] *= slow / o.factor + (1 - slow);
  }
  return with(base, std::move(out), o.attention_factor.value_or(0.1 * std::log(o.factor) + 1));
}

RotaryOptions rotary_llama3(std::int64_t size, const Llama3RotaryOptions& o, double base) {
  static constexpr OptionRange<Llama3RotaryOptions> kRanges[] = {
      {"factor", &Llama3RotaryOptions::factor, kFactors},
      {"low_freq_factor", &Llama3RotaryOptions::low_freq_factor, finite_above(0)},
      {"high_freq_factor", &Llama3RotaryOptions::high_freq_factor, finite_above(0)},
      {"trained_length", &Llama3RotaryOptions::trained_length, kLengths},
  };
  check_options("rotary_llama3", o, kRanges);
  if (o.low_freq_factor >= o.high_freq_factor)
    throw make_error<ValueError>("rotary_llama3: low_freq_factor is ", o.low_freq_factor,
                                 ", must be below high_freq_factor, ", o.high_freq_factor);
  std::vector<double> out = frequencies_of("rotary_llama3", size, base);
  for (double& frequency : out) {
    const double rotations = static_cast<double>(o.trained_length) * frequency / kTurn;
    const double fast = std::clamp(
        (rotations - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor), 0.0, 1.0);
    frequency *= (1 - fast) / o.factor + fast;
  }
  return with(base, std::move(out));
}

}  // namespace tenon::nn
