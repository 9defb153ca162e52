// A residual network for images with a normalization layer of your own, which divides each channel
// by the root of its mean square and has a learned gain. Modules contain modules; a parameter's
// name is its path in the network.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

class ChannelNorm : public nn::Module {
 public:
  explicit ChannelNorm(std::int64_t channels) : gain_(parameter("gain", ones({channels, 1, 1}))) {}
  Tensor forward(const Tensor& x) const override {
    return gain_ * x / (x.square().mean({2, 3}, true) + 1e-5).sqrt();
  }

 private:
  Tensor gain_;
};

class Block : public nn::Module {
 public:
  Block(std::int64_t in, std::int64_t out, std::int64_t stride)
      : first_(child("first", nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1}))),
        second_(child("second", nn::Conv2d(out, out, 3, {.padding = 1}))),
        norm_(child("norm", ChannelNorm(out))),
        same_(in == out && stride == 1),
        shortcut_(child("shortcut", nn::Conv2d(in, out, 1, {.stride = stride}, {.bias = false}))) {}
  Tensor forward(const Tensor& x) const override {
    return relu(norm_(second_(relu(first_(x)))) + (same_ ? x : shortcut_(x)));
  }

 private:
  nn::Conv2d first_, second_;
  ChannelNorm norm_;
  bool same_;
  nn::Conv2d shortcut_;
};

class Residual : public nn::Module {
 public:
  Residual()
      : stem_(child("stem", nn::Conv2d(1, 8, 3, {.stride = 2, .padding = 1}))),
        body_(child("body", nn::Sequential(Block(8, 16, 2), Block(16, 32, 1)))),
        head_(child("head", nn::Linear(32, 10))) {}
  Tensor forward(const Tensor& x) const override { return head_(body_(stem_(x)).mean({2, 3})); }

 private:
  nn::Conv2d stem_;
  nn::Sequential body_;
  nn::Linear head_;
};

int main() {
  manual_seed(2);
  Residual net;
  std::printf("%s", net.summary({1, 1, 28, 28}).str().c_str());
  data::Loader train(data::drawn_digits(0, 2000), {.batch = 50, .mean = 0.13, .std = 0.31}),
      validation(data::drawn_digits(1, 400),
                 {.batch = 100, .shuffle = false, .mean = 0.13, .std = 0.31});
  optim::AdamW adam(net, {.lr = 1e-2});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), adam, {.epochs = 6, .schedule = "cosine"});
  const train::TrainResult result = trainer.fit(train, validation);
  std::printf("best %s %.1f %% after epoch %d\n", result.best_figure.c_str(), *result.best * 100,
              result.best_epoch);
  check(*result.best > 0.7, "six epochs of 2,000 digits reach 70 %");
}
