// Recurrent layers and their cells: RNN, LSTM and GRU. Names, shapes and the order of gates in
// parameters are PyTorch's: weight_ih_l0 [gates · hidden, in], weight_hh_l0, bias_ih_l0,
// bias_hh_l0, with _reverse for the other direction.
//
// A layer multiplies the inputs of all steps at once, then runs its steps as a scan (loops.h): the
// plan and its memory for intermediates do not grow with the number of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/generator.h>
#include <tenon/module.h>

namespace tenon::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool recurrent_bias = true;  ///< off: no bias_hh, one bias a gate, as Keras has it
  bool batch_first = false;    ///< inputs and outputs are [N, T, …] instead of [T, N, …]
  double dropout = 0;          ///< while training, on what each layer but the last gives
  bool bidirectional = false;
  std::int64_t proj_size = 0;         ///< LSTM: its output's width, when a product makes it smaller
  std::string nonlinearity = "tanh";  ///< RNN: or "relu"
  Generator* generator = nullptr;     ///< of the initial values and of dropout
};

/// What RNN and GRU return. `output` [T, N, directions · hidden] holds each step's state of the
/// last layer, `hidden` [num_layers · directions, N, hidden] the last states of all.
struct RecurrentResult {
  Tensor output, hidden;
};
/// hidden [num_layers · directions, N, proj_size or hidden] and cell [.., N, hidden]; of a cell
/// without the first axis.
struct LstmState {
  Tensor hidden, cell;
};
struct LstmResult {
  Tensor output;
  LstmState state;
};

/// What the three layers have in common.
class TENON_API RecurrentBase : public ModuleBase {
 public:
  std::string describe() const override;

 protected:
  enum class Kind { Rnn, Gru, Lstm };
  RecurrentBase(Kind kind, std::int64_t in, std::int64_t hidden, const RecurrentOptions& options);
  struct Stacked {
    Tensor output;
    std::vector<Tensor> states;  // hidden, and an LSTM's cell
  };
  Stacked run(const Tensor& x, std::vector<Tensor> initial, const Tensor& lengths) const;

 private:
  struct Weights {
    Tensor ih, hh, bias_ih, bias_hh, hr;
  };
  friend struct RecurrentStep;
  std::int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  std::int64_t output_width() const {
    return options_.proj_size > 0 ? options_.proj_size : hidden_;
  }
  void check_input(const Tensor& x) const;
  std::vector<Tensor> initial_states(const std::vector<Tensor>& given, std::int64_t batch,
                                     DType dtype, bool batched) const;
  Stacked run_direction(std::int64_t k, const Tensor& x, const std::vector<Tensor>& initial,
                        const Tensor& within) const;
  Kind kind_;
  std::int64_t in_, hidden_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // of each layer, forward before reverse
};

/// Elman's network: h = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu.
///
/// x is [T, N, in] ([N, T, in] with batch_first, [T, in] without a batch); the initial state
/// [num_layers · directions, N, hidden] is zeros where none is given. With `lengths` (int64 [N],
/// each from 0 to T) a sequence ends there: outputs behind it are zeros, the final state is the one
/// at its end, of no step the initial one, and the reverse direction begins there. Throws
/// ShapeError or DTypeError; a length outside is a ValueError at run time.
class TENON_API RNN : public ModuleOf<RNN, RecurrentBase> {
 public:
  RNN(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Rnn, in, hidden, options) {}
  RecurrentResult forward(const Tensor& x, const Tensor& hidden = {},
                          const Tensor& lengths = {}) const;
};

/// Gated recurrent unit (Cho et al., 2014), as cuDNN and PyTorch compute it: gates reset, update,
/// new, the reset gate on the product. Shapes and lengths are those of RNN.
class TENON_API GRU : public ModuleOf<GRU, RecurrentBase> {
 public:
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Gru, in, hidden, options) {}
  RecurrentResult forward(const Tensor& x, const Tensor& hidden = {},
                          const Tensor& lengths = {}) const;
};

/// Long short-term memory (Hochreiter and Schmidhuber, 1997): gates input, forget, cell, output.
/// Shapes and lengths are those of RNN; with proj_size the hidden state is W_hr times it.
class TENON_API LSTM : public ModuleOf<LSTM, RecurrentBase> {
 public:
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Lstm, in, hidden, options) {}
  LstmResult forward(const Tensor& x, const LstmState& state = {},
                     const Tensor& lengths = {}) const;
};

struct CellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  ///< RNNCell: or "relu"
  Generator* generator = nullptr;     ///< of the initial values
};

/// One step each: x [N, in] (or [in]) and the state before it, zeros where none is given, to the
/// state behind it. Parameters weight_ih, weight_hh, bias_ih, bias_hh. Throws ShapeError.
class TENON_API RNNCell : public ModuleOf<RNNCell> {
 public:
  RNNCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
  std::string describe() const override;

 private:
  bool relu_;
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};
class TENON_API GRUCell : public ModuleOf<GRUCell> {
 public:
  GRUCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
  std::string describe() const override;

 private:
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};
class TENON_API LSTMCell : public ModuleOf<LSTMCell> {
 public:
  LSTMCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  LstmState forward(const Tensor& x, const LstmState& state = {}) const;
  std::string describe() const override;

 private:
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}  // namespace tenon::nn
