// Reads the files of make_fixtures.py and compares with them.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/ops.h>

#include "../base/distance.h"

namespace fixtures {

using tenon::test::distance;

using tenon::DType;
using tenon::Tensor;
using Tensors = std::map<std::string, Tensor>;

/// A fixture file as CASE -> KEY -> tensor: names are split at the first slash.
inline std::map<std::string, Tensors> load(const std::string& name,
                                           const std::string& folder = "tests/e2e/fixtures") {
  std::map<std::string, Tensors> out;
  for (const auto& [key, tensor] :
       tenon::io::load_safetensors(folder + "/" + name + ".safetensors").tensors) {
    const auto slash = key.find('/');
    out[key.substr(0, slash)].emplace(slash == std::string::npos ? "" : key.substr(slash + 1),
                                      tensor);
  }
  return out;
}

/// The tensors of a case whose keys begin with `prefix`, without the prefix.
inline Tensors part(const Tensors& tensors, const std::string& prefix) {
  Tensors out;
  for (const auto& [key, tensor] : tensors)
    if (key.rfind(prefix, 0) == 0) out.emplace(key.substr(prefix.size()), tensor);
  return out;
}

inline std::vector<double> numbers(const Tensor& t) {
  return tenon::cast(t, DType::Float64).to_vector<double>();
}

/// Compares element by element: NaN equals NaN, infinities are equal, numbers have a relative
/// tolerance.
inline bool alike(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.shape() != b.shape()) return false;
  const std::vector<double> x = numbers(a), y = numbers(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same = std::isnan(y[i]) ? std::isnan(x[i])
                                       : x[i] == y[i] || std::fabs(x[i] - y[i]) <=
                                                             tolerance * std::fabs(y[i]) + 1e-37;
    if (same) continue;
    MESSAGE("element " << i << " is " << x[i] << ", PyTorch gives " << y[i]);
    return false;
  }
  return true;
}

/// A shape that is stored as a tensor of sizes.
inline tenon::Shape shape_of(const Tensor& sizes) {
  const auto all = sizes.to_vector<std::int64_t>();
  return {all.data(), static_cast<int>(all.size())};
}

/// The values of values() in fixture_values.py.
inline Tensor values(const std::string& name, const tenon::Shape& shape) {
  std::uint64_t seed = 0xcbf29ce484222325;
  for (const char byte : name) seed = (seed ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  const auto count = static_cast<std::size_t>(shape.numel());
  const double rows = shape.rank() > 1 ? static_cast<double>(shape[0]) : 1;
  const double added =
      name.ends_with(".conv2d.weight") ? 0.25 : 1;  // smaller, relative to the shortcut
  const double scale = std::sqrt(6 * rows / static_cast<double>(count)) * added;
  const bool of_norm = name.ends_with("weight");
  const double share = name.ends_with("bn3.weight") ? 0.125 : 1;
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = seed ^ i;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    const double u = (static_cast<double>(z >> 40) - 8388608) / 8388608;
    out[i] = static_cast<float>(name.ends_with("running_var") ? 1 + u / 2
                                : shape.rank() == 1           ? (u / 8 + (of_norm ? 1 : 0)) * share
                                                              : u * scale);
  }
  return Tensor::from(out, shape);
}

}  // namespace fixtures
