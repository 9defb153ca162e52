// A task of your own: segmentation, a class for each pixel. The task measures the intersection over
// union, and the Trainer chooses the best epoch by it.
#include <tenon/tenon.h>

#include <algorithm>
#include <vector>

#include "check.h"

using namespace tenon;

// Counts the pixels of each class on the host, batch after batch.
class OverlapMeter : public train::Meter {
 public:
  explicit OverlapMeter(std::int64_t classes)
      : both_(static_cast<std::size_t>(classes)), either_(both_) {}
  void add(const train::MeasuredBatch& batch) override {
    const auto predicted = argmax(batch.scores, 1).to_vector<std::int64_t>(),
               wanted = batch.target.to_vector<std::int64_t>();
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const auto a = static_cast<std::size_t>(predicted[k]),
                 b = static_cast<std::size_t>(wanted[k]);
      if (a == b)
        ++both_[a], ++either_[a];
      else
        ++either_[a], ++either_[b];
    }
  }
  void finish(train::Evaluation& out) const override {
    double sum = 0;
    for (std::size_t c = 0; c < both_.size(); ++c)
      sum += static_cast<double>(both_[c]) /
             static_cast<double>(std::max<std::int64_t>(either_[c], 1));
    out.metrics.set("mean_iou", sum / static_cast<double>(both_.size()));
  }

 private:
  std::vector<std::int64_t> both_, either_;
};

class Segmentation : public train::Task {
 public:
  explicit Segmentation(std::int64_t classes) : classes_(classes) {}
  std::string name() const override { return "segmentation"; }
  std::vector<train::MetricInfo> metrics() const override {
    return {{.name = "mean_iou", .label = "mean IoU", .form = train::MetricForm::Share}};
  }
  std::string monitored() const override { return "mean_iou"; }
  std::unique_ptr<train::Meter> meter(const data::Dataset&) const override {
    return std::make_unique<OverlapMeter>(classes_);
  }
  // The share of right pixels is the accuracy that training reports.
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor&) const override {
    return sum(eq(argmax(scores, 1), target));
  }
  bool has_training_accuracy(const data::Dataset&) const override { return true; }
  Tensor predictions(const Tensor& scores) const override { return softmax(scores, 1); }

 private:
  std::int64_t classes_;
};

// Noisy images [N, 1, 16, 16] with a bright rectangle, and which pixels belong to it.
std::shared_ptr<data::Dataset> rectangles(std::int64_t count, std::uint64_t seed) {
  Generator random(seed);
  const Tensor corners = rand({count, 2}, DType::Float32, &random) * 9,
               places = arange(0, 16, 1, DType::Float32);
  const auto within = [&](int axis, const Ints& shape) {
    const Tensor from = reshape(select(corners, 1, axis), {count, 1, 1}),
                 at = reshape(places, shape);
    return logical_and(ge(at, from), lt(at, from + 7));
  };
  const Tensor mask = logical_and(within(0, {1, 16, 1}), within(1, {1, 1, 16}));
  const Tensor image =
      cast(mask, DType::Float32) + randn({count, 16, 16}, DType::Float32, &random) * 0.4;
  return data::from_tensors(unsqueeze(image, 1).eval(), cast(mask, DType::Int64).eval());
}

int main() {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(1, 8, 5, {.padding = 2}), nn::ReLU(),
                     nn::Conv2d(8, 2, 5, {.padding = 2}));
  optim::Adam adam(net, {.lr = 0.01});
  data::Loader training(rectangles(300, 1), {.batch = 20}),
      validation(rectangles(60, 2), {.batch = 20, .shuffle = false}),
      test(rectangles(60, 3), {.batch = 20, .shuffle = false});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), adam,
                         {.epochs = 4, .task = std::make_shared<Segmentation>(2)});
  const train::TrainResult result = trainer.fit(training, validation, test);
  for (const train::EpochReport& epoch : result.epochs)
    std::printf("epoch %d  training loss %.4f, pixels right %.1f %%  validation mean IoU %.1f %%\n",
                epoch.epoch, epoch.train_loss, 100 * *epoch.train_accuracy,
                100 * *epoch.validation_metrics["mean_iou"]);
  std::printf("best %s %.1f %%, test mean IoU %.1f %%\n", result.best_figure.c_str(),
              100 * *result.best, 100 * *result.test->metrics["mean_iou"]);
  check(result.best_figure == "validation mean IoU", "the task's metric chooses the best epoch");
  check(*result.test->metrics["mean_iou"] > 0.9, "the network finds the rectangles");
}
