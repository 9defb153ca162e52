// Summary of a network: one symbolic forward pass, recorded call by call; nothing is computed.
//
// Multiply-adds are counted on the graph, by the scope label of each product, so modules written
// with free functions are counted like layers.
#include <algorithm>
#include <map>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/nn.h>

#include "base/str.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "nn/grouped.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

std::int64_t multiply_adds(const Node& node) {
  if (node.op == Op::Matmul) {
    const Shape& a = node.input(0)->shape;
    return node.shape.numel() * a[a.rank() - 1];
  }
  if (node.op == Op::Conv2d || node.op == Op::Conv2dInputGrad) {
    // Each element of the result (of the input, for a transposed convolution) meets each filter
    // once.
    const Shape& w = node.input(1)->shape;
    const Shape& met = node.op == Op::Conv2d ? node.shape : node.input(0)->shape;
    return met.numel() * w[1] * w[2] * w[3];
  }
  if (node.op == Op::Attention) {
    // Scores and weighted sums over [N, length, heads, size]. Causal attention counts in full,
    // which is the usual convention.
    const Shape &query = node.input(0)->shape, &value = node.input(2)->shape;
    const std::int64_t scores = query[0] * query[2] * query[1] * value[1];
    return scores * (query[3] + value[3]);
  }
  return 0;
}

void add(std::int64_t& sum, std::int64_t products, std::int64_t times = 1) {
  std::int64_t all = 0;
  if (__builtin_mul_overflow(products, times, &all) || __builtin_add_overflow(sum, all, &sum))
    throw ValueError("summary: the number of multiply-adds exceeds 64 bits: use a smaller batch");
}

// Counts products by label. Products in a loop's body count once for each step.
void count_products(std::span<const Tensor> roots, std::int64_t times,
                    std::map<std::string, std::int64_t>& by_label) {
  for (const Node* node : topological_order(roots)) {
    if (node->op == Op::Scan) {
      const auto& loop = node->attrs.as<ScanAttrs>();
      count_products(loop.body->results, times * loop.length, by_label);
    } else if (const std::int64_t products = multiply_adds(*node); products > 0) {
      add(by_label[label_text(node->label)], products, times);
    }
  }
}

// Restores modules' modes and the random state, so that a summary has no side effects.
class Undisturbed {
 public:
  explicit Undisturbed(const ModuleBase& module)
      : modes_(Walk::modes(module)),
        seed_(Generator::current().seed()),
        counter_(Generator::current().counter()) {
    Walk::Modes evaluating = modes_;
    for (auto& [state, training] : evaluating) training = false;
    Walk::set_modes(evaluating);
  }
  ~Undisturbed() {
    Walk::set_modes(modes_);
    Generator::current().set_state(seed_, counter_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  Walk::Modes modes_;
  std::uint64_t seed_, counter_;
};

std::vector<Shape> shapes(std::span<const Tensor> tensors) {
  std::vector<Shape> out;
  for (const Tensor& t : tensors) out.push_back(t.shape());
  return out;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string fill(width > text.size() ? width - text.size() : 0, ' ');
  return right ? fill + text : text + fill;
}

}  // namespace

ModuleSummary Module::summary(const Shape& input) const { return summary(zeros(input)); }

ModuleSummary Module::summary(const Tensor& input) const {
  return summary_of([&] { (void)(*this)(input); });
}

ModuleSummary ModuleBase::summary_of(const std::function<void()>& call) const {
  Undisturbed guard(*this);
  ModuleSummary out;
  std::vector<bool> leaf;
  std::unordered_set<const Node*> counted;  // repeated modules and tied weights count once
  std::vector<Tensor> roots;                // results of the last call, the root's
  CallObserver watch([&](const std::string& path, const ModuleBase& module,
                         std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const std::int64_t own = Walk::own_parameters(module, counted);
    out.inputs = shapes(inputs);
    out.outputs = shapes(outputs);
    out.rows.push_back({path, module.describe(), out.outputs, own, 0});
    leaf.push_back(Walk::children(module).empty());
    roots.assign(outputs.begin(), outputs.end());
  });
  call();

  std::map<std::string, std::int64_t> by_label;
  count_products(roots, 1, by_label);
  for (const auto& [label, products] : by_label) add(out.multiply_adds, products);
  std::size_t kept = 0;
  for (std::size_t k = 0; k < out.rows.size(); ++k) {
    ModuleSummary::Row& row = out.rows[k];
    if (const auto it = by_label.find(row.path); it != by_label.end()) {
      row.multiply_adds = it->second;
      by_label.erase(it);  // the first row of a module has the sum over its calls
    }
    if (!leaf[k] && row.parameters == 0 && row.multiply_adds == 0) continue;
    for (const Shape& shape : row.outputs)
      out.activation_bytes += shape.numel() * static_cast<std::int64_t>(item_size(DType::Float32));
    std::swap(out.rows[kept++], row);
  }
  out.rows.resize(kept);
  for (const NamedTensor& p : named_parameters()) {
    out.parameters += p.tensor.numel();
    out.parameter_bytes +=
        p.tensor.numel() * static_cast<std::int64_t>(item_size(p.tensor.dtype()));
  }
  for (const NamedTensor& p : named_trainable_parameters()) out.trainable += p.tensor.numel();
  return out;
}

std::string ModuleSummary::Row::output_text() const {
  std::string text;
  for (const Shape& shape : outputs) text += (text.empty() ? "" : ", ") + shape.str();
  return text;
}

std::string ModuleSummary::str() const {
  std::vector<std::vector<std::string>> cells{
      {"layer", "kind", "output", "parameters", "multiply-adds"}};
  for (const Row& row : rows)
    cells.push_back({row.path.empty() ? "(root)" : row.path, row.kind, row.output_text(),
                     grouped(row.parameters),
                     row.multiply_adds == 0 ? "" : grouped(row.multiply_adds)});
  std::size_t width[5] = {};
  for (const auto& line : cells)
    for (std::size_t c = 0; c < 5; ++c) width[c] = std::max(width[c], line[c].size());
  std::string out;
  std::size_t total = 8;
  for (std::size_t w : width) total += w;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    std::string line;
    for (std::size_t c = 0; c < 5; ++c)
      line += padded(cells[k][c], width[c], c >= 3) + (c < 4 ? "  " : "");
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
    if (k == 0) out += std::string(total, '-') + "\n";
  }
  out += std::string(total, '-') + "\n";
  out += cat("parameters ", grouped(parameters),
             parameters == trainable ? "" : cat(" (", grouped(trainable), " trainable)"), ", ",
             grouped(parameter_bytes), " bytes; multiply-adds ", grouped(multiply_adds),
             "; activations ", grouped(activation_bytes), " bytes\n");
  return out;
}

}  // namespace tenon::nn
