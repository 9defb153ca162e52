// Builder of network files: structures, blocks, names, and error messages.
#include "models/network_file.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "base/str.h"
#include "models/file_head.h"
#include "models/file_parts.h"

namespace tenon::models {
namespace {

using io::TomlValue;
using Kind = TomlValue::Kind;

constexpr std::size_t kMostTensors = 50'000;
constexpr std::int64_t kMostLayers = 20'000, kMostParameters = std::int64_t{1} << 40;
constexpr int kDeepest = 60;                        // structures within each other
constexpr std::size_t kMostBlockVariables = 1'000;  // set again for each use of the block
constexpr std::uint64_t kMostText = 4 << 20;

// What was refused already, with all that can be said of it.
class FileRefusal : public FormatError {
 public:
  using FormatError::FormatError;
};

[[noreturn]] void refuse_at(const std::string& source, int line, const std::string& what) {
  if (line > 0)
    throw make_error<FileRefusal>(FileName{source}, ", line ", LineNumber{line}, ": ", what);
  throw make_error<FileRefusal>(FileName{source}, ": ", what);
}

class NetworkBuilder {
 public:
  NetworkBuilder(const TomlValue& tree, const std::string& source, const Options& options)
      : tree_(tree), source_(source), options_(options) {
    for_file([&] { head_ = head_of_file(tree, source); });
    Info& info = head_.info;
    if (options.classes > 0) info.classes = options.classes;
    if (info.masked) info.vocabulary = info.classes;
  }

  const Info& info() const { return head_.info; }

  nn::AnyModule build() {
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

 private:
  // The module whose layers are being read.
  struct Open {
    std::function<void(const std::string&, const nn::AnyModule&)> keep;
    std::function<Tensor(const std::string&, const Tensor&)> own;  // a parameter of its own
    std::string path;
    std::int64_t layers = 0;  // so far: the name of one without a name
  };

  // ---- Faults
  template <class F>
  void for_file(F&& work) {
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
  [[noreturn]] void refuse(int line, const std::string& layer, std::string what) const {
    for (auto where = trail_.rbegin(); where != trail_.rend(); ++where)
      what += (where == trail_.rbegin() ? " (in " : ", in ") + *where;
    if (!trail_.empty()) what += ")";
    if (layer.empty()) refuse_at(source_, line, what);
    throw make_error<FileRefusal>(FileName{source_}, ", line ", LineNumber{line}, ", ", layer, ": ",
                                  what);
  }

  // ---- Modules
  template <class Part>
  nn::AnyModule built(const std::shared_ptr<Part>& part) {
    Open open = open_of(*part, "");
    open_ = &open;
    const Info& info = head_.info;
    Shape shape{2};
    for (const std::int64_t size : info.input)
      if (!info.pairs || shape.rank() < 2) shape.push_back(info.pairs ? info.input[1] : size);
    const Tensor given = without_memory(shape, info.takes_tokens() ? DType::Int64 : DType::Float32,
                                        current_device());
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
    return nn::AnyModule(std::static_pointer_cast<const nn::Module>(part));
  }

  // Scores of each token at each place, of each place for both ends of an answer, of classes, or of
  // classes for each pixel.
  void check_output(const Tensor& x) const {
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
                          : std::string("[N, outputs], as \"flatten\" and { linear = "
                                        "\"classes\" } give, or [N, classes, H, W]"))};
  }

  template <class Part>
  static Open open_of(Part& part, const std::string& path) {
    return {[&part](const std::string& name, const nn::AnyModule& m) { part.keep(name, m); },
            [&part](const std::string& name, const Tensor& init) { return part.own(name, init); },
            path};
  }

  // A child of the open module, whose layers are what `fill` gives.
  template <class Fill>
  FileStep within(const std::string& name, const std::string& kind, Fill&& fill) {
    const auto part = std::make_shared<FilePart>(kind);
    Open open = open_of(*part, path_of(name));
    Open* const outer = open_;
    open_ = &open;
    part->set_steps(fill());
    open_ = outer;
    open_->keep(name, *part);
    return [part](const Tensor& x, FilePass& pass) { return (*part)(x, pass); };
  }

  std::string path_of(const std::string& name) const {
    return open_->path.empty() ? name : cat(open_->path, ".", name);
  }

  // The layer's `name` with "{k + 1}" replaced by the number; "" if it has none.
  std::string name_of(const TomlValue& layer, const Variables& variables) const {
    const TomlValue* given = layer.is(Kind::Table) ? layer.find("name") : nullptr;
    if (given == nullptr) return "";
    if (!given->is(Kind::Text) || given->text.empty())
      throw FileFault{given->line, "a name is a text, as in name = \"conv1\""};
    std::string out;
    for (std::size_t at = 0; at < given->text.size();) {
      const std::size_t start = given->text.find('{', at), end = given->text.find('}', start);
      out += given->text.substr(at, start - at);
      if (start == std::string::npos) break;
      if (end == std::string::npos)
        throw FileFault{given->line, cat("the name '", given->text, "' has no } behind its {")};
      TomlValue number;
      number.kind = Kind::Text;
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

  std::string next_name(const std::string& given) {
    const std::string number = std::to_string(open_->layers++);
    return given.empty() ? number : given;
  }

  // ---- Layers
  // A list of layers, or one.
  Flow list(const TomlValue& value, const Variables& variables, Tensor& x) {
    Flow out;
    if (!value.is(Kind::List)) {
      layer(value, variables, x, out);
      return out;
    }
    if (value.items.empty()) throw FileFault{value.line, "a list of layers is empty"};
    for (const TomlValue& item : value.items) layer(item, variables, x, out);
    return out;
  }

  // "conv2d (0): …" without "conv2d (0)", because the message names "layer 0 (conv2d)" already.
  static std::string without_kind(const std::string& what, const std::string& kind) {
    const std::size_t colon = what.find(": ");
    if (kind.empty() || colon == std::string::npos || !what.starts_with(kind)) return what;
    const bool only = colon == kind.size() || (what[kind.size()] == ' ' && what[colon - 1] == ')');
    return only ? what.substr(colon + 2) : what;
  }

  void layer(const TomlValue& value, const Variables& variables, Tensor& x, Flow& out) {
    if (++layers_ > kMostLayers)
      refuse(value.line, "", cat("the network has more than ", kMostLayers, " layers"));
    if (++depth_ > kDeepest)
      refuse(value.line, "", cat("more than ", kDeepest, " nested structures"));
    std::string label, kind;
    try {
      LayerKeys keys(value, variables);
      const std::string name = name_of(value, variables);
      kind = keys.kind();
      label = cat("layer ", path_of(name.empty() ? std::to_string(open_->layers) : name), " (",
                  kind, ")");
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
        what += cat("; ", shape_text(x), " arrives");
      refuse(value.line, label, what);
    }
    --depth_;
  }

  void plain(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out) {
    FileLayer made =
        make_file_layer(keys, {x, options_.generator, head_.info.classes, head_.info.vocabulary,
                               head_.activation, &pass_, state_, memory_,
                               [this](const std::string& path) { return parameter(path); }});
    const std::string name = next_name(given), path = path_of(name);
    for (const nn::NamedTensor& p : made.module.named_parameters())
      count(keys, cat(path, ".", p.name), p.tensor);
    open_->keep(name, made.module);
    take_by_place(keys, made);
    x = shape_behind(made, x);
    out.push_back(std::move(made.step));
  }

  void count(const LayerKeys& keys, const std::string& path, const Tensor& parameter) {
    parameters_ += parameter.numel();
    named_.insert_or_assign(path, parameter);
    if (named_.size() > kMostTensors)
      keys.refuse(cat("the network has more than ", kMostTensors, " weights and biases"));
    if (parameters_ > kMostParameters)
      keys.refuse(cat("the network has more than ", kMostParameters, " parameters"));
  }

  // The layer's part in what goes place by place.
  void take_by_place(const LayerKeys& keys, const FileLayer& made) {
    if (made.by_place == ByPlace::None || all_.by_place == ByPlace::None)
      all_.by_place = ByPlace::None;
    else
      all_.by_place = std::max(all_.by_place, made.by_place);
    if (in_decoder_ && made.by_place == ByPlace::None)
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

  // A vector that is added: a parameter of the module around it.
  void bias(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out) {
    (void)keys.own();
    keys.finish();
    if (x.rank() < 2 || !is_floating(x.dtype()))
      keys.refuse(cat("bias takes features [N, ..., features], not ", shape_text(x)));
    const std::string name = given.empty() ? "bias" : given;
    const Tensor value = open_->own(name, zeros({x.size(-1)}));
    count(keys, path_of(name), value);
    out.push_back([value](const Tensor& in, FilePass&) { return in + value; });
  }

  // In evaluation, so that nothing is drawn or renewed.
  Tensor shape_behind(FileLayer& made, const Tensor& x) {
    const ShapesOnly scope;
    made.module.eval();
    const Tensor y = made.step(x, pass_);
    made.module.train();
    pass_.forget_graphs();
    return without_memory(y.shape(), y.dtype(), y.device());
  }

  Tensor parameter(const std::string& path) const {
    if (const auto found = named_.find(path); found != named_.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(named_.size());
    for (const auto& [name, tensor] : named_) names.push_back(name);
    const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
    throw ValueError(cat("tie: no parameter before this layer is named '", path, "'",
                         near.empty() ? "" : cat("; did you mean '", near, "'?")));
  }

  // ---- Structures
  bool structure(LayerKeys& keys, const std::string& name, const TomlValue& value, Tensor& x,
                 Flow& out) {
    const std::string& kind = keys.kind();
    if (kind == "bias") {
      bias(keys, name, x, out);
      return true;
    }
    if (kind == "block") {
      out.push_back(block(keys, name, value, x));
      return true;
    }
    if (kind != "sequence" && kind != "repeat" && kind != "residual" && kind != "branches")
      return false;
    const auto inside = [&] {
      Flow steps;
      if (kind == "sequence")
        steps = sequence(keys, x);
      else if (kind == "repeat")
        steps = repeat(keys, x);
      else if (kind == "residual")
        steps = residual(keys, x);
      else
        steps = branches(keys, x);
      return steps;
    };
    if (!name.empty()) {
      out.push_back(within(next_name(name), kind, inside));
      return true;
    }
    for (FileStep& step : inside()) out.push_back(std::move(step));
    return true;
  }

  Flow sequence(LayerKeys& keys, Tensor& x) {
    const TomlValue& layers = keys.own("layers", "{ sequence = [ ... ], name = \"features\" }");
    keys.finish();
    return list(layers, keys.variables(), x);
  }

  Flow repeat(LayerKeys& keys, Tensor& x) {
    const std::int64_t times = keys.own_whole("times", "{ repeat = 3, layers = [ ... ] }", 0);
    const TomlValue* layers = keys.find("layers");
    const std::string given = keys.text("index"), index = given.empty() ? "i" : given;
    if (layers == nullptr)
      keys.refuse_missing("layers", "repeat needs layers, as in { repeat = 3, layers = [ ... ] }");
    if (!Variables::is_name(index)) keys.refuse(cat("index: '", index, "' cannot name a variable"));
    keys.finish();
    Flow out;
    for (std::int64_t pass = 0; pass < times; ++pass) {
      trail_.push_back(
          cat("pass ", pass + 1, " of ", times, " of the repeat on line ", keys.line()));
      Variables inner(&keys.variables());
      inner.set(index, static_cast<double>(pass));
      for (FileStep& step : list(*layers, inner, x)) out.push_back(std::move(step));
      trail_.pop_back();
    }
    return out;
  }

  Flow residual(LayerKeys& keys, Tensor& x) {
    const TomlValue& layers = keys.own("layers", "{ residual = [ ... ] }");
    const TomlValue *shortcut = keys.find("shortcut"), *then = keys.find("then");
    const double scale = keys.number("scale", 1, -1e30, 1e30);
    keys.finish();
    Tensor y = x, past = x;
    const Flow branch = list(layers, keys.variables(), y);
    Flow around;
    if (shortcut != nullptr && y.shape() != x.shape())
      around = list(*shortcut, keys.variables(), past);
    if (y.shape() != past.shape())
      keys.refuse(cat("residual: its layers give ", shape_text(y), ", and ",
                      around.empty() ? "their input is " : "the shortcut gives ", shape_text(past),
                      around.empty()
                          ? ": add shortcut = [ ... ], layers that change the input to this shape"
                          : ": they must be the same"));
    Flow out{[branch, around, scale](const Tensor& in, FilePass& pass) {
      const Tensor made = run_flow(branch, in, pass);
      return (scale == 1 ? made : made * scale) + run_flow(around, in, pass);
    }};
    x = y;
    if (then != nullptr)
      for (FileStep& step : list(*then, keys.variables(), x)) out.push_back(std::move(step));
    return out;
  }

  Flow branches(LayerKeys& keys, Tensor& x) {
    const TomlValue& each = keys.own("a list of branches", "{ branches = [ [ ... ], [ ... ] ] }");
    const std::string join = keys.word("join", {"concat", "add", "multiply"});
    const int axis = static_cast<int>(keys.whole("axis", 1, 1, 7));
    keys.finish();
    std::vector<Flow> flows;
    std::vector<Tensor> ends;
    const auto add = [&](const TomlValue& layers) {
      ends.push_back(x);
      return list(layers, keys.variables(), ends.back());
    };
    if (each.is(Kind::Table))
      for (const auto& [name, layers] : each.entries)
        flows.push_back({within(name, "branch", [&, &of = layers] { return add(of); })});
    else
      for (const TomlValue& layers : each.items) flows.push_back(add(layers));
    if (flows.empty()) keys.refuse("branches: there are none, as in [ [ ... ], [ ... ] ]");
    if (join == "concat" && axis != x.rank() - 1) {
      all_.by_place = ByPlace::None;
      if (in_decoder_)
        keys.refuse(cat("branches: a translation is generated position by position, and axis ",
                        axis, " joins positions; axis = 2 joins features"));
    }
    Flow out{[flows, join, axis](const Tensor& in, FilePass& pass) {
      std::vector<Tensor> made;
      made.reserve(flows.size());
      for (const Flow& flow : flows) made.push_back(run_flow(flow, in, pass));
      return joined(made, join, axis);
    }};
    std::string shapes;
    for (const Tensor& end : ends) shapes += (shapes.empty() ? "" : ", ") + shape_text(end);
    const ShapesOnly scope;
    try {
      if (join != "concat")
        for (const Tensor& end : ends)
          if (end.shape() != ends[0].shape()) throw ShapeError("they differ");
      const Tensor y = joined(ends, join, axis);
      x = without_memory(y.shape(), y.dtype(), y.device());
    } catch (const Error&) {
      keys.refuse(cat("branches give ", shapes, ", which ",
                      join == "concat" ? cat("do not go together along axis ", axis)
                                       : std::string("must be the same to be joined so")));
    }
    return out;
  }

  static Tensor joined(const std::vector<Tensor>& parts, const std::string& how, int axis) {
    if (how == "concat") return concat(parts, axis);
    Tensor out = parts[0];
    for (std::size_t k = 1; k < parts.size(); ++k)
      out = how == "add" ? out + parts[k] : out * parts[k];
    return out;
  }

  // Adds the names that texts below use, and the keys.
  static void collect_names(const TomlValue& value, std::unordered_set<std::string>& names) {
    if (value.is(Kind::Text)) {
      const auto of_name = [](char c) { return Variables::is_name(std::string("a") + c); };
      for (std::size_t from = 0, at = 0; at <= value.text.size(); ++at)
        if (at == value.text.size() || !of_name(value.text[at])) {
          if (at > from) names.insert(value.text.substr(from, at - from));
          from = at + 1;
        }
    }
    for (const TomlValue& item : value.items) collect_names(item, names);
    for (const auto& [key, entry] : value.entries) {
      names.insert(key);
      collect_names(entry, names);
    }
  }

  const TomlValue& block_named(const std::string& name, int line) const {
    const TomlValue* blocks = tree_.find("blocks");
    std::vector<std::string> names;
    if (blocks != nullptr) {
      const TomlValue& table = expect_kind(*blocks, Kind::Table, "blocks", "{}");
      if (const TomlValue* block = table.find(name)) return *block;
      for (const auto& [known, block] : table.entries) names.push_back(known);
    }
    if (names.empty())
      throw FileFault{line, cat("there is no block '", name, "'; write one: [blocks.", name,
                                "] with layers = [ ... ]")};
    throw FileFault{line, cat("there is no block '", name, "'", near_miss(name, names))};
  }

  FileStep block(LayerKeys& keys, const std::string& given, const TomlValue& call, Tensor& x) {
    const std::string name = keys.text("block");
    const TomlValue& body = block_named(name, keys.line());
    const TomlValue* layers = body.find("layers");
    if (layers == nullptr) {
      refuse_misspelt(body, cat("block '", name, "'"), "layers");
      throw FileFault{body.line, cat("block '", name, "' has no layers")};
    }
    std::string cycle = name;
    for (auto open = open_blocks_.rbegin(); open != open_blocks_.rend(); ++open) {
      cycle = cat(*open, " -> ", cycle);
      if (*open == name) keys.refuse(cat("block '", name, "' is a part of itself: ", cycle));
    }
    if (body.entries.size() > kMostBlockVariables)
      throw FileFault{body.line, cat("block '", name, "' has more than ", kMostBlockVariables,
                                     " variables of its own")};
    Variables inner(&globals_);
    std::unordered_set<std::string> used;
    if (call.entries.size() > 1) collect_names(body, used);
    for (const auto& [key, value] : call.entries) {
      if (key == "block" || key == "name") continue;
      if (!used.contains(key))
        throw FileFault{value.line, cat("block '", name, "' uses no variable '", key, "'")};
      inner.set(key, number_of(value, keys.variables(), cat("block: ", key)));
    }
    for (const auto& [key, value] : body.entries)
      if (key != "layers" && call.find(key) == nullptr)
        inner.set(key, number_of(value, inner, cat("block '", name, "': ", key)));
    open_blocks_.push_back(name);
    trail_.push_back(cat("block '", name, "' on line ", keys.line()));
    FileStep step = within(next_name(given), name, [&] { return list(*layers, inner, x); });
    trail_.pop_back();
    open_blocks_.pop_back();
    return step;
  }

  const TomlValue& tree_;
  const std::string& source_;  // of the text, for messages
  const Options& options_;
  FileHead head_;
  Variables globals_;
  Open* open_ = nullptr;
  FilePass pass_;  // what layers so far kept, without memory
  FileLayers all_;
  std::size_t state_ = 0, memory_ = 0;            // tensors of layers so far
  bool in_decoder_ = false;                       // of a network that translates
  std::vector<std::string> trail_, open_blocks_;  // repeats and blocks that are being read
  StateDict named_;                               // parameters so far, by path
  std::int64_t layers_ = 0, parameters_ = 0;
  int depth_ = 0;
};

// The facts of a network, which is built without memory.
Info checked_info(const TomlValue& tree, const std::string& source, const Options& options) {
  const ShapesOnly scope;
  NetworkBuilder builder(tree, source, options);
  Info info = builder.info();
  info.parameters = builder.build().parameter_count();
  return info;
}

}  // namespace

bool is_network_file(const std::string& name) { return name.ends_with(".toml"); }

NetworkFile read_network(const std::string& path) { return {path, io::read_file(path, kMostText)}; }

nn::AnyModule network_of(const TomlValue& keys, const std::string& source,
                         const OptionalGenerator& generator) {
  const Options options{.generator = generator};
  return NetworkBuilder(keys, source, options).build();
}

namespace {

void require_file_takes(const NetworkFile& file, const Options& options) {
  if (options.classes < 0)
    throw ValueError(
        cat("model '", file.path, "': ", options.classes, " classes; at least 1 is needed"));
  if (!options.activation.empty())
    throw ValueError(cat("model '", file.path,
                         "' has its own activations: leave 'activation' out, and change the file"));
  if (!options.head.empty())
    throw ValueError(
        cat("model '", file.path, "' does not support 'head': change the last layers of the file"));
}

// Nothing is drawn before the whole file is known to be right.
nn::AnyModule built(const TomlValue& tree, const NetworkFile& file, const Options& options,
                    bool is_checked) {
  if (!is_checked && !ShapesOnly::is_on()) (void)checked_info(tree, file.path, options);
  return NetworkBuilder(tree, file.path, options).build();
}

}  // namespace

nn::AnyModule create(const NetworkFile& file, const Options& options) {
  require_file_takes(file, options);
  return built(io::parse_toml(file.text, file.path), file, options, false);
}

ParsedNetwork parse_network(NetworkFile file) {
  TomlValue tree = io::parse_toml(file.text, file.path);
  Info info = checked_info(tree, file.path, {});
  return {std::move(file), std::move(tree), std::move(info)};
}

nn::AnyModule create(const ParsedNetwork& network, const Options& options) {
  require_file_takes(network.file, options);
  const bool is_checked = options.classes == 0 || options.classes == network.info.classes;
  return built(network.tree, network.file, options, is_checked);
}

Info info(const NetworkFile& file) {
  return checked_info(io::parse_toml(file.text, file.path), file.path, {});
}

}  // namespace tenon::models
