// Names of parametrized weights, and reconstruction of weight-normalised weights (Salimans and
// Kingma, "Weight normalization", 2016). Sums are in float64.
#include "io/weight_norm.h"

#include <cmath>
#include <utility>
#include <vector>

namespace tenon::io {
namespace {

std::vector<double> doubles_of(const Tensor& t) {
  const auto from = [](const auto& values) {
    std::vector<double> out;
    out.reserve(values.size());
    for (const auto value : values) out.push_back(static_cast<double>(static_cast<float>(value)));
    return out;
  };
  switch (t.dtype()) {
    case DType::Float16:
      return from(t.to_vector<float16>());
    case DType::BFloat16:
      return from(t.to_vector<bfloat16>());
    case DType::Float32:
      return from(t.to_vector<float>());
    default:
      return t.to_vector<double>();
  }
}

}  // namespace

std::optional<ParametrizedName> parametrized(std::string_view name) {
  constexpr std::string_view kPath = "parametrizations.";
  const std::size_t at = name.find(kPath);
  if (at != std::string_view::npos && (at == 0 || name[at - 1] == '.')) {
    const std::string_view rest = name.substr(at + kPath.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    return ParametrizedName{std::string(name.substr(0, at)).append(rest.substr(0, dot)),
                            rest.substr(dot + 1)};
  }
  for (const std::string_view part : {"g", "v", "orig", "u"})
    if (name.size() > part.size() + 1 && name.ends_with(part) &&
        name[name.size() - part.size() - 1] == '_')
      return ParametrizedName{std::string(name.substr(0, name.size() - part.size() - 1)),
                              name.substr(name.size() - part.size())};
  return std::nullopt;
}

bool is_weight_norm(const Shape& magnitude, const Shape& direction) {
  if (magnitude.rank() == 0) return true;
  if (magnitude.rank() != direction.rank()) return false;
  int kept = 0;
  for (int axis = 0; axis < magnitude.rank(); ++axis) {
    if (magnitude[axis] == 1) continue;
    if (magnitude[axis] != direction[axis] || ++kept > 1) return false;
  }
  return true;
}

Tensor weight_of_norm(const Tensor& magnitude, const Tensor& direction) {
  const Shape &shape = direction.shape(), &kept = magnitude.shape();
  std::vector<double> values = doubles_of(direction);
  const std::vector<double> sizes = doubles_of(magnitude);
  // One norm for each index of the magnitude's axis.
  std::size_t groups = 1, inner = values.size();
  for (int axis = 0; axis < kept.rank(); ++axis) {
    if (kept[axis] == 1) continue;
    groups = static_cast<std::size_t>(kept[axis]);
    inner = 1;
    for (int next = axis + 1; next < shape.rank(); ++next)
      inner *= static_cast<std::size_t>(shape[next]);
  }
  const auto group_of = [&](std::size_t i) { return inner == 0 ? 0 : i / inner % groups; };
  std::vector<double> scale(groups, 0);
  for (std::size_t i = 0; i < values.size(); ++i) scale[group_of(i)] += values[i] * values[i];
  for (std::size_t k = 0; k < groups; ++k) scale[k] = sizes.at(k) / std::sqrt(scale[k]);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scale[group_of(i)];
  if (direction.dtype() == DType::Float64)
    return Tensor::from_data(values.data(), shape, DType::Float64, Device{});
  const std::vector<float> rounded(values.begin(), values.end());
  return Tensor::from_data(rounded.data(), shape, DType::Float32, Device{});
}

}  // namespace tenon::io
