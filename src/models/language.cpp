// Recurrent language models: the LSTM of the 2017 benchmark of deep-learning tools (Shi et al.,
// arXiv 1608.07249), and the text generator of the Keras tutorial.
//
// Both return scores for the next token at every position. PyTorch's LSTM has two biases per gate,
// Keras's has one: the second bias stays zero in the Keras network.
#include <tenon/recurrent.h>

#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

struct RecurrentSizes {
  std::int64_t embedding, units, layers;
};

class RecurrentModel : public Decoder {
 public:
  RecurrentModel(const char* kind, const RecurrentSizes& s, std::int64_t vocabulary,
                 const OptionalGenerator& g)
      : kind_(kind),
        sizes_(s),
        embedding_(
            child("embedding", nn::Embedding(vocabulary, s.embedding, {}, {.generator = g}))),
        lstm_(
            child("lstm", nn::LSTM(s.embedding, s.units,
                                   {.num_layers = s.layers, .batch_first = true, .generator = g}))),
        linear_(child("linear", nn::Linear(s.units, vocabulary, {.generator = g}))) {}

  Tensor forward(const Tensor& tokens) const override {
    return linear_(lstm_(embedding_(tokens)).output);
  }
  std::string describe() const override { return kind_; }

  std::int64_t context() const override { return 0; }
  std::vector<Tensor> initial_state(std::int64_t batch) const override {
    return std::vector<Tensor>(2, zeros({sizes_.layers, batch, sizes_.units}));
  }
  Next decode(const Tensor& tokens, const Tensor&,
              const std::vector<Tensor>& state) const override {
    const nn::LstmResult y =
        lstm_(embedding_(unsqueeze(tokens, 1)), nn::LstmState{state[0], state[1]});
    return {linear_(squeeze(y.output, 1)), {y.state.hidden, y.state.cell}};
  }

 private:
  const char* kind_;
  RecurrentSizes sizes_;
  nn::Embedding embedding_;
  nn::LSTM lstm_;
  nn::Linear linear_;
};

// The benchmark draws all values from U(-0.1, 0.1).
nn::AnyModule lstm(const std::string&, const Options& o) {
  const RecurrentModel net("LSTM", {256, 256, 2}, o.classes, o.generator);
  for (const Tensor& p : net.parameters())
    set_value(p, nn::init::uniform(p.shape(), -0.1, 0.1, o.generator));
  return net;
}

constexpr RecurrentSizes kKeras{128, 128, 1};
constexpr char kSecondBias[] = "lstm.bias_hh_l0";

std::int64_t units_of(const std::string& text) {
  std::int64_t units = kKeras.units;
  for (const auto& [key, value] : named_sizes("keras_rnn", text, {"units"})) units = value;
  return units;
}

nn::AnyModule keras_rnn(const std::string& sizes, const Options& o) {
  RecurrentModel net("Keras RNN", {kKeras.embedding, units_of(sizes), kKeras.layers}, o.classes,
                     o.generator);
  for (const auto& [name, value] : net.named_parameters())
    if (name == kSecondBias) set_value(value, zeros(value.shape()));
  net.freeze(kSecondBias);
  return net;
}

std::string recurrent_toml(const RecurrentSizes& s) {
  return cat("layers = [\n  { embedding = ", s.embedding,
             ", name = \"embedding\" },\n  { lstm = ", s.units, ", layers = ", s.layers,
             ", name = \"lstm\" },\n  { linear = \"classes\", name = \"linear\" },\n]\n");
}
std::string lstm_toml(const std::string&, const Options&) {
  return recurrent_toml({256, 256, 2}) +
         "init = [ { parameters = \"*\", values = { uniform = 0.1 } } ]\n";
}
std::string keras_rnn_toml(const std::string& sizes, const Options&) {
  return recurrent_toml({kKeras.embedding, units_of(sizes), kKeras.layers}) +
         cat("init = [ { parameters = \"", kSecondBias, "\", values = 0 } ]\nfreeze = [\"",
             kSecondBias, "\"]\n");
}

std::int64_t recurrent_parameters(const RecurrentSizes& s, std::int64_t vocabulary) {
  std::int64_t count = vocabulary * s.embedding + (s.units + 1) * vocabulary, in = s.embedding;
  for (std::int64_t layer = 0; layer < s.layers; ++layer, in = s.units)
    count += 4 * s.units * (in + s.units + 2);
  return count;
}

Info sized_keras_rnn(const Info& standard, const std::string& text) {
  Info out = standard;
  out.name = cat("keras_rnn:", text);
  out.parameters =
      recurrent_parameters({kKeras.embedding, units_of(text), kKeras.layers}, standard.classes);
  return out;
}

}  // namespace

std::vector<Entry> language_entries() {
  Recipe benchmark{
      .epochs = 20, .batch = 128, .lr = 0.1, .momentum = 0, .schedule = "constant", .warmup = 0};
  benchmark.clip_norm = 5;
  Info lstm_info{"lstm",
                 "two LSTM layers of 256, the LSTM of the 2017 benchmark",
                 {32},
                 10'000,
                 recurrent_parameters({256, 256, 2}, 10'000),
                 benchmark};
  Info keras_info{"keras_rnn",
                  "the Keras tutorial's text generator; keras_rnn:units=64",
                  {20},
                  1000,
                  recurrent_parameters(kKeras, 1000),
                  {.epochs = 10,
                   .batch = 64,
                   .optimizer = "adam",
                   .lr = 1e-3,
                   .momentum = 0,
                   .schedule = "constant",
                   .warmup = 0}};
  lstm_info.tokens = keras_info.tokens = true;
  return {{lstm_info, lstm, nullptr, false, false, lstm_toml},
          {keras_info, keras_rnn, sized_keras_rnn, false, false, keras_rnn_toml}};
}

}  // namespace tenon::models
