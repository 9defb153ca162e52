// Builds every node through its operation's row, which infers and checks it. What the rows take for
// granted, because builders ensure it, is checked here: numbers of inputs, results that only Result
// nodes read, ranges of attributes.
#include "programs/graph_reader.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "graph/constants_guard.h"
#include "graph/node.h"
#include "graph/tracing/body.h"
#include "ops/formula.h"
#include "ops/infer.h"
#include "programs/attributes.h"
#include "programs/batch_sizes.h"

namespace tenon {
namespace {

using io::Json;

constexpr std::int64_t kMostParameters = 1023;  // of a formula: the order of a derivative

std::optional<Op> op_named(std::string_view name) {
  static const auto* const table = [] {
    auto* all = new std::unordered_map<std::string_view, Op>;
    for (const OpRow& row : kOpRows) all->emplace(row.name, row.op);
    return all;
  }();
  const auto found = table->find(name);
  return found == table->end() ? std::nullopt : std::optional(found->second);
}

Shape shape_of(const Json& sizes, std::int64_t n) {
  Ints values;
  for (const Json& size : sizes) values.push_back(whole_at(size, n));
  return to_shape(values);
}

std::shared_ptr<const Body> read_body(const Json& record, std::int64_t n, Device home);

// Sets the fields of attributes from the record.
class FieldReader final : public AttributeFields {
 public:
  FieldReader(const Json& row, std::int64_t n, Device home) : row_(row), n_(n), home_(home) {}

  void operator()(const char* key, std::int64_t& value) override {
    value = whole_at(row_.at(key), n_);
  }
  void operator()(const char* key, double& value) override { value = real_at(row_.at(key), n_); }
  void operator()(const char* key, bool& value) override { value = row_.at(key).get<bool>(); }
  void operator()(const char* key, Precision& value) override {
    value = precision_from_name(row_.at(key).text());
  }
  void operator()(const char* key, NamedNumber& value) override {
    const std::string& text = row_.at(key).text();
    const auto found = std::find(value.names.begin(), value.names.end(), text);
    if (found == value.names.end())
      throw Json::type_error(cat("this version knows no ", key, " '", text.substr(0, 40), "'"));
    value.number = found - value.names.begin();
  }
  void operator()(const char* key, FormulaNumber& value) override {
    const std::string& text = row_.at(key).text();
    value.number = formula_named(text.c_str());
    if (value.number < 0)
      throw Json::type_error(cat("this version knows no formula '", text.substr(0, 40), "'"));
    const std::int64_t parameter = whole_at(row_.at("parameter"), n_);
    if (parameter < 0 || parameter > kMostParameters)
      throw Json::out_of_range("the formula's parameter is out of range");
  }
  void operator()(const char* key, Scalar& value) override {
    if (row_.value("real", false))
      value = real_at(row_.at(key), n_);
    else
      value = whole_at(row_.at(key), n_);
  }
  void operator()(const char* key, std::shared_ptr<const Body>& value) override {
    value = read_body(row_.at(key), n_, home_);
  }
  void operator()(const char* key, std::uint8_t (&values)[kMaxRank]) override {
    read_list(key, values);
  }
  void operator()(const char* key, std::int64_t (&values)[kMaxRank]) override {
    read_list(key, values);
  }

 private:
  template <class T>
  void read_list(const char* key, T (&values)[kMaxRank]) {
    const Json& list = row_.at(key);
    if (list.items().size() > static_cast<std::size_t>(kMaxRank))
      throw Json::out_of_range(cat("'", key, "' is longer than a shape"));
    for (std::size_t a = 0; a < list.size(); ++a) {
      const std::int64_t value = whole_at(list[a], n_);
      if (value > std::int64_t{std::numeric_limits<T>::max()} ||
          value < std::int64_t{std::numeric_limits<T>::min()})
        throw Json::out_of_range(cat("'", key, "' has a number that is out of range"));
      values[a] = static_cast<T>(value);
    }
  }
  const Json& row_;
  std::int64_t n_;
  Device home_;
};

class GraphReader {
 public:
  GraphReader(const Json& record, std::int64_t n, Device home)
      : record_(record), n_(n), home_(home) {}
  virtual ~GraphReader() = default;

  void read() {
    for (const Json& row : record_.at("nodes")) nodes_.push_back(named(row));
  }
  std::vector<Tensor> listed(const char* key) const {
    std::vector<Tensor> out;
    for (const Json& number : record_.at(key)) {
      out.push_back(node(number));
      if (has_trait(out.back().node()->op, kSeveralResults) && !out.back().node()->realised())
        throw Json::type_error(cat("'", key, "' names a node with several results"));
    }
    return out;
  }

 protected:
  // The node of a record without an operation.
  virtual Tensor leaf(const Json& row) = 0;

  const Json& record_;
  const std::int64_t n_;
  const Device home_;

 private:
  // An error of the record or of inference, with the node's place.
  Tensor named(const Json& row) {
    try {
      return made(row);
    } catch (...) {
      rethrow_at(place_of(row));
    }
  }
  std::string place_of(const Json& row) const {
    const Json* op = row.find("op");
    const std::string name = op != nullptr && op->is_string() ? op->text().substr(0, 40) : "";
    return cat("node ", nodes_.size(), name.empty() ? "" : cat(" (", name, ")"), ": ");
  }

  const Tensor& node(const Json& number) const {
    const auto k = number.get<std::size_t>();
    if (k >= nodes_.size())
      throw Json::out_of_range(cat("it reads node ", k, ", which does not come before it"));
    return nodes_[k];
  }

  Tensor made(const Json& row) {
    const Json* name = row.find("op");
    if (name == nullptr) return leaf(row);
    const std::optional<Op> op = op_named(name->text());
    if (!op)
      throw NotSupported(
          "this version does not know the operation: use the version of Tenon that saved the "
          "program, or a newer one");
    const TensorType type = type_of_record(row, n_);
    const LabelGuard label(intern_label(row.value("layer", "")));
    const ConstantsGuard constants(row.value("no_grad", false) || builds_constants());
    Tensor out = made_of(*op, row, type);
    if (out.dtype() != type.dtype || out.shape() != type.shape)
      throw make_error<ShapeError>("it computes ", out.dtype(), out.shape(), ", but the file says ",
                                   type.dtype, type.shape);
    if (row.value("differentiable", false)) {
      if (*op != Op::Constant) throw Json::type_error("only constants may be differentiable");
      out.node()->differentiable = true;
    }
    return out;
  }

  Tensor made_of(Op op, const Json& row, const TensorType& type) {
    const std::vector<Tensor> inputs = inputs_of(op, row);
    const Attrs attrs = attributes_of(op, row);
    if (op == Op::Constant)
      return constant(type.shape, attrs.as<ConstantAttrs>().value, type.dtype);
    return build_as(op, type.dtype, type.shape, inputs, attrs);
  }

  std::vector<Tensor> inputs_of(Op op, const Json& row) const {
    std::vector<Tensor> inputs;
    if (const Json* list = row.find("inputs"))
      for (const Json& number : *list) inputs.push_back(node(number));
    const bool fits =
        op_row(op).arity < 0 ? !inputs.empty() : std::cmp_equal(inputs.size(), op_row(op).arity);
    const bool held = op != Op::Data && op != Op::Variable && kind_of(op) != OpKind::Host &&
                      kind_of(op) != OpKind::Transfer && kind_of(op) != OpKind::Function;
    if (!fits || !held)
      throw Json::type_error(
          cat("a program has no such operation with ", inputs.size(), " inputs"));
    for (const Tensor& input : inputs)
      if (has_trait(input.node()->op, kSeveralResults) != (op == Op::Result) &&
          (op == Op::Result || !input.node()->realised()))
        throw Json::type_error("it reads a node with several results, or one without");
    check_dtypes(op, inputs);
    return inputs;
  }

  // Kernels take operands of one floating dtype, and masks that are not wider.
  static void check_dtypes(Op op, std::span<const Tensor> inputs) {
    if (kind_of(op) != OpKind::Attention) return;
    const DType dtype = inputs[0].dtype();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const DType own = inputs[k].dtype();
      const bool is_operand = k < 3 || (op == Op::AttentionGrad && k != 4 && k < 6);
      const bool is_wider = is_floating(own) &&
                            item_size(own) > std::max(item_size(dtype), item_size(DType::Float32));
      if (!is_floating(dtype) || (is_operand && own != dtype) || is_wider)
        throw Json::type_error("its inputs are not of one floating dtype");
    }
  }

  Attrs attributes_of(Op op, const Json& row) const {
    static const Json none = Json::object();
    const Json* fields = row.find("attributes");
    FieldReader reader(fields == nullptr ? none : *fields, n_, home_);
    Attrs attrs;
    visit_attributes(op, attrs, reader);
    return attrs;
  }

  std::vector<Tensor> nodes_{};
};

class BodyReader final : public GraphReader {
 public:
  using GraphReader::GraphReader;

  std::shared_ptr<const Body> body() {
    read();
    const std::vector<Tensor> parameters = listed("parameters");
    std::unordered_set<const Node*> once;
    for (const Tensor& parameter : parameters)
      if (parameter.node()->realised()) once.insert(parameter.node());
    if (parameters.size() != leaves_ || once.size() != leaves_)
      throw Json::type_error("the body does not list each of its parameters once");
    return make_body(parameters, listed("results"));
  }

 private:
  Tensor leaf(const Json& row) override {
    (void)row.at("parameter");
    ++leaves_;
    const TensorType type = type_of_record(row, n_);
    return without_memory(type.shape, type.dtype, home_);
  }
  std::size_t leaves_ = 0;
};

std::shared_ptr<const Body> read_body(const Json& record, std::int64_t n, Device home) {
  return BodyReader(record, n, home).body();
}

class ProgramReader final : public GraphReader {
 public:
  ProgramReader(const ProgramRecord& program, const std::vector<Tensor>& inputs, std::int64_t n,
                Device home, Tensor random)
      : GraphReader(program.graph, n, home),
        program_(program),
        inputs_(inputs),
        random_(std::move(random)) {}

 private:
  Tensor leaf(const Json& row) override {
    if (const Json* input = row.find("input")) {
      const auto k = input->get<std::size_t>();
      if (k >= inputs_.size()) throw Json::out_of_range("the program has no such input");
      return typed(row, inputs_[k]);
    }
    if (const Json* weight = row.find("weight")) {
      const auto found = program_.weights.find(weight->text());
      if (found == program_.weights.end())
        throw Json::out_of_range(
            cat("the file has no tensor '", weight->text().substr(0, 80), "'"));
      return typed(row, found->second);
    }
    if (!row.contains("random") || !random_.defined())
      throw Json::type_error("it is no operation, input or weight");
    return typed(row, random_);
  }

  Tensor typed(const Json& row, const Tensor& value) const {
    const TensorType type = type_of_record(row, n_);
    if (value.dtype() != type.dtype || value.shape() != type.shape)
      throw make_error<ShapeError>("it is ", value.dtype(), value.shape(), ", must be ", type.dtype,
                                   type.shape);
    return value;
  }

  const ProgramRecord& program_;
  const std::vector<Tensor>& inputs_;
  const Tensor random_;
};

// The state that the program's draws read, moved on by what the caller's function drew before.
Tensor random_state(const Json& graph, const OptionalGenerator& generator) {
  const auto draws = graph.value("draws", std::int64_t{0});
  if (draws == 0) return {};
  if (draws < 0) throw Json::out_of_range("'draws' is negative");
  std::int64_t offset = 0;
  Tensor state = generator.value_or(Generator::current()).next(&offset, draws);
  if (offset == 0) return state;
  const std::int64_t distance[2] = {0, offset};
  return state + Tensor::from_data(distance, Shape{2}, DType::Int64, state.device());
}

}  // namespace

void rethrow_at(const std::string& place, const std::string& file) {
  try {
    throw;
  } catch (const NotSupported& error) {
    throw NotSupported(place + error.what(), {.file = file});
  } catch (const MemoryError&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    throw FormatError(place + error.what(), {.file = file});
  } catch (const Json::exception& error) {
    throw FormatError(place + error.what(), {.file = file});
  }
}

TensorType type_of_record(const Json& row, std::int64_t n) {
  return {dtype_from_name(row.at("dtype").text().c_str()), shape_of(row.at("shape"), n)};
}

std::vector<Tensor> build_program(const ProgramRecord& program, const std::vector<Tensor>& inputs,
                                  std::int64_t n, const OptionalGenerator& generator) {
  try {
    ProgramReader reader(program, inputs, n, program.device,
                         random_state(program.graph, generator));
    reader.read();
    std::vector<Tensor> results = reader.listed("results");
    if (!program.graph.contains("assignments")) return results;
    std::vector<Tensor> assignments = reader.listed("assignments");
    if (results.empty()) return assignments;
    results[0] = with_updates(results[0], assignments);
    return results;
  } catch (...) {
    rethrow_at(program.name + ": ", program.name);
  }
}

}  // namespace tenon
