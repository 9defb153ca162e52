// Recurrent layers: names, errors, summaries, training, and plans of constant size for any number
// of steps.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/recurrent.h>

using namespace tenon;

TEST_CASE("recurrent: parameters have PyTorch's names, shapes and order") {
  const nn::LSTM lstm(8, 6, {.num_layers = 2, .bidirectional = true, .proj_size = 4});
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : lstm.named_parameters()) names.push_back(p.name);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 6) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                 "weight_hr_l0", "weight_ih_l0_reverse"});
  CHECK(names.size() == 20);
  CHECK(lstm.state_dict().at("weight_ih_l1").shape() == Shape{24, 8});
  CHECK(lstm.describe() == "LSTM(8, 6, num_layers=2, bidirectional=true, proj_size=4)");
  const nn::LSTM one_bias(8, 6, {.recurrent_bias = false});
  CHECK(one_bias.parameter_count() == 24 * (8 + 6 + 1));
  CHECK(one_bias.describe() == "LSTM(8, 6, recurrent_bias=false)");
  CHECK(one_bias(zeros({2, 3, 8})).output.shape() == Shape{2, 3, 6});
  CHECK(nn::GRUCell(8, 6, {.bias = false}).describe() == "GRUCell(8, 6, bias=false)");
}

TEST_CASE("recurrent: wrong shapes and options are refused by name") {
  const nn::LSTM lstm(8, 6, {.batch_first = true});
  CHECK_THROWS_WITH_AS(lstm(zeros({2, 3, 7})), doctest::Contains("[N, T, 8]"), ShapeError);
  CHECK_THROWS_WITH_AS(lstm(zeros({2, 3, 8}), nn::LstmState{zeros({1, 3, 6}), {}}),
                       doctest::Contains("hidden state [1, 2, 6]"), ShapeError);
  CHECK_THROWS_AS(lstm(zeros({2, 3, 8}), nn::LstmState{}, zeros({3}, DType::Int64)), ShapeError);
  CHECK_THROWS_AS(lstm(zeros({2, 3, 8}), nn::LstmState{}, zeros({2})), DTypeError);
  CHECK_THROWS_AS(nn::GRU(8, 6, {.proj_size = 2}), ValueError);
  CHECK_THROWS_AS(nn::LSTM(8, 6, {.proj_size = 6}), ValueError);
  CHECK_THROWS_AS(nn::RNN(8, 6, {.nonlinearity = "sigmoid"}), ValueError);
  CHECK_THROWS_AS(nn::GRUCell(8, 6)(zeros({2, 7})), ShapeError);
  CHECK_THROWS_AS(nn::GRUCell(8, 6)(zeros({2, 8}), zeros({3, 6})), ShapeError);
  CHECK_THROWS_WITH_AS(nn::GRUCell(8, 6)(Tensor()),
                       doctest::Contains("GRUCell was given an input without a value"), ValueError);
}

TEST_CASE("recurrent: a summary counts the products of all steps") {
  const nn::GRU gru(8, 6);
  const nn::ModuleSummary s = gru.summary(zeros({10, 4, 8}));
  CHECK(s.parameters == 18 * 8 + 18 * 6 + 36);
  CHECK(s.multiply_adds == 10 * 4 * 18 * (8 + 6));
}

TEST_CASE("recurrent: values after a sequence's end do not matter, even NaN") {
  manual_seed(2);
  const nn::GRU gru(3, 4, {.num_layers = 2, .bidirectional = true});
  const Tensor x = randn({5, 2, 3}).eval(), lengths = Tensor::from<std::int64_t>({5, 2}, {2});
  const Tensor within = unsqueeze(lt(unsqueeze(arange(0, 5), 1), lengths), 2);
  const Tensor soiled = where(within, x, Tensor::from<float>({NAN}, {1}));
  const auto clean_result = gru(x, Tensor(), lengths), result = gru(soiled, Tensor(), lengths);
  CHECK(result.output.to_vector<float>() == clean_result.output.to_vector<float>());
  CHECK(result.hidden.to_vector<float>() == clean_result.hidden.to_vector<float>());
}

TEST_CASE("recurrent: an empty sequence keeps the state; one step equals the cell") {
  const nn::LSTM lstm(3, 4);
  const Tensor h = randn({1, 2, 4}).eval(), c = randn({1, 2, 4}).eval();
  const auto none = lstm(zeros({0, 2, 3}), nn::LstmState{h, c});
  CHECK(none.output.shape() == Shape{0, 2, 4});
  CHECK(none.state.hidden.to_vector<float>() == h.to_vector<float>());
}

TEST_CASE("recurrent: a thousand steps have the plan of ten, and the layer learns") {
  manual_seed(4);
  const nn::LSTM lstm(2, 8);
  const nn::Linear head(8, 1);
  // Task: at the end of a sequence, predict the sign of its first number.
  const Tensor x = randn({12, 64, 2}).eval();
  const Tensor y = sign(slice(select(x, 0, 0), 1, 0, 1)).eval();
  nn::ModuleList net;
  net.append(lstm);
  net.append(head);
  optim::Adam adam(net, {.lr = 0.03});
  double loss = 0;
  for (int k = 0; k < 150; ++k)
    loss = adam.step(mse_loss(head(select(lstm(x).state.hidden, 0, 0)), y));
  CHECK(loss < 0.1);

  const auto steps_of = [&](std::int64_t length) {
    const auto f = compile([&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{sum(lstm(in[0]).output)};
    });
    return f.plan({zeros({length, 2, 2})}).planning_ms();
  };
  (void)steps_of(10);
  CHECK(steps_of(1000) < 50);
}

TEST_CASE("recurrent: a length above the number of steps is refused; length 0 keeps the state") {
  const nn::LSTM lstm(2, 3, {.batch_first = true});
  const Tensor x = randn({2, 4, 2}).eval();
  const auto run = [&](std::int64_t length, DType dtype = DType::Int64) {
    const Tensor lengths = cast(Tensor::from<std::int64_t>({4, length}, {2}), dtype);
    return lstm(x, nn::LstmState{}, lengths);
  };
  CHECK_THROWS_WITH_AS(run(5).output.eval(),
                       doctest::Contains("lengths: index 5 is out of range for axis 0 of size 5"),
                       ValueError);
  CHECK_THROWS_AS(run(-1).state.hidden.eval(), ValueError);
  CHECK(sum(abs(run(0).state.hidden.select(1, 1))).item() == 0);
  CHECK(equal(run(3, DType::UInt8).output, run(3).output));
}
