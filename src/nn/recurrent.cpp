// RNN, LSTM and GRU: single steps, layers with scan(), cells.
//
// The products of the inputs with weight_ih do not depend on each other and are computed for all
// steps at once. A step contains only the product with weight_hh and element-wise operations.
#include <tenon/recurrent.h>

#include <array>
#include <cmath>
#include <utility>

#include <tenon/error.h>
#include <tenon/loops.h>
#include <tenon/nn.h>

#include "base/str.h"
#include "graph/called.h"
#include "graph/node.h"
#include "ops/index_check.h"

namespace tenon::nn {
namespace {

void check_size(const char* layer, const char* what, std::int64_t value) {
  if (value < 1) throw ValueError(cat(layer, ": ", what, " is ", value, ", must be at least 1"));
}

bool is_relu(const char* layer, const std::string& nonlinearity) {
  if (nonlinearity != "tanh" && nonlinearity != "relu")
    throw ValueError(
        cat(layer, ": nonlinearity is '", nonlinearity, "', must be 'tanh' or 'relu'"));
  return nonlinearity == "relu";
}

Tensor rnn_step(const Tensor& of_x, const Tensor& of_h, bool with_relu) {
  return with_relu ? relu(of_x + of_h) : tanh(of_x + of_h);
}

Tensor gru_step(const Tensor& of_x, const Tensor& of_h, const Tensor& h) {
  const std::int64_t width = h.size(-1);
  const std::vector<Tensor> x = split(of_x, width, -1), g = split(of_h, width, -1);
  const Tensor reset = sigmoid(x[0] + g[0]), update = sigmoid(x[1] + g[1]);
  const Tensor fresh = tanh(x[2] + reset * g[2]);
  return fresh + update * (h - fresh);
}

LstmState lstm_step(const Tensor& gates, const Tensor& c) {
  const std::vector<Tensor> g = split(gates, c.size(-1), -1);
  const Tensor cell = sigmoid(g[1]) * c + sigmoid(g[0]) * tanh(g[2]);
  return {sigmoid(g[3]) * tanh(cell), cell};
}

// Both biases are added to the same sum, so they are added to each other first.
Tensor sum_of_biases(const Tensor& a, const Tensor& b) { return b.defined() ? a + b : a; }

}  // namespace

// One step of a layer, in the form that scan() calls.
struct RecurrentStep {
  using Kind = RecurrentBase::Kind;
  Kind kind;
  bool with_relu;
  const RecurrentBase::Weights& weights;

  // The input products of all steps, computed before the loop.
  Tensor input_product(const Tensor& x) const {
    return linear(
        x, weights.ih,
        kind == Kind::Gru ? weights.bias_ih : sum_of_biases(weights.bias_ih, weights.bias_hh));
  }

  std::vector<Tensor> next(const std::vector<Tensor>& states, const Tensor& of_x) const {
    const Tensor& h = states[0];
    if (kind == Kind::Gru) return {gru_step(of_x, linear(h, weights.hh, weights.bias_hh), h)};
    if (kind == Kind::Rnn) return {rnn_step(of_x, linear(h, weights.hh), with_relu)};
    auto [hidden, cell] = lstm_step(of_x + linear(h, weights.hh), states[1]);
    return {weights.hr.defined() ? linear(hidden, weights.hr) : hidden, cell};
  }

  // `row`: the input product; if sequences differ in length, also whether the step is before the
  // end.
  ScanResult operator()(const std::vector<Tensor>& states, const std::vector<Tensor>& row) const {
    std::vector<Tensor> after = next(states, row[0]);
    if (row.size() == 1) return {after, {after[0]}};
    const Tensor output = where(row[1], after[0], 0);
    for (std::size_t k = 0; k < after.size(); ++k) after[k] = where(row[1], after[k], states[k]);
    return {after, {output}};
  }
};

namespace {
constexpr std::array<const char*, 3> kNames = {"RNN", "GRU", "LSTM"};
constexpr std::array<std::int64_t, 3> kGates = {1, 3, 4};
}  // namespace

RecurrentBase::RecurrentBase(Kind kind, std::int64_t in, std::int64_t hidden,
                             const RecurrentOptions& options)
    : kind_(kind), in_(in), hidden_(hidden), options_(options) {
  const char* name = kNames[static_cast<std::size_t>(kind)];
  check_size(name, "the size of the input", in);
  check_size(name, "the size of the hidden state", hidden);
  check_size(name, "num_layers", options.num_layers);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw ValueError(cat(name, ": dropout is ", options.dropout, ", must be in [0, 1]"));
  if (options.proj_size < 0 || options.proj_size >= hidden ||
      (options.proj_size > 0 && kind != Kind::Lstm))
    throw ValueError(cat(name, ": proj_size is ", options.proj_size,
                         kind == Kind::Lstm ? cat(", must be below the hidden size ", hidden)
                                            : std::string(": only LSTM has a projection")));
  (void)is_relu(name, options.nonlinearity);
  const std::int64_t rows = kGates[static_cast<std::size_t>(kind)] * hidden;
  const double limit = 1 / std::sqrt(static_cast<double>(hidden));
  const auto make = [&](const std::string& label, const Shape& shape) {
    return parameter(label, init::uniform(shape, -limit, limit, options.generator));
  };
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer)
    for (std::int64_t d = 0; d < directions(); ++d) {
      const std::string end = cat("_l", layer, d == 1 ? "_reverse" : "");
      Weights w;
      w.ih = make("weight_ih" + end, {rows, layer == 0 ? in : directions() * output_width()});
      w.hh = make("weight_hh" + end, {rows, output_width()});
      if (options.bias) w.bias_ih = make("bias_ih" + end, {rows});
      if (options.bias && options.recurrent_bias) w.bias_hh = make("bias_hh" + end, {rows});
      if (options.proj_size > 0) w.hr = make("weight_hr" + end, {options.proj_size, hidden});
      weights_.push_back(w);
    }
}

std::string RecurrentBase::describe() const {
  std::string text = cat(kNames[static_cast<std::size_t>(kind_)], "(", in_, ", ", hidden_);
  if (options_.num_layers != 1) text += cat(", num_layers=", options_.num_layers);
  if (!options_.bias) text += ", bias=false";
  if (options_.bias && !options_.recurrent_bias) text += ", recurrent_bias=false";
  if (options_.batch_first) text += ", batch_first=true";
  if (options_.dropout != 0) text += cat(", dropout=", options_.dropout);
  if (options_.bidirectional) text += ", bidirectional=true";
  if (options_.proj_size != 0) text += cat(", proj_size=", options_.proj_size);
  if (kind_ == Kind::Rnn && options_.nonlinearity != "tanh")
    text += cat(", nonlinearity=", options_.nonlinearity);
  return text + ")";
}

namespace {

// The lengths; at run time a length outside [0, steps] is an error.
Tensor checked_lengths(const Tensor& lengths, std::int64_t steps) {
  const Called called("lengths");
  const Tensor whole = cast(lengths, DType::Int64);
  return whole + zeros_within(whole, steps + 1);
}

}  // namespace

void RecurrentBase::check_input(const Tensor& x) const {
  if (!x.defined())
    throw ValueError(cat(where("recurrent"), ": ", describe(),
                         " was given an input without a value: it was never assigned"));
  if ((x.rank() != 2 && x.rank() != 3) || x.size(-1) != in_)
    throw ShapeError(cat(where("recurrent"), ": ", describe(), " takes [",
                         options_.batch_first ? "N, T, " : "T, N, ", in_, "] or [T, ", in_,
                         "], not ", x.shape()));
}

std::vector<Tensor> RecurrentBase::initial_states(const std::vector<Tensor>& given,
                                                  std::int64_t batch, DType dtype,
                                                  bool batched) const {
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const Shape shape{options_.num_layers * directions(), batch, k == 0 ? output_width() : hidden_};
    if (!given[k].defined()) {
      out.push_back(zeros(shape, dtype));
      continue;
    }
    const Tensor state = batched ? given[k] : unsqueeze(given[k], 1);
    if (state.shape() != shape)
      throw ShapeError(cat(where("recurrent"), ": ", describe(), " takes an initial ",
                           k == 0 ? "hidden" : "cell", " state ", shape,
                           batched ? "" : " without a batch axis", ", not ", given[k].shape()));
    out.push_back(cast(state, dtype));
  }
  return out;
}

RecurrentBase::Stacked RecurrentBase::run_direction(std::int64_t k, const Tensor& x,
                                                    const std::vector<Tensor>& initial,
                                                    const Tensor& within) const {
  const RecurrentStep step{kind_, options_.nonlinearity == "relu",
                           weights_[static_cast<std::size_t>(k)]};
  std::vector<Tensor> states, rows{step.input_product(x)};
  for (const Tensor& state : initial) states.push_back(select(state, 0, k));
  if (within.defined()) rows.push_back(within);
  ScanResult result = scan(step, states, rows,
                           {.length = x.size(0), .reverse = options_.bidirectional && k % 2 == 1});
  return {std::move(result.ys[0]), std::move(result.carry)};
}

RecurrentBase::Stacked RecurrentBase::run(const Tensor& input, std::vector<Tensor> initial,
                                          const Tensor& lengths) const {
  check_input(input);
  const bool batched = input.rank() == 3, transposed = batched && options_.batch_first;
  Tensor x = !batched ? unsqueeze(input, 1) : transposed ? transpose(input, 0, 1) : input;
  const std::int64_t batch = x.size(1);
  const DType dtype = linear(slice(x, 0, 0, 0), weights_[0].ih).dtype();
  initial = initial_states(initial, batch, dtype, batched);
  Tensor within;
  if (lengths.defined()) {
    if (lengths.shape() != Shape{batch})
      throw ShapeError(cat(where("recurrent"), ": ", describe(), ": lengths are ", lengths.shape(),
                           ", must be [", batch, "], one for each sequence"));
    if (is_floating(lengths.dtype()) || lengths.dtype() == DType::Bool)
      throw DTypeError(
          cat(where("recurrent"), ": lengths are ", lengths.dtype(), ", must be integers"));
    within =
        unsqueeze(lt(unsqueeze(arange(0, x.size(0)), 1), checked_lengths(lengths, x.size(0))), 2);
    x = tenon::where(within, x, 0);  // elements after a sequence's end may have any value
  }
  std::vector<std::vector<Tensor>> last(initial.size());
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) x = dropout(x, options_.dropout, is_training(), options_.generator);
    std::vector<Tensor> outputs;
    for (std::int64_t d = 0; d < directions(); ++d) {
      Stacked made = run_direction(layer * directions() + d, x, initial, within);
      outputs.push_back(std::move(made.output));
      for (std::size_t k = 0; k < last.size(); ++k) last[k].push_back(std::move(made.states[k]));
    }
    x = outputs.size() == 1 ? outputs[0] : concat(outputs, 2);
  }
  Stacked out{!batched ? squeeze(x, 1) : transposed ? transpose(x, 0, 1) : x, {}};
  for (const std::vector<Tensor>& states : last)
    out.states.push_back(batched ? stack(states) : squeeze(stack(states), 1));
  return out;
}

RecurrentResult RNN::forward(const Tensor& x, const Tensor& hidden, const Tensor& lengths) const {
  Stacked out = run(x, {hidden}, lengths);
  return {std::move(out.output), std::move(out.states[0])};
}

RecurrentResult GRU::forward(const Tensor& x, const Tensor& hidden, const Tensor& lengths) const {
  Stacked out = run(x, {hidden}, lengths);
  return {std::move(out.output), std::move(out.states[0])};
}

LstmResult LSTM::forward(const Tensor& x, const LstmState& state, const Tensor& lengths) const {
  Stacked out = run(x, {state.hidden, state.cell}, lengths);
  return {std::move(out.output), {std::move(out.states[0]), std::move(out.states[1])}};
}

namespace {

struct CellWeights {
  Tensor ih, hh, bias_ih, bias_hh;
};

template <class Parameter>
CellWeights cell_weights(const char* cell, std::int64_t gates, std::int64_t in, std::int64_t hidden,
                         const CellOptions& options, Parameter&& parameter) {
  check_size(cell, "the size of the input", in);
  check_size(cell, "the size of the hidden state", hidden);
  const double limit = 1 / std::sqrt(static_cast<double>(hidden));
  const auto make = [&](const char* name, const Shape& shape) {
    return parameter(name, init::uniform(shape, -limit, limit, options.generator));
  };
  CellWeights out;
  out.ih = make("weight_ih", {gates * hidden, in});
  out.hh = make("weight_hh", {gates * hidden, hidden});
  if (options.bias) out.bias_ih = make("bias_ih", {gates * hidden});
  if (options.bias) out.bias_hh = make("bias_hh", {gates * hidden});
  return out;
}

// The state before a step; zeros if none is given.
Tensor state_before(const char* cell, const Tensor& x, const Tensor& state, const Tensor& of_x,
                    const Tensor& weight_hh) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = weight_hh.size(1);
  if (!state.defined()) return zeros(shape, of_x.dtype());
  if (state.shape() != shape)
    throw ShapeError(cat(where("recurrent"), ": ", cell, " takes a state ", shape, " for an input ",
                         x.shape(), ", not ", state.shape()));
  return state;
}

void check_cell_input(const char* cell, const Tensor& x, const Tensor& weight_ih) {
  if (!x.defined())
    throw ValueError(cat(where("recurrent"), ": ", cell,
                         " was given an input without a value: it was never assigned"));
  if ((x.rank() != 1 && x.rank() != 2) || x.size(-1) != weight_ih.size(1))
    throw ShapeError(cat(where("recurrent"), ": ", cell, " takes [N, ", weight_ih.size(1), "] or [",
                         weight_ih.size(1), "], not ", x.shape()));
}

std::string describe_cell(const char* cell, const Tensor& weight_ih, const Tensor& weight_hh,
                          bool bias, const char* more = "") {
  return cat(cell, "(", weight_ih.size(1), ", ", weight_hh.size(1), bias ? "" : ", bias=false",
             more, ")");
}

}  // namespace

#define TENON_CELL_WEIGHTS(Cell, gates)                                                    \
  CellWeights w =                                                                          \
      cell_weights(#Cell, gates, in, hidden, options,                                      \
                   [&](const char* name, const Tensor& t) { return parameter(name, t); }); \
  weight_ih_ = std::move(w.ih), weight_hh_ = std::move(w.hh);                              \
  bias_ih_ = std::move(w.bias_ih), bias_hh_ = std::move(w.bias_hh)

RNNCell::RNNCell(std::int64_t in, std::int64_t hidden, const CellOptions& options)
    : relu_(is_relu("RNNCell", options.nonlinearity)) {
  TENON_CELL_WEIGHTS(RNNCell, 1);
}
GRUCell::GRUCell(std::int64_t in, std::int64_t hidden, const CellOptions& options) {
  TENON_CELL_WEIGHTS(GRUCell, 3);
}
LSTMCell::LSTMCell(std::int64_t in, std::int64_t hidden, const CellOptions& options) {
  TENON_CELL_WEIGHTS(LSTMCell, 4);
}
#undef TENON_CELL_WEIGHTS

Tensor RNNCell::forward(const Tensor& x, const Tensor& hidden) const {
  check_cell_input("RNNCell", x, weight_ih_);
  const Tensor of_x = linear(x, weight_ih_, bias_ih_);
  const Tensor h = state_before("RNNCell", x, hidden, of_x, weight_hh_);
  return rnn_step(of_x, linear(h, weight_hh_, bias_hh_), relu_);
}

Tensor GRUCell::forward(const Tensor& x, const Tensor& hidden) const {
  check_cell_input("GRUCell", x, weight_ih_);
  const Tensor of_x = linear(x, weight_ih_, bias_ih_);
  const Tensor h = state_before("GRUCell", x, hidden, of_x, weight_hh_);
  return gru_step(of_x, linear(h, weight_hh_, bias_hh_), h);
}

LstmState LSTMCell::forward(const Tensor& x, const LstmState& state) const {
  check_cell_input("LSTMCell", x, weight_ih_);
  const Tensor of_x = linear(x, weight_ih_, bias_ih_);
  const Tensor h = state_before("LSTMCell", x, state.hidden, of_x, weight_hh_);
  const Tensor c = state_before("LSTMCell", x, state.cell, of_x, weight_hh_);
  return lstm_step(of_x + linear(h, weight_hh_, bias_hh_), c);
}

std::string RNNCell::describe() const {
  return describe_cell("RNNCell", weight_ih_, weight_hh_, bias_ih_.defined(),
                       relu_ ? ", nonlinearity=relu" : "");
}
std::string GRUCell::describe() const {
  return describe_cell("GRUCell", weight_ih_, weight_hh_, bias_ih_.defined());
}
std::string LSTMCell::describe() const {
  return describe_cell("LSTMCell", weight_ih_, weight_hh_, bias_ih_.defined());
}

}  // namespace tenon::nn
