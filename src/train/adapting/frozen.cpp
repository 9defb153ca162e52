// Finds the outputs of the frozen layers in the graph, and builds the network that follows them.
#include "train/adapting/frozen.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/published_weights.h>
#include <tenon/weights.h>

#include "base/make_error.h"
#include "base/sort.h"
#include "base/str.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/attention.h"
#include "train/batches/resident.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kProbes[] = {13, 11};  // batch sizes for finding shapes

// The part of a network at a path such as "layer1.0"; nullopt if there is none.
std::optional<nn::AnyModule> part_at(const nn::AnyModule& net, const std::string& path) {
  const std::string name = path.substr(0, path.find('.'));
  for (const auto& [child_name, child] : net.children())
    if (child_name == name)
      return name.size() == path.size() ? std::optional<nn::AnyModule>(child)
                                        : part_at(child, path.substr(name.size() + 1));
  return std::nullopt;
}

// Skips reshapes and multiplications by a constant, which belong to the reader of the value:
// dropout scales its input in training only, and layers reshape what they read. Returns the last
// node found whose first axis is the batch.
Node* source_of(Node* node, std::int64_t batch) {
  Node* found = node;
  while (!node->realised()) {
    if (node->op == Op::Reshape || node->op == Op::Expand) {
      node = node->input(0);
    } else if (node->op == Op::Mul &&
               (node->input(0)->op == Op::Constant || node->input(1)->op == Op::Constant)) {
      node = node->input(node->input(0)->op == Op::Constant ? 1 : 0);
    } else {
      break;
    }
    if (node->shape.rank() > 0 && node->shape[0] == batch) found = node;
  }
  return found;
}

std::size_t nodes_of(const Tensor& value) {
  return topological_order(std::vector<Tensor>{value}).size();
}

// The values that trainable operations read, and that depend on the input but on nothing trainable.
// They are ordered by the number of nodes behind them, because dropout changes the order of the
// walk. A value computed from the input without weights, such as a padding mask, is recomputed: the
// input replaces it.
std::vector<Tensor> ends_of_frozen(const Tensor& output, const Tensor& input,
                                   const std::vector<Tensor>& learning) {
  std::unordered_set<const Node*> live, of_input, of_weights;
  for (const Tensor& p : learning) live.insert(p.node());
  of_input.insert(input.node());
  std::vector<Tensor> ends;
  for (Node* node : topological_order(std::vector<Tensor>{output})) {
    bool learns = node->op == Op::Random || drops_weights(*node);
    for (const Node* in : node->in()) {
      learns = learns || live.contains(in);
      if (of_input.contains(in)) of_input.insert(node);
      if (in->op == Op::Variable || of_weights.contains(in)) of_weights.insert(node);
    }
    if (!learns) continue;
    live.insert(node);
    for (Node* in : node->in()) {
      if (live.contains(in) || !of_input.contains(in)) continue;
      Node* const end = of_weights.contains(in) ? source_of(in, input.size(0)) : input.node();
      if (std::none_of(ends.begin(), ends.end(),
                       [end](const Tensor& known) { return known.node() == end; }))
        ends.emplace_back(end);
    }
  }
  sort_stably(ends, [](const Tensor& a, const Tensor& b) { return nodes_of(a) < nodes_of(b); });
  return ends;
}

// A digest of the graph: ops, types, shapes, attributes, edges and constants. Variables count by
// value or, without `values` (within one process), by identity.
Digest digest_of(const std::vector<Tensor>& ends, const Tensor& input, bool values) {
  Digester out;
  std::unordered_map<const Node*, std::uint64_t> numbers;
  for (Node* node : topological_order(ends)) {
    const std::uint64_t number = numbers.size();
    numbers.emplace(node, number);
    if (node == input.node()) continue;
    out.add(op_row(node->op).name);
    out.add(cat(node->dtype, node->shape));
    if (!node->realised()) {
      node->attrs.each_word([&out](std::uint64_t word) { out.add(word); });
      for (const Node* in : node->in()) out.add(numbers.at(in));
    } else if (!values && node->op == Op::Variable) {
      out.add(reinterpret_cast<std::uintptr_t>(node));
    } else {
      const Tensor value(node);
      out.add({static_cast<const char*>(value.data()),
               static_cast<std::size_t>(value.numel()) * item_size(value.dtype())});
    }
  }
  for (const Tensor& end : ends) out.add(numbers.at(end.node()));
  return out.result();
}

Ints sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
// The shape without the batch axis.
Shape of_one(const Shape& batch) { return Shape(batch.begin() + 1, batch.rank() - 1); }

// " (Hugging Face GPT-2: 148 renamed, …)"
std::string in_words(const models::WeightFit& fit) {
  std::string out;
  for (const std::string& deed : fit.done) out += cat(out.empty() ? "" : ", ", deed);
  if (fit.family.empty()) return out.empty() ? out : cat(" (", out, ")");
  return cat(" (", fit.family, out.empty() ? "" : ": ", out, ")");
}

}  // namespace

std::int64_t FrozenValues::count() const {
  std::int64_t out = 0;
  for (const One& one : values) out += one.shape.numel();
  return out;
}

Shape FrozenValues::shape() const { return values.size() == 1 ? values[0].shape : Shape{count()}; }

FrozenNet::FrozenNet(const nn::AnyModule& net, const std::vector<std::string>& parts) : net_(net) {
  std::unordered_set<std::string> learns;
  for (const nn::NamedTensor& p : net.named_trainable_parameters()) learns.insert(p.name);
  for (const std::string& path : parts) {
    net_.freeze(path);  // an unknown name is refused here
    if (std::optional<nn::AnyModule> part = part_at(net, path)) parts_.push_back(*part);
  }
  for (const nn::NamedTensor& p : net.named_trainable_parameters()) learns.erase(p.name);
  for (const nn::NamedTensor& p : net.named_parameters())
    if (learns.contains(p.name)) would_learn_.push_back(p.name);
  for (const auto& [name, part] : net.children()) child(name, part);
  if (named_parameters().size() != net.named_parameters().size())
    throw NotSupported(cat("freeze: ", net.describe(),
                           " has parameters outside its layers: freeze layers with "
                           "Module::freeze() and use your own Trainer"));
}

void FrozenNet::set_parts_to_evaluation() const {
  for (nn::AnyModule part : parts_) part.train(false);
}

Tensor FrozenNet::forward(const Tensor& x) const {
  set_parts_to_evaluation();
  if (!example_) return net_(x);
  const Tensor input = zeros(with_count(x.size(0), example_->shape), example_->dtype);
  const Tensor output = net_(input);
  const std::vector<Tensor> ends = ends_of_frozen(output, input, trainable_parameters());
  if (ends.empty()) throw InternalError("freeze: the graph has no outputs of the frozen part");
  Substitution instead;
  std::int64_t at = 0;
  for (const Tensor& end : ends) {
    const std::int64_t count = of_one(end.shape()).numel();
    const Tensor own =
        ends.size() == 1 ? x : reshape(slice(x, 1, at, at + count), sizes_of(end.shape()));
    instead.emplace(end.node(),
                    end.dtype() == DType::Bool ? ne(own, 0.0F) : cast(own, end.dtype()));
    at += count;
  }
  return substitute(std::vector<Tensor>{output}, instead)[0];
}

std::optional<FrozenValues> FrozenNet::values(const Shape& example, DType dtype, std::string& why) {
  const std::vector<Tensor> learning = trainable_parameters();
  Tensor input;
  std::vector<Tensor> ends, fewer;
  const auto find = [&](bool training, std::int64_t count) {
    input = zeros(with_count(count, example), dtype);
    train(training);
    set_parts_to_evaluation();
    return ends_of_frozen(net_(input), input, learning);
  };
  fewer = find(false, kProbes[1]);
  ends = find(true, kProbes[0]);
  const Digest trained = digest_of(ends, input, false);
  ends = find(false, kProbes[0]);
  if (ends.empty() || (ends.size() == 1 && ends[0].node() == input.node())) {
    why = "no layer between the input and the first trained layer is frozen";
    return std::nullopt;
  }
  if (!(digest_of(ends, input, false) == trained)) {
    why =
        "the layer that reads it reads another value in evaluation, as a trainable batch norm "
        "does: freeze that layer too";
    return std::nullopt;
  }
  FrozenValues out;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    const Shape &shape = ends[k].shape(), &other = fewer.at(k).shape();
    const bool of_each = shape.rank() > 0 && other == with_count(kProbes[1], of_one(shape)) &&
                         shape[0] == kProbes[0];
    if (!of_each || ends[k].dtype() == DType::Float64) {
      why = cat("one of its values, ", ends[k].dtype(), " ", shape, " of ", kProbes[0],
                " samples, has no value per sample");
      return std::nullopt;
    }
    out.values.push_back({of_one(shape), ends[k].dtype()});
  }
  out.computed_by = digest_of(ends, input, true);
  return out;
}

std::vector<Tensor> FrozenNet::numbers(const Tensor& batch) {
  train(false);
  set_parts_to_evaluation();
  std::vector<Tensor> rows;
  Tensor largest = scalar(0.0F);
  for (const Tensor& end : ends_of_frozen(net_(batch), batch, trainable_parameters())) {
    const Ints row{batch.size(0), of_one(end.shape()).numel()};
    rows.push_back(reshape(cast(end, DType::Float32), row));
    if (!is_floating(end.dtype())) largest = maximum(largest, amax(abs(rows.back())));
  }
  return {rows.size() == 1 ? rows[0] : concat(rows, 1), largest};
}

nn::AnyModule FrozenNet::behind(const Shape& example, DType dtype) const {
  FrozenNet out = *this;
  out.example_ = {example, dtype};
  return out;
}

nn::AnyModule FrozenNet::released() {
  for (const std::string& name : would_learn_) net_.unfreeze(name);
  return net_;
}

namespace {

// Throws if the file's family is not supported and its tensors do not all fit the network.
void refuse_relative(const models::WeightFit& fit, const std::string& file) {
  if (!fit.unsupported.empty() && !(fit.missing.empty() && fit.misshapen.empty()))
    throw make_error<NotSupported>(FileName{file}, ": this is ", fit.family,
                                   ": not supported, because ", fit.unsupported);
}

// Describes what was skipped or converted while the file was read: "; hub/w.pt: 2 of float8_e4m3fn
// read as float32".
std::string in_words(const Notes& notes) {
  std::string out;
  for (const Note& note : notes) out += cat("; ", to_string(note));
  return out;
}

}  // namespace

TakenWeights take_fitting_weights(nn::AnyModule net, const std::string& file) {
  const StateDict own = net.state_dict();
  const io::WeightFile opened(file);
  const models::WeightFit fit = models::fit_weights(opened, own);
  refuse_relative(fit, file);
  if (fit.tensors.empty())
    throw make_error<ValueError>(FileName{file},
                                 ": no tensor in it fits the network: ", fit.differences());
  net.load_state_dict(fit.tensors, false);
  const std::string left = fit.differences();
  return {cat("weights: ", fit.tensors.size(), " of ", own.size(), " tensors are from ", file,
              in_words(fit), left.empty() ? "" : cat("; ", left), in_words(opened.notes())),
          opened.notes(), fit.normalize};
}

TakenWeights take_all_weights(nn::AnyModule net, const std::string& model,
                              const std::string& file) {
  const io::WeightFile opened(file);
  const models::WeightFit fit = models::fit_weights(opened, net.state_dict());
  refuse_relative(fit, file);
  if (const std::string left = fit.differences(); !left.empty())
    throw make_error<ValueError>(FileName{file},
                                 fit.family.empty() ? "" : cat(" (", fit.family, ")"),
                                 " does not fit ", model, ": ", left);
  net.load_state_dict(fit.tensors, false);
  return {cat("weights: all ", fit.tensors.size(), " tensors are from ", file, in_words(fit),
              in_words(opened.notes())),
          opened.notes(), fit.normalize};
}

std::vector<std::string> parse_parts(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    if (out.back().empty())
      throw ValueError(cat("setting 'freeze' is '", text,
                           "', must be names with commas between, as in 'features,fc.0'"));
    at = end + 1;
  }
  return out;
}

}  // namespace tenon::train
