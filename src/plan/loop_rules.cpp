// Merging equal scans, dropping results and inputs that nothing reads, and both-branches evaluation
// of cond. Every rule is linear in the size of the graph.
#include "plan/loop_rules.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <tenon/shapes_only.h>
#include "base/index.h"
#include "graph/body.h"
#include "graph/node.h"
#include "ops/infer.h"
#include "ops/loops.h"

namespace tenon {
namespace {

bool is_pending(const Node& node, Op op) { return node.op == op && !node.realised(); }

// Scans with the same body and equal inputs, which differ only in the requested results.
struct Loop {
  const Node* first = nullptr;
  // of the body: carries first, then the results of each step that are read
  std::vector<Tensor> results;
  std::unordered_map<const Node*, std::int64_t> number;  // of the results after the carries
  Tensor scan;                                           // the merged scan
  // elements of a padded row, for results with padded rows; 0: no padding
  std::vector<std::int64_t> margins;
};

class Loops {
 public:
  Loops(const Roots& roots, const DeviceTraits& traits)
      : takes_branches_(traits.host_sees_values), pads_(traits.aligns_loop_rows) {
    for (Node* node : roots.order().nodes) {
      if (is_pending(*node, Op::Scan)) enter(*node);
      if (node->op == Op::Result && !node->realised()) read(*node);
    }
  }

  /// Whether inputs of loops were dropped, so that other loops may now compute results that nothing
  /// reads.
  bool has_dropped() const { return has_dropped_; }

  Tensor rewritten(Node& node, std::span<const Tensor> inputs) {
    if (is_pending(node, Op::Scan)) return scan_of(node, inputs);
    if (is_pending(node, Op::Cond) && takes_branches_) return cond_of(node, inputs);
    if (!is_pending(node, Op::Result)) return {};
    const Node& source = *node.input(0);
    if (is_pending(source, Op::Scan)) {
      Loop& loop = *loop_of_.at(&source);
      const std::int64_t k = place(loop, source, result_index(node));
      return unpadded(loop, result_of(loop.scan, k), k, node.shape);
    }
    if (!is_pending(source, Op::Cond)) return {};
    if (!takes_branches_) return taken(*inputs[0].node(), result_index(node));
    return result_of(inputs[0], read_of(source, result_index(node)));
  }

 private:
  using Key = std::vector<const void*>;

  void enter(const Node& node) {
    const ScanAttrs& attrs = node.attrs.as<ScanAttrs>();
    Key key{attrs.body->parameters.empty() ? static_cast<const void*>(&node)
                                           : attrs.body->parameters[0].node(),
            attrs.reverse != 0 ? this : nullptr};
    for (const Node* in : node.in()) key.push_back(in);
    auto [found, fresh] = loops_.try_emplace(std::move(key));
    Loop& loop = found->second;
    if (fresh) {
      loop.first = &node;
      loop.results.assign(attrs.body->results.begin(), attrs.body->results.begin() + attrs.carries);
    }
    loop_of_.emplace(&node, &loop);
  }

  void read(const Node& result) {
    const Node& source = *result.input(0);
    if (is_pending(source, Op::Scan)) place(*loop_of_.at(&source), source, result_index(result));
    if (is_pending(source, Op::Cond)) read_of(source, result_index(result));
  }

  // The position of result `k` among the results of a branch that are read.
  std::int64_t read_of(const Node& cond, std::int64_t k) {
    std::vector<std::int64_t>& read = read_of_[&cond];
    const auto place = std::find(read.begin(), read.end(), k) - read.begin();
    if (place == std::ssize(read)) read.push_back(k);
    return place;
  }

  // The position of result `k` of a scan among the results of its loop. Adds the result if it is
  // new.
  static std::int64_t place(Loop& loop, const Node& scan, std::int64_t k) {
    const ScanAttrs& attrs = scan.attrs.as<ScanAttrs>();
    if (k < attrs.carries) return k;
    const Tensor& y = attrs.body->results[static_cast<std::size_t>(k)];
    const auto [found, fresh] = loop.number.try_emplace(y.node(), std::ssize(loop.results));
    if (fresh) loop.results.push_back(y);
    return found->second;
  }

  Tensor scan_of(const Node& node, std::span<const Tensor> inputs) {
    Loop& loop = *loop_of_.at(&node);
    if (loop.scan.defined()) return loop.scan;
    ScanAttrs attrs = loop.first->attrs.as<ScanAttrs>();
    std::vector<Tensor> read(inputs.begin(), inputs.end());
    if (pads_) {
      pad_rows(loop, attrs, read);
    } else {
      attrs.body = with_results(*attrs.body, loop.results);
    }
    drop_unread(attrs, read);
    loop.scan = scan_node(read, attrs);
    return loop.scan;
  }

  // Drops stacked inputs and shared values that no step reads any more.
  void drop_unread(ScanAttrs& attrs, std::vector<Tensor>& inputs) {
    std::unordered_set<const Node*> read;
    for (const Node* node : topological_order(attrs.body->results))
      if (!node->realised()) read.insert(node->in().begin(), node->in().end());
    for (const Tensor& result : attrs.body->results) read.insert(result.node());
    std::vector<Tensor> parameters = attrs.body->parameters;
    for (std::int64_t p = std::ssize(parameters); p-- > attrs.carries;) {
      if (read.contains(parameters[at(p)].node())) continue;
      if (p < attrs.carries + attrs.rows) --attrs.rows;
      parameters.erase(parameters.begin() + p);
      inputs.erase(inputs.begin() + p);
    }
    if (parameters.size() == attrs.body->parameters.size()) return;
    attrs.body = make_body(parameters, attrs.body->results);
    has_dropped_ = true;
  }

  // GPU kernels expect values to start at the alignment of an allocation. Rows of other lengths are
  // padded.
  static std::int64_t padded_count(const Tensor& row) {
    constexpr std::int64_t kBytes = 64;
    const auto item = static_cast<std::int64_t>(item_size(row.dtype()));
    return round_up(row.numel() * item, kBytes) / item;
  }
  static Tensor padded(const Tensor& flat, std::int64_t count) {
    return pad(flat, {0, count - flat.size(-1)});
  }

  static void pad_rows(Loop& loop, ScanAttrs& attrs, std::vector<Tensor>& inputs) {
    std::vector<Tensor> parameters = attrs.body->parameters;
    Substitution instead;
    for (std::int64_t p = attrs.carries; p < attrs.carries + attrs.rows; ++p) {
      const Tensor row = parameters[at(p)];
      const std::int64_t count = padded_count(row);
      if (count == row.numel()) continue;
      parameters[at(p)] = without_memory(Shape{count}, row.dtype(), row.device());
      instead.emplace(row.node(),
                      reshape(slice(parameters[at(p)], 0, 0, row.numel()), to_ints(row.shape())));
      inputs[at(p)] = padded(reshape(inputs[at(p)], {attrs.length, row.numel()}), count);
    }
    std::vector<Tensor> results = substitute(loop.results, instead);
    loop.margins.assign(results.size(), 0);
    for (std::size_t k = at(attrs.carries); k < results.size(); ++k) {
      const std::int64_t count = padded_count(results[k]), all = results[k].numel();
      if (count == all) continue;
      loop.margins[k] = all;
      results[k] = padded(reshape(results[k], {all}), count);
    }
    attrs.body = make_body(parameters, results);
  }

  static Tensor unpadded(const Loop& loop, const Tensor& result, std::int64_t k,
                         const Shape& shape) {
    if (loop.margins.empty() || loop.margins[at(k)] == 0) return result;
    return reshape(slice(result, 1, 0, loop.margins[at(k)]), to_ints(shape));
  }

  Tensor cond_of(const Node& node, std::span<const Tensor> inputs) {
    CondAttrs attrs = node.attrs.as<CondAttrs>();
    for (std::shared_ptr<const Body>* body : {&attrs.on_true, &attrs.on_false}) {
      std::vector<Tensor> results;
      for (std::int64_t k : read_of_[&node])
        results.push_back((*body)->results[static_cast<std::size_t>(k)]);
      *body = with_results(**body, results);
    }
    return cond_node(inputs, std::move(attrs));
  }

  // Puts both branches into the program once and selects one result.
  Tensor taken(const Node& cond, std::int64_t k) {
    const CondAttrs& attrs = cond.attrs.as<CondAttrs>();
    auto [found, fresh] = branches_.try_emplace(&cond);
    if (fresh) {
      found->second.keep = Tensor(const_cast<Node*>(&cond));
      found->second.on_true = inlined(cond, attrs, true);
      found->second.on_false = inlined(cond, attrs, false);
    }
    const auto at = static_cast<std::size_t>(k);
    return where(reshape(Tensor(cond.input(0)), {}), found->second.on_true[at],
                 found->second.on_false[at]);
  }

  static std::vector<Tensor> inlined(const Node& cond, const CondAttrs& attrs, bool branch) {
    const Body& body = branch ? *attrs.on_true : *attrs.on_false;
    Substitution instead;
    for (std::int64_t p = 0; p < std::ssize(body.parameters); ++p)
      instead.emplace(body.parameters[static_cast<std::size_t>(p)].node(),
                      Tensor(cond.input(static_cast<int>(attrs.input_of(branch, p)) + 1)));
    return substitute(body.results, instead);
  }

  struct Branches {
    Tensor keep;
    std::vector<Tensor> on_true, on_false;
  };

  const bool takes_branches_, pads_;
  bool has_dropped_ = false;
  std::map<Key, Loop> loops_;
  std::unordered_map<const Node*, Loop*> loop_of_;
  std::unordered_map<const Node*, std::vector<std::int64_t>> read_of_;  // by cond
  std::unordered_map<const Node*, Branches> branches_;
};

}  // namespace

Roots simplify_loops(Roots roots, const PlanOptions& options) {
  for (;;) {
    Loops loops(roots, options.traits);
    roots = rewrite(roots, [&loops](Node& node, std::span<const Tensor> inputs) {
      return loops.rewritten(node, inputs);
    });
    if (!loops.has_dropped()) return roots;
  }
}

}  // namespace tenon
