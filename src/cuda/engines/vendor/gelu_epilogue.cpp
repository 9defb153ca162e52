// Recognises an epilogue by its values: differentiation, merged factors and the order of terms give
// one function many forms. Epilogues of sums, products and sigmoids alone are analytic, so an
// epilogue that agrees with a function at some unrelated points agrees everywhere.
#include "cuda/engines/vendor/gelu_epilogue.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "plan/program/strides.h"

namespace tenon::cuda {
namespace {

/// A point: the product's result and the loaded value.
struct Place {
  double result, loaded;
};
constexpr Place kPlaces[] = {{.37, -.61}, {-1.29, .83},  {2.11, 1.57}, {-.53, -2.23},
                             {1.73, .19}, {-2.71, 2.39}, {.07, -.31},  {3.19, -1.13}};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Without roundings; NaN from the first other instruction on.
std::vector<double> values_at(const MapProgram& map, const Place& place) {
  std::vector<double> out;
  out.reserve(map.instrs.size());
  for (const MapInstr& i : map.instrs) {
    const auto argument = [&](int k) { return out[at(i.args[k])]; };
    double value = NAN;
    if (i.code == MapCode::Accumulator) value = place.result;
    if (i.code == MapCode::Load) value = place.loaded;
    if (i.code == MapCode::Number) value = i.attrs.as<ConstantAttrs>().value.real();
    if (i.code == MapCode::Compute && is_floating(i.dtype)) {
      if (i.op == Op::Cast) value = argument(0);
      if (i.op == Op::Add) value = argument(0) + argument(1);
      if (i.op == Op::Sub) value = argument(0) - argument(1);
      if (i.op == Op::Mul) value = argument(0) * argument(1);
      if (i.op == Op::Neg) value = -argument(0);
      if (i.op == Op::Square) value = argument(0) * argument(0);
      if (i.op == Op::Sigmoid) value = sigmoid(argument(0));
    }
    out.push_back(value);
  }
  return out;
}

constexpr double kScale = 1.5957691216057308, kCube = 0.044715;  // 2 sqrt(2 / pi)

double gelu(double x) { return x * sigmoid(kScale * x * (1 + kCube * x * x)); }

double gelu_slope(double x) {
  const double gate = sigmoid(kScale * x * (1 + kCube * x * x));
  return gate + x * gate * (1 - gate) * kScale * (1 + 3 * kCube * x * x);
}

/// True if an instruction computes f(result, loaded). Constants are float32.
template <class F>
bool is_function(const MapProgram& map, int source, const F& f) {
  constexpr double kNear = 1e-5;
  return std::all_of(std::begin(kPlaces), std::end(kPlaces), [&](const Place& place) {
    const double got = values_at(map, place)[at(source)], wanted = f(place);
    return std::abs(got - wanted) <= kNear * std::abs(wanted);
  });
}

/// True for a vector along the columns.
bool is_along_columns(const View& view, const Shape& space) {
  return (space[2] == 1 || view.stride[2] == 1) && (space[1] == 1 || view.stride[1] == 0) &&
         (space[0] == 1 || view.stride[0] == 0);
}

/// The only load of an epilogue; null if there is none or several.
const MapInstr* only_load(const MapProgram& map) {
  const MapInstr* found = nullptr;
  for (const MapInstr& i : map.instrs) {
    if (i.code != MapCode::Load) continue;
    if (found != nullptr) return nullptr;
    found = &i;
  }
  return found;
}

}  // namespace

std::optional<GeluEpilogue> gelu_epilogue(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  const MapProgram& map = region.map;
  const auto is_whole = [&](const View& view) {
    return values[at(view.value)].dtype == c.compute() && is_contiguous(view, map.space);
  };
  if (!c.has_epilogue || c.out != kNoValue || c.dtype != DType::Float32 ||
      !vendor_is_short(c.compute()) || !map.reduces.empty() || map.stores.empty() ||
      map.stores.size() > 2 ||
      !std::all_of(map.stores.begin(), map.stores.end(),
                   [&](const MapStore& store) { return is_whole(store.view); }))
    return {};
  const MapInstr* load = only_load(map);
  if (load == nullptr) return {};
  GeluEpilogue e;
  if (is_whole(load->view)) {
    const auto gradient = [](const Place& p) { return p.result * gelu_slope(p.loaded); };
    if (map.stores.size() != 1 || map.stores[0].view.value == load->view.value ||
        !is_function(map, map.stores[0].source, gradient))
      return {};
    e.gradient = true;
    e.input = load->view.value;
    e.out = map.stores[0].view.value;
    return e;
  }
  if (load->dtype != DType::Float32 || !is_along_columns(load->view, map.space)) return {};
  e.bias = load->view;
  for (const MapStore& store : map.stores) {
    const auto sum = [](const Place& p) { return p.result + p.loaded; };
    ValueId* place = nullptr;
    if (is_function(map, store.source, [&](const Place& p) { return gelu(sum(p)); }))
      place = &e.out;
    else if (is_function(map, store.source, sum))
      place = &e.input;
    if (place == nullptr || *place != kNoValue) return {};  // the library stores each once
    *place = store.view.value;
  }
  if (e.out == kNoValue) return {};
  return e;
}

}  // namespace tenon::cuda
