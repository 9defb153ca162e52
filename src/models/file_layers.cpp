// Layer types of network files: converts options to modules of nn/, with sizes from the layer's
// input. Here are the table of all types, and the types for values with names.
//
// The constructors of nn/ draw initial values, in the order of the file.
#include "models/file_layers.h"

#include <tenon/functional.h>

#include "base/str.h"
#include "models/file_kinds.h"
#include "models/file_parts.h"
#include "models/lenet5_1998.h"

namespace tenon::models {
namespace {

FileLayer keep_layer(LayerKeys& keys, const LayerContext&) {
  const std::string name = keys.text("keep");
  if (name.empty() || name == kMemory || name == kPadding)
    keys.refuse(
        cat("keep needs a name, as in { keep = \"before\" }",
            name.empty() ? "" : cat("; the name '", name, "' is reserved for the encoder")));
  return {nn::Identity(),
          [name](const Tensor& x, FilePass& pass) {
            pass.keep(name, x);
            return x;
          },
          ByPosition::Each};
}

// Position by position, the encoder's output itself is not available: decoder layers keep only the
// keys and values that they computed from it.
ByPosition kept_by_position(const std::string& name) {
  return each_if(name != kMemory && name != kPadding);
}

template <class Join>
FileLayer joining_layer(LayerKeys& keys, const LayerContext& at, const Join& join) {
  const std::string name = kept_name(keys, keys.kind(), at);
  if (name.empty())
    keys.refuse(cat(keys.kind(), " needs a name that was kept, as in { keep = ",
                    "\"before\" }, ..., { ", keys.kind(), " = \"before\" }"));
  return {nn::Identity(),
          [name, join](const Tensor& x, FilePass& pass) { return join(x, pass.kept(name)); },
          kept_by_position(name)};
}

FileLayer take_layer(LayerKeys& keys, const LayerContext& at) {
  return joining_layer(keys, at, [](const Tensor&, const Tensor& kept) { return kept; });
}
FileLayer add_layer(LayerKeys& keys, const LayerContext& at) {
  return joining_layer(keys, at, [](const Tensor& x, const Tensor& kept) { return x + kept; });
}
FileLayer multiply_layer(LayerKeys& keys, const LayerContext& at) {
  return joining_layer(keys, at, [](const Tensor& x, const Tensor& kept) { return x * kept; });
}
FileLayer concat_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole("axis", 1, 1, 7));
  FileLayer out = joining_layer(keys, at, [axis](const Tensor& x, const Tensor& kept) {
    return concat({x, kept}, axis);
  });
  if (axis != at.x.rank() - 1) out.by_position = ByPosition::None;
  return out;
}

FileLayer first_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_rank(keys, at, 3, kSequences);
  return function_of("First()", [](const Tensor& x) { return squeeze(slice(x, 1, 0, 1), 1); });
}

FileLayer last_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_rank(keys, at, 3, kSequences);
  return function_of("Last()", [](const Tensor& x) { return select(x, 1, -1); });
}

FileLayer mean_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole("mean", 1, 1, 7));
  if (axis >= at.x.rank()) keys.refuse(cat("mean: ", shape_text(at.x), " has no axis ", axis));
  return function_of(cat("Mean(", axis, ")"), [axis](const Tensor& x) { return mean(x, {axis}); });
}

constexpr FileKind kOthers[] = {
    {"keep", keep_layer, true},
    {"take", take_layer, true},
    {"add", add_layer},
    {"multiply", multiply_layer},
    {"concat", concat_layer},
    {"first", first_layer},
    {"last", last_layer},
    {"lenet_convolution", lenet_convolution_layer},
    {"lenet_subsampling", lenet_subsampling_layer},
    {"lenet_partial_convolution", lenet_partial_convolution_layer},
    {"lenet_hidden", lenet_hidden_layer},
    {"lenet_drawings", lenet_drawings_layer},
    {"mean", mean_layer},
};

// All layer types. For a misspelt name, a message suggests the first of equally near ones.
const std::vector<FileKind>& file_kinds() {
  static const std::vector<FileKind> kinds = [] {
    std::vector<FileKind> out;
    for (const std::span<const FileKind> some :
         {feature_kinds(), activation_kinds(), sequence_kinds(),
          std::span<const FileKind>(kOthers)})
      out.insert(out.end(), some.begin(), some.end());
    return out;
  }();
  return kinds;
}

}  // namespace

const std::vector<std::string>& file_layer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    out.reserve(file_kinds().size());
    for (const FileKind& kind : file_kinds()) out.emplace_back(kind.name);
    return out;
  }();
  return names;
}

FileLayer make_file_layer(LayerKeys& keys, const LayerContext& context) {
  for (const FileKind& kind : file_kinds())
    if (keys.kind() == kind.name) {
      if (!is_floating(context.x.dtype()) && !kind.takes_tokens)
        keys.refuse(cat(kind.name, " takes features, and the input is tokens ",
                        shape_text(context.x), ": put { embedding = 64 } before it"));
      FileLayer out = kind.make(keys, context);
      keys.finish();
      return out;
    }
  const std::vector<std::string>& names = file_layer_names();
  if (const std::string known = keys.first_of(names); !known.empty())
    keys.refuse(cat("a layer begins with its kind: put ", known, " before '", keys.kind(), "'"));
  const std::string near = nearest(keys.kind(), names.data(), static_cast<int>(names.size()));
  keys.refuse(
      cat("there is no layer '", keys.kind(), "'",
          near.empty() ? near_miss(keys.kind(), names) : cat("; did you mean '", near, "'?")));
}

}  // namespace tenon::models
