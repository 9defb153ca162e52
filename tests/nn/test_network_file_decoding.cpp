// Network files: models of language and translators decode position by position, with the scores of
// the whole sequence.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/functional.h>
#include <tenon/models.h>

using namespace tenon;

namespace {

// Checks that decoding token by token gives the scores of the whole sequence.
void check_goes_on(const std::string& text, std::int64_t context, bool by_place) {
  CAPTURE(text);
  manual_seed(6);
  nn::AnyModule net = models::create(models::NetworkFile{"x.toml", text});
  net.eval();
  const auto* decoder = net.as<models::Decoder>();
  REQUIRE(decoder != nullptr);
  CHECK(decoder->context() == context);
  const Tensor tokens =
      Tensor::from(std::vector<std::int64_t>{3, 1, 4, 1, 5, 2, 6, 0, 8, 7}, {2, 5});
  const Tensor all = net(tokens).compute();
  std::vector<Tensor> state = decoder->initial_state(2);
  CHECK((state.size() == 1 && state[0].dtype() == DType::Int64) == !by_place);
  for (std::int64_t place = 0; place < 5; ++place) {
    const models::Decoder::Next next = decoder->decode(
        select(tokens, 1, place), Tensor::from(std::vector<std::int64_t>{place}, {}), state);
    CHECK(allclose(next.scores, select(all, 1, place), 1e-5, 1e-6));
    REQUIRE(next.state.size() == state.size());
    for (std::size_t k = 0; k < state.size(); ++k) {
      CHECK(next.state[k].shape() == state[k].shape());
      CHECK(next.state[k].dtype() == state[k].dtype());
    }
    state = next.state;
  }
}

}  // namespace

TEST_CASE("network file: a language model decodes token by token") {
  check_goes_on(models::toml("gpt2:layers=2,heads=2,width=8,context=5", {.classes = 9}), 5, true);
  check_goes_on(models::toml("lstm", {.classes = 9}), 0, true);
  const auto of = [](const std::string& layers) {
    return "input = [5]\nclasses = 9\ntokens = true\nlayers = [ { embedding = 8 },\n" + layers +
           ", { linear = \"classes\" } ]\n";
  };
  check_goes_on(of(R"t("sinusoid_positions", { residual = [ "layer_norm",
    { self_attention = 4, kv_heads = 2, causal = true } ] },
    { transformer_encoder_layer = 2, causal = true, norm_first = true },
    { transformer_encoder_layer = 2, causal = true })t"),
                5, true);
  check_goes_on(of(R"t({ lstm = 6, layers = 2, proj_size = 4 }, { gru = 5 }, "relu",
    { keep = "here" }, { rnn = 5 }, { concat = "here", axis = 2 })t"),
                0, true);
  check_goes_on(of("\"gelu\""), 0, true);
  check_goes_on(of("{ branches = [ [ \"tanh\" ], [ { positions = 5 } ] ], axis = 2 }"), 5, true);
  // A layer that cannot work position by position gets the whole window.
  check_goes_on(of("{ transpose = [1, 2] }, { transpose = [1, 2] }, { gru = 4 }"), 5, false);
}

TEST_CASE("network file: a translator decodes position by position like the built-in network") {
  const char* name = "transformer:layers=2,heads=2,width=8,hidden=12";
  manual_seed(1);
  nn::AnyModule page = models::create(name, {.classes = 9});
  manual_seed(1);
  nn::AnyModule read =
      models::create(models::NetworkFile{"f.toml", models::toml(name, {.classes = 9})});
  page.eval();
  read.eval();
  const Tensor source = Tensor::from(std::vector<std::int64_t>{3, 1, 4, 5, 2, 0}, {2, 3});
  struct Said {
    const models::Translator* net;
    std::vector<Tensor> encoded, state;
  };
  Said said[2] = {{page.as<models::Translator>(), {}, {}}, {read.as<models::Translator>(), {}, {}}};
  for (Said& s : said) {
    REQUIRE(s.net != nullptr);
    s.encoded = s.net->encode(source);
    s.state = s.net->initial_state(2, 70);  // more positions than in the file
  }
  for (std::int64_t place = 0; place < 4; ++place) {
    Tensor scores[2];
    for (int k = 0; k < 2; ++k) {
      const models::Decoder::Next next = said[k].net->decode(
          Tensor::from(std::vector<std::int64_t>{place + 1, 5 - place}, {2}),
          Tensor::from(std::vector<std::int64_t>{place}, {}), said[k].encoded, said[k].state);
      scores[k] = next.scores;
      said[k].state = next.state;
    }
    CHECK(allclose(scores[0], scores[1], 1e-5, 1e-6));
  }
}
