// Builder of networks from TOML: layers that hold layers. Sequences, repeats, residuals, branches
// and blocks, and the bias that a module around layers has.
#include <unordered_set>
#include <utility>

#include <tenon/shapes_only.h>

#include "base/str.h"
#include "models/network_builder.h"

namespace tenon::models {
namespace {

using io::TomlValue;
using Kind = TomlValue::Kind;

constexpr std::size_t kMostBlockVariables = 1'000;  // evaluated for each use of the block

}  // namespace

template <class Fill>
FileStep NetworkBuilder::within(const std::string& name, const std::string& kind, Fill&& fill) {
  FilePart part(kind);
  Open open = open_of(part, path_of(name));
  Open* const outer = open_;
  open_ = &open;
  part.set_steps(fill());
  open_ = outer;
  const nn::AnyModule kept(part);  // not a pointer, through which nn::clone() would not see
  open_->keep(name, kept);
  return [kept](const Tensor& x, FilePass& pass) { return (*kept.as<FilePart>())(x, pass); };
}

void NetworkBuilder::bias(LayerKeys& keys, const std::string& given, Tensor& x, Flow& out) {
  (void)keys.own();
  keys.finish();
  if (x.rank() < 2 || !is_floating(x.dtype()))
    keys.refuse(cat("bias takes features [N, ..., features], not ", shape_text(x)));
  const std::string name = given.empty() ? "bias" : given;
  const Tensor value = open_->own(name, zeros({x.size(-1)}));
  count(keys, path_of(name), value);
  out.push_back([value](const Tensor& in, FilePass&) { return in + value; });
}

bool NetworkBuilder::structure(LayerKeys& keys, const std::string& name, const TomlValue& value,
                               Tensor& x, Flow& out) {
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

Flow NetworkBuilder::sequence(LayerKeys& keys, Tensor& x) {
  const TomlValue& layers = keys.own("layers", "{ sequence = [ ... ], name = \"features\" }");
  keys.finish();
  return list(layers, keys.variables(), x);
}

Flow NetworkBuilder::repeat(LayerKeys& keys, Tensor& x) {
  const std::int64_t times = keys.own_whole("times", "{ repeat = 3, layers = [ ... ] }", 0);
  const TomlValue* layers = keys.find("layers");
  const std::string given = keys.text("index"), index = given.empty() ? "i" : given;
  if (layers == nullptr)
    keys.refuse_missing("layers", "repeat needs layers, as in { repeat = 3, layers = [ ... ] }");
  if (!Variables::is_name(index)) keys.refuse(cat("index: '", index, "' cannot name a variable"));
  keys.finish();
  Flow out;
  for (std::int64_t pass = 0; pass < times; ++pass) {
    trail_.push_back(cat("pass ", pass + 1, " of ", times, " of the repeat on line ", keys.line()));
    Variables inner(&keys.variables());
    inner.set(index, static_cast<double>(pass));
    for (FileStep& step : list(*layers, inner, x)) out.push_back(std::move(step));
    trail_.pop_back();
  }
  return out;
}

Flow NetworkBuilder::residual(LayerKeys& keys, Tensor& x) {
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

Flow NetworkBuilder::branches(LayerKeys& keys, Tensor& x) {
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
    all_.by_position = ByPosition::None;
    if (in_decoder_)
      keys.refuse(cat("branches: a translation is generated position by position, and axis ", axis,
                      " joins positions; axis = 2 joins features"));
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
                    join == "concat" ? cat("do not fit together along axis ", axis)
                                     : cat("must have the same shape for join = \"", join, "\"")));
  }
  return out;
}

Tensor NetworkBuilder::joined(const std::vector<Tensor>& parts, const std::string& how, int axis) {
  if (how == "concat") return concat(parts, axis);
  Tensor out = parts[0];
  for (std::size_t k = 1; k < parts.size(); ++k)
    out = how == "add" ? out + parts[k] : out * parts[k];
  return out;
}

void NetworkBuilder::collect_names(const TomlValue& value, std::unordered_set<std::string>& names) {
  if (value.is(Kind::String)) {
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

const TomlValue& NetworkBuilder::block_named(const std::string& name, int line) const {
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

FileStep NetworkBuilder::block(LayerKeys& keys, const std::string& given, const TomlValue& call,
                               Tensor& x) {
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
    if (*open == name) keys.refuse(cat("block '", name, "' contains itself: ", cycle));
  }
  if (body.entries.size() > kMostBlockVariables)
    throw FileFault{body.line,
                    cat("block '", name, "' has more than ", kMostBlockVariables, " variables")};
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

}  // namespace tenon::models
