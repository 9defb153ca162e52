// The smallest classifier of digits, trained by a plain loop: one layer xW + b with softmax, where
// x is [N, 784] and W is [784, 10].
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  data::Loader train(data::drawn_digits(0, 6000), {.batch = 100});
  data::Loader test(data::drawn_digits(1, 1000), {.batch = 1000, .shuffle = false});
  const Tensor w = variable(zeros({784, 10}), "W"), b = variable(zeros({10}), "b");
  auto scores = [&](const Tensor& x) { return matmul(flatten(x, 1), w) + b; };
  optim::Sgd sgd(std::vector<Tensor>{w, b}, {.lr = 0.1});

  data::Batch batch;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double loss = 0;
    while (train.next(batch))
      loss += sgd.step(cross_entropy(scores(batch.input), batch.target)).item();
    std::printf("epoch %d  loss %.4f\n", epoch, loss / static_cast<double>(train.batches()));
  }
  test.next(batch);
  const double accuracy =
      mean(cast(eq(argmax(scores(batch.input), 1), batch.target), DType::Float32)).item();
  std::printf("test accuracy %.1f %%\n", 100 * accuracy);
  check(accuracy > 0.8, "one layer gets most digits right");
}
