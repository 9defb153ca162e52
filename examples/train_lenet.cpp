// A convolutional network, trained in ten lines. Generated digits need no download;
// data::open_idx("folder", …) reads MNIST.
#include <tenon/tenon.h>

#include "check.h"

int main() {
  using namespace tenon;
  data::Loader train(data::drawn_digits(0, 6000), {.batch = 64}),
      validation(data::drawn_digits(2, 600), {.batch = 200}),
      test(data::drawn_digits(1, 1000), {.batch = 250});
  nn::Sequential net(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Tanh(), nn::AvgPool2d(2),  //
                     nn::Conv2d(6, 16, 5), nn::Tanh(), nn::AvgPool2d(2),                 //
                     nn::Conv2d(16, 120, 5), nn::Tanh(), nn::Flatten(),                  //
                     nn::Linear(120, 84), nn::Tanh(), nn::Linear(84, 10));
  optim::Sgd sgd(net, {.lr = 0.05, .momentum = 0.9});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, {.epochs = 2});
  const train::TrainResult result = trainer.fit(train, validation, test);

  std::printf("%s\n", net.summary({64, 1, 28, 28}).str().c_str());
  for (const train::EpochReport& epoch : result.epochs)
    std::printf("epoch %d  loss %.4f  validation accuracy %.2f %%\n", epoch.epoch, epoch.train_loss,
                100 * *epoch.validation_metrics["accuracy"]);
  std::printf("epoch %d was kept: test accuracy %.2f %%\n", result.kept_epoch,
              100 * *result.test->metrics["accuracy"]);
  check(net.parameter_count() == 61706, "LeNet-5 has 61,706 parameters");
  check(*result.test->metrics["accuracy"] > 0.9, "two epochs of 6,000 digits reach 90 %");
}
