// Builders of layer types, by subject. Each subject has a file with a table of its kinds;
// file_layers.cpp joins the tables.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "models/file_layer.h"

namespace tenon::models {

/// A layer type: its name in files and its builder.
struct FileKind {
  const char* name;
  FileLayer (*make)(LayerKeys& keys, const LayerContext& at);
  bool takes_tokens = false;
};

/// Linear layers, convolution, pooling, resampling and normalization.
std::span<const FileKind> feature_kinds();
/// Activations, dropout, and layers that change the shape or the scale alone.
std::span<const FileKind> activation_kinds();
/// Embeddings, positions, recurrent layers, attention and Transformer layers.
std::span<const FileKind> sequence_kinds();

constexpr char kImages[] = "images [N, channels, height, width]";
constexpr char kSequences[] = "sequences [N, positions, features]";

constexpr ByPosition each_if(bool each) { return each ? ByPosition::Each : ByPosition::None; }

/// A layer without parameters that computes `function`.
FileLayer function_of(const std::string& text, const std::function<Tensor(const Tensor&)>& function,
                      ByPosition by_position = ByPosition::None);
/// Throws FileFault unless the input has this rank; `wanted` describes such an input.
void require_rank(const LayerKeys& keys, const LayerContext& at, int rank, const char* wanted);
/// Replaces the initial value that a module's constructor drew, if the file gives an initializer.
void replace_initial_value(const LayerKeys& keys, const nn::ModuleBase& module,
                           const std::string& name, const std::optional<FileDraw>& draw,
                           const OptionalGenerator& generator);
/// The name of a kept value, from `key`; "" if the layer does not have the key.
std::string kept_name(LayerKeys& keys, const std::string& key, const LayerContext& at);

}  // namespace tenon::models
