// Builder of networks from TOML: the class that network_builder.cpp (modules and layers) and
// network_structures.cpp (sequences, repeats, residuals, branches, blocks) implement.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <tenon/error.h>
#include <tenon/models.h>

#include "models/file_head.h"
#include "models/file_parts.h"

namespace tenon::models {

/// Builds the network of a file. Throws FormatError with the line and the layer.
class NetworkBuilder {
 public:
  NetworkBuilder(const io::TomlValue& tree, const std::string& source, const Options& options);

  const Info& info() const { return head_.info; }

  nn::AnyModule build();

 private:
  // The module whose layers are being read.
  struct Open {
    std::function<void(const std::string&, const nn::AnyModule&)> keep;
    std::function<Tensor(const std::string&, const Tensor&)> own;  // adds a parameter to the module
    std::string path;
    std::int64_t layers = 0;  // so far; their number names a layer without a name
  };

  // ---- Faults
  template <class F>
  void for_file(F&& work);
  [[noreturn]] void refuse(int line, const std::string& layer, std::string what) const;

  // ---- Modules
  template <class Part>
  nn::AnyModule built(const std::shared_ptr<Part>& part);
  // The output must be scores: of every token for every position, of every position for both ends
  // of an answer, of classes, or of classes for every pixel.
  void check_output(const Tensor& x) const;
  template <class Part>
  static Open open_of(Part& part, const std::string& path) {
    return {[&part](const std::string& name, const nn::AnyModule& m) { part.keep(name, m); },
            [&part](const std::string& name, const Tensor& init) { return part.own(name, init); },
            path};
  }
  // Adds a child to the open module; `fill` reads the layers of the child.
  template <class Fill>
  FileStep within(const std::string& name, const std::string& kind, Fill&& fill);
  std::string path_of(const std::string& name) const;
  // The layer's `name` with "{k + 1}" replaced by the number; "" if it has none.
  std::string name_of(const io::TomlValue& layer, const Variables& variables) const;
  std::string next_name(const std::string& given);

  // ---- Layers
  // Reads a list of layers, or a single layer.
  Flow list(const io::TomlValue& value, const Variables& variables, Tensor& x);
  // "conv2d (0): …" without "conv2d (0)", because the message names "layer 0 (conv2d)" already.
  static std::string without_kind(const std::string& what, const std::string& kind);
  void layer(const io::TomlValue& value, const Variables& variables, Tensor& x, Flow& out);
  void plain(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out);
  void count(const LayerKeys& keys, const std::string& path, const Tensor& parameter);
  // Records how the layer computes a sequence position by position, and its state.
  void merge_by_position(const LayerKeys& keys, const FileLayer& made);
  // Adds a vector to the features; the vector is a parameter of the enclosing module.
  void bias(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out);
  // Runs the layer in evaluation mode, so that no random number is drawn and no buffer is updated.
  Tensor output_shape(FileLayer& made, const Tensor& x);
  Tensor parameter(const std::string& path) const;

  // ---- Structures
  bool structure(LayerKeys& keys, const std::string& name, const io::TomlValue& value, Tensor& x,
                 Flow& out);
  Flow sequence(LayerKeys& keys, Tensor& x);
  Flow repeat(LayerKeys& keys, Tensor& x);
  Flow residual(LayerKeys& keys, Tensor& x);
  Flow branches(LayerKeys& keys, Tensor& x);
  static Tensor joined(const std::vector<Tensor>& parts, const std::string& how, int axis);
  // Adds all keys below `value`, and all names in its strings.
  static void collect_names(const io::TomlValue& value, std::unordered_set<std::string>& names);
  const io::TomlValue& block_named(const std::string& name, int line) const;
  FileStep block(LayerKeys& keys, const std::string& given, const io::TomlValue& call, Tensor& x);

  const io::TomlValue& tree_;
  const std::string& source_;  // the file's path, for messages
  const Options& options_;
  FileHead head_;
  Variables globals_;
  Open* open_ = nullptr;
  FilePass pass_;  // values that the layers so far kept, without memory
  FileLayers all_;
  std::size_t state_ = 0, memory_ = 0;            // number of tensors of the layers so far
  bool in_decoder_ = false;                       // the layers being read are a decoder's
  std::vector<std::string> trail_, open_blocks_;  // repeats and blocks being read
  StateDict named_;                               // parameters of the layers so far, by path
  std::int64_t layers_ = 0, parameters_ = 0;
  int depth_ = 0;
};

}  // namespace tenon::models
