// Loops and branches: traces a body's graph and checks it on the user's line.
//
// Random draws inside a body: each step draws from its own range of the generator's counters, as an
// unrolled loop would. The generator's state is a row of xs like any other.
#include <tenon/loops.h>

#include <tenon/error.h>
#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "base/make_error.h"
#include "graph/random_trace.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Shape row_of(const Shape& stacked) { return Shape(stacked.begin() + 1, stacked.rank() - 1); }

Shape stack_of(std::int64_t length, const Shape& row) {
  Shape shape{length};
  for (const std::int64_t size : row) shape.push_back(size);
  return shape;
}

std::int64_t length_of(const std::vector<Tensor>& xs, const ScanOptions& options) {
  std::int64_t length = options.length;
  if (length < -1)
    throw make_error<ValueError>(where("scan"), ": a length of ", length,
                                 " steps: give 0 or more, or -1 for the first axis of xs");
  for (std::size_t k = 0; k < xs.size(); ++k) {
    if (xs[k].rank() == 0)
      throw make_error<ShapeError>(where("scan"), ": xs[", k,
                                   "] is a scalar: it needs an axis of steps");
    if (length < 0) length = xs[k].size(0);
    if (xs[k].size(0) != length)
      throw make_error<ShapeError>(where("scan"), ": xs[", k, "] is ", xs[k].shape(),
                                   ", the scan has ", length,
                                   " steps: its first axis must have as many");
  }
  if (length < 0)
    throw make_error<ValueError>(where("scan"),
                                 ": there are no xs to count: give a length in the options");
  return length;
}

void check_defined(const char* op, const char* what, const std::vector<Tensor>& tensors) {
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (!tensors[k].defined())
      throw make_error<ValueError>(where(op), ": ", what, " ", k, " is an undefined tensor");
}

// Refuses two values that a body must return alike. The message is `parts`.
template <class... Parts>
void check_types(const Tensor& a, const Tensor& b, const char* advice, const Parts&... parts) {
  if (a.shape() != b.shape()) throw make_error<ShapeError>(parts...);
  if (a.dtype() != b.dtype()) throw make_error<DTypeError>(parts..., advice);
}

void check_carry(const std::vector<Tensor>& before, const std::vector<Tensor>& after) {
  if (before.size() != after.size())
    throw make_error<ValueError>(where("scan"), ": a step takes a carry of ", before.size(),
                                 " tensors and returns one of ", after.size());
  check_defined("scan", "carry", after);
  for (std::size_t k = 0; k < before.size(); ++k)
    check_types(before[k], after[k], ": cast it", where("scan"), ": carry ", k, " begins as ",
                before[k].dtype(), before[k].shape(), " and a step returns ", after[k].dtype(),
                after[k].shape());
}

// A traced step: its parameters (carry, rows, the state of random draws) and its results.
struct Traced {
  std::vector<Tensor> parameters;
  ScanResult result;
  RandomTrace random;
  std::uint32_t id = 0;  // of the BodyTrace
};

Traced trace(const ScanStep& step, const std::vector<Tensor>& carry, const std::vector<Tensor>& xs,
             Device home) {
  Traced out;
  std::vector<Tensor> rows;
  rows.reserve(xs.size());
  for (const Tensor& x : xs) rows.push_back(without_memory(row_of(x.shape()), x.dtype(), home));
  const std::vector<Tensor> states = placeholders_for(carry, home);
  out.random.leaf = without_memory(Shape{2}, DType::Int64, home);
  {
    const RandomTraceGuard guard(&out.random);
    const BodyTrace body;
    out.id = body.id();
    out.result = step(states, rows);
  }
  check_carry(carry, out.result.carry);
  check_defined("scan", "y", out.result.ys);
  out.parameters = states;
  out.parameters.insert(out.parameters.end(), rows.begin(), rows.end());
  if (out.random.draws > 0) out.parameters.push_back(out.random.leaf);
  return out;
}

// int64[length, 2]: (seed, counter) of each step.
Tensor random_states(const RandomTrace& random, std::int64_t length) {
  std::int64_t offset = 0;
  Generator generator = *random.generator;
  const Tensor state = generator.next(&offset, random.draws * length);
  const Tensor counters = arange(0, length) * random.draws + offset;
  const Tensor second = arange(0, 2);  // (0, 1): the counter comes after the seed
  return state + unsqueeze(counters, 1) * second;
}

}  // namespace

ScanResult scan(const ScanStep& step, const std::vector<Tensor>& carry,
                const std::vector<Tensor>& xs, const ScanOptions& options) {
  if (!step) throw make_error<ValueError>(where("scan"), ": the step is an empty function");
  check_defined("scan", "carry", carry);
  check_defined("scan", "xs", xs);
  const std::int64_t length = length_of(xs, options);
  std::vector<Tensor> inputs = carry;
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  const Device home = device_of_body(inputs);
  Traced traced = trace(step, carry, xs, home);
  if (length == 0) {
    ScanResult none{carry, {}};
    for (const Tensor& y : traced.result.ys)
      none.ys.push_back(zeros(stack_of(0, y.shape()), y.dtype()));
    return none;
  }
  if (traced.random.draws > 0) inputs.push_back(random_states(traced.random, length));
  std::vector<Tensor> results = traced.result.carry;
  results.insert(results.end(), traced.result.ys.begin(), traced.result.ys.end());
  ClosedBody closed = close_over("scan", results, traced.parameters, home, traced.id);
  ScanAttrs attrs;
  attrs.length = length;
  attrs.reverse = options.reverse ? 1 : 0;
  attrs.carries = std::ssize(carry);
  attrs.rows = std::ssize(inputs) - attrs.carries;
  attrs.body = std::move(closed.body);
  inputs.insert(inputs.end(), closed.captured.begin(), closed.captured.end());
  return build_scan(inputs, std::move(attrs));
}

std::pair<Tensor, Tensor> scan(const ScanStepOfOne& step, const Tensor& carry, const Tensor& xs,
                               const ScanOptions& options) {
  if (!step) throw make_error<ValueError>(where("scan"), ": the step is an empty function");
  const ScanStep of_lists = [&step](const std::vector<Tensor>& c, const std::vector<Tensor>& x) {
    auto [next, y] = step(c[0], x[0]);
    return ScanResult{{std::move(next)}, {std::move(y)}};
  };
  ScanResult out = scan(of_lists, std::vector<Tensor>{carry}, std::vector<Tensor>{xs}, options);
  return {std::move(out.carry[0]), std::move(out.ys[0])};
}

namespace {

void check_predicate(const Tensor& predicate) {
  if (!predicate.defined())
    throw make_error<ValueError>(where("cond"), ": the predicate is an undefined tensor");
  if (predicate.numel() != 1)
    throw make_error<ShapeError>(where("cond"), ": the predicate is ", predicate.shape(),
                                 ", must be one element: use where() to choose element by element");
  if (predicate.dtype() != DType::Bool)
    throw make_error<DTypeError>(where("cond"), ": the predicate is ", predicate.dtype(),
                                 ", must be bool: compare it with something");
}

void check_branches(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size())
    throw make_error<ValueError>(where("cond"), ": one branch returns ", a.size(),
                                 " tensors, the other ", b.size());
  check_defined("cond", "result", a);
  check_defined("cond", "result", b);
  for (std::size_t k = 0; k < a.size(); ++k)
    check_types(a[k], b[k], ": cast one of them", where("cond"), ": result ", k, " is ",
                a[k].dtype(), a[k].shape(), " in one branch and ", b[k].dtype(), b[k].shape(),
                " in the other");
}

/// Traces a branch into `results`; returns the id of the trace.
std::uint32_t trace(const Branch& branch, const std::vector<Tensor>& parameters,
                    std::vector<Tensor>* results) {
  const BodyTrace body;
  *results = branch(parameters);
  return body.id();
}

}  // namespace

std::vector<Tensor> cond(const Tensor& predicate, const Branch& on_true, const Branch& on_false,
                         const std::vector<Tensor>& operands) {
  if (!on_true || !on_false)
    throw make_error<ValueError>(where("cond"), ": a branch is an empty function");
  check_predicate(predicate);
  check_defined("cond", "operand", operands);
  std::vector<Tensor> read{predicate};
  read.insert(read.end(), operands.begin(), operands.end());
  const Device home = device_of_body(read);
  const std::vector<Tensor> parameters = placeholders_for(operands, home),
                            others = placeholders_for(operands, home);
  std::vector<Tensor> a, b;
  const std::uint32_t of_a = trace(on_true, parameters, &a), of_b = trace(on_false, others, &b);
  check_branches(a, b);
  ClosedBody first = close_over("cond", a, parameters, home, of_a),
             second = close_over("cond", b, others, home, of_b);
  CondAttrs attrs;
  attrs.operands = std::ssize(operands);
  attrs.captured = std::ssize(first.captured);
  attrs.on_true = std::move(first.body);
  attrs.on_false = std::move(second.body);
  std::vector<Tensor> inputs{predicate};
  const std::vector<Tensor>* parts[] = {&operands, &first.captured, &second.captured};
  for (const std::vector<Tensor>* part : parts)
    inputs.insert(inputs.end(), part->begin(), part->end());
  return build_cond(inputs, std::move(attrs));
}

// ---- Nodes --------------------------------------------------------------------------------------

namespace {

Inferred type_in(const Body& body, std::int64_t k) {
  const Tensor& result = body.results[static_cast<std::size_t>(k)];
  return {result.dtype(), result.shape()};
}

bool is_like(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

// Checks what builders ensure; saved programs come from files.
void require_counts(const Node& node, bool holds) {
  if (!holds)
    throw make_error<InternalError>(where(node), ": its inputs and its bodies do not fit");
}

// Checks that input `k` of the node matches the body's parameter.
void check_parameter(const Node& node, int k, const Tensor& parameter, const Shape& shape) {
  const Node& in = *node.input(k);
  if (in.dtype != parameter.dtype() || in.shape != shape)
    throw make_error<InternalError>(where(node), ": input ", k, " is ", in.dtype, in.shape,
                                    ", its body takes ", parameter.dtype(), shape);
}

}  // namespace

Tensor scan_node(std::span<const Tensor> inputs, ScanAttrs attrs) {
  attrs.key = attrs.body->key;
  return build(Op::Scan, inputs, Attrs(attrs));
}

ScanResult build_scan(std::span<const Tensor> inputs, ScanAttrs attrs) {
  const std::int64_t carries = attrs.carries;
  const std::vector<Tensor> all = results_of(scan_node(inputs, std::move(attrs)));
  return {{all.begin(), all.begin() + carries}, {all.begin() + carries, all.end()}};
}

Inferred infer_scan(const Node& node) {
  const ScanAttrs& attrs = node.attrs.as<ScanAttrs>();
  const std::int64_t inputs = node.input_count, results = std::ssize(attrs.body->results);
  require_counts(node, attrs.length >= 0 && attrs.carries >= 0 && attrs.rows >= 0 &&
                           attrs.carries <= inputs && attrs.rows <= inputs - attrs.carries &&
                           attrs.carries <= results &&
                           inputs == std::ssize(attrs.body->parameters));
  for (std::int64_t k = 0; k < attrs.carries; ++k)
    require_counts(node, is_like(attrs.body->parameters[static_cast<std::size_t>(k)],
                                 attrs.body->results[static_cast<std::size_t>(k)]));
  for (int k = 0; k < node.input_count; ++k) {
    const Tensor& parameter = attrs.body->parameters[static_cast<std::size_t>(k)];
    const bool row = k >= attrs.carries && k < attrs.carries + attrs.rows;
    check_parameter(node, k, parameter,
                    row ? stack_of(attrs.length, parameter.shape()) : parameter.shape());
  }
  return attrs.body->results.empty() ? Inferred{node.dtype, node.shape}
                                     : infer_scan_result(node, 0);
}

Inferred infer_scan_result(const Node& node, std::int64_t k) {
  const ScanAttrs& attrs = node.attrs.as<ScanAttrs>();
  Inferred type = type_in(*attrs.body, k);
  if (k >= attrs.carries) type.shape = stack_of(attrs.length, type.shape);
  return type;
}

std::int64_t count_scan_results(const Node& node) {
  return std::ssize(node.attrs.as<ScanAttrs>().body->results);
}

Tensor cond_node(std::span<const Tensor> inputs, CondAttrs attrs) {
  attrs.key_true = attrs.on_true->key;
  attrs.key_false = attrs.on_false->key;
  return build(Op::Cond, inputs, Attrs(attrs));
}

std::vector<Tensor> build_cond(std::span<const Tensor> inputs, CondAttrs attrs) {
  return results_of(cond_node(inputs, std::move(attrs)));
}

Inferred infer_cond(const Node& node) {
  const CondAttrs& attrs = node.attrs.as<CondAttrs>();
  check_predicate(Tensor(node.input(0)));
  const std::int64_t inputs = node.input_count - 1, both = attrs.operands + attrs.captured;
  const auto results = attrs.on_true->results.size();
  require_counts(node, attrs.operands >= 0 && attrs.captured >= 0 && attrs.operands <= inputs &&
                           attrs.captured <= inputs - attrs.operands &&
                           both == std::ssize(attrs.on_true->parameters) &&
                           inputs - attrs.captured == std::ssize(attrs.on_false->parameters) &&
                           results == attrs.on_false->results.size());
  for (std::size_t k = 0; k < results; ++k)
    require_counts(node, is_like(attrs.on_true->results[k], attrs.on_false->results[k]));
  for (const bool branch : {true, false}) {
    const Body& body = branch ? *attrs.on_true : *attrs.on_false;
    for (std::int64_t p = 0; p < std::ssize(body.parameters); ++p) {
      const Tensor& parameter = body.parameters[static_cast<std::size_t>(p)];
      check_parameter(node, static_cast<int>(attrs.input_of(branch, p)) + 1, parameter,
                      parameter.shape());
    }
  }
  return attrs.on_true->results.empty() ? Inferred{node.dtype, node.shape}
                                        : infer_cond_result(node, 0);
}

Inferred infer_cond_result(const Node& node, std::int64_t k) {
  return type_in(*node.attrs.as<CondAttrs>().on_true, k);
}

std::int64_t count_cond_results(const Node& node) {
  return std::ssize(node.attrs.as<CondAttrs>().on_true->results);
}

}  // namespace tenon
