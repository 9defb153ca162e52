// Modules of a network built from a file, called layer by layer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/models.h>

#include "base/str.h"
#include "models/file_layer.h"

namespace tenon::models {

using Flow = std::vector<FileStep>;

inline Tensor run_flow(const Flow& steps, const Tensor& x, FilePass& pass) {
  Tensor y = x;
  for (const FileStep& step : steps) y = step(y, pass);
  return y;
}

/// A module within the network: the steps of its layers, which are its children.
class FilePart : public nn::ModuleOf<FilePart> {
 public:
  explicit FilePart(std::string kind) : kind_(std::move(kind)) {}
  void keep(const std::string& name, const nn::AnyModule& module) { child(name, module); }
  Tensor own(const std::string& name, const Tensor& init) { return parameter(name, init); }
  void set_steps(Flow steps) { steps_ = std::move(steps); }
  Tensor forward(const Tensor& x, FilePass& pass) const { return run_flow(steps_, x, pass); }
  std::string describe() const override { return kind_; }

 private:
  std::string kind_;
  Flow steps_;
};

/// The layers of a network.
struct FileLayers {
  Flow steps;
  ByPosition by_position = ByPosition::Each;  ///< the most demanding of the layers'
  std::vector<std::function<std::vector<Tensor>(std::int64_t batch, std::int64_t positions)>>
      starts;
  std::vector<std::function<std::vector<Tensor>(const FilePass&)>> look_ups;
};

/// The network itself.
template <class Base>
class FileRoot : public Base {
 public:
  explicit FileRoot(std::string kind) : kind_(std::move(kind)) {}
  void keep(const std::string& name, const nn::AnyModule& module) { this->child(name, module); }
  Tensor own(const std::string& name, const Tensor& init) { return this->parameter(name, init); }
  void set_layers(FileLayers layers) { layers_ = std::move(layers); }
  Tensor forward(const Tensor& x) const override {
    FilePass pass;
    return run_flow(layers_.steps, x, pass);
  }
  std::string describe() const override { return kind_; }

 protected:
  const FileLayers& layers() const { return layers_; }
  std::vector<Tensor> started(std::int64_t batch, std::int64_t positions) const {
    std::vector<Tensor> out;
    for (const auto& start : layers_.starts)
      for (const Tensor& part : start(batch, positions)) out.push_back(part);
    return out;
  }
  /// Scores [N, classes] after the tokens [N] at pass.position.
  Decoder::Next decode_place(const Tensor& tokens, FilePass& pass) const {
    const Tensor scores = run_flow(layers_.steps, unsqueeze(tokens, 1), pass);
    return {squeeze(scores, 1), pass.state};
  }

 private:
  std::string kind_;
  FileLayers layers_;
};

/// A network for samples. `flat`: the network is a perceptron, so all axes of the input but the
/// first are flattened.
class FileNet : public FileRoot<nn::Module> {
 public:
  FileNet(std::string kind, bool flat) : FileRoot(std::move(kind)), flat_(flat) {}
  Tensor forward(const Tensor& x) const override {
    return FileRoot::forward(flat_ && x.rank() > 2 ? flatten(x, 1) : x);
  }

 private:
  bool flat_;
};

/// A language model. If a layer cannot compute position by position, the state is the tokens so
/// far, and each new token costs a forward pass over the whole context.
class FileLanguage : public FileRoot<Decoder> {
 public:
  FileLanguage(std::string kind, std::int64_t context)
      : FileRoot(std::move(kind)), context_(context) {}
  std::int64_t context() const override {
    const ByPosition how = layers().by_position;
    return how == ByPosition::Each || how == ByPosition::State ? 0 : context_;
  }
  std::vector<Tensor> initial_state(std::int64_t batch) const override {
    if (layers().by_position != ByPosition::None) return started(batch, context_);
    return {zeros({batch, context_}, DType::Int64)};
  }
  Next decode(const Tensor& tokens, const Tensor& position,
              const std::vector<Tensor>& state) const override {
    if (layers().by_position != ByPosition::None) {
      FilePass pass;
      pass.position = position;
      pass.positions = context_;
      pass.state = state;
      return decode_place(tokens, pass);
    }
    const Tensor here = unsqueeze(eq(arange(0, context_), position), 0);
    const Tensor seen = where(here, unsqueeze(tokens, 1), state[0]);
    const Tensor scores = index_select(forward(seen), 1, reshape(position, {1}));
    return {squeeze(scores, 1), {seen}};
  }

 private:
  std::int64_t context_;
};

/// The padding token of sources; equal to data::kPad, which this folder does not include.
constexpr std::int64_t kFilePad = 0;
/// Names of kept values: the encoder's output, and the mask of the source's padding.
constexpr char kMemory[] = "memory", kPadding[] = "padding";

/// A translation network: the encoder's layers read the source, the others the translation so far.
class FileTranslator : public FileRoot<Translator> {
 public:
  explicit FileTranslator(std::string kind) : FileRoot(std::move(kind)) {}
  void set_encoder(Flow steps) { encoder_ = std::move(steps); }

  Tensor forward(const Tensor& pairs) const override {
    if (pairs.rank() != 3 || pairs.size(1) != 2)
      throw ShapeError(cat(describe(), ": the input is ", pairs.shape(),
                           ", must be [N, 2, L]: sources and translations"));
    FilePass pass = encoded_pass(select(pairs, 1, 0));
    return run_flow(layers().steps, select(pairs, 1, 1), pass);
  }
  std::vector<Tensor> encode(const Tensor& source) const override {
    const FilePass pass = encoded_pass(source);
    std::vector<Tensor> out{pass.kept(kPadding)};
    for (const auto& look_up : layers().look_ups)
      for (const Tensor& part : look_up(pass)) out.push_back(part);
    return out;
  }
  // The first tensor has no values that matter; its size is the number of positions.
  std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t positions) const override {
    std::vector<Tensor> out{zeros({batch, positions}, DType::UInt8)};
    for (const Tensor& part : started(batch, positions)) out.push_back(part);
    return out;
  }
  Decoder::Next decode(const Tensor& tokens, const Tensor& position,
                       const std::vector<Tensor>& encoded,
                       const std::vector<Tensor>& state) const override {
    FilePass pass;
    pass.keep(kPadding, encoded[0]);
    pass.position = position;
    pass.positions = state[0].size(1);
    pass.memory.assign(encoded.begin() + 1, encoded.end());
    pass.state.assign(state.begin() + 1, state.end());
    Decoder::Next next = decode_place(tokens, pass);
    next.state.insert(next.state.begin(), state[0]);
    return next;
  }

 private:
  FilePass encoded_pass(const Tensor& source) const {
    FilePass within, out;
    within.keep(kPadding, eq(source, kFilePad));
    out.keep(kMemory, run_flow(encoder_, source, within));
    out.keep(kPadding, within.kept(kPadding));
    return out;
  }
  Flow encoder_;
};

}  // namespace tenon::models
