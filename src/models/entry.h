// Entry of a network in the model table: its facts, its builder, and the options of its name.
//
// Every file in this folder defines its networks as entries; models.cpp collects them. Layers that
// draw random values are written between braces, Sequential{a, b}, because braces guarantee
// evaluation from left to right. Between parentheses the order depends on the compiler, and the
// same seed would give other values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/models.h>
#include <tenon/shapes_only.h>

namespace tenon::models {

struct Entry {
  Info info;
  /// `sizes` is what follows the colon of a name, or ""; Options::classes is at least 1.
  nn::AnyModule (*build)(const std::string& sizes, const Options& options);
  /// The facts of the network of these sizes; null: the name takes none.
  Info (*sized)(const Info& standard, const std::string& sizes) = nullptr;
  bool takes_activation = false, takes_head = false;
  /// The network as a file: the keys behind `classes`, then tables.
  std::string (*toml)(const std::string& sizes, const Options& options) = nullptr;
};

std::vector<Entry> lenet_entries();
std::vector<Entry> lenet5_1998_entries();
std::vector<Entry> perceptron_entries();
std::vector<Entry> alexnet_entries();
std::vector<Entry> vgg_entries();
std::vector<Entry> resnet_entries();
std::vector<Entry> inception_resnet_entries();
std::vector<Entry> language_entries();
std::vector<Entry> gpt2_entries();
std::vector<Entry> bert_entries();
std::vector<Entry> transformer_entries();

/// What a name says behind its colon: "layers=4,eps=1e-06,activation=relu".
class NameValues {
 public:
  /// Throws ValueError that names the model, with a near miss and the keys it takes, for another
  /// key.
  NameValues(const std::string& model, const std::string& text,
             const std::vector<std::string>& keys);
  /// A whole number from 1.
  void whole(const char* key, std::int64_t& value) const;
  /// A number from `low` to `high`; true where the name has one.
  bool number(const char* key, double low, double high, double& value) const;
  void word(const char* key, const std::vector<std::string>& choices, std::string& value) const;
  /// What every transformer has, into fields of these names. Throws ValueError for a width that
  /// does not divide into the heads.
  template <class Sizes>
  void transformer(Sizes& sizes) const;

 private:
  const std::string* find(const char* key) const;
  [[noreturn]] void refuse(const char* key, const std::string& what) const;
  std::string model_, text_;
  std::vector<std::pair<std::string, std::string>> values_;
};

/// The activations that a Transformer's name may choose, by Tenon's words for them.
const std::vector<std::string>& transformer_activations();
/// Throws ValueError for a width that does not divide into heads, of the network "model:text".
void require_heads(const std::string& model, const std::string& text, std::int64_t width,
                   std::int64_t heads);

template <class Sizes>
void NameValues::transformer(Sizes& sizes) const {
  whole("layers", sizes.layers);
  whole("heads", sizes.heads);
  whole("width", sizes.width);
  whole("hidden", sizes.hidden);
  whole("context", sizes.context);
  word("activation", transformer_activations(), sizes.activation);
  number("eps", 0, 1, sizes.eps);
  require_heads(model_, text_, sizes.width, sizes.heads);
}

/// What one of them makes of x.
Tensor activated(const std::string& name, const Tensor& x);
/// The same as layers of a file: `{ gelu = "tanh" }`.
std::string activation_toml(const std::string& name);

/// "layers=4,heads=4" as keys with numbers of at least 1. Throws ValueError that names the model
/// and, with a near miss, the keys it takes.
std::vector<std::pair<std::string, std::int64_t>> named_sizes(const std::string& model,
                                                              const std::string& text,
                                                              const std::vector<std::string>& keys);

/// Of a name whose sizes are "width=N", channels of the first layer: that N, or what was published.
/// All other widths but those of input and output are in proportion.
std::int64_t width_of(const std::string& model, const std::string& sizes, std::int64_t published);
/// The facts of such a network; its parameters are counted without making any.
template <nn::AnyModule (*build)(const std::string& sizes, const Options& options)>
Info of_width(const Info& standard, const std::string& sizes) {
  const ShapesOnly scope;
  Info out = standard;
  out.name += ":" + sizes;
  out.parameters = build(sizes, {.classes = standard.classes}).parameter_count();
  return out;
}

/// The layers that Options::head names behind `in` features, and a linear one for the classes.
/// Throws ValueError for a text that names none.
nn::Sequential head_of(std::int64_t in, const Options& options);
/// The same as lines of a file, each behind `indent`.
std::string head_toml(const Options& options, const std::string& indent);

/// A convolution's weight by He's rule for rectifiers, counted by what leaves it (He et al., 2015).
nn::ParameterOptions he_fan_out(nn::ParameterOptions options);

}  // namespace tenon::models
