// A model of characters on a gated recurrent unit, whose steps are planned once however long the
// text is. It learns a rhyme and then goes on by itself.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

const std::string kText =
    "one for sorrow, two for mirth, three for a wedding, four for a birth; "
    "five for silver, six for gold, seven for a secret never to be told. ";

struct Spoken {
  Tensor scores;  // [N, T, symbols], of the character that follows each
  Tensor memory;  // [1, N, width], to go on from
};

class CharacterModel : public nn::ModuleOf<CharacterModel> {
 public:
  CharacterModel(std::int64_t symbols, std::int64_t width)
      : embedding_(child("embedding", nn::Embedding(symbols, width))),
        recurrent_(child("recurrent", nn::GRU(width, width, {.batch_first = true}))),
        head_(child("head", nn::Linear(width, symbols))) {}

  // Characters [N, T], and what is remembered of those before; nothing when left out.
  Spoken forward(const Tensor& text, const Tensor& memory = {}) const {
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
  const CharacterModel net(128, 48);
  optim::Adam adam(net, {.lr = 0.01});

  // Windows of 32 characters; the target is the text one place further.
  const std::int64_t length = 32, windows = 16;
  double loss = 0;
  for (int k = 0; k < 150; ++k) {
    const Tensor start = randint(0, count - length - 1, {windows, 1}).eval();
    const Tensor places = start + arange(0, length);
    const Tensor scores = net(text[places]).scores;
    loss = adam.step(cross_entropy(scores.flatten(0, 1), text[places + 1].flatten()), {.norm = 1});
    if (k % 50 == 0) std::printf("step %3d  loss %.3f\n", k, loss);
  }
  std::printf("loss %.3f a character, %.3f before training\n", loss, std::log(128.0));
  check(loss < 1.0, "the rhyme is learnt");

  net.eval();
  std::string said = "one for ";
  Spoken heard;
  for (std::size_t k = 0; k < 60; ++k) {
    if (k >= said.size()) said += static_cast<char>(heard.scores.argmax().item<std::int64_t>());
    const auto code = static_cast<std::int64_t>(static_cast<unsigned char>(said[k]));
    heard = net(Tensor::from({code}, {1, 1}), heard.memory);
    eval({heard.scores, heard.memory});
  }
  std::printf("%s\n", said.c_str());
}
