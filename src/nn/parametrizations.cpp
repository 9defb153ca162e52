// A parametrized layer builds its graph with the parameters that it was made with and a stand-in
// for the input; then the computed parameter and the input replace them. So any layer can be
// parametrized, and needs no code for it.
#include <tenon/parametrizations.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/linalg.h>
#include <tenon/ops.h>
#include <tenon/rearrange.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/tracing/body.h"

namespace tenon::nn {

// The layer keeps parameters of its own, which no graph reads in the end. They are behind a
// pointer, so that a copy of the wrapper still finds the nodes that the layer builds its graph
// with.
struct ParametrizedLayer::Inner {
  AnyModule layer;
  std::string name;
  Tensor value;
  std::vector<Tensor> others;
};

namespace {

/// A module that only has a child or parameters, for their names.
struct Named : ModuleBase {
  explicit Named(const std::string& name, const AnyModule& module) { child(name, module); }
};

}  // namespace

ParametrizedLayer::ParametrizedLayer(const AnyModule& layer, const std::string& name)
    : inner_(new Inner{layer, name, {}, {}}) {
  if (!layer.takes_one_tensor() || !layer.children().empty() || !layer.named_buffers().empty())
    throw make_error<ValueError>(
        layer.describe(),
        " cannot be parametrized: take a layer with one input and one output, "
        "and without children and buffers, such as Linear or Conv2d");
  for (const NamedTensor& p : layer.named_parameters())
    if (p.name == name) {
      inner_->value = p.tensor;
    } else {
      inner_->others.push_back(p.tensor);
      kept_.push_back(parameter(p.name, p.tensor));
    }
  if (!inner_->value.defined())
    throw make_error<ValueError>(layer.describe(), " cannot be parametrized: it has no parameter '",
                                 name, "'");
}

void ParametrizedLayer::hold(const AnyModule& module) {
  child("parametrizations", Named(inner_->name, module));
}

const Tensor& ParametrizedLayer::initial() const { return inner_->value; }
std::string ParametrizedLayer::layer_text() const { return inner_->layer.describe(); }

Tensor ParametrizedLayer::forward(const Tensor& x) const {
  const Tensor computed = value();
  if (inner_->value.dtype() != computed.dtype()) inner_->layer.to(computed.dtype());
  const Tensor stand_in = zeros(x.shape(), x.dtype());
  Substitution instead{{stand_in.node(), x}, {inner_->value.node(), computed}};
  for (std::size_t k = 0; k < kept_.size(); ++k)
    instead.emplace(inner_->others[k].node(), kept_[k]);
  const Tensor y = inner_->layer.forward(stand_in);
  return substitute({&y, 1}, instead)[0];
}

// ---- Functions of one original ------------------------------------------------------------------

namespace {

struct Original : ModuleBase {
  Original(const Tensor& value, const AnyModule& function)
      : original(parameter("original", value)) {
    child("0", function);
  }
  Tensor original;
};

}  // namespace

Parametrized::Parametrized(const AnyModule& layer, const std::string& name,
                           const AnyModule& function)
    : ParametrizedLayer(layer, name), function_(function) {
  hold_original(name, initial());
}
Parametrized::Parametrized(const AnyModule& layer, const std::string& name,
                           const AnyModule& function, const Tensor& original)
    : ParametrizedLayer(layer, name), function_(function) {
  hold_original(name, original);
}

void Parametrized::hold_original(const std::string& name, const Tensor& original) {
  const Original held(original, function_);
  original_ = held.original;
  hold(held);
  if (const Tensor made = function_(initial()); made.shape() != initial().shape())
    throw make_error<ShapeError>(describe(), ": the function makes ", made.shape(), " of '", name,
                                 "' ", initial().shape(), ", must keep the shape");
}

Tensor Parametrized::value() const { return function_(original_); }

std::string Parametrized::describe() const {
  return cat("Parametrized(", layer_text(), ", ", function_.describe(), ")");
}

// ---- Weight norm --------------------------------------------------------------------------------

namespace {

struct Direction : ModuleBase {
  Direction(const Tensor& norms, const Tensor& direction)
      : original0(parameter("original0", norms)), original1(parameter("original1", direction)) {}
  Tensor original0, original1;
};

int checked_axis(const char* layer, const Tensor& value, int axis) {
  if (axis < -value.rank() || axis >= value.rank())
    throw make_error<ValueError>(layer, ": the axis is ", axis, ", but the parameter is ",
                                 value.shape());
  return axis < 0 ? axis + value.rank() : axis;
}

Tensor norms_of(const Tensor& value, const std::optional<int>& axis) {
  if (!axis) return sqrt(sum(square(value)));
  Ints others;
  for (int k = 0; k < value.rank(); ++k)
    if (k != *axis) others.push_back(k);
  return others.empty() ? abs(value) : sqrt(sum(square(value), others, true));
}

}  // namespace

WeightNorm::WeightNorm(const AnyModule& layer, const WeightNormOptions& options)
    : ParametrizedLayer(layer, options.name), axis_(options.axis) {
  if (axis_) axis_ = checked_axis("WeightNorm", initial(), *axis_);
  const Direction held(norms_of(initial(), axis_), initial());
  norms_ = held.original0;
  direction_ = held.original1;
  hold(held);
}

Tensor WeightNorm::value() const { return direction_ * (norms_ / norms_of(direction_, axis_)); }

std::string WeightNorm::describe() const {
  return cat("WeightNorm(", layer_text(), axis_ ? cat(", axis=", *axis_) : ", axis=none", ")");
}

// ---- Spectral norm ------------------------------------------------------------------------------

namespace {

class Spectral : public Module {
 public:
  Spectral(const Tensor& weight, const SpectralNormOptions& o)
      : axis_(checked_axis("SpectralNorm", weight, o.axis)),
        iterations_(o.n_power_iterations),
        eps_(o.eps) {
    if (weight.rank() < 2)
      throw make_error<ValueError>("SpectralNorm: '", o.name, "' is ", weight.shape(),
                                   ", must have two axes or more");
    if (iterations_ < 1 || !(eps_ >= 0))
      throw make_error<ValueError>("SpectralNorm: n_power_iterations is ", iterations_, ", eps ",
                                   eps_, ", must be at least 1 and at least 0");
    const Tensor matrix = matrix_of(weight);
    const auto start = [&](int axis) {
      return unit(cast(randn({matrix.size(axis)}, DType::Float32, o.generator), weight.dtype()));
    };
    Vectors first{start(0), start(1)};
    for (int k = 0; k < 15; ++k) first = iterated(matrix, first);
    u_ = buffer("_u", first.u);
    v_ = buffer("_v", first.v);
  }
  Tensor forward(const Tensor& weight) const override {
    const Tensor matrix = matrix_of(weight);
    Vectors now{u_, v_};
    if (is_training()) {
      for (int k = 0; k < iterations_; ++k) now = iterated(detach(matrix), now);
      update(u_, now.u);
      update(v_, now.v);
    }
    return weight / sum(now.u * matmul(matrix, now.v));
  }
  std::string describe() const override { return "SpectralNorm"; }

 private:
  struct Vectors {
    Tensor u, v;
  };
  Tensor matrix_of(const Tensor& weight) const {
    Axes order{axis_};
    for (int k = 0; k < weight.rank(); ++k)
      if (k != axis_) order.push_back(k);
    return flatten(permute(weight, order), 1);
  }
  Tensor unit(const Tensor& x) const { return x / maximum(sqrt(sum(square(x))), eps_); }
  Vectors iterated(const Tensor& matrix, const Vectors& at) const {
    const Tensor u = unit(matmul(matrix, at.v));
    return {u, unit(matmul(transpose(matrix, 0, 1), u))};
  }
  int axis_, iterations_;
  double eps_;
  Tensor u_, v_;
};

Tensor parameter_of(const char* owner, const AnyModule& layer, const std::string& name) {
  for (const NamedTensor& p : layer.named_parameters())
    if (p.name == name) return p.tensor;
  throw make_error<ValueError>(owner, ": ", layer.describe(), " has no parameter '", name, "'");
}

}  // namespace

SpectralNorm::SpectralNorm(const AnyModule& layer, const SpectralNormOptions& options)
    : Parametrized(layer, options.name,
                   Spectral(parameter_of("SpectralNorm", layer, options.name), options)) {}

// ---- Orthogonal matrices ------------------------------------------------------------------------

namespace {

bool is_wide(const Tensor& matrix) { return matrix.size(-2) < matrix.size(-1); }
// Matrices that are at least as high as wide.
Tensor upright(const Tensor& matrix) { return is_wide(matrix) ? transpose(matrix) : matrix; }
Tensor identity_for(const Tensor& matrix) {
  return eye(matrix.size(-2), matrix.size(-1), matrix.dtype());
}
Tensor column_signs(const linalg::QrFactor& factor) {
  return unsqueeze(sign(diagonal(factor.packed, 0, -2, -1)), -2);
}
// The orthogonal factor, with a positive diagonal of the other one.
Tensor orthogonal_factor(const Tensor& matrix) {
  const linalg::QrFactor factor = linalg::geqrf(matrix);
  return linalg::householder_product(factor.packed, factor.tau) * column_signs(factor);
}
// Square, with random columns.
Tensor completed(const Tensor& matrix, const OptionalGenerator& generator) {
  Shape more = matrix.shape();
  more[more.rank() - 1] = matrix.size(-2) - matrix.size(-1);
  return concat({matrix, randn(more, matrix.dtype(), generator)}, -1);
}

// The original for which the reflections give the orthogonal factor of the weight.
Tensor reflections_of(const Tensor& weight) {
  const linalg::QrFactor factor = linalg::geqrf(upright(weight));
  // A reflection that LAPACK leaves out is one at the axis here.
  const Tensor signs = column_signs(factor);
  const Tensor is_missing = eq(unsqueeze(factor.tau, -2), 0.0);
  const Tensor out =
      tril(factor.packed, -1) + identity_for(factor.packed) * where(is_missing, -signs, signs);
  return is_wide(weight) ? transpose(out) : out;
}

class OrthogonalMatrices : public Module {
 public:
  OrthogonalMatrices(const Tensor& weight, const OrthogonalOptions& o)
      : map_(o.map.value_or(weight.size(-1) == weight.size(-2) ? OrthogonalMap::MatrixExp
                                                               : OrthogonalMap::Householder)) {
    if (o.use_trivialization)
      base_ = buffer("base", orthogonal_factor(completed(upright(detach(weight)), o.generator)));
  }
  // For which forward() gives the weight's orthogonal factor.
  Tensor original(const Tensor& weight) const {
    if (base_.defined()) return identity_for(weight) * -1.0 + zeros_like(weight);
    return map_ == OrthogonalMap::Householder ? reflections_of(weight) : weight;
  }
  Tensor forward(const Tensor& original) const override {
    const Tensor x = upright(original);
    const Tensor columns = map_ == OrthogonalMap::Householder ? reflected(x) : rotated(x);
    const Tensor q = base_.defined() ? matmul(base_, columns) : columns;
    return is_wide(original) ? transpose(q) : q;
  }
  std::string describe() const override { return "Orthogonal"; }

 private:
  // The diagonal holds signs only, which are constants.
  static Tensor reflected(const Tensor& x) {
    const Tensor below = tril(x, -1), scale = 2.0 / (sum(square(below), -2) + 1.0);
    const Tensor signs = detach(sign(diagonal(x, 0, -2, -1)));
    return linalg::householder_product(below, scale) * unsqueeze(signs, -2);
  }
  Tensor rotated(const Tensor& x) const {
    const std::int64_t n = x.size(-2), k = x.size(-1);
    const Tensor lower = pad(tril(x), {0, n - k}), skew = lower - transpose(lower);
    if (map_ == OrthogonalMap::MatrixExp) return slice(linalg::matrix_exp(skew), -1, 0, k);
    const Tensor half = skew * 0.5, identity = identity_for(skew);
    return slice(linalg::solve(identity - half, identity + half), -1, 0, k);
  }
  OrthogonalMap map_;
  Tensor base_;
};

std::pair<AnyModule, Tensor> function_and_original(const AnyModule& layer,
                                                   const OrthogonalOptions& options) {
  const Tensor weight = parameter_of("Orthogonal", layer, options.name);
  if (weight.rank() < 2)
    throw make_error<ValueError>("Orthogonal: '", options.name, "' is ", weight.shape(),
                                 ", must have two axes or more");
  const OrthogonalMatrices function(weight, options);
  return {function, function.original(weight)};
}

}  // namespace

Orthogonal::Orthogonal(const AnyModule& layer, const OrthogonalOptions& options)
    : Orthogonal(layer, options.name, function_and_original(layer, options)) {}
Orthogonal::Orthogonal(const AnyModule& layer, const std::string& name,
                       const std::pair<AnyModule, Tensor>& made)
    : Parametrized(layer, name, made.first, made.second) {}

}  // namespace tenon::nn
