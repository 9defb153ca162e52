// Networks by name, each with its published shape and the recipe that trains it well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::models {

struct Options {
  std::int64_t classes = 0;        ///< outputs; 0: as many as the model was published with
  std::string activation{};        ///< "" : the model's own; taken by mlp
  Generator* generator = nullptr;  ///< of the initial values; nullptr: the context's
  /// "256,relu": layers in place of the last ones, in front of one more that gives the classes;
  /// numbers are linear layers, "dropout=0.5" and names of activations what they say. Taken by
  /// alexnet, vgg16, vgg16_bn, resnetN, inception_resnet_v2 and
  /// bert_classifier. "" : the model's own.
  std::string head{};
};

/// Settings that reach the model's published accuracy: the defaults of `tenon train`.
struct Recipe {
  int epochs = 5;
  std::int64_t batch = 64;
  std::string optimizer = "sgd";
  double lr = 0.05, momentum = 0.9, weight_decay = 0;
  std::string schedule = "cosine";
  std::string milestones{};     ///< of the schedule multistep: "30,60", or "2=0.4,5=0.2"
  double warmup = 0.25;         ///< epochs
  std::string data = "digits";  ///< what it is trained on when nothing else is named
  double clip_norm = 0;         ///< 0: off
  double input_mean = 0.1307, input_std = 0.3081;  ///< pixels are (x / 255 - mean) / std
  double label_smoothing = 0;
  double beta2 = 0.999, eps = 1e-8;  ///< of adam and adamw; eps of levenberg too, its mu
  std::string augment{};             ///< of photographs, CIFAR's: "crop=4,flip"
  /// Of channels: "auto", "none" (input_mean and input_std always), or means and deviations.
  std::string normalize = "auto";
};

struct Info {
  std::string name, about;
  Shape input;                  ///< of one sample: [1, 28, 28]
  std::int64_t classes = 0;     ///< outputs as published: 10 or 1000
  std::int64_t parameters = 0;  ///< with so many classes
  Recipe recipe;
  /// Inputs are tokens (int64, below `classes`), and so are targets, one for each place: the model
  /// gives scores [N, T, classes]. Otherwise targets are one class for each input.
  bool tokens = false;
  /// Inputs are pairs of sequences [2, L], a source and what its translation is so far
  /// (data::open_pairs); scores are [N, L, classes]. Where this is so, so is `tokens`.
  bool pairs = false;
  /// Words of the inputs are hidden from it, and targets are they; elsewhere data::kIgnoredTarget.
  bool masked = false;
  /// Inputs are tokens [L] (int64) below this, of which 0 fills up, whatever targets are; 0 where
  /// `tokens` says all.
  std::int64_t vocabulary = 0;
  bool takes_tokens() const { return tokens || vocabulary > 0; }
  /// Targets are the places of an answer's first and last token, scores [N, 2, L].
  bool finds_spans() const { return tokens && vocabulary > 0 && !masked; }
  /// Where it is given, the loss is LeNet-5's MAP criterion: the cross-entropy of the scores, and
  /// of one class more that is never right and always has this score.
  std::optional<double> rubbish_score{};
};

/// A model of language that can go on token by token: what came before is in a state, so that a
/// token costs the same wherever it stands.
class TENON_API Decoder : public nn::Module {
 public:
  /// The most tokens that it sees; 0: any number.
  virtual std::int64_t context() const = 0;
  /// The state before the first token of `batch` sequences.
  virtual std::vector<Tensor> initial_state(std::int64_t batch) const = 0;
  struct Next {
    Tensor scores;              ///< [N, classes] of the token that follows
    std::vector<Tensor> state;  ///< shapes and types as before
  };
  /// Takes the tokens [N] (int64) at `place`, a scalar int64 counted from 0.
  virtual Next decode(const Tensor& tokens, const Tensor& place,
                      const std::vector<Tensor>& state) const = 0;
};

/// A network that translates: an encoder sees a whole source, and a decoder writes token by token.
class TENON_API Translator : public nn::Module {
 public:
  /// What the decoder looks up of sources [N, S] (int64, filled up with data::kPad): tensors whose
  /// first axis is N.
  virtual std::vector<Tensor> encode(const Tensor& source) const = 0;
  /// The state before the first place of `batch` translations of up to `places` tokens: tensors
  /// whose first axis is `batch`.
  virtual std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t places) const = 0;
  /// Takes the tokens [N] (int64; data::kBegin at first) at `place`, a scalar int64 counted from 0.
  virtual Decoder::Next decode(const Tensor& tokens, const Tensor& place,
                               const std::vector<Tensor>& encoded,
                               const std::vector<Tensor>& state) const = 0;
};

/// A network that a TOML text describes (docs/model_toml.md).
struct NetworkFile {
  std::string path;  ///< where the text is from, for messages
  std::string text;
};
/// Whether a model's name is the path of such a file: it ends in ".toml".
TENON_API bool is_network_file(const std::string& name);
/// Reads one. Throws IoError.
TENON_API NetworkFile read_network(const std::string& path);
/// Builds the network, with as many classes as the options say or else the file. Throws FormatError
/// naming file, line and layer for what is wrong with it, and ValueError for options that it does
/// not take.
TENON_API nn::AnyModule create(const NetworkFile& file, const Options& options = {});
TENON_API Info info(const NetworkFile& file);
/// The text that describes a network of list() as such a file: the same parameters, the same
/// initial values, the same bits.
TENON_API std::string toml(const std::string& name, const Options& options = {});

/// Builds a network of list() by its name, "resnet50", or with its sizes, "mlp:784-300-10", or the
/// network of a file, "net.toml". Throws ValueError for another name, with near misses, and for
/// options that it does not take.
TENON_API nn::AnyModule create(const std::string& name, const Options& options = {});
/// What is known of a model before it is built; same names as create().
TENON_API Info info(const std::string& name);
TENON_API std::vector<Info> list();

}  // namespace tenon::models
