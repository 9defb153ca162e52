// Attention with a padding mask, for sequences of different lengths in one batch. The network
// returns, for every sequence, the value at the position with the largest key. Padding has no
// influence.
#include <tenon/tenon.h>

#include <limits>

#include "check.h"

using namespace tenon;

class Attention : public nn::Module {
 public:
  Attention(std::int64_t in, std::int64_t width, std::int64_t heads)
      : heads_(heads),
        qkv_(child("qkv", nn::Linear(in, 3 * width))),
        out_(child("out", nn::Linear(width, width))) {}
  // x is [N, T, in]. visible is [N, T], bool: false for padding after the end of a sequence.
  Tensor attend(const Tensor& x, const Tensor& visible) const {
    const std::int64_t n = x.size(0), t = x.size(1);
    const Tensor all = qkv_(x).reshape({n, t, 3, heads_, -1}).permute({2, 0, 3, 1, 4});
    const Tensor q = all[0], k = all[1], v = all[2];  // [N, heads, T, width / heads]
    Tensor scores = q.matmul(k.transpose()) / std::sqrt(static_cast<double>(q.size(-1)));
    scores = where(visible.index({Slice(), new_axis, new_axis}), scores,
                   -std::numeric_limits<float>::infinity());
    return out_(scores.softmax().matmul(v).transpose(1, 2).reshape({n, t, -1}));
  }
  Tensor forward(const Tensor& x) const override {
    return attend(x, ones({x.size(0), x.size(1)}, DType::Bool));
  }

 private:
  std::int64_t heads_;
  nn::Linear qkv_, out_;
};

class LargestKey : public nn::Module {
 public:
  LargestKey()
      : read_(child("read", nn::Linear(2, 32))),
        attention_(child("attention", Attention(32, 32, 4))),
        head_(child("head", nn::Linear(32, 1))) {}
  Tensor answer(const Tensor& x, const Tensor& visible) const {
    const Tensor seen = attention_.attend(relu(read_(x)), visible);
    const Tensor weight = visible.to(DType::Float32).unsqueeze(2);
    return head_(relu((seen * weight).sum(1) / weight.sum(1))).squeeze(1);
  }
  Tensor forward(const Tensor& x) const override {
    return answer(x, ones({x.size(0), x.size(1)}, DType::Bool));
  }

 private:
  nn::Linear read_;
  Attention attention_;
  nn::Linear head_;
};

int main() {
  manual_seed(4);
  const std::int64_t batch = 64, longest = 8;
  LargestKey net;
  optim::Adam adam(net, {.lr = 2e-3});
  Tensor loss, first;
  for (int k = 0; k < 400; ++k) {
    const Tensor x = randn({batch, longest, 2}).compute();
    const Tensor lengths = randint(1, longest + 1, {batch, 1}).compute();
    const Tensor visible = arange(0, longest) < lengths;
    const Tensor keys = where(visible, x.index({ellipsis, 0}), -1e9);
    const Tensor target = x.index({arange(0, batch), keys.argmax(1), 1});
    loss = adam.step(mse_loss(net.answer(x, visible), target), {.norm = 1});
    if (k == 0) first = loss;
    if (k % 100 == 0) std::printf("step %3d  loss %.3f\n", k, loss.item());
  }
  std::printf("loss %.3f, from %.3f\n", loss.item(), first.item());
  check(loss.item() < 0.7 * first.item(), "attention learns the position of the largest key");

  // Other values in the padding give the same output, bit by bit.
  net.eval();
  const Tensor x = randn({2, longest, 2}).compute();
  const Tensor visible = arange(0, longest) < Tensor::from<std::int64_t>({5, 5}, {2, 1});
  const Tensor other = x.index_put({Slice(), Slice(5)}, 1000);
  check(net.answer(x, visible).to_vector<float>() == net.answer(other, visible).to_vector<float>(),
        "masked positions have no influence");
}
