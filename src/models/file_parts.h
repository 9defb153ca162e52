// Modules of a network in a file: what is called, layer after layer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/models.h>

#include "models/file_layers.h"

namespace tenon::models {

using Flow = std::vector<FileStep>;

inline Tensor run_flow(const Flow& steps, const Tensor& x) {
  Tensor y = x;
  for (const FileStep& step : steps) y = step(y);
  return y;
}

/// A module of the file: the steps of its layers, which are its children.
template <class Base>
class FilePart : public Base {
 public:
  explicit FilePart(std::string kind) : kind_(std::move(kind)) {}
  void keep(const std::string& name, const nn::AnyModule& module) { this->child(name, module); }
  void set_steps(Flow steps) { steps_ = std::move(steps); }
  Tensor forward(const Tensor& x) const override { return run_flow(steps_, x); }
  std::string describe() const override { return kind_; }

 private:
  std::string kind_;
  Flow steps_;
};

/// A perceptron's input may have any shape: all axes but the first are laid in a row.
class FileNet : public FilePart<nn::Module> {
 public:
  FileNet(std::string kind, bool flat) : FilePart(std::move(kind)), flat_(flat) {}
  Tensor forward(const Tensor& x) const override {
    return FilePart::forward(flat_ && x.rank() > 2 ? flatten(x, 1) : x);
  }

 private:
  bool flat_;
};

/// A model of language. Its state is the tokens so far: each new one costs a forward pass over the
/// whole context, whatever the layers are.
class FileLanguage : public FilePart<Decoder> {
 public:
  FileLanguage(std::string kind, std::int64_t context)
      : FilePart(std::move(kind)), context_(context) {}
  std::int64_t context() const override { return context_; }
  std::vector<Tensor> initial_state(std::int64_t batch) const override {
    return {zeros({batch, context_}, DType::Int64)};
  }
  Next decode(const Tensor& tokens, const Tensor& place,
              const std::vector<Tensor>& state) const override {
    const Tensor here = unsqueeze(eq(arange(0, context_), place), 0);
    const Tensor seen = where(here, unsqueeze(tokens, 1), state[0]);
    const Tensor scores = index_select(forward(seen), 1, reshape(place, {1}));
    return {squeeze(scores, 1), {seen}};
  }

 private:
  std::int64_t context_;
};

}  // namespace tenon::models
