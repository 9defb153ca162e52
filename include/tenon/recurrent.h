// Recurrent layers and cells: RNN, LSTM and GRU. Names, shapes and the order of gates in parameters
// are PyTorch's: weight_ih_l0 [gates · hidden, in], weight_hh_l0, bias_ih_l0, bias_hh_l0; names of
// the reverse direction end in _reverse.
//
// A layer multiplies the inputs of all steps by weight_ih in one matrix product, then runs the
// steps as a scan (loops.h). The size of the plan and of its intermediates does not depend on the
// sequence length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/generator.h>
#include <tenon/module.h>

namespace tenon::nn {

/// Options of RNN, GRU and LSTM.
struct RecurrentOptions {
  std::int64_t num_layers = 1;  ///< Number of stacked layers.
  bool bias = true;             ///< Add biases.
  bool recurrent_bias = true;   ///< Off: no bias_hh, one bias for each gate, as in Keras.
  bool batch_first = false;     ///< Inputs and outputs are [N, T, …] instead of [T, N, …].
  double dropout = 0;           ///< Dropout in training on the output of all layers but the last.
  bool bidirectional = false;   ///< Also run the sequence in reverse and concatenate the outputs.
  std::int64_t proj_size = 0;   ///< LSTM: size that the hidden state is projected to; 0: none.
  std::string nonlinearity = "tanh";  ///< RNN: "tanh" or "relu".
  OptionalGenerator generator{};      ///< For the initial values and for dropout.
};

/// Result of RNN and GRU.
struct RecurrentResult {
  Tensor output;  ///< The last layer's state at each step, [T, N, directions · hidden].
  Tensor hidden;  ///< The last state of each layer, [num_layers · directions, N, hidden].
};
/// State of an LSTM; for LSTMCell without the first axis.
struct LstmState {
  Tensor hidden;  ///< [num_layers · directions, N, proj_size or hidden].
  Tensor cell;    ///< [num_layers · directions, N, hidden].
};
/// Result of LSTM.
struct LstmResult {
  Tensor output;    ///< [T, N, directions · (proj_size or hidden)].
  LstmState state;  ///< The last state of each layer.
};

/// Common base of RNN, GRU and LSTM.
class TENON_API RecurrentBase : public ModuleBase {
 public:
  std::string describe() const override;

 protected:
  /// The kinds of layer.
  enum class Kind {
    Rnn,  ///< RNN.
    Gru,  ///< GRU.
    Lstm  ///< LSTM.
  };
  /// A layer of this kind.
  RecurrentBase(Kind kind, std::int64_t in, std::int64_t hidden, const RecurrentOptions& options);
  /// Output of run().
  struct Stacked {
    Tensor output;               ///< The output of the last layer.
    std::vector<Tensor> states;  ///< The hidden state and, for LSTM, the cell state.
  };
  /// Runs all layers over the sequence.
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
  std::vector<Weights> weights_;  // for each layer, the forward direction before the reverse
};

/// Elman network, h' = tanh(W_ih · x + b_ih + W_hh · h + b_hh), or with relu.
///
/// x is [T, N, in] ([N, T, in] with batch_first, [T, in] without a batch). The initial state
/// [num_layers · directions, N, hidden] is zeros if it is not given. `lengths` (int64 [N], each
/// from 0 to T) gives the length of each sequence: outputs after its end are zeros, the final state
/// is the state at its end (the initial state for length 0), and the reverse direction begins
/// there. Throws ShapeError or DTypeError; a length out of range is a ValueError at run time.
class TENON_API RNN : public ModuleOf<RNN, RecurrentBase> {
 public:
  /// A layer of `in` input features and `hidden` state features.
  RNN(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Rnn, in, hidden, options) {}
  /// Outputs and final states; `hidden` is the initial state.
  RecurrentResult forward(const Tensor& x, const Tensor& hidden = {},
                          const Tensor& lengths = {}) const;
};

/// Gated recurrent unit (Cho et al., 2014) in the form of cuDNN and PyTorch: gates in the order
/// reset, update, new; the reset gate multiplies the product W_hh · h. Shapes and lengths are those
/// of RNN.
class TENON_API GRU : public ModuleOf<GRU, RecurrentBase> {
 public:
  /// A layer of `in` input features and `hidden` state features.
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Gru, in, hidden, options) {}
  /// Outputs and final states; `hidden` is the initial state.
  RecurrentResult forward(const Tensor& x, const Tensor& hidden = {},
                          const Tensor& lengths = {}) const;
};

/// Long short-term memory (Hochreiter and Schmidhuber, 1997); gates in the order input, forget,
/// cell, output. Shapes and lengths are those of RNN. With proj_size, the hidden state is
/// multiplied by W_hr.
class TENON_API LSTM : public ModuleOf<LSTM, RecurrentBase> {
 public:
  /// A layer of `in` input features and `hidden` state features.
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : ModuleOf(Kind::Lstm, in, hidden, options) {}
  /// Outputs and final states; `state` is the initial state.
  LstmResult forward(const Tensor& x, const LstmState& state = {},
                     const Tensor& lengths = {}) const;
};

/// Options of RNNCell, GRUCell and LSTMCell.
struct CellOptions {
  bool bias = true;                   ///< Add biases.
  std::string nonlinearity = "tanh";  ///< RNNCell: "tanh" or "relu".
  OptionalGenerator generator{};      ///< For the initial values.
};

/// One step of RNN: x [N, in] (or [in]) and the previous state [N, hidden] (zeros if it is not
/// given) to the next state. Parameters weight_ih, weight_hh, bias_ih, bias_hh. Throws ShapeError.
class TENON_API RNNCell : public ModuleOf<RNNCell> {
 public:
  /// A cell of `in` input features and `hidden` state features.
  RNNCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  /// The next state.
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
  std::string describe() const override;

 private:
  bool relu_;
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};
/// One step of GRU; otherwise as RNNCell.
class TENON_API GRUCell : public ModuleOf<GRUCell> {
 public:
  /// A cell of `in` input features and `hidden` state features.
  GRUCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  /// The next state.
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
  std::string describe() const override;

 private:
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};
/// One step of LSTM; otherwise as RNNCell.
class TENON_API LSTMCell : public ModuleOf<LSTMCell> {
 public:
  /// A cell of `in` input features and `hidden` state features.
  LSTMCell(std::int64_t in, std::int64_t hidden, const CellOptions& options = {});
  /// The next state.
  LstmState forward(const Tensor& x, const LstmState& state = {}) const;
  std::string describe() const override;

 private:
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}  // namespace tenon::nn
