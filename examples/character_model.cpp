// A character-level language model with a gated recurrent unit (GRU). Its steps are planned once
// for any sequence length. It learns a rhyme and then generates text.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

const std::string kText =
    "one for sorrow, two for mirth, three for a wedding, four for a birth; "
    "five for silver, six for gold, seven for a secret never to be told. ";

struct Output {
  Tensor scores;  // [N, T, symbols], scores of the next character
  Tensor memory;  // [1, N, width], the hidden state after the last character
};

class CharacterModel : public nn::ModuleOf<CharacterModel> {
 public:
  CharacterModel(std::int64_t symbols, std::int64_t width)
      : embedding_(child("embedding", nn::Embedding(symbols, width))),
        recurrent_(child("recurrent", nn::GRU(width, width, {.batch_first = true}))),
        head_(child("head", nn::Linear(width, symbols))) {}

  // Characters [N, T], and the hidden state before them; zeros if left out.
  Output forward(const Tensor& text, const Tensor& memory = {}) const {
    const auto [output, last] = recurrent_(embedding_(text), memory);
    return {head_(output), last};
  }

 private:
  nn::Embedding embedding_;
  nn::GRU recurrent_;
  nn::Linear head_;
};

int main() {
  manual_seed(3);
  std::vector<std::int64_t> codes;
  for (const char c : kText) codes.push_back(static_cast<unsigned char>(c));
  const auto count = static_cast<std::int64_t>(codes.size());
  const Tensor text = Tensor::from(codes, {count});
  CharacterModel net(128, 48);
  optim::Adam adam(net, {.lr = 0.01});

  // Samples of 32 characters. The target is the text one position later.
  const std::int64_t length = 32, windows = 16;
  Tensor loss;
  for (int k = 0; k < 150; ++k) {
    const Tensor start = randint(0, count - length - 1, {windows, 1}).compute();
    const Tensor positions = start + arange(0, length);
    const Tensor scores = net(text[positions]).scores;
    loss =
        adam.step(cross_entropy(scores.flatten(0, 1), text[positions + 1].flatten()), {.norm = 1});
    if (k % 50 == 0) std::printf("step %3d  loss %.3f\n", k, loss.item());
  }
  std::printf("loss %.3f a character, %.3f before training\n", loss.item(), std::log(128.0));
  check(loss.item() < 1.0, "the model has learned the rhyme");

  net.eval();
  std::string generated = "one for ";
  Output output;
  for (std::size_t k = 0; k < 60; ++k) {
    if (k >= generated.size())
      generated += static_cast<char>(output.scores.argmax().item<std::int64_t>());
    const auto code = static_cast<std::int64_t>(static_cast<unsigned char>(generated[k]));
    output = net(Tensor::from({code}, {1, 1}), output.memory);
    compute({output.scores, output.memory});
  }
  std::printf("%s\n", generated.c_str());
}
