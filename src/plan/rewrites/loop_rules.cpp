// Branches become selections, equal scans become one, and results and inputs that nothing reads are
// dropped. Every rule is linear in the size of the graph.
#include "plan/rewrites/loop_rules.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/shapes_only.h>
#include "base/index.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/loops.h"

namespace tenon {
namespace {

// Puts both branches of each cond into the program and selects one result.
class Selections {
 public:
  Tensor rewritten(const Node& node, std::span<const Tensor> inputs) {
    if (node.op != Op::Result || !is_pending(*inputs[0].node(), Op::Cond)) return {};
    return taken(*inputs[0].node(), result_index(node));
  }

 private:
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

  std::unordered_map<const Node*, Branches> branches_;
};

// Scans with the same body and equal inputs, which differ only in the requested results. If loops
// are not merged, one scan.
struct Loop {
  const Node* first = nullptr;
  // Results of the body: first the carries, then the per-step results that are read.
  std::vector<Tensor> results;
  std::unordered_map<const Node*, std::int64_t> number;  // number of each result after the carries
  Tensor scan;                                           // the merged scan
};

class Loops {
 public:
  Loops(const Roots& roots, bool merges) : merges_(merges) {
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
    if (is_pending(node, Op::Cond)) return cond_of(node, inputs);
    if (!is_pending(node, Op::Result)) return {};
    const Node& source = *node.input(0);
    if (is_pending(source, Op::Scan)) {
      Loop& loop = *loop_of_.at(&source);
      return result_of(loop.scan, place(loop, source, result_index(node)));
    }
    if (!is_pending(source, Op::Cond)) return {};
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
    if (!merges_) key.push_back(&node);
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
    attrs.body = with_results(*attrs.body, loop.results);
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

  const bool merges_;
  bool has_dropped_ = false;
  std::map<Key, Loop> loops_;
  std::unordered_map<const Node*, Loop*> loop_of_;
  // Numbers of the results that are read, by cond.
  std::unordered_map<const Node*, std::vector<std::int64_t>> read_of_;
};

// Pads the rows of stacked inputs and results. GPU kernels expect values to start at the alignment
// of an allocation.
class AlignedRows {
 public:
  Tensor rewritten(const Node& node, std::span<const Tensor> inputs) {
    if (node.op == Op::Scan) return scan_of(node, inputs);
    const auto found = margins_.find(inputs[0].node());
    if (found == margins_.end()) return {};
    return unpadded(inputs[0], found->second, result_index(node), node.shape);
  }

 private:
  static std::int64_t padded_count(const Tensor& row) {
    constexpr std::int64_t kBytes = 64;
    const auto item = static_cast<std::int64_t>(item_size(row.dtype()));
    return round_up(row.numel() * item, kBytes) / item;
  }
  static Tensor padded(const Tensor& flat, std::int64_t count) {
    return pad(flat, {0, count - flat.size(-1)});
  }

  /// The scan with padded rows; undefined if its rows are aligned.
  Tensor scan_of(const Node& node, std::span<const Tensor> given) {
    ScanAttrs attrs = node.attrs.as<ScanAttrs>();
    std::vector<Tensor> parameters = attrs.body->parameters, inputs(given.begin(), given.end());
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
    std::vector<Tensor> results = substitute(attrs.body->results, instead);
    Margins margins(results.size(), 0);
    bool pads = !instead.empty();
    for (std::size_t k = at(attrs.carries); k < results.size(); ++k) {
      const std::int64_t count = padded_count(results[k]), all = results[k].numel();
      if (count == all) continue;
      pads = true;
      margins[k] = all;
      results[k] = padded(reshape(results[k], {all}), count);
    }
    if (!pads) return {};
    attrs.body = make_body(parameters, results);
    Tensor scan = scan_node(inputs, attrs);
    margins_.emplace(scan.node(), std::move(margins));
    return scan;
  }

  // Elements of an unpadded row, by result; 0: no padding.
  using Margins = std::vector<std::int64_t>;

  static Tensor unpadded(const Tensor& scan, const Margins& margins, std::int64_t k,
                         const Shape& shape) {
    Tensor result = result_of(scan, k);
    if (margins[at(k)] == 0) return result;
    return reshape(slice(result, 1, 0, margins[at(k)]), to_ints(shape));
  }

  std::unordered_map<const Node*, Margins> margins_;  // by padded scan
};

bool is_cond_result(const Node& node) {
  return node.op == Op::Result && is_pending(*node.input(0), Op::Cond);
}

}  // namespace

Roots inline_branches(Roots roots, const PlanOptions&) {
  const auto has_cond = [&roots] {
    const std::vector<Node*>& nodes = roots.order().nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* node) { return !node->realised() && is_cond_result(*node); });
  };
  while (has_cond()) {  // a branch may contain another cond
    Selections selections;
    roots = rewrite(roots, [&selections](Node& node, std::span<const Tensor> inputs) {
      return selections.rewritten(node, inputs);
    });
  }
  return roots;
}

namespace {

Roots with_read_results(Roots roots, bool merges) {
  for (;;) {
    Loops loops(roots, merges);
    roots = rewrite(roots, [&loops](Node& node, std::span<const Tensor> inputs) {
      return loops.rewritten(node, inputs);
    });
    if (!loops.has_dropped()) return roots;
  }
}

// Whether some result of a branch, or of the steps of a loop, is read by nothing.
bool has_unread_results(const Roots& roots) {
  std::unordered_map<const Node*, std::unordered_set<std::int64_t>> read;
  const std::vector<Node*>& nodes = roots.order().nodes;
  for (const Node* node : nodes)
    if (node->op == Op::Result && !node->realised())
      read[node->input(0)].insert(result_index(*node));
  return std::any_of(nodes.begin(), nodes.end(), [&read](const Node* node) {
    const bool is_scan = is_pending(*node, Op::Scan);
    if (!is_scan && !is_pending(*node, Op::Cond)) return false;
    const std::int64_t carries = is_scan ? node->attrs.as<ScanAttrs>().carries : 0;
    const auto& results = is_scan ? node->attrs.as<ScanAttrs>().body->results
                                  : node->attrs.as<CondAttrs>().on_true->results;
    const std::unordered_set<std::int64_t>& of_node = read[node];
    for (std::int64_t k = carries; k < std::ssize(results); ++k)
      if (of_node.count(k) == 0) return true;
    return false;
  });
}

}  // namespace

Roots merge_loops(Roots roots, const PlanOptions&) {
  return with_read_results(std::move(roots), true);
}

Roots drop_loop_results(Roots roots, const PlanOptions&) {
  return has_unread_results(roots) ? with_read_results(std::move(roots), false) : roots;
}

Roots pad_loop_rows(Roots roots, const PlanOptions&) {
  AlignedRows rows;
  const auto is_of_scan = [](const Node& node) {
    return node.op == Op::Scan || node.op == Op::Result;
  };
  return rewrite_where(roots, is_of_scan, [&rows](Node& node, std::span<const Tensor> inputs) {
    return rows.rewritten(node, inputs);
  });
}

}  // namespace tenon
