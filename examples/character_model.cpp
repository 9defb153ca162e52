// A model of characters: a gated recurrent unit written with scan(), which plans one step however
// long the text is. It learns a rhyme and then goes on by itself.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

const std::string kText =
    "one for sorrow, two for mirth, three for a wedding, four for a birth; "
    "five for silver, six for gold, seven for a secret never to be told. ";

class CharacterModel : public nn::Module {
 public:
  CharacterModel(std::int64_t symbols, std::int64_t width)
      : width_(width),
        embedding_(child("embedding", nn::Embedding(symbols, width))),
        in_(child("in", nn::Linear(width, 3 * width))),
        recurrent_(child("recurrent", nn::Linear(width, 3 * width))),
        head_(child("head", nn::Linear(width, symbols))) {}

  // One step: x [N, 3 · width] is what the input says, h [N, width] what is remembered.
  Tensor step(const Tensor& h, const Tensor& x) const {
    const std::vector<Tensor> a = split(x, width_, 1), b = split(recurrent_(h), width_, 1);
    const Tensor reset = sigmoid(a[0] + b[0]), update = sigmoid(a[1] + b[1]);
    return update * h + (1 - update) * tanh(a[2] + reset * b[2]);
  }
  // Characters [N, T] to scores [N, T, symbols].
  Tensor forward(const Tensor& text) const override {
    const Tensor x = in_(embedding_(text)).transpose(0, 1);  // time first
    const auto [last, states] = scan(
        [&](const Tensor& h, const Tensor& row) {
          const Tensor next = step(h, row);
          return std::pair(next, next);
        },
        zeros({text.size(0), width_}), x);
    return head_(states.transpose(0, 1));
  }
  // The same, one character [N] at a time: scores and the next state.
  std::pair<Tensor, Tensor> next(const Tensor& character, const Tensor& h) const {
    const Tensor state = step(h, in_(embedding_(character)));
    return {head_(state), state};
  }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t width_;
  nn::Embedding embedding_;
  nn::Linear in_, recurrent_, head_;
};

int main() {
  manual_seed(3);
  std::vector<std::int64_t> codes;
  for (const char c : kText) codes.push_back(static_cast<unsigned char>(c));
  const auto count = static_cast<std::int64_t>(codes.size());
  const Tensor text = Tensor::from(codes, {count});
  const CharacterModel net(128, 48);
  optim::Adam adam(net, {.lr = 0.01});

  // Windows of 32 characters; the target is the text one place further.
  const std::int64_t length = 32, windows = 16;
  double loss = 0;
  for (int k = 0; k < 150; ++k) {
    const Tensor start = randint(0, count - length - 1, {windows, 1}).eval();
    const Tensor places = start + arange(0, length);
    const Tensor scores = net(text[places]);
    loss = adam.step(cross_entropy(scores.flatten(0, 1), text[places + 1].flatten()), {.norm = 1});
    if (k % 50 == 0) std::printf("step %3d  loss %.3f\n", k, loss);
  }
  std::printf("loss %.3f a character, %.3f before training\n", loss, std::log(128.0));
  check(loss < 1.0, "the rhyme is learnt");

  net.eval();
  std::string said = "one for ";
  Tensor h = zeros({1, net.width()}), scores;
  for (std::size_t k = 0; k < 60; ++k) {
    if (k >= said.size()) said += static_cast<char>(scores.argmax().item<std::int64_t>());
    const auto code = static_cast<std::int64_t>(static_cast<unsigned char>(said[k]));
    std::tie(scores, h) = net.next(Tensor::from({code}, {1}), h);
    eval({scores, h});
  }
  std::printf("%s\n", said.c_str());
}
