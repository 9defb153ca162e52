// Writes nodes in topological order; a node is named by its number in the list. The nodes of a
// body are a list of their own.
#include "programs/graph_writer.h"

#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "graph/host_code.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/formula.h"
#include "ops/infer.h"
#include "programs/attributes.h"

namespace tenon {
namespace {

using io::Json;

Json sizes_of(const Shape& shape) {
  Json out = Json::array();
  for (const std::int64_t size : shape) out.append(size);
  return out;
}

// JSON has no infinities.
Json real_record(double value) {
  if (std::isfinite(value)) return value;
  const char* name = std::isnan(value) ? "nan" : "inf";
  return std::signbit(value) ? cat("-", name) : std::string(name);
}

void add_type(Json& row, const Node& node) {
  row.add("dtype", name(node.dtype));
  row.add("shape", sizes_of(node.shape));
}

Json body_record(const Body& body);

// Adds the fields of attributes. Of arrays, the elements of axes that the node has.
class FieldWriter final : public AttributeFields {
 public:
  FieldWriter(Json& row, int rank) : row_(row), rank_(static_cast<std::size_t>(rank)) {}

  void operator()(const char* key, std::int64_t& value) override { row_.add(key, value); }
  void operator()(const char* key, double& value) override { row_.add(key, real_record(value)); }
  void operator()(const char* key, bool& value) override { row_.add(key, value); }
  void operator()(const char* key, Precision& value) override { row_.add(key, name(value)); }
  void operator()(const char* key, NamedNumber& value) override {
    row_.add(key, value.names[static_cast<std::size_t>(value.number)]);
  }
  void operator()(const char* key, FormulaNumber& value) override {
    row_.add(key, formula_name(value.number));
  }
  void operator()(const char* key, Scalar& value) override {
    row_.add(key, value.is_whole() ? Json(value.whole()) : real_record(value.real()));
    if (!value.is_whole()) row_.add("real", true);
  }
  void operator()(const char* key, std::shared_ptr<const Body>& value) override {
    row_.add(key, body_record(*value));
  }
  void operator()(const char* key, std::uint8_t (&values)[kMaxRank]) override { list(key, values); }
  void operator()(const char* key, std::int64_t (&values)[kMaxRank]) override { list(key, values); }

 private:
  template <class T>
  void list(const char* key, const T* values) {
    Json out = Json::array();
    for (std::size_t a = 0; a < rank_; ++a) out.append(std::int64_t{values[a]});
    row_.add(key, std::move(out));
  }
  Json& row_;
  std::size_t rank_;
};

void add_attributes(Json& row, const Node& node) {
  Json fields = Json::object();
  FieldWriter writer(fields, node.shape.rank());
  Attrs attrs = node.attrs;
  const bool has = has_attributes(attrs);
  if (visit_attributes(node.op, attrs, writer) != has)
    throw make_error<InternalError>("save_program: the attributes of ", op_row(node.op).name,
                                    " are not those that programs know");
  if (has) row.add("attributes", std::move(fields));
}

bool has_own_code(const Node& node) {
  return kind_of(node.op) == OpKind::Host || node.op == Op::OwnElement;
}

void refuse(const Node& node) {
  const LabelGuard label(node.label);
  const OpPlace place = where(shown_name(node.op, node.attrs));
  if (has_own_code(node))
    throw make_error<NotSupported>(
        "save_program: ", place,
        " runs code that a file cannot hold (host_call, own kernels): compute its result before "
        "or after the program, and pass it as an input");
  throw make_error<NotSupported>("save_program: ", place,
                                 " moves values between devices; a program runs on one: move the "
                                 "inputs before the program and the results after it");
}

// Throws NotSupported for an operation of this kind.
void refuse_in(std::span<const Tensor> roots, OpKind kind) {
  for (const Node* node : topological_order(roots)) {
    if (node->realised()) continue;
    const bool refused = kind == OpKind::Host ? has_own_code(*node) : kind_of(node->op) == kind;
    if (refused) refuse(*node);
    if (const auto* scan = node->attrs.get_if<ScanAttrs>()) refuse_in(scan->body->results, kind);
    if (const auto* cond = node->attrs.get_if<CondAttrs>()) {
      refuse_in(cond->on_true->results, kind);
      refuse_in(cond->on_false->results, kind);
    }
  }
}

class GraphWriter {
 public:
  virtual ~GraphWriter() = default;

  void add_all(std::span<const Tensor> roots) {
    for (const Node* node : topological_order(roots)) add(*node);
  }
  Json take_nodes() { return std::move(nodes_); }
  Json numbers(std::span<const Tensor> tensors) const {
    Json out = Json::array();
    for (const Tensor& tensor : tensors) out.append(numbers_.at(tensor.node()));
    return out;
  }

 protected:
  // The record of a leaf that has a value.
  virtual Json leaf(const Node& node) = 0;

 private:
  void push(const Node& node, Json row) {
    numbers_[&node] = static_cast<std::int64_t>(nodes_.size());
    nodes_.append(std::move(row));
  }

  void add(const Node& node) {
    if (numbers_.contains(&node)) return;
    if (node.realised()) {
      Json row = leaf(node);
      add_type(row, node);
      return push(node, std::move(row));
    }
    if (node.op == Op::Function) return;
    if (node.op == Op::Result && node.input(0)->op == Op::Function) return add_function_value(node);
    Json row = Json::object();
    row.add("op", op_row(node.op).name);
    if (node.input_count > 0) {
      Json inputs = Json::array();
      for (const Node* in : node.in()) inputs.append(numbers_.at(in));
      row.add("inputs", std::move(inputs));
    }
    add_type(row, node);
    add_attributes(row, node);
    add_marks(row, node);
    push(node, std::move(row));
  }

  static void add_marks(Json& row, const Node& node) {
    if (node.label != 0) row.add("layer", label_text(node.label));
    if (node.is_constant) row.add("no_grad", true);
    if (node.differentiable) row.add("differentiable", true);
  }

  // The value without its own gradient, which is code: a gradient is refused.
  void add_function_value(const Node& node) {
    const Tensor value = input_of(input_of(Tensor(const_cast<Node*>(&node)), 0),
                                  static_cast<int>(result_index(node)));
    if (!is_floating(value.dtype())) {
      numbers_[&node] = numbers_.at(value.node());
      return;
    }
    kept_.push_back(formula(Formula::without_gradient, {value},
                            static_cast<std::int64_t>(Undifferentiable::SavedFunction)));
    add(*kept_.back().node());
    numbers_[&node] = numbers_.at(kept_.back().node());
  }

  Json nodes_ = Json::array();
  std::unordered_map<const Node*, std::int64_t> numbers_;
  std::vector<Tensor> kept_{};
};

class BodyWriter final : public GraphWriter {
 public:
  explicit BodyWriter(const Body& body) : body_(body) {}

  Json record() {
    add_all(body_.parameters);
    add_all(body_.results);
    Json out = Json::object();
    out.add("parameters", numbers(body_.parameters));
    out.add("results", numbers(body_.results));
    out.add("nodes", take_nodes());
    return out;
  }

 private:
  Json leaf(const Node& node) override {
    for (std::size_t k = 0; k < body_.parameters.size(); ++k)
      if (body_.parameters[k].node() == &node) return Json::object().add("parameter", k);
    throw InternalError("save_program: a loop's body reads a value that it does not take");
  }
  const Body& body_;
};

Json body_record(const Body& body) { return BodyWriter(body).record(); }

class ProgramWriter final : public GraphWriter {
 public:
  ProgramWriter(const TracedFunction& traced, WeightNames& names)
      : traced_(traced), names_(names) {}

  Json record() {
    add_all(traced_.inputs);
    add_all(traced_.results);
    add_all(traced_.assignments);
    Json out = Json::object();
    out.add("inputs", numbers(traced_.inputs));
    out.add("results", numbers(traced_.results));
    if (!traced_.assignments.empty()) out.add("assignments", numbers(traced_.assignments));
    if (traced_.random.draws != 0) out.add("draws", traced_.random.draws);
    out.add("nodes", take_nodes());
    return out;
  }

 private:
  Json leaf(const Node& node) override {
    Json row = Json::object();
    for (std::size_t k = 0; k < traced_.inputs.size(); ++k)
      if (traced_.inputs[k].node() == &node) return std::move(row.add("input", k));
    if (traced_.random.leaf.node() == &node) return std::move(row.add("random", true));
    const Tensor tensor(const_cast<Node*>(&node));
    row.add("weight", names_.name_of(tensor));
    if (node.op == Op::Variable) row.add("variable", true);
    return row;
  }
  const TracedFunction& traced_;
  WeightNames& names_;
};

}  // namespace

std::string WeightNames::new_name(const Tensor& leaf) {
  const std::string& label = label_text(leaf.node()->label);
  std::string name = label.empty() ? "value.0" : label;
  for (int& k = counts_[label]; !taken_.insert(name).second;)
    name = cat(label.empty() ? "value" : label, ".", ++k);
  return name;
}

std::string WeightNames::name_of(const Tensor& leaf) {
  const Node& node = *leaf.node();
  if (node.value->bytes() == 0 && leaf.numel() != 0)
    throw make_error<ValueError>("save_program: the tensor ", label_text(node.label), " ",
                                 node.dtype, node.shape,
                                 " has no memory: it was created under ShapesOnly");
  if (next_ < all_.size()) {
    const auto& [name, before] = all_[next_++];
    if (before.node() == leaf.node() ||
        (before.dtype() == leaf.dtype() && before.shape() == leaf.shape() && before.equal(leaf)))
      return name;
    throw make_error<ShapeError>(
        "save_program: the function makes the tensor '", name, "', ", before.dtype(),
        before.shape(),
        ", from the batch size: compute it with operations such as arange(), or "
        "save the program without batched inputs");
  }
  ++next_;
  return all_.emplace_back(new_name(leaf), leaf).first;
}

io::TensorMap WeightNames::tensors() const { return {all_.begin(), all_.end()}; }

io::Json record_of(const TracedFunction& traced, WeightNames& names) {
  for (const OpKind kind : {OpKind::Host, OpKind::Transfer}) {  // host code on a GPU has both
    refuse_in(traced.results, kind);
    refuse_in(traced.assignments, kind);
  }
  return ProgramWriter(traced, names).record();
}

}  // namespace tenon
