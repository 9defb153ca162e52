// Networks by name, each with its published architecture and the recipe that trains it well.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/nn.h>

/// Networks by name or from TOML files.
namespace tenon::models {

/// Options of create().
struct Options {
  std::int64_t classes = 0;       ///< number of outputs; 0: that of the published network
  std::string activation{};       ///< of mlp: name of the activation; "": the network's own
  OptionalGenerator generator{};  ///< for the initial weights; without one, the context's
  /// "256,relu": layers that replace the network's last ones, before one more linear layer that
  /// gives the classes. A number is a linear layer; "dropout=0.5" and names of activations are
  /// possible too. "": the network's own. Of alexnet, vgg16, vgg16_bn, resnetN, inception_resnet_v2
  /// and bert_classifier.
  std::string head{};
};

/// Training settings that reach the network's published accuracy: the defaults of `tenon train`.
/// train::Settings describes the fields in detail.
struct Recipe {
  int epochs = 5;                   ///< passes over the training data
  std::int64_t batch = 64;          ///< batch size
  std::string optimizer = "sgd";    ///< name of the optimizer (optim::create())
  double lr = 0.05;                 ///< learning rate
  double momentum = 0.9;            ///< momentum, of sgd, rmsprop and muon
  double weight_decay = 0;          ///< weight decay
  std::string schedule = "cosine";  ///< learning-rate schedule (optim::create_schedule())
  std::string milestones{};         ///< of the schedule multistep: "30,60" or "2=0.4,5=0.2"
  double warmup = 0.25;             ///< epochs of linear warm-up
  std::string data = "digits";      ///< default data source (data::open_dataset())
  double clip_norm = 0;             ///< largest common norm of all gradients; 0: no limit
  double input_mean = 0.1307;       ///< pixels are scaled to (x / 255 - mean) / std
  double input_std = 0.3081;        ///< standard deviation in that scaling
  double label_smoothing = 0;       ///< label smoothing in training
  double beta2 = 0.999;             ///< of adam and its relatives, lion and lamb
  double eps = 1e-8;                ///< of optimizers that divide; of levenberg: mu
  std::string augment{};            ///< augmentation of photographs; CIFAR: "crop=4,flip"
  /// Means and standard deviations of the channels: "auto", "none" (always input_mean and
  /// input_std), or numbers.
  std::string normalize = "auto";
};

/// What is known of a network before it is built.
struct Info {
  std::string name;             ///< name for create(): "resnet50"
  std::string about;            ///< a sentence about it
  Shape input;                  ///< shape of one sample's input: [1, 28, 28]
  std::int64_t classes = 0;     ///< outputs of the published network: 10 or 1000
  std::int64_t parameters = 0;  ///< number of parameters with these outputs
  Recipe recipe;                ///< how to train it
  /// A language model. Inputs are tokens (int64, below `classes`), and so are targets, one for each
  /// position; scores are [N, T, classes]. False: the target is one class for each input.
  bool tokens = false;
  /// A translation model. Inputs are pairs of sequences [2, L], a source and the beginning of its
  /// translation (data::open_pairs()); scores are [N, L, classes]. `tokens` is then true too.
  bool pairs = false;
  /// A masked language model. Targets are the masked tokens, and data::kIgnoredTarget elsewhere.
  bool masked = false;
  /// For networks that take text and predict something other than tokens: inputs are tokens [L]
  /// (int64) below this number, padded with 0. 0: `tokens` decides alone.
  std::int64_t vocabulary = 0;
  /// Whether inputs are tokens.
  bool takes_tokens() const { return tokens || vocabulary > 0; }
  /// Size of the input vocabulary: every input token is below it. `vocabulary` if the network has
  /// one of its own; for a language model, the number of outputs.
  std::int64_t input_tokens(std::int64_t outputs) const {
    return vocabulary > 0 && !masked ? vocabulary : outputs;
  }
  /// Whether it answers questions: targets are the positions of an answer's first and last token,
  /// scores are [N, 2, L].
  bool finds_spans() const { return tokens && vocabulary > 0 && !masked; }
  /// The task that the network is built for, a name of train::task_names(); "": any task whose
  /// targets fit its outputs.
  TENON_API std::string task() const;
  /// If set, the loss is the MAP criterion of LeNet-5 (LeCun et al., 1998): the cross-entropy of
  /// the scores and of one additional class that is never correct and always has this score.
  std::optional<double> rubbish_score{};
};

/// A language model that generates token by token. A state holds what came before, so every token
/// costs the same at any position.
class TENON_API Decoder : public nn::Module {
 public:
  /// Largest number of tokens that the model sees; 0: no limit.
  virtual std::int64_t context() const = 0;
  /// The state before the first token of `batch` sequences.
  virtual std::vector<Tensor> initial_state(std::int64_t batch) const = 0;
  /// What decode() returns.
  struct Next {
    Tensor scores;              ///< scores of the next token, [N, classes]
    std::vector<Tensor> state;  ///< the new state, with the same shapes and types
  };
  /// Takes one token of each sequence.
  ///
  /// @param tokens    [N], int64
  /// @param position  position of the tokens, an int64 scalar from 0
  /// @param state     the state before these tokens
  virtual Next decode(const Tensor& tokens, const Tensor& position,
                      const std::vector<Tensor>& state) const = 0;
};

/// A translation network: an encoder reads a whole source, a decoder generates token by token.
class TENON_API Translator : public nn::Module {
 public:
  /// Encodes sources [N, S] (int64, padded with data::kPad): tensors that the decoder attends to,
  /// whose first axis is N.
  virtual std::vector<Tensor> encode(const Tensor& source) const = 0;
  /// The state before the first token of `batch` translations of up to `positions` tokens: tensors
  /// whose first axis is `batch`.
  virtual std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t positions) const = 0;
  /// Takes one token of each translation.
  ///
  /// @param tokens    [N], int64; data::kBegin at first
  /// @param position  position of the tokens, an int64 scalar from 0
  /// @param encoded   what encode() returned
  /// @param state     the state before these tokens
  virtual Decoder::Next decode(const Tensor& tokens, const Tensor& position,
                               const std::vector<Tensor>& encoded,
                               const std::vector<Tensor>& state) const = 0;
};

/// A network described in TOML (docs/model_toml.md).
struct NetworkFile {
  std::string path;  ///< where the text is from, for messages
  std::string text;  ///< the TOML text
};
/// Whether a network's name is the path of a TOML file: it ends in ".toml".
TENON_API bool is_network_file(const std::string& name);
/// Reads a network's TOML file. Throws IoError.
TENON_API NetworkFile read_network(const std::string& path);
/// Builds a network from TOML. Options::classes replaces the file's number of classes unless it is
/// 0. Throws FormatError that names file, line and layer, and ValueError for options that the
/// network does not take.
TENON_API nn::AnyModule create(const NetworkFile& file, const Options& options = {});
/// What is known of a network from TOML. Throws FormatError.
TENON_API Info info(const NetworkFile& file);
/// The TOML text of a network of list(): the same parameters, the same initial values, the same
/// bits. It has the comments and the layout of the library's own file of the network. Of a TOML
/// file its own text. Throws ValueError for another name, IoError for a missing
/// file, and NotSupported for a registered network, which is C++ code.
TENON_API std::string toml(const std::string& name, const Options& options = {});

/// Builds a network: by a name of list(), "resnet50"; by a name with sizes, "mlp:784-300-10"; or
/// from a TOML file, "net.toml". Throws ValueError for another name (the message suggests similar
/// ones) and for options that the network does not take.
TENON_API nn::AnyModule create(const std::string& name, const Options& options = {});
/// What is known of a network, by the names that create() takes.
TENON_API Info info(const std::string& name);
/// A network of one's own that has a name.
struct RegisteredNetwork {
  /// What is known of it: `name`, lower-case letters, digits and '_'; `input` and `classes` must be
  /// set; `recipe` is what `tenon train` begins with. `parameters` is counted if it is 0.
  Info info{};
  bool takes_sizes = false;  ///< whether sizes may follow a colon: "mine:32-16"
  /// Builds the network; `sizes` is what follows the colon, or "". Options::classes is at least 1.
  /// Throws ValueError for options and sizes that it does not take.
  std::function<nn::AnyModule(const Options& options, const std::string& sizes)> make{};
};
/// Adds a network, for create(), settings and the command. Call it before runs are opened. Throws
/// ValueError for a name that is invalid or taken, and for facts that are missing.
TENON_API void register_network(RegisteredNetwork network);
/// All networks that have a name: those of the library, then the registered ones.
TENON_API std::vector<Info> list();
/// The names of list(), without the facts. Takes microseconds, where list() takes milliseconds.
TENON_API std::vector<std::string> names();

}  // namespace tenon::models
