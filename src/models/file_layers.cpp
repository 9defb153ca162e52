// Layer types of network files: converts options to modules of nn/, with sizes from the layer's
// input.
//
// The constructors of nn/ draw initial values, in the order of the file.
#include "models/file_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include <tenon/functional.h>
#include <tenon/pooling_layers.h>
#include <tenon/recurrent.h>
#include <tenon/shapes_only.h>
#include <tenon/transformer.h>

#include "base/str.h"
#include "models/activations.h"
#include "models/bert_embeddings.h"
#include "models/conv1d.h"
#include "models/file_modules.h"
#include "models/file_parts.h"
#include "models/lenet5_1998.h"

namespace tenon::models {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

FileLayer function_of(const std::string& text, const Function& function,
                      ByPosition by_position = ByPosition::None) {
  return layer_of(FileFunction(text, function), by_position);
}

void require_rank(const LayerKeys& keys, const LayerContext& at, int rank, const char* wanted) {
  if (at.x.rank() != rank)
    keys.refuse(cat(keys.kind(), " takes ", wanted, ", not ", shape_text(at.x)));
}

constexpr ByPosition each_if(bool each) { return each ? ByPosition::Each : ByPosition::None; }

constexpr std::int64_t kLargestAdaptive = 8192, kLargestDepth = 1024, kLargestTable = 1 << 26;
constexpr char kImages[] = "images [N, channels, height, width]";
constexpr char kSignals[] = "signals [N, channels, length]",
               kVolumes[] = "volumes [N, channels, depth, height, width]";
constexpr char kSequences[] = "sequences [N, positions, features]";

// Replaces the initial value that a module's constructor drew, if the file gives an initializer.
void replace_initial_value(const LayerKeys& keys, const nn::ModuleBase& module,
                           const std::string& name, const std::optional<FileDraw>& draw,
                           const OptionalGenerator& generator) {
  if (!draw) return;
  for (const nn::NamedTensor& p : module.named_parameters())
    if (p.name == name) {
      set_value(p.tensor, draw->make(p.tensor.shape(), generator));
      return;
    }
  keys.refuse(cat(keys.kind(), " has no ", name, " here to initialize"));
}

template <class Options>
void read_weight(LayerKeys& keys, Options& options, const LayerContext& at) {
  options.bias = keys.boolean("bias", true);
  options.generator = at.generator;
  if (const std::optional<FileDraw> draw = keys.draw("init")) options.weight_init = draw->make;
}

FileLayer linear_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("outputs", "{ linear = 10 }");
  if (at.x.rank() < 2)
    keys.refuse(cat("linear takes features [N, ..., features], not ", shape_text(at.x)));
  nn::LinearOptions options;
  read_weight(keys, options, at);
  if (const std::string tied = keys.text("tie"); !tied.empty())
    options.tied_weight = at.parameter(tied);
  const nn::Linear module(at.x.size(-1), out, options);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer projection_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("outputs", "{ projection = 768 }");
  const std::optional<FileDraw> init = keys.draw("init");
  const Conv1D module(at.x.size(-1), out, keys.boolean("bias", true), init ? init->make : nullptr,
                      at.generator);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer conv2d_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("channels", "{ conv2d = 16, kernel = 3 }");
  require_rank(keys, at, 4, kImages);
  if (keys.find("kernel") == nullptr)
    keys.refuse_missing("kernel", "conv2d needs a kernel, as in { conv2d = 16, kernel = 3 }");
  Conv2dOptions options;
  options.stride = keys.pair("stride", 1, 1);
  options.padding = keys.pair("padding", 0);
  options.dilation = keys.pair("dilation", 1, 1);
  options.groups = keys.whole("groups", 1, 1);
  nn::ParameterOptions parameters;
  read_weight(keys, parameters, at);
  const nn::Conv2d module(at.x.size(1), out, keys.pair("kernel", 1, 1), options, parameters);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module);
}

// Convolution over one axis or three; transposed convolution over one to three.
template <std::size_t kAxes, bool transposed>
FileLayer convolution_layer(LayerKeys& keys, const LayerContext& at) {
  const std::string example = cat("{ ", keys.kind(), " = 16, kernel = 3 }");
  const std::int64_t out = keys.own_whole("channels", example.c_str());
  require_rank(keys, at, static_cast<int>(kAxes) + 2,
               kAxes == 1   ? kSignals
               : kAxes == 2 ? kImages
                            : kVolumes);
  if (keys.find("kernel") == nullptr)
    keys.refuse_missing("kernel", cat(keys.kind(), " needs a kernel, as in ", example));
  FileConvolution::Options options;
  options.stride = keys.axes("stride", kAxes, 1, 1);
  options.padding = keys.axes("padding", kAxes, 0, 0);
  options.dilation = keys.axes("dilation", kAxes, 1, 1);
  if (transposed) options.output_padding = keys.axes("output_padding", kAxes, 0, 0);
  options.groups = keys.whole("groups", 1, 1);
  read_weight(keys, options, at);
  const std::vector<std::int64_t> kernel = keys.axes("kernel", kAxes, 1, 1);
  // The module computes each depth of the kernel separately.
  if (transposed && kAxes == 3 && kernel[0] > kLargestDepth)
    keys.refuse(cat(keys.kind(), ": a kernel of depth ", kernel[0], "; the largest depth is ",
                    kLargestDepth));
  const FileConvolution module(at.x.size(1), out, kernel, options);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module);
}

// Pooling over one axis, two or three; `Sizes` is the type of kernel size, stride and padding.
template <class Sizes>
using PoolOptionsOf =
    std::conditional_t<std::is_same_v<Sizes, Pair>, nn::PoolOptions, nn::PoolOptionsOf<Sizes>>;
template <class Sizes>
constexpr std::size_t kAxesOf = std::is_same_v<Sizes, Pair>     ? 2
                                : std::is_same_v<Sizes, Triple> ? 3
                                                                : 1;

template <class Sizes>
Sizes sizes_of(LayerKeys& keys, const std::string& key, std::int64_t fallback, std::int64_t low) {
  const std::vector<std::int64_t> each = keys.axes(key, kAxesOf<Sizes>, fallback, low);
  if constexpr (kAxesOf<Sizes> == 1)
    return each[0];
  else if constexpr (kAxesOf<Sizes> == 2)
    return {each[0], each[1]};
  else
    return {each[0], each[1], each[2]};
}

template <class Sizes>
void require_axes(const LayerKeys& keys, const LayerContext& at) {
  constexpr std::size_t kAxes = kAxesOf<Sizes>;
  require_rank(keys, at, static_cast<int>(kAxes) + 2,
               kAxes == 1   ? kSignals
               : kAxes == 2 ? kImages
                            : kVolumes);
}

// Sums over windows, divided by a given number.
FileLayer divided_pool2d(const Pair& kernel, const nn::PoolOptions& o, std::int64_t divisor) {
  const Pool2dOptions options{{kernel.h, kernel.w},
                              {o.stride.h, o.stride.w},
                              {o.padding.h, o.padding.w},
                              {1, 1},
                              o.ceil_mode};
  return function_of(
      cat("AvgPool2d(kernel_size=(", kernel.h, ", ", kernel.w, "), divisor=", divisor, ")"),
      [=](const Tensor& x) { return avg_pool2d(x, options, divisor); });
}

template <class Pool, class Sizes, bool average>
FileLayer pool_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("a window", "{ max_pool2d = 2 }");
  require_axes<Sizes>(keys, at);
  const Sizes kernel = sizes_of<Sizes>(keys, keys.kind(), 2, 1);
  PoolOptionsOf<Sizes> options;
  options.stride = sizes_of<Sizes>(keys, "stride", 0, 0);
  options.padding = sizes_of<Sizes>(keys, "padding", 0, 0);
  options.ceil_mode = keys.boolean("ceil_mode", false);
  if constexpr (average) {
    options.count_include_pad = keys.boolean("count_include_pad", true);
    const std::int64_t divisor = keys.whole("divisor", 0, 1);
    if constexpr (kAxesOf<Sizes> == 2) {
      if (divisor != 0) return divided_pool2d(kernel, options, divisor);
    } else {
      options.divisor = divisor;
    }
  } else {
    options.dilation = sizes_of<Sizes>(keys, "dilation", 1, 1);
  }
  return layer_of(Pool(kernel, options));
}

template <class Pool, class Sizes>
FileLayer adaptive_pool_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("a size", "{ adaptive_avg_pool2d = 7 }");
  require_axes<Sizes>(keys, at);
  // The operation builds a list of its windows.
  std::vector<std::int64_t> each = keys.axes(keys.kind(), kAxesOf<Sizes>, 1, 1);
  for (int axis = 2; axis < at.x.rank(); ++axis) each.push_back(at.x.size(axis));
  if (*std::max_element(each.begin(), each.end()) > kLargestAdaptive)
    keys.refuse(cat(keys.kind(), " takes and gives up to ", kLargestAdaptive,
                    kAxesOf<Sizes> == 1   ? " positions"
                    : kAxesOf<Sizes> == 2 ? " rows and columns"
                                          : " images, rows and columns",
                    ", not ", shape_text(at.x)));
  return layer_of(Pool(sizes_of<Sizes>(keys, keys.kind(), 1, 1)));
}

FileLayer global_avg_pool_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  if (at.x.rank() < 3)
    keys.refuse(cat("global_avg_pool takes [N, channels, ...], not ", shape_text(at.x)));
  Axes axes;
  for (int axis = 2; axis < at.x.rank(); ++axis) axes.push_back(axis);
  return function_of("GlobalAvgPool()", [axes](const Tensor& x) { return mean(x, axes); });
}

// The number of input channels. If the file gives the number, it is checked.
std::int64_t channels_of(LayerKeys& keys, const LayerContext& at) {
  if (at.x.rank() < 2)
    keys.refuse(cat(keys.kind(), " takes [N, channels, ...], not ", shape_text(at.x)));
  const std::int64_t channels = at.x.size(1), said = keys.whole(keys.kind(), channels, 1);
  if (said != channels)
    keys.refuse(cat(keys.kind(), " is for ", said, " channels, and the input is ", shape_text(at.x),
                    "; the number may be left out"));
  return channels;
}

template <class Norm, int least, int most>
FileLayer batch_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t channels = channels_of(keys, at);
  if (at.x.rank() < least || at.x.rank() > most)
    keys.refuse(cat(keys.kind(), " does not take ", shape_text(at.x), ": it is for ", least,
                    least == most ? "" : cat(" or ", most), " axes"));
  nn::BatchNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.momentum = keys.number("momentum", 0.1, 0, 1);
  options.affine = keys.boolean("affine", true);
  options.track_running_stats = keys.boolean("track_running_stats", true);
  const Norm module(channels, options);
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return layer_of(module);
}

// Sizes of the normalized axes: given in the file, else the size of the last axis.
Shape last_axes(LayerKeys& keys, const LayerContext& at) {
  Shape out;
  const io::TomlValue* said = keys.own();
  if (said == nullptr) {
    out.push_back(at.x.size(-1));
  } else if (said->is(io::TomlValue::Kind::List)) {
    for (const io::TomlValue& size : said->items)
      out.push_back(whole_of(size, keys.variables(), keys.kind()));
  } else {
    out.push_back(whole_of(*said, keys.variables(), keys.kind()));
  }
  for (int k = 1; k <= out.rank(); ++k)
    if (k > at.x.rank() || out[out.rank() - k] != at.x.size(-k))
      keys.refuse(cat(keys.kind(), " is for last axes of ", out, ", and the input is ",
                      shape_text(at.x), "; without a number it normalizes the last axis"));
  return out;
}

FileLayer layer_norm_layer(LayerKeys& keys, const LayerContext& at) {
  nn::LayerNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.elementwise_affine = keys.boolean("affine", true);
  options.bias = keys.boolean("bias", true);
  const Shape shape = last_axes(keys, at);
  return layer_of(nn::LayerNorm(shape, options), each_if(shape.rank() == 1));
}

FileLayer rms_norm_layer(LayerKeys& keys, const LayerContext& at) {
  nn::RMSNormOptions options;
  if (keys.find("eps") != nullptr) options.eps = keys.number("eps", 0, 0, 1e9);
  options.elementwise_affine = keys.boolean("affine", true);
  const Shape shape = last_axes(keys, at);
  return layer_of(nn::RMSNorm(shape, options), each_if(shape.rank() == 1));
}

FileLayer group_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t groups = keys.own_whole("groups", "{ group_norm = 8 }");
  if (at.x.rank() < 2)
    keys.refuse(cat("group_norm takes [N, channels, ...], not ", shape_text(at.x)));
  nn::GroupNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.affine = keys.boolean("affine", true);
  return layer_of(nn::GroupNorm(groups, at.x.size(1), options));
}

FileLayer local_response_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t size = keys.own_whole("neighbours", "{ local_response_norm = 5 }");
  require_rank(keys, at, 4, kImages);
  nn::LocalResponseNormOptions options;
  options.alpha = keys.number("alpha", options.alpha, 0, 1e9);
  options.beta = keys.number("beta", options.beta, 0, 1e9);
  options.k = keys.number("k", options.k, 0, 1e9);
  return layer_of(nn::LocalResponseNorm(size, options));
}

FileLayer dropout_layer(LayerKeys& keys, const LayerContext& at) {
  return layer_of(nn::Dropout(keys.number("dropout", 0.5, 0, 1), at.generator), ByPosition::Each);
}

FileLayer flatten_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::Flatten(static_cast<int>(keys.whole("flatten", 1, 0, 7)),
                              static_cast<int>(keys.whole("end", -1, -8, 7))));
}

FileLayer activation_layer(LayerKeys& keys, const LayerContext&) {
  (void)keys.own();
  return layer_of(nn::activation(keys.kind()), ByPosition::Each);
}

// The activation of the top-level key `activation`.
FileLayer own_activation_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  if (at.activation.empty())
    keys.refuse(
        "the layer \"activation\" applies the activation of the file, and the file has none: write "
        "activation = \"relu\" above 'layers'");
  return layer_of(named_activation(at.activation), ByPosition::Each);
}

// Activation functions without a module in nn/.
FileLayer function_layer(LayerKeys& keys, const LayerContext&) {
  (void)keys.own();
  const std::string& kind = keys.kind();
  return function_of(kind == "hardswish" ? "Hardswish()"
                     : kind == "selu"    ? "SELU()"
                                         : "LogSigmoid()",
                     kind == "hardswish" ? Function([](const Tensor& x) { return hardswish(x); })
                     : kind == "selu"    ? Function([](const Tensor& x) { return selu(x); })
                                         : Function([](const Tensor& x) { return logsigmoid(x); }),
                     ByPosition::Each);
}
FileLayer celu_layer(LayerKeys& keys, const LayerContext&) {
  const double alpha = keys.number("celu", 1, 1e-9, 1e9);
  return function_of(
      cat("CELU(alpha=", alpha, ")"), [alpha](const Tensor& x) { return celu(x, alpha); },
      ByPosition::Each);
}
FileLayer glu_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole("glu", -1, -8, 7));
  return function_of(
      cat("GLU(dim=", axis, ")"), [axis](const Tensor& x) { return glu(x, axis); },
      each_if(axis == -1 || axis == at.x.rank() - 1));
}

FileLayer gelu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::GELU(keys.word("gelu", {"exact", "tanh"}) == "tanh"), ByPosition::Each);
}
FileLayer leaky_relu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::LeakyReLU(keys.number("leaky_relu", 0.01, -1e9, 1e9)), ByPosition::Each);
}
FileLayer elu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::ELU(keys.number("elu", 1, -1e9, 1e9)), ByPosition::Each);
}
FileLayer scaled_tanh_layer(LayerKeys& keys, const LayerContext&) {
  const double scale = keys.number("scaled_tanh", 1.7159, -1e9, 1e9),
               slope = keys.number("slope", 2.0 / 3, -1e9, 1e9);
  return function_of(
      cat("ScaledTanh(", scale, ", slope=", slope, ")"),
      [=](const Tensor& x) { return tanh(x * slope) * scale; }, ByPosition::Each);
}
template <class Normalised>
FileLayer softmax_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole(keys.kind(), -1, -8, 7));
  return layer_of(Normalised(axis), each_if(axis == -1 || axis == at.x.rank() - 1));
}

// The name of a kept value, from `key`; "" if the layer does not have the key.
std::string kept_name(LayerKeys& keys, const std::string& key, const LayerContext& at) {
  std::string name = keys.text(key);
  if (name.empty() || at.pass->find(name) != nullptr) return name;
  const std::vector<std::string> known = at.pass->names();
  keys.refuse(cat(key, ": no value is kept as '", name, "' before",
                  known.empty() ? cat("; { keep = \"", name, "\" } keeps its input under this name")
                                : near_miss(name, known)));
}

nn::AttentionMask mask_of(const FilePass& pass, const std::string& padding, bool causal) {
  nn::AttentionMask mask{.causal = causal};
  if (!padding.empty()) mask.key_padding = pass.kept(padding);
  return mask;
}

// Computes one position of an attention layer; its keys and values are state[first] and
// state[first + 1].
template <class M>
Tensor one_position(const M& module, const Tensor& x, FilePass& pass, std::size_t first) {
  const nn::CachedResult made =
      module(x, nn::KeyValueCache{pass.state[first], pass.state[first + 1]}, pass.position);
  pass.state[first] = made.cache.keys;
  pass.state[first + 1] = made.cache.values;
  return made.output;
}

// Converts a recurrent state between [layers, N, units] and [N, layers, units].
Tensor by_layers(const Tensor& state) { return transpose(state, 0, 1); }

void require_tokens(const LayerKeys& keys, const LayerContext& at) {
  if (is_floating(at.x.dtype()))
    keys.refuse(cat(keys.kind(), " takes token numbers [N, positions], not ", shape_text(at.x),
                    ": it must be the first layer of a network with tokens = true"));
}

FileLayer embedding_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t width = keys.own_whole("features", "{ embedding = 128 }");
  require_tokens(keys, at);
  if (const std::string tied = keys.text("tie"); !tied.empty()) {
    const FileTiedEmbedding module(at.parameter(tied));
    if (module.weight().rank() != 2 || module.weight().size(1) != width)
      keys.refuse(cat("embedding of ", width, " features: '", tied, "' is ",
                      module.weight().shape(), ", must be [tokens, ", width, "]"));
    return layer_of(module, ByPosition::Each);
  }
  const nn::Embedding module(keys.whole("rows", at.vocabulary == 0 ? at.classes : at.vocabulary, 1),
                             width, {}, {.generator = at.generator});
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer bert_embeddings_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t width = keys.own_whole("features", "{ bert_embeddings = 128 }");
  require_tokens(keys, at);
  const std::int64_t positions = keys.whole("positions", at.x.size(1), at.x.size(1)),
                     rows = keys.whole("rows", at.vocabulary == 0 ? at.classes : at.vocabulary, 1);
  const double eps = keys.number("eps", 1e-12, 0, 1), dropout = keys.number("dropout", 0.1, 0, 1);
  const BertEmbeddings module({rows, positions, width, eps, dropout}, at.generator);
  return {module, [module, positions](const Tensor& x, FilePass& pass) {
            const BertInput input = bert_input(x, positions);
            pass.keep(kSeen, input.seen);
            return module(input.tokens, input.types);
          }};
}

FileLayer positions_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t positions = keys.own_whole("positions", "{ positions = 128 }");
  require_rank(keys, at, 3, kSequences);
  const FilePositions module(positions, at.x.size(2), at.generator);
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return {module,
          [module](const Tensor& x, FilePass& pass) {
            return pass.is_one_position() ? module.at(x, pass.position) : module(x);
          },
          ByPosition::Bounded};
}

FileLayer sinusoid_positions_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_rank(keys, at, 3, kSequences);
  if (at.x.size(1) > kLargestTable / at.x.size(2))
    keys.refuse(cat("sinusoid_positions: a table for ", shape_text(at.x), " has more than ",
                    kLargestTable, " values"));
  const nn::AnyModule module = FileFunction("SinusoidPositions()", [](const Tensor& x) {
    return x + nn::sinusoid_positions(x.size(1), x.size(2));
  });
  return {module,
          [module](const Tensor& x, FilePass& pass) {
            if (!pass.is_one_position()) return module(x);
            const Tensor table = nn::sinusoid_positions(pass.positions, x.size(2));
            return x + index_select(table, 0, reshape(pass.position, {1}));
          },
          ByPosition::Bounded};
}

nn::RecurrentOptions recurrent_options(LayerKeys& keys, const LayerContext& at) {
  nn::RecurrentOptions options;
  options.num_layers = keys.whole("layers", 1, 1, 1000);
  options.bias = keys.boolean("bias", true);
  options.recurrent_bias = keys.boolean("recurrent_bias", true);
  options.batch_first = true;
  options.dropout = keys.number("dropout", 0, 0, 1);
  options.bidirectional = keys.boolean("bidirectional", false);
  if (keys.kind() == "lstm") options.proj_size = keys.whole("proj_size", 0, 0);
  if (keys.kind() == "rnn") options.nonlinearity = keys.word("nonlinearity", {"tanh", "relu"});
  options.generator = at.generator;
  return options;
}

// The state has one tensor [N, layers, units] for the hidden state, and a second one for the cell
// state of an LSTM.
template <class Layer>
FileLayer recurrent_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t units = keys.own_whole("units", "{ lstm = 128 }");
  require_rank(keys, at, 3, kSequences);
  const nn::RecurrentOptions options = recurrent_options(keys, at);
  const Layer module(at.x.size(2), units, options);
  const std::size_t first = at.state;
  FileLayer out{
      module, [module, first](const Tensor& x, FilePass& pass) {
        if (!pass.is_one_position()) return module(x).output;
        if constexpr (std::is_same_v<Layer, nn::LSTM>) {
          const nn::LstmResult y = module(
              x, nn::LstmState{by_layers(pass.state[first]), by_layers(pass.state[first + 1])});
          pass.state[first] = by_layers(y.state.hidden);
          pass.state[first + 1] = by_layers(y.state.cell);
          return y.output;
        } else {
          const nn::RecurrentResult y = module(x, by_layers(pass.state[first]));
          pass.state[first] = by_layers(y.hidden);
          return y.output;
        }
      }};
  if (options.bidirectional) return out;
  out.by_position = ByPosition::State;
  out.start = [units, options](std::int64_t batch, std::int64_t) {
    const std::int64_t hidden = options.proj_size == 0 ? units : options.proj_size;
    std::vector<Tensor> state{zeros({batch, options.num_layers, hidden})};
    if (std::is_same_v<Layer, nn::LSTM>) state.push_back(zeros({batch, options.num_layers, units}));
    return state;
  };
  return out;
}

FileLayer self_attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ self_attention = 8 }");
  require_rank(keys, at, 3, kSequences);
  nn::MultiheadAttentionOptions options;
  options.dropout = keys.number("dropout", 0, 0, 1);
  options.bias = keys.boolean("bias", true);
  options.batch_first = true;
  options.kv_heads = keys.whole("kv_heads", 0);
  options.generator = at.generator;
  const bool causal = keys.boolean("causal", false);
  const std::string padding = kept_name(keys, "padding", at);
  const nn::MultiheadAttention module(at.x.size(2), heads, options);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position())
                    return module(x, x, x, mask_of(pass, padding, causal));
                  return one_position(module, x, pass, first);
                }};
  if (!causal || !padding.empty()) return out;
  out.by_position = ByPosition::Bounded;
  out.start = [module](std::int64_t batch, std::int64_t positions) {
    const nn::KeyValueCache cache = module.empty_cache(batch, positions);
    return std::vector<Tensor>{cache.keys, cache.values};
  };
  return out;
}

// [N, T, C] to [N, heads, T, C / heads].
Tensor of_heads(const Tensor& x, std::int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
// [N, heads, T, C / heads] to [N, T, C].
Tensor side_by_side(const Tensor& y) {
  return reshape(transpose(y, 1, 2), {y.size(0), y.size(2), y.size(1) * y.size(3)});
}

// Attention on concatenated queries, keys and values, the output of one projection.
FileLayer packed_attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ packed_attention = 8 }");
  require_rank(keys, at, 3, "sequences [N, positions, 3 * features]");
  const bool causal = keys.boolean("causal", false);
  const double dropout = keys.number("dropout", 0, 0, 1);
  if (at.x.size(2) % (3 * heads) != 0)
    keys.refuse(cat("packed_attention: ", at.x.size(2), " features do not divide into queries, ",
                    "keys and values of ", heads, " heads"));
  const nn::AnyModule module = FilePackedAttention(heads, causal, dropout, at.generator);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position()) return module(x);
                  const std::vector<Tensor> qkv = chunk(x, 3, 2);
                  Tensor &cached = pass.state[first], &values = pass.state[first + 1];
                  const Tensor positions = arange(0, cached.size(2)),
                               here = unsqueeze(eq(positions, pass.position), 1);
                  cached = where(here, of_heads(qkv[1], heads), cached);
                  values = where(here, of_heads(qkv[2], heads), values);
                  return side_by_side(scaled_dot_product_attention(
                      of_heads(qkv[0], heads), cached, values, le(positions, pass.position)));
                }};
  if (!causal) return out;
  out.by_position = ByPosition::Bounded;
  const std::int64_t size = at.x.size(2) / (3 * heads);
  out.start = [heads, size](std::int64_t batch, std::int64_t positions) {
    return std::vector<Tensor>(2, zeros({batch, heads, positions, size}));
  };
  return out;
}

// Attention with kept queries and keys; the values are the input.
FileLayer attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ attention = 8, queries = \"q\" }");
  require_rank(keys, at, 3, kSequences);
  const std::string queries = kept_name(keys, "queries", at), of_keys = kept_name(keys, "keys", at),
                    seen = kept_name(keys, "seen", at);
  if (queries.empty() || of_keys.empty())
    keys.refuse_missing(
        queries.empty() ? "queries" : "keys",
        "attention needs queries and keys, the names of kept values, as in { attention = "
        "8, queries = \"q\", keys = \"k\" }");
  for (const std::string& name : {queries, of_keys})
    if (const Tensor& part = at.pass->kept(name);
        part.rank() != 3 || part.size(2) != at.x.size(2) || part.size(2) % heads != 0)
      keys.refuse(
          cat("attention of ", heads, " heads: '", name, "' is ", shape_text(part),
              " and values are ", shape_text(at.x),
              ": both must have the same number of features, a multiple of the number of heads"));
  const FileAttention module(heads, keys.boolean("causal", false), keys.number("dropout", 0, 0, 1),
                             at.generator);
  return {module, [=](const Tensor& x, FilePass& pass) {
            return module(pass.kept(queries), pass.kept(of_keys), x,
                          seen.empty() ? Tensor() : pass.kept(seen));
          }};
}

nn::TransformerOptions transformer_options(LayerKeys& keys, const LayerContext& at) {
  nn::TransformerOptions options;
  options.dim_feedforward = keys.whole("hidden", 4 * at.x.size(2), 1);
  options.dropout = keys.number("dropout", 0.1, 0, 1);
  if (const std::string name = keys.text("activation"); !name.empty()) options.activation = name;
  options.layer_norm_eps = keys.number("eps", options.layer_norm_eps, 0, 1e9);
  options.norm_first = keys.boolean("norm_first", false);
  options.bias = keys.boolean("bias", true);
  options.batch_first = true;
  options.generator = at.generator;
  return options;
}

FileLayer transformer_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ transformer_encoder_layer = 8 }");
  require_rank(keys, at, 3, kSequences);
  const nn::TransformerOptions options = transformer_options(keys, at);
  const bool causal = keys.boolean("causal", false);
  const std::string padding = kept_name(keys, "padding", at);
  const nn::TransformerEncoderLayer module(at.x.size(2), heads, options);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position()) return module(x, mask_of(pass, padding, causal));
                  return one_position(module, x, pass, first);
                }};
  if (!causal || !padding.empty()) return out;
  out.by_position = ByPosition::Bounded;
  out.start = [module](std::int64_t batch, std::int64_t positions) {
    const nn::KeyValueCache cache = module.empty_cache(batch, positions);
    return std::vector<Tensor>{cache.keys, cache.values};
  };
  return out;
}

FileLayer transformer_decoder_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ transformer_decoder_layer = 8 }");
  require_rank(keys, at, 3, kSequences);
  const nn::TransformerOptions options = transformer_options(keys, at);
  const std::string padding = kept_name(keys, "padding", at);
  const Tensor* memory = at.pass->find(kMemory);
  if (memory == nullptr)
    keys.refuse(
        "transformer_decoder_layer reads the output of an encoder, and the network has "
        "none: write pairs = true and encoder = [ ... ]");
  if (memory->rank() != 3 || memory->size(2) != at.x.size(2))
    keys.refuse(cat("transformer_decoder_layer: the encoder gives ", shape_text(*memory),
                    ", and the input is ", shape_text(at.x),
                    ": both must have the same number of features"));
  const nn::TransformerDecoderLayer module(at.x.size(2), heads, options);
  const std::size_t first = at.state, looked_up = at.memory;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  const nn::AttentionMask hidden = mask_of(pass, padding, false);
                  if (!pass.is_one_position())
                    return module(x, pass.kept(kMemory), nn::AttentionMask{.causal = true}, hidden);
                  const nn::DecoderCache cache{
                      {pass.state[first], pass.state[first + 1]},
                      {pass.memory[looked_up], pass.memory[looked_up + 1]}};
                  const nn::DecodedPosition made = module(x, cache, pass.position, hidden);
                  pass.state[first] = made.cache.self.keys;
                  pass.state[first + 1] = made.cache.self.values;
                  return made.output;
                }};
  out.by_position = ByPosition::Bounded;
  const std::int64_t size = at.x.size(2) / heads;
  out.start = [heads, size](std::int64_t batch, std::int64_t positions) {
    return std::vector<Tensor>(2, zeros({batch, heads, positions, size}));
  };
  out.look_up = [module](const FilePass& pass) {
    const nn::KeyValueCache cache = module.start(pass.kept(kMemory), 1).memory;
    return std::vector<Tensor>{cache.keys, cache.values};
  };
  return out;
}

// ---- Named values

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

FileLayer transpose_layer(LayerKeys& keys, const LayerContext&) {
  const std::vector<std::int64_t> axes = keys.axes("transpose", 2, 1, 1);
  const int a = static_cast<int>(axes[0]), b = static_cast<int>(axes[1]);
  return function_of(cat("Transpose(", a, ", ", b, ")"),
                     [a, b](const Tensor& x) { return transpose(x, a, b); });
}

FileLayer reshape_layer(LayerKeys& keys, const LayerContext& at) {
  const io::TomlValue& sizes = keys.own("the sizes of a sample", "{ reshape = [16, 7, 7] }");
  Shape shape;
  for (const io::TomlValue& size : sizes.items)
    shape.push_back(whole_of(size, keys.variables(), "reshape"));
  if (shape.numel() != at.x.numel() / 2)
    keys.refuse(
        cat("reshape to ", shape, ": ", shape_text(at.x), " has a different number of values"));
  return function_of(cat("Reshape(", shape, ")"), [shape](const Tensor& x) {
    Ints all{x.size(0)};
    for (const std::int64_t size : shape) all.push_back(size);
    return reshape(x, all);
  });
}

FileLayer scale_layer(LayerKeys& keys, const LayerContext&) {
  keys.own("a factor", "{ scale = 0.5 }");
  const double factor = keys.number("scale", 1, -1e30, 1e30);
  return function_of(
      cat("Scale(", factor, ")"), [factor](const Tensor& x) { return x * factor; },
      ByPosition::Each);
}

FileLayer pad_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("rows and columns", "{ pad2d = 2 }");
  require_rank(keys, at, 4, kImages);
  const Pair each = keys.pair("pad2d", 0);
  const double value = keys.number("value", 0, -1e30, 1e30);
  return function_of(cat("Pad2d(", each.h, ", ", each.w, ")"), [=](const Tensor& x) {
    return pad(x, {each.w, each.w, each.h, each.h}, value);
  });
}

// Every step-th row and column, beginning with the first.
FileLayer subsample_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t step = keys.own_whole("a step", "{ subsample2d = 2 }");
  require_rank(keys, at, 4, kImages);
  return function_of(cat("Subsample2d(", step, ")"), [step](const Tensor& x) {
    return slice(slice(x, 2, 0, x.size(2), step), 3, 0, x.size(3), step);
  });
}

FileLayer pad_channels_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t channels = keys.own_whole("channels", "{ pad_channels = 64 }");
  require_rank(keys, at, 4, kImages);
  const std::int64_t added = channels - at.x.size(1);
  if (added < 0 || added % 2 != 0)
    keys.refuse(
        cat("pad_channels to ", channels, ": ", shape_text(at.x),
            " has more, or lacks an odd number; both sides get the same number of channels"));
  return function_of(cat("PadChannels(", channels, ")"), [added](const Tensor& x) {
    return pad(x, {0, 0, 0, 0, added / 2, added / 2});
  });
}

FileLayer upsample_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t factor = keys.own_whole("a factor", "{ upsample2d = 2 }");
  require_rank(keys, at, 4, kImages);
  const bool linear = keys.word("mode", {"nearest", "linear"}) == "linear";
  return function_of(cat("Upsample2d(", factor, ")"), [factor, linear](const Tensor& x) {
    return interpolate(x, {x.size(2) * factor, x.size(3) * factor},
                       linear ? Interpolation::Linear : Interpolation::Nearest);
  });
}

struct FileKind {
  const char* name;
  FileLayer (*make)(LayerKeys& keys, const LayerContext& at);
  bool takes_tokens = false;
};

constexpr FileKind kKinds[] = {
    {"linear", linear_layer},
    {"projection", projection_layer},
    {"conv1d", convolution_layer<1, false>},
    {"conv2d", conv2d_layer},
    {"conv3d", convolution_layer<3, false>},
    {"conv_transpose1d", convolution_layer<1, true>},
    {"conv_transpose2d", convolution_layer<2, true>},
    {"conv_transpose3d", convolution_layer<3, true>},
    {"max_pool1d", pool_layer<nn::MaxPool1d, std::int64_t, false>},
    {"max_pool2d", pool_layer<nn::MaxPool2d, Pair, false>},
    {"max_pool3d", pool_layer<nn::MaxPool3d, Triple, false>},
    {"avg_pool1d", pool_layer<nn::AvgPool1d, std::int64_t, true>},
    {"avg_pool2d", pool_layer<nn::AvgPool2d, Pair, true>},
    {"avg_pool3d", pool_layer<nn::AvgPool3d, Triple, true>},
    {"adaptive_avg_pool1d", adaptive_pool_layer<nn::AdaptiveAvgPool1d, std::int64_t>},
    {"adaptive_avg_pool2d", adaptive_pool_layer<nn::AdaptiveAvgPool2d, Pair>},
    {"adaptive_avg_pool3d", adaptive_pool_layer<nn::AdaptiveAvgPool3d, Triple>},
    {"adaptive_max_pool1d", adaptive_pool_layer<nn::AdaptiveMaxPool1d, std::int64_t>},
    {"adaptive_max_pool2d", adaptive_pool_layer<nn::AdaptiveMaxPool2d, Pair>},
    {"adaptive_max_pool3d", adaptive_pool_layer<nn::AdaptiveMaxPool3d, Triple>},
    {"global_avg_pool", global_avg_pool_layer},
    {"upsample2d", upsample_layer},
    {"pad2d", pad_layer},
    {"pad_channels", pad_channels_layer},
    {"subsample2d", subsample_layer},
    {"batch_norm1d", batch_norm_layer<nn::BatchNorm1d, 2, 3>},
    {"batch_norm2d", batch_norm_layer<nn::BatchNorm2d, 4, 4>},
    {"batch_norm3d", batch_norm_layer<nn::BatchNorm3d, 5, 5>},
    {"layer_norm", layer_norm_layer},
    {"rms_norm", rms_norm_layer},
    {"group_norm", group_norm_layer},
    {"local_response_norm", local_response_norm_layer},
    {"dropout", dropout_layer},
    {"flatten", flatten_layer, true},
    {"reshape", reshape_layer, true},
    {"transpose", transpose_layer, true},
    {"scale", scale_layer},
    {"activation", own_activation_layer},
    {"relu", activation_layer},
    {"relu6", activation_layer},
    {"tanh", activation_layer},
    {"scaled_tanh", scaled_tanh_layer},
    {"sigmoid", activation_layer},
    {"gelu", gelu_layer},
    {"silu", activation_layer},
    {"mish", activation_layer},
    {"elu", elu_layer},
    {"leaky_relu", leaky_relu_layer},
    {"softplus", activation_layer},
    {"softsign", activation_layer},
    {"hardtanh", activation_layer},
    {"hardsigmoid", activation_layer},
    {"identity", activation_layer, true},
    {"hardswish", function_layer},
    {"selu", function_layer},
    {"logsigmoid", function_layer},
    {"celu", celu_layer},
    {"glu", glu_layer},
    {"softmax", softmax_layer<nn::Softmax>},
    {"log_softmax", softmax_layer<nn::LogSoftmax>},
    {"embedding", embedding_layer, true},
    {"positions", positions_layer},
    {"sinusoid_positions", sinusoid_positions_layer},
    {"rnn", recurrent_layer<nn::RNN>},
    {"gru", recurrent_layer<nn::GRU>},
    {"lstm", recurrent_layer<nn::LSTM>},
    {"bert_embeddings", bert_embeddings_layer, true},
    {"attention", attention_layer},
    {"self_attention", self_attention_layer},
    {"packed_attention", packed_attention_layer},
    {"transformer_encoder_layer", transformer_layer},
    {"transformer_decoder_layer", transformer_decoder_layer},
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

}  // namespace

const std::vector<std::string>& file_layer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    out.reserve(std::size(kKinds));
    for (const FileKind& kind : kKinds) out.emplace_back(kind.name);
    return out;
  }();
  return names;
}

std::vector<std::string> FilePass::names() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : kept_) out.push_back(name);
  return out;
}

void FilePass::forget_graphs() {
  for (auto& [name, x] : kept_) x = without_memory(x.shape(), x.dtype(), x.device());
}

FileLayer layer_of(const nn::AnyModule& module, ByPosition by_position) {
  return {module, [module](const Tensor& x, FilePass&) { return module(x); }, by_position};
}

FileLayer make_file_layer(LayerKeys& keys, const LayerContext& context) {
  for (const FileKind& kind : kKinds)
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

std::string shape_text(const Tensor& x) {
  std::string out = "[N";
  for (int axis = 1; axis < x.rank(); ++axis) out += cat(", ", x.size(axis));
  return out + "]";
}

}  // namespace tenon::models
