// A module with several inputs and outputs: derive from ModuleOf and write a forward() with your
// own signature. The example is attention with a mask, which returns a struct.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

struct Attended {
  Tensor values;   // [N, L, width]
  Tensor weights;  // [N, L, L], each row sums to 1
};

class Attention : public nn::ModuleOf<Attention> {
 public:
  explicit Attention(std::int64_t width)
      : query_(child("query", nn::Linear(width, width))),
        key_(child("key", nn::Linear(width, width))) {}

  Attended forward(const Tensor& x, const Tensor& mask) const {
    const double scale = 1 / std::sqrt(static_cast<double>(x.size(-1)));
    const Tensor scores = matmul(query_(x), transpose(key_(x))) * scale;
    const Tensor weights = softmax(where(mask, scores, -1e9));
    return {matmul(weights, x), weights};
  }

 private:
  nn::Linear query_, key_;
};

int main() {
  manual_seed(1);
  const Attention attention(8);
  const Tensor x = randn({4, 5, 8});
  const Tensor causal =
      ge(unsqueeze(arange(0, 5), 1), arange(0, 5));  // causal mask: no position sees a later one

  const Attended out = attention(x, causal);
  const std::vector<float> first = select(select(out.weights, 0, 0), 0, 0).to_vector<float>();
  std::printf("the first position attends to itself with weight %.3f, to the second with %.3f\n",
              first[0], first[1]);
  check(near(first[0], 1, 1e-6) && first[1] == 0, "masked positions have weight 0");

  // All features of modules work: names, optimizers, summaries, errors that name a layer.
  optim::Adam adam(attention, {.lr = 0.01});
  Tensor loss;
  for (int step = 0; step < 50; ++step) loss = adam.step(mse_loss(attention(x, causal).values, x));
  std::printf("%sloss %.4f\n", attention.summary(x, causal).str().c_str(), loss.item());
}
