// Statistics of a table, and the network that applies them.
#include "train/adapting/standardized.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "base/make_error.h"
#include "base/str.h"

namespace tenon::train {
namespace {

struct Scale {
  Tensor mean, deviation;
};

// Wraps a network whose parts keep their names.
class Standardized final : public nn::Module {
 public:
  Standardized(const nn::AnyModule& net, const Scale& input, const std::optional<Scale>& target)
      : net_(net),
        input_mean_(buffer(kInputMean, input.mean)),
        input_deviation_(buffer("input_deviation", input.deviation)) {
    for (const auto& [name, part] : net.children()) child(name, part);
    if (named_parameters().size() != net.named_parameters().size())
      throw NotSupported(
          cat("standardize: ", net.describe(),
              " has parameters that do not belong to a part of it: scale the columns "
              "before, and set standardize to false"));
    if (!target) return;
    target_mean_ = buffer(kTargetMean, target->mean);
    target_deviation_ = buffer("target_deviation", target->deviation);
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor y = net_((x - input_mean_) / input_deviation_);
    return target_mean_.defined() ? y * target_deviation_ + target_mean_ : y;
  }
  std::string describe() const override { return "Standardized"; }
  const Tensor& target_deviation() const { return target_deviation_; }

 private:
  nn::AnyModule net_;
  Tensor input_mean_, input_deviation_, target_mean_, target_deviation_;
};

// The sums of values and, in a second pass, of squared distances from their means, in the order of
// the samples: the same on every machine.
class Statistics {
 public:
  explicit Statistics(const Shape& shape)
      : shape_(shape), sums_(static_cast<std::size_t>(shape.numel())), mean_(sums_) {}
  void add(const Tensor& rows, bool distances) {
    const std::vector<double> values = cast(rows, DType::Float64).to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t k = i % sums_.size();
      const double v = values[i] - (distances ? mean_[k] : 0);
      sums_[k] += distances ? v * v : v;
    }
  }
  void end_of_means(std::int64_t count) {
    for (std::size_t k = 0; k < sums_.size(); ++k)
      mean_[k] = std::exchange(sums_[k], 0) / static_cast<double>(count);
  }
  // A column that does not vary is only centred.
  Scale scale(std::int64_t count) const {
    std::vector<float> mean(mean_.begin(), mean_.end()), deviation;
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const double d = std::sqrt(sums_[k] / static_cast<double>(count));
      deviation.push_back(d > 1e-7 * std::abs(mean_[k]) ? static_cast<float>(d) : 1.0f);
    }
    return {Tensor::from(mean, shape_), Tensor::from(deviation, shape_)};
  }

 private:
  Shape shape_;
  std::vector<double> sums_, mean_;
};

// Inputs of word columns are 0 or 1 and are not standardized: divided by its small deviation, a
// rare word would dominate all other inputs.
Scale without_words(const Scale& scale, const data::TableColumns* table) {
  if (table == nullptr) return scale;
  std::vector<float> mean = scale.mean.to_vector<float>(),
                     deviation = scale.deviation.to_vector<float>();
  std::size_t at = 0;
  for (const data::TableColumn& column : table->columns) {
    const auto inputs = static_cast<std::size_t>(column.inputs());
    if (!column.values.empty()) {
      std::fill_n(mean.begin() + static_cast<std::ptrdiff_t>(at), inputs, 0.0f);
      std::fill_n(deviation.begin() + static_cast<std::ptrdiff_t>(at), inputs, 1.0f);
    }
    at += inputs;
  }
  return {Tensor::from(mean, scale.mean.shape()), Tensor::from(deviation, scale.mean.shape())};
}

}  // namespace

bool is_table(const data::Dataset& set) {
  return set.input_shape().rank() == 1 && is_floating(set.input_dtype()) &&
         set.input_shape().numel() > 0;
}

nn::AnyModule standardized(const nn::AnyModule& net, const data::Dataset& set, bool targets) {
  if (ShapesOnly::is_on())  // planning only; the values do not matter
    return standardized(net, set.input_shape(),
                        targets ? std::optional<Shape>(set.target_shape()) : std::nullopt);
  constexpr std::int64_t kRows = 4096;
  const auto whole = std::shared_ptr<const data::Dataset>(&set, [](const data::Dataset*) {});
  data::Loader rows(whole, {.batch = std::min(kRows, set.size()), .shuffle = false, .workers = 0});
  Statistics input(set.input_shape()), target(set.target_shape());
  for (const bool distances : {false, true}) {
    for (data::Batch batch; rows.next(batch);) {
      input.add(batch.input, distances);
      if (targets) target.add(batch.target, distances);
    }
    if (distances) break;
    input.end_of_means(set.size());
    target.end_of_means(set.size());
  }
  std::optional<Scale> outputs;
  if (targets) outputs = target.scale(set.size());
  return Standardized(net, without_words(input.scale(set.size()), set.table().get()), outputs);
}

nn::AnyModule standardized(const nn::AnyModule& net, const Shape& input,
                           const std::optional<Shape>& target) {
  std::optional<Scale> outputs;
  if (target) outputs = Scale{zeros(*target), ones(*target)};
  return Standardized(net, {zeros(input), ones(input)}, outputs);
}

Tensor target_deviation(const nn::AnyModule& net) {
  const auto* table = net.as<Standardized>();
  return table == nullptr ? Tensor() : table->target_deviation();
}

Tensor StandardizedLoss::operator()(const Tensor& output, const Tensor& target) const {
  if (output.numel() != target.numel())
    throw make_error<ShapeError>("regression: the network gives ", output.shape(), " for targets ",
                                 target.shape(), ": it needs one output a target");
  const Tensor wanted = cast(target, output.dtype());
  Ints sizes(target.shape().begin(), target.shape().end());
  const Tensor error = reshape(output, sizes) - wanted;
  const Tensor squares = square(deviation.defined() ? error / deviation : error);
  return reduction == Reduction::None  ? squares
         : reduction == Reduction::Sum ? sum(squares)
                                       : mean(squares);
}

}  // namespace tenon::train
