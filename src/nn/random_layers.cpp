// Dropout for selu(), random slopes, fractional pooling, the bilinear map, cross entropy with its
// linear layer.
#include <tenon/random_layers.h>

#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/initial.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

double checked_probability(const char* layer, double p) {
  if (!(p >= 0 && p <= 1)) throw make_error<ValueError>(layer, ": p is ", p, ", must be in [0, 1]");
  return p;
}

template <class Sizes>
FractionalPoolOptions<Sizes> checked(const char* layer, Sizes kernel,
                                     const FractionalPoolOptions<Sizes>& options) {
  check_window(layer, {{"the kernel size", size_list(kernel), 1}});
  if (options.output) check_window(layer, {{"the output size", size_list(*options.output), 1}});
  if (!(options.ratio > 0 && options.ratio < 1))
    throw make_error<ValueError>(layer, ": the ratio is ", options.ratio,
                                 ", must be above 0 and below 1");
  return options;
}

// The share of an axis, counted from the end.
std::int64_t share(const Tensor& x, int axis, double ratio) {
  return static_cast<std::int64_t>(static_cast<double>(x.size(axis)) * ratio);
}

template <class Sizes>
std::string pool_text(const char* layer, Sizes kernel, const FractionalPoolOptions<Sizes>& o) {
  return cat(
      layer, "(", sizes_text("kernel_size", size_list(kernel)), ", ",
      o.output ? sizes_text("output_size", size_list(*o.output)) : cat("output_ratio=", o.ratio),
      ")");
}

void require_axes(const char* layer, const Tensor& x, int axes) {
  if (x.rank() != axes + 1 && x.rank() != axes + 2)
    throw make_error<ShapeError>(layer, ": the input is ", x.shape(), ", must have ", axes + 2,
                                 " axes, or ", axes + 1, " without a batch");
}

}  // namespace

RReLU::RReLU(double lower, double upper, const OptionalGenerator& generator)
    : lower_(lower), upper_(upper), generator_(generator) {
  if (!(lower <= upper))
    throw make_error<ValueError>("RReLU: the limits are ", lower, " and ", upper,
                                 ", must be ascending");
}
std::string RReLU::describe() const { return cat("RReLU(", lower_, ", ", upper_, ")"); }

AlphaDropout::AlphaDropout(double p, const OptionalGenerator& generator)
    : p_(checked_probability("AlphaDropout", p)), generator_(generator) {}
std::string AlphaDropout::describe() const { return cat("AlphaDropout(p=", p_, ")"); }

FeatureAlphaDropout::FeatureAlphaDropout(double p, const OptionalGenerator& generator)
    : p_(checked_probability("FeatureAlphaDropout", p)), generator_(generator) {}
std::string FeatureAlphaDropout::describe() const { return cat("FeatureAlphaDropout(p=", p_, ")"); }

FractionalMaxPool2d::FractionalMaxPool2d(Pair kernel, const FractionalPoolOptions<Pair>& options)
    : kernel_(kernel), options_(checked("FractionalMaxPool2d", kernel, options)) {}

Tensor FractionalMaxPool2d::forward(const Tensor& x) const {
  require_axes("FractionalMaxPool2d", x, 2);
  const Pair output =
      options_.output.value_or(Pair(share(x, -2, options_.ratio), share(x, -1, options_.ratio)));
  return fractional_max_pool2d(x, kernel_, output, {}, options_.generator).values;
}
std::string FractionalMaxPool2d::describe() const {
  return pool_text("FractionalMaxPool2d", kernel_, options_);
}

FractionalMaxPool3d::FractionalMaxPool3d(Triple kernel,
                                         const FractionalPoolOptions<Triple>& options)
    : kernel_(kernel), options_(checked("FractionalMaxPool3d", kernel, options)) {}

Tensor FractionalMaxPool3d::forward(const Tensor& x) const {
  require_axes("FractionalMaxPool3d", x, 3);
  const Triple output = options_.output.value_or(Triple(
      share(x, -3, options_.ratio), share(x, -2, options_.ratio), share(x, -1, options_.ratio)));
  return fractional_max_pool3d(x, kernel_, output, {}, options_.generator).values;
}
std::string FractionalMaxPool3d::describe() const {
  return pool_text("FractionalMaxPool3d", kernel_, options_);
}

Bilinear::Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out,
                   const ParameterOptions& options) {
  check_window("Bilinear", {{"a number of features", Ints{in1, in2, out}, 1}});
  const Shape shape{out, in1, in2};
  const double limit = 1 / std::sqrt(static_cast<double>(in1));
  weight_ = parameter("weight", options.weight_init
                                    ? options.weight_init(shape, options.generator)
                                    : init::uniform(shape, -limit, limit, options.generator));
  if (options.bias)
    bias_ = parameter("bias", init::uniform({out}, -limit, limit, options.generator));
}

std::string Bilinear::describe() const {
  return cat("Bilinear(", weight_.size(1), ", ", weight_.size(2), ", ", weight_.size(0),
             bias_.defined() ? ")" : ", bias=false)");
}

LinearCrossEntropyLoss::LinearCrossEntropyLoss(std::int64_t features, std::int64_t classes,
                                               const ClassLossOptions& loss,
                                               const LinearOptions& layer)
    : linear_(child("linear", Linear(features, classes, layer))), loss_(loss) {}

std::string LinearCrossEntropyLoss::describe() const {
  return cat("LinearCrossEntropyLoss(", linear_.weight().size(1), ", ", linear_.weight().size(0),
             ")");
}

}  // namespace tenon::nn
