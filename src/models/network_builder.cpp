// Builder of networks from TOML: modules, layers and their names, and messages that say where in
// the file a fault is.
#include "models/network_builder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "base/str.h"
#include "models/file_layers.h"

namespace tenon::models {
namespace {

using io::TomlValue;
using Kind = TomlValue::Kind;

constexpr std::size_t kMostTensors = 50'000;
constexpr std::int64_t kMostLayers = 20'000, kMostParameters = std::int64_t{1} << 40;
constexpr int kDeepest = 60;  // nesting of structures

// An error whose message already has the file, the line and the layer.
class FileRefusal : public FormatError {
 public:
  using FormatError::FormatError;
};

[[noreturn]] void refuse_at(const std::string& source, int line, const std::string& what) {
  if (line > 0)
    throw make_error<FileRefusal>(FileName{source}, ", line ", LineNumber{line}, ": ", what);
  throw make_error<FileRefusal>(FileName{source}, ": ", what);
}

}  // namespace

NetworkBuilder::NetworkBuilder(const TomlValue& tree, const std::string& source,
                               const Options& options)
    : tree_(tree), source_(source), options_(options) {
  for_file([&] { head_ = head_of_file(tree, source); });
  Info& info = head_.info;
  if (options.classes > 0) info.classes = options.classes;
  if (info.masked) info.vocabulary = info.classes;
}

nn::AnyModule NetworkBuilder::build() {
  const Info& info = head_.info;
  const std::string kind = info.name;
  std::optional<nn::AnyModule> net;
  for_file([&] {
    globals_ = variables_of_file(tree_, info);
    if (info.pairs)
      net = built(std::make_shared<FileTranslator>(kind));
    else if (info.vocabulary > 0)
      net = built(std::make_shared<FileNet>(kind, false));
    else if (info.tokens)
      net = built(std::make_shared<FileLanguage>(kind, info.input[0]));
    else
      net = built(std::make_shared<FileNet>(kind, info.input.rank() == 1));
    draw_values_of_file(tree_, globals_, *net, options_.generator);
    freeze_parts_of_file(tree_, *net);
  });
  return *net;
}

template <class F>
void NetworkBuilder::for_file(F&& work) {
  try {
    work();
  } catch (const FileFault& fault) {
    refuse_at(source_, fault.line, fault.what);
  } catch (const ShapeError& error) {
    refuse_at(source_, 0, error.what());
  } catch (const ValueError& error) {
    refuse_at(source_, 0, error.what());
  }
}

void NetworkBuilder::refuse(int line, const std::string& layer, std::string what) const {
  for (auto where = trail_.rbegin(); where != trail_.rend(); ++where)
    what += (where == trail_.rbegin() ? " (in " : ", in ") + *where;
  if (!trail_.empty()) what += ")";
  if (layer.empty()) refuse_at(source_, line, what);
  throw make_error<FileRefusal>(FileName{source_}, ", line ", LineNumber{line}, ", ", layer, ": ",
                                what);
}

template <class Part>
nn::AnyModule NetworkBuilder::built(const std::shared_ptr<Part>& part) {
  Open open = open_of(*part, "");
  open_ = &open;
  const Info& info = head_.info;
  Shape shape{2};
  for (const std::int64_t size : info.input)
    if (!info.pairs || shape.rank() < 2) shape.push_back(info.pairs ? info.input[1] : size);
  const Tensor given =
      without_memory(shape, info.takes_tokens() ? DType::Int64 : DType::Float32, current_device());
  Tensor x = given;
  if constexpr (std::is_same_v<Part, FileTranslator>) {
    pass_.keep(kPadding, without_memory(shape, DType::Bool, current_device()));
    part->set_encoder(list(*head_.encoder, globals_, x));
    const Tensor padding = pass_.kept(kPadding);
    pass_ = {};
    pass_.keep(kPadding, padding);
    pass_.keep(kMemory, x);
    all_ = {};
    in_decoder_ = true;
    x = given;
  }
  all_.steps = list(*head_.layers, globals_, x);
  part->set_layers(std::move(all_));
  check_output(x);
  return nn::AnyModule(part);
}

void NetworkBuilder::check_output(const Tensor& x) const {
  const Info& info = head_.info;
  const bool spans = info.finds_spans();
  const std::int64_t rows = spans ? 2 : info.input[info.input.rank() - 1],
                     scores = spans ? info.input[0] : info.classes;
  const bool maps = x.rank() == 4 && x.size(1) == info.classes;
  const bool fits = info.tokens ? x.rank() == 3 && x.size(1) == rows && x.size(2) == scores
                                : x.rank() == 2 || maps;
  if (fits) return;
  throw FileFault{
      head_.layers->line,
      cat("the last layer gives ", shape_text(x), ", must be ",
          spans         ? cat("[N, 2, ", scores,
                              "]: scores of every position for the first and the last token of "
                                      "an answer, as { linear = 2 } and { transpose = [1, 2] } give")
          : info.tokens ? cat("[N, ", rows, ", ", scores,
                              "]: scores of every token for every "
                              "position, as { linear = \"classes\" } gives")
                        : cat("[N, outputs], as \"flatten\" and { linear = \"classes\" } "
                              "give, or [N, ",
                              info.classes, ", H, W]"))};
}

std::string NetworkBuilder::path_of(const std::string& name) const {
  return open_->path.empty() ? name : cat(open_->path, ".", name);
}

std::string NetworkBuilder::name_of(const TomlValue& layer, const Variables& variables) const {
  const TomlValue* given = layer.is(Kind::Table) ? layer.find("name") : nullptr;
  if (given == nullptr) return "";
  if (!given->is(Kind::String) || given->text.empty())
    throw FileFault{given->line, "a name is a string, as in name = \"conv1\""};
  std::string out;
  for (std::size_t at = 0; at < given->text.size();) {
    const std::size_t start = given->text.find('{', at), end = given->text.find('}', start);
    out += given->text.substr(at, start - at);
    if (start == std::string::npos) break;
    if (end == std::string::npos)
      throw FileFault{given->line, cat("the name '", given->text, "' has no } after its {")};
    TomlValue number;
    number.kind = Kind::String;
    number.line = given->line;
    number.text = given->text.substr(start + 1, end - start - 1);
    out += std::to_string(whole_of(number, variables, "a number in a name", 0));
    at = end + 1;
  }
  if (out.find('.') != std::string::npos)
    throw FileFault{given->line, cat("the name '", out,
                                     "' has a dot, which joins the names of "
                                     "layers within layers")};
  return out;
}

std::string NetworkBuilder::next_name(const std::string& given) {
  const std::string number = std::to_string(open_->layers++);
  return given.empty() ? number : given;
}

Flow NetworkBuilder::list(const TomlValue& value, const Variables& variables, Tensor& x) {
  Flow out;
  if (!value.is(Kind::List)) {
    layer(value, variables, x, out);
    return out;
  }
  if (value.items.empty()) throw FileFault{value.line, "a list of layers is empty"};
  for (const TomlValue& item : value.items) layer(item, variables, x, out);
  return out;
}

std::string NetworkBuilder::without_kind(const std::string& what, const std::string& kind) {
  const std::size_t colon = what.find(": ");
  if (kind.empty() || colon == std::string::npos || !what.starts_with(kind)) return what;
  const bool only = colon == kind.size() || (what[kind.size()] == ' ' && what[colon - 1] == ')');
  return only ? what.substr(colon + 2) : what;
}

void NetworkBuilder::layer(const TomlValue& value, const Variables& variables, Tensor& x,
                           Flow& out) {
  if (++layers_ > kMostLayers)
    refuse(value.line, "", cat("the network has more than ", kMostLayers, " layers"));
  if (++depth_ > kDeepest)
    refuse(value.line, "", cat("more than ", kDeepest, " nested structures"));
  std::string label, kind;
  try {
    LayerKeys keys(value, variables);
    const std::string name = name_of(value, variables);
    kind = keys.kind();
    label = cat("layer ", path_of(name.empty() ? std::to_string(open_->layers) : name), " (", kind,
                ")");
    if (!structure(keys, name, value, x, out)) plain(keys, name, x, out);
  } catch (const FileRefusal&) {
    throw;
  } catch (const FileFault& fault) {
    refuse(fault.line, label, without_kind(fault.what, kind));
  } catch (const MemoryError&) {
    throw;
  } catch (const Error& error) {
    std::string what = without_kind(error.what(), kind);
    const std::string shape = x.shape().str();
    if (const std::size_t at = what.find(shape); at != std::string::npos)
      what.replace(at, shape.size(), shape_text(x));
    else
      what += cat("; the input is ", shape_text(x));
    refuse(value.line, label, what);
  }
  --depth_;
}

void NetworkBuilder::plain(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out) {
  FileLayer made = make_file_layer(
      keys, {x, options_.generator, head_.info.classes, head_.info.vocabulary, head_.activation,
             &pass_, state_, memory_, [this](const std::string& path) { return parameter(path); }});
  const std::string name = next_name(given), path = path_of(name);
  for (const nn::NamedTensor& p : made.module.named_parameters())
    count(keys, cat(path, ".", p.name), p.tensor);
  open_->keep(name, made.module);
  merge_by_position(keys, made);
  x = output_shape(made, x);
  out.push_back(std::move(made.step));
}

void NetworkBuilder::count(const LayerKeys& keys, const std::string& path,
                           const Tensor& parameter) {
  parameters_ += parameter.numel();
  named_.insert_or_assign(path, parameter);
  if (named_.size() > kMostTensors)
    keys.refuse(cat("the network has more than ", kMostTensors, " weights and biases"));
  if (parameters_ > kMostParameters)
    keys.refuse(cat("the network has more than ", kMostParameters, " parameters"));
}

void NetworkBuilder::merge_by_position(const LayerKeys& keys, const FileLayer& made) {
  if (made.by_position == ByPosition::None || all_.by_position == ByPosition::None)
    all_.by_position = ByPosition::None;
  else
    all_.by_position = std::max(all_.by_position, made.by_position);
  if (in_decoder_ && made.by_position == ByPosition::None)
    keys.refuse(cat(keys.kind(),
                    " reads all positions at once, and a translation is generated position by "
                    "position: use causal = true if the layer has it, or put it "
                    "into 'encoder'"));
  const ShapesOnly scope;
  if (made.start) {
    state_ += made.start(1, 1).size();
    all_.starts.push_back(made.start);
  }
  if (made.look_up) {
    memory_ += made.look_up(pass_).size();
    all_.look_ups.push_back(made.look_up);
  }
}

Tensor NetworkBuilder::output_shape(FileLayer& made, const Tensor& x) {
  const ShapesOnly scope;
  made.module.eval();
  const Tensor y = made.step(x, pass_);
  made.module.train();
  pass_.forget_graphs();
  return without_memory(y.shape(), y.dtype(), y.device());
}

Tensor NetworkBuilder::parameter(const std::string& path) const {
  if (const auto found = named_.find(path); found != named_.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(named_.size());
  for (const auto& [name, tensor] : named_) names.push_back(name);
  const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("tie: no parameter before this layer is named '", path, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

}  // namespace tenon::models
