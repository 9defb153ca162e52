// A plugin: a dataset, a transform, a network, a loss, a metric, an optimizer, a schedule, an
// initializer and a callback of your own, for `tenon --plugin libstripes.so`.
#include <tenon/tenon.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace tenon;

namespace {

// ---- Dataset: grey images of 12 x 12 pixels with horizontal or vertical stripes.
class Stripes : public data::Dataset {
 public:
  Stripes(std::uint64_t seed, std::int64_t size)
      : Dataset({.input_shape = {1, kSide, kSide},
                 .input_dtype = DType::UInt8,
                 .classes = 2,
                 .class_names = {"horizontal", "vertical"}}),
        seed_(seed),
        size_(size) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* pixels = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      data::SampleRandom random(seed_, 0, index);
      const bool vertical = random.chance(0.5);
      const double phase = random.uniform(0, 6);
      for (std::int64_t k = 0; k < kSide * kSide; ++k) {
        const double along = static_cast<double>(vertical ? k % kSide : k / kSide);
        *pixels++ = static_cast<std::uint8_t>(128 + 60 * std::sin(along * 1.5 + phase) +
                                              static_cast<double>(random.below(40)));
      }
      *target++ = vertical ? 1 : 0;
    }
  }

 private:
  static constexpr std::int64_t kSide = 12;
  std::uint64_t seed_;
  std::int64_t size_;
};

// "stripes" or "stripes:SAMPLES": that many for training, a fifth for testing.
std::function<std::shared_ptr<data::Dataset>(data::Split)> open_stripes(
    const std::string& rest, const data::SourceOptions& /*options*/) {
  char* end = nullptr;
  const long long samples = rest.empty() ? 400 : std::strtoll(rest.c_str(), &end, 10);
  if (samples < 10 || (end != nullptr && *end != '\0'))
    throw ValueError("data 'stripes:" + rest + "': give a number of samples, at least 10");
  return [samples](data::Split part) -> std::shared_ptr<data::Dataset> {
    if (part == data::Split::Validation) return nullptr;
    const bool test = part == data::Split::Test;
    return std::make_shared<Stripes>(test ? 2 : 1, test ? samples / 5 : samples);
  };
}

// ---- Loss: Lin et al., "Focal loss for dense object detection", 2017.
Tensor loss_of_hard_samples(const Tensor& scores, const Tensor& target) {
  const Tensor log_p = reshape(gather(log_softmax(scores), 1, reshape(target, {-1, 1})), {-1});
  return mean(-square(1.0 - exp(log_p)) * log_p);
}

// ---- Metric: a task is a loss, metrics and the form of predictions. This one adds a metric.
class Meter : public train::Meter {
 public:
  explicit Meter(std::unique_ptr<train::Meter> inner) : inner_(std::move(inner)) {}
  void add(const train::MeasuredBatch& batch) override {
    inner_->add(batch);
    const auto most = amax(softmax(batch.scores), {1});
    sure_ += sum(cast(gt(most, 0.9), DType::Float64)).item<double>();
    all_ += static_cast<double>(most.numel());
  }
  void finish(train::Evaluation& out) const override {
    inner_->finish(out);
    out.metrics.set("sure", all_ == 0 ? 0 : sure_ / all_);
  }

 private:
  std::unique_ptr<train::Meter> inner_;
  double sure_ = 0, all_ = 0;
};
class SureClassification : public train::Classification {
 public:
  std::string name() const override { return "sure_classification"; }
  std::vector<train::MetricInfo> metrics() const override {
    auto all = Classification::metrics();
    all.push_back({.name = "sure", .form = train::MetricForm::Share});
    return all;
  }
  std::unique_ptr<train::Meter> meter(const data::Dataset& set) const override {
    return std::make_unique<Meter>(Classification::meter(set));
  }
};

// ---- Optimizer: a step of fixed length against the sign of the momentum.
class SignSgd : public optim::Optimizer {
 public:
  SignSgd(optim::Parameters parameters, const optim::OptimizerOptions& options)
      : Optimizer(std::move(parameters.groups), options.lr.value_or(1e-3),
                  options.weight_decay.value_or(0)),
        beta_(options.momentum.value_or(0.9)),
        momentum_(add_slot("momentum")) {}
  std::string describe() const override { return "sign_sgd"; }

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override {
    const Tensor& w = parameter(k);
    const Tensor m = (*momentum_)[k] * beta_ + grad * (1 - beta_);
    return {{(*momentum_)[k], m}, {w, w - lr * (sign(m) + w * weight_decay)}};
  }
  double beta_;
  const std::vector<Tensor>* momentum_;
};

// ---- Callback: the loss of every epoch in a file of the run.
class LossFile : public train::Callback {
 public:
  explicit LossFile(std::string dir) : dir_(std::move(dir)) {}
  void on_epoch(const train::EpochReport& report) override {
    text_ += std::to_string(report.epoch) + "," + std::to_string(report.train_loss) + "\n";
    if (!dir_.empty()) io::write_file(dir_ + "/losses.csv", text_);
  }

 private:
  std::string dir_, text_;
};

}  // namespace

TENON_PLUGIN(stripes, "1.0") {
  data::register_source({.name = "stripes",
                         .usage = "stripes[:SAMPLES]",
                         .generated = true,
                         .needs_path = false,
                         .open = open_stripes});
  data::register_transform({.name = "dim",
                            .about = "halve the brightness with probability CHANCE",
                            .parameters = {{.name = "CHANCE", .usual = 0.5, .low = 0, .high = 1}},
                            .make = [](const std::vector<double>& values) -> data::ImageFunction {
                              return [chance = values[0]](io::Image image,
                                                          data::SampleRandom& random) {
                                if (random.chance(chance))
                                  for (std::uint8_t& pixel : image.pixels) pixel /= 2;
                                return image;
                              };
                            }});
  models::RegisteredNetwork net;
  net.info.name = "stripe_net";
  net.info.about = "a convolution, pooling and a linear layer";
  net.info.input = {1, 12, 12};
  net.info.classes = 2;
  net.info.recipe.data = "stripes";
  net.info.recipe.epochs = 2;
  net.info.recipe.batch = 20;
  net.make = [](const models::Options& options, const std::string&) {
    return nn::Sequential(nn::Conv2d(1, 4, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                          nn::Linear(100, options.classes));
  };
  models::register_network(net);
  nn::init::register_initializer("tiny",
                                 [](const Shape& shape, const OptionalGenerator& generator) {
                                   return nn::init::normal(shape, 0, 1e-3, generator);
                                 });
  optim::register_optimizer(
      "sign_sgd", {.lr = 1e-3, .momentum = 0.9, .weight_decay = 0},
      [](optim::Parameters parameters,
         const optim::OptimizerOptions& options) -> std::unique_ptr<optim::Optimizer> {
        return std::make_unique<SignSgd>(std::move(parameters), options);
      });
  optim::register_schedule("halving", [](const optim::ScheduleOptions& options) {
    return optim::exponential(0.5, std::max<std::int64_t>(1, options.steps_per_epoch));
  });
  train::register_loss("focal",
                       [](const train::TaskNetwork&) { return nn::Loss(loss_of_hard_samples); });
  train::register_callback("losses", [](const train::Settings&, const std::string& dir) {
    return std::make_shared<LossFile>(dir);
  });
  train::register_task(std::make_shared<SureClassification>());
}
