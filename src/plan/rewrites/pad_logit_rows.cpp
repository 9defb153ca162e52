// Class scores (logits) over 50,257 words are by far the largest values of a language model. Two
// problems: float32 logits are written once and read three times by the loss. And rows with an odd
// number of 16-bit elements cannot be read by the GPU's copy engines, so both products of the
// logits' gradient would copy it first.
//
// Products with padded columns are followed by a slice that cuts the padding off, so every reader
// stays correct. Element-wise readers and column sums are computed including the padded columns and
// sliced again; row sums and row maxima skip the padded columns. So the whole loss runs on padded
// rows. Padded columns hold arbitrary numbers, possibly infinite, until they are rounded for a
// product: there they become zeros. The products of the gradient then run on padded rows too, times
// the padded operand that made the logits, or into a result that is sliced.
//
// A row sum with a single term, that of the label's class, is computed at that column alone.
#include "plan/rewrites/pad_logit_rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/ops.h>

#include "base/index.h"
#include "graph/attrs.h"
#include "graph/node.h"
#include "ops/table.h"
#include "plan/graph/node_users.h"

namespace tenon {
namespace {

constexpr std::int64_t kFewestClasses = 1024;
constexpr std::int64_t kFewestScores = 1 << 18;
constexpr std::int64_t kCopiedAtOnce = 8;  // elements of 16 bits, for copies of 16 bytes
constexpr std::int64_t kRowStep = 64;      // padded rows are a multiple of this
// A sliced result is written, and read again by a kernel of its own: 8 bytes an element. In that
// time an H100 does about 800 multiply-adds. Padding saves a library a quarter of the inner
// length's multiply-adds.
constexpr std::int64_t kFewestSummed = 4096;

bool is_short(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

Shape with_columns(Shape shape, std::int64_t columns) {
  shape[shape.rank() - 1] = columns;
  return shape;
}

/// The matrix that the node transposes; or null.
Node* transposed(const Node& node) {
  const bool turns = !node.realised() && node.op == Op::Permute && node.shape.rank() == 2 &&
                     node.attrs.as<PermuteAttrs>().axes[0] == 1;
  return turns ? node.input(0) : nullptr;
}

bool reduces_rows(const Node& node) {
  return node.input(0)->shape.rank() > 0 &&
         node.attrs.as<ReduceAttrs>().axes == std::int64_t{1} << (node.input(0)->shape.rank() - 1);
}

bool keeps_columns(const Node& reduction) {
  const int last = reduction.input(0)->shape.rank() - 1;
  return (reduction.attrs.as<ReduceAttrs>().axes >> last & 1) == 0;
}

/// The product that rows of logits come from, through ops that keep them logits; or null.
Node* product_of(Node* x) {
  while (!x->realised() && x->op != Op::Matmul) {
    const bool passes = x->op == Op::Reshape || x->op == Op::Add || x->op == Op::Cast;
    if (!passes || x->shape.rank() == 0 || x->input(0)->shape.rank() == 0 ||
        x->input(0)->shape.at(-1) != x->shape.at(-1))
      return nullptr;
    x = x->input(0);
  }
  return x->realised() ? nullptr : x;
}

bool is_worth_rounding(const Node& product) {
  return product.dtype == DType::Float32 && is_short(product.input(0)->dtype) &&
         product.input(0)->dtype == product.input(1)->dtype &&
         product.input(1)->shape.rank() == 2 && product.shape.at(-1) >= kFewestClasses &&
         product.shape.numel() >= kFewestScores;
}

/// The bias addition behind a product with padded rows, if it is the product's only reader;
/// otherwise the product. Rounding after the bias means that the loss need not read the bias at
/// every element.
const Node* behind_bias(const Node* product, std::span<const Node* const> users) {
  if (users.size() != 1 || users[0]->op != Op::Add || product->shape.at(-1) % kCopiedAtOnce != 0)
    return product;
  const Node* other = users[0]->input(users[0]->input(0) == product ? 1 : 0);
  const bool is_row = !other->realised() && other->op == Op::Expand &&
                      other->input(0)->shape.numel() == product->shape.at(-1);
  return is_row && users[0]->shape == product->shape ? users[0] : product;
}

/// Products whose logits are internal to this program, together with their bias.
std::unordered_set<const Node*> find_scores(const Roots& roots) {
  std::unordered_set<const Node*> found;
  const NumberedOrder& order = roots.order();
  for (const Node* node : order.nodes) {
    if (node->realised() || node->op != Op::Max || !reduces_rows(*node)) continue;
    if (const Node* product = product_of(node->input(0));
        product != nullptr && is_worth_rounding(*product))
      found.insert(product);
  }
  for (const Tensor& root : roots) found.erase(product_of(root.node()));
  std::unordered_set<const Node*> scores;
  if (found.empty()) return scores;
  const NodeUsers users(order);
  for (const Node* product : found) scores.insert(behind_bias(product, users.of(product)));
  return scores;
}

class RowConverter {
 public:
  RowConverter(std::unordered_set<const Node*> scores, bool cuts_products)
      : scores_(std::move(scores)), cuts_products_(cuts_products) {}

  Tensor rule(const Node& node, std::span<const Tensor> inputs) {
    if (inputs.empty()) return {};
    if (scores_.count(&node) != 0)
      return node.op == Op::Matmul ? product(node, inputs) : biased(node, inputs);
    if (node.op == Op::Matmul) return of_rows(node, inputs);
    const OpInfo& info = op_info(node.op);
    if ((node.op == Op::Sum || node.op == Op::Max) && reduces_rows(node))
      return reduced(node, inputs[0]);
    const auto first = std::find_if(inputs.begin(), inputs.end(),
                                    [this](const Tensor& in) { return whole_.count(in.node()); });
    if (first == inputs.end()) return {};
    const std::int64_t columns = whole_.at(first->node()).size(-1);
    if (info.kind == OpKind::Reduction && keeps_columns(node))
      return slice(grown(node, inputs, columns), -1, 0, node.shape.at(-1));
    const bool same_rows = node.shape.rank() > 0 && node.shape.at(-1) == first->shape().at(-1) &&
                           (info.kind == OpKind::Elementwise || node.op == Op::Reshape);
    if (!same_rows) return {};
    const bool rounds = node.op == Op::Cast && is_short(node.dtype);
    const Tensor all = rounds ? rounded(node, inputs[0]) : grown(node, inputs, columns);
    return all.defined() ? cut(all, node.shape) : Tensor();
  }

 private:
  /// The product, rounded once from float32 sums, with rows of zeros padded on the right.
  Tensor product(const Node& node, std::span<const Tensor> inputs) {
    const std::int64_t classes = node.shape.at(-1);
    Tensor operands[2] = {inputs[0], inputs[1]};
    std::int64_t columns = classes;
    if (classes % kCopiedAtOnce != 0) {
      columns = round_up(classes, kRowStep);
      operands[1] = padded(operands[1], 1, columns - classes);
    }
    const Tensor low_precision =
        make_node(Op::Matmul, operands[0].dtype(), with_columns(node.shape, columns),
                  ContractionAttrs{}, operands);
    Tensor all = cast(low_precision, node.dtype);
    products_.insert(low_precision.node());
    rows_[{node.shape.numel(), classes}] = columns;
    if (columns == classes) return all;
    return cut(all, node.shape);
  }

  /// The product plus bias, rounded once from the float32 result.
  Tensor biased(const Node& node, std::span<const Tensor> inputs) {
    const Tensor& sums = inputs[0].node()->op == Op::Matmul ? inputs[0] : inputs[1];
    const DType type = sums.node()->input(0)->dtype;
    const Tensor low_precision =
        cast(make_node(node.op, node.dtype, node.shape, node.attrs, inputs), type);
    products_.insert(low_precision.node());
    rows_[{node.shape.numel(), node.shape.at(-1)}] = node.shape.at(-1);
    return cast(low_precision, node.dtype);
  }

  /// Pads an axis with zeros. The padding goes in front of a transposition, which the product reads
  /// by strides.
  Tensor padded(const Tensor& x, int axis, std::int64_t count) {
    if (Node* base = transposed(*x.node()); base != nullptr)
      return transpose(padded(Tensor(base), 1 - axis, count), 0, 1);
    Tensor& out = padded_[key_of_padded(x, axis)];
    if (!out.defined()) out = axis + 1 == x.rank() ? pad(x, {0, count}) : pad(x, {0, 0, 0, count});
    return out;
  }
  bool is_padded(const Tensor& x, int axis) const {
    if (Node* base = transposed(*x.node()); base != nullptr)
      return is_padded(Tensor(base), 1 - axis);
    return padded_.count(key_of_padded(x, axis)) != 0;
  }
  /// Source, rounded dtype and padded axis: each product may round differently.
  using PaddedKey = std::tuple<const Node*, DType, int>;
  static PaddedKey key_of_padded(const Tensor& x, int axis) {
    const Node& node = *x.node();
    const bool rounds = !node.realised() && node.op == Op::Cast;
    return {rounds ? node.input(0) : &node, x.dtype(), axis};
  }

  /// A product that reads rows with padded columns: a product of the logits' gradient.
  Tensor of_rows(const Node& node, std::span<const Tensor> inputs) {
    for (int k = 0; k < 2; ++k) {
      Node* original = transposed(*inputs[at(k)].node());
      const Tensor rows = original == nullptr ? inputs[at(k)] : Tensor(original);
      if (const auto known = whole_.find(rows.node());
          known != whole_.end() && is_short(rows.dtype()))
        return of_rows(node, inputs, k, rows.size(-1), known->second);
    }
    return {};
  }

  /// Operand `k`, possibly transposed, is a slice of `all`.
  Tensor of_rows(const Node& node, std::span<const Tensor> inputs, int k, std::int64_t classes,
                 const Tensor& all) {
    const std::int64_t columns = all.size(-1);
    const bool is_transposed = transposed(*inputs[at(k)].node()) != nullptr;
    const bool sums_columns = (k == 0) != is_transposed;
    Tensor operands[2] = {inputs[0], inputs[1]};
    Tensor& other = operands[1 - k];
    Shape shape = node.shape;
    if (sums_columns) {
      if (!is_zeroed(*all.node()) || !is_padded(other, k)) return {};
      other = padded(other, k, columns - classes);
    } else {
      if (!is_worth_cutting(node, inputs[0].size(-1))) return {};
      shape[k] = columns;
    }
    operands[k] = is_transposed ? transpose(all, 0, 1) : all;
    const Tensor out = make_node(Op::Matmul, node.dtype, shape, node.attrs, operands);
    return sums_columns ? out : slice(out, k, 0, classes);
  }

  bool is_worth_cutting(const Node& product, std::int64_t summed) const {
    return cuts_products_ && product.shape.rank() == 2 && summed >= kFewestSummed;
  }

  /// Rows that products may read: padded, rounded, with zeros in the padded columns.
  Tensor rounded(const Node& node, const Tensor& rows) {
    const Tensor& all = whole_.at(rows.node());
    Tensor out = cast(where(is_class(all, node.shape.at(-1)), all, 0), node.dtype);
    zeroed_.insert(out.node());
    return out;
  }
  bool is_zeroed(const Node& all) const {
    const bool reshaped = !all.realised() && all.op == Op::Reshape;
    return zeroed_.count(&all) != 0 || (reshaped && is_zeroed(*all.input(0)));
  }

  /// A mask that is true for real classes and false for padded columns.
  static Tensor is_class(const Tensor& all, std::int64_t classes) {
    return lt(broadcast_to(arange(0, all.size(-1), 1, DType::Int32), all.shape()), classes);
  }

  Tensor cut(const Tensor& all, const Shape& shape) {
    Tensor out = slice(all, -1, 0, shape.at(-1));
    whole_.emplace(out.node(), all);
    return out;
  }

  /// The node over `columns` columns; undefined if this would copy large values.
  Tensor grown(const Node& node, std::span<const Tensor> inputs, std::int64_t columns) {
    std::vector<Tensor> wide;
    wide.reserve(inputs.size());
    for (const Tensor& in : inputs) {
      wide.push_back(grown(in, columns));
      if (!wide.back().defined()) return {};
    }
    return make_node(node.op, node.dtype, with_columns(node.shape, columns), node.attrs, wide);
  }

  Tensor grown(const Tensor& x, std::int64_t columns) {
    if (const auto known = whole_.find(x.node()); known != whole_.end()) return known->second;
    if (const auto known = grown_.find(x.node()); known != grown_.end()) return known->second;
    Tensor out = grow(x, columns);
    kept_.push_back(x);
    grown_.emplace(x.node(), out);
    return out;
  }

  Tensor grow(const Tensor& x, std::int64_t columns) {
    const Node& node = *x.node();
    if (x.rank() == 0) return {};
    const Shape wide = with_columns(x.shape(), columns);
    const bool small = x.numel() == x.size(-1);
    if (node.realised()) return small ? padded_row(x, columns) : Tensor();
    if (node.op == Op::Constant || node.op == Op::Iota)
      return x.rank() == 1 || node.op == Op::Constant
                 ? make_node(node.op, x.dtype(), wide, node.attrs, {})
                 : Tensor();
    if (node.input_count == 0) return small ? padded_row(x, columns) : Tensor();
    const Shape& in = node.input(0)->shape;
    if (node.op == Op::Expand && (in.rank() == 0 || in.at(-1) == 1))
      return make_node(node.op, x.dtype(), wide, node.attrs, inputs_of(node));
    const bool keeps_rows = in.rank() > 0 && in.at(-1) == x.size(-1);
    const bool is_view = (node.op == Op::Reshape || node.op == Op::Expand) && keeps_rows;
    if (is_view || op_info(node.op).kind == OpKind::Elementwise)
      return grown(node, inputs_of(node), columns);
    return small ? padded_row(x, columns) : Tensor();
  }

  static std::vector<Tensor> inputs_of(const Node& node) {
    std::vector<Tensor> inputs;
    inputs.reserve(node.input_count);
    for (Node* in : node.in()) inputs.emplace_back(in);
    return inputs;
  }

  static Tensor padded_row(const Tensor& x, std::int64_t columns) {
    return pad(x, {0, columns - x.size(-1)});
  }

  /// Row values that are not computed from logits are padded in the same kernel.
  Tensor reduced(const Node& node, const Tensor& rows) {
    const std::int64_t classes = rows.size(-1);
    const auto found = rows_.find({rows.numel(), classes});
    if (found == rows_.end()) return {};
    const std::int64_t columns = found->second;
    const Tensor all = columns == classes ? rows : grown(rows, columns);
    if (!all.defined()) return {};
    if (node.op == Op::Sum)
      if (Tensor one = sum_of_one(*all.node(), classes); one.defined()) return one;
    if (columns == classes) return {};
    const double passed_over = node.op == Op::Sum ? 0 : -std::numeric_limits<double>::infinity();
    const Tensor masked = where(is_class(all, classes), all, passed_over);
    return make_node(node.op, node.dtype, node.shape, node.attrs, std::span(&masked, 1));
  }

  /// The sum of where(class == column, value, 0) over columns; undefined if the node is something
  /// else.
  Tensor sum_of_one(const Node& choice, std::int64_t classes) {
    if (choice.realised() || choice.op != Op::Where || !is_zero(*choice.input(2))) return {};
    const Node& hit = *choice.input(0);
    if (hit.realised() || hit.op != Op::Eq) return {};
    const bool ramp_first = is_ramp(hit.input(0));
    if (!ramp_first && !is_ramp(hit.input(1))) return {};
    const Tensor wanted = of_row(*hit.input(ramp_first ? 1 : 0));
    if (!wanted.defined()) return {};
    const Tensor known = logical_and(ge(wanted, 0), lt(wanted, classes));
    const Tensor value = at_column(Tensor(choice.input(1)), where(known, wanted, 0));
    return value.defined() ? where(known, value, 0) : Tensor();
  }

  static bool is_zero(const Node& node) {
    return !node.realised() && node.op == Op::Constant &&
           node.attrs.as<ConstantAttrs>().value.real() == 0;
  }
  /// Whether the node is 0, 1, 2 … along each row.
  static bool is_ramp(const Node* node) {
    const std::int64_t columns = node->shape.at(-1);
    while (!node->realised() && (node->op == Op::Expand || node->op == Op::Reshape) &&
           node->input(0)->shape.rank() > 0 && node->input(0)->shape.at(-1) == columns)
      node = node->input(0);
    return !node->realised() && node->op == Op::Iota && node->shape.rank() == 1;
  }
  /// The one value of each row, [.., 1]; undefined if values vary along a row.
  static Tensor of_row(const Node& node) {
    if (node.realised() || node.op != Op::Expand) return {};
    const Node& base = *node.input(0);
    return base.shape == with_columns(node.shape, 1) ? Tensor(node.input(0)) : Tensor();
  }

  /// The vector shared by all rows (a bias); undefined if rows differ.
  static Tensor of_classes(const Tensor& x) {
    Node* node = x.node();
    const std::int64_t columns = x.size(-1);
    while (!node->realised() && (node->op == Op::Expand || node->op == Op::Reshape) &&
           node->shape.numel() != columns && node->input(0)->shape.rank() > 0 &&
           node->input(0)->shape.at(-1) == columns)
      node = node->input(0);
    return node->shape.numel() == columns ? reshape(Tensor(node), {columns}) : Tensor();
  }

  /// Element `column` [.., 1] of each row, computed as the row is; undefined if this needs more
  /// than the logits.
  Tensor at_column(const Tensor& x, const Tensor& column) {
    const Node& node = *x.node();
    const Shape shape = with_columns(x.shape(), 1);
    if (products_.count(&node) != 0) return gather(x, -1, column);
    if (node.realised() || node.input_count == 0)
      return !node.realised() && node.op == Op::Constant
                 ? make_node(node.op, x.dtype(), shape, node.attrs, {})
                 : Tensor();
    if (const auto known = whole_.find(&node); known != whole_.end())
      return at_column(known->second, column);
    if (Tensor same = of_row(node); same.defined()) return same;
    if (const Tensor row = of_classes(x); row.defined())
      return reshape(gather(row, 0, reshape(column, {column.numel()})),
                     Ints(shape.begin(), shape.end()));
    if (op_info(node.op).kind != OpKind::Elementwise) return {};
    std::vector<Tensor> inputs = inputs_of(node);
    for (Tensor& in : inputs) {
      in = at_column(in, column);
      if (!in.defined()) return {};
    }
    return make_node(node.op, x.dtype(), shape, node.attrs, inputs);
  }

  const std::unordered_set<const Node*> scores_;
  // whether rows or columns of a product's result are classes, so that it is sliced
  const bool cuts_products_;
  std::unordered_set<const Node*> products_;  // that produce logits
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      rows_;  // by total number of columns and number of classes
  std::map<PaddedKey, Tensor> padded_;
  std::unordered_map<const Node*, Tensor> whole_;  // padded tensors by the slice taken from them
  std::unordered_set<const Node*> zeroed_;  // padded tensors with zeros in the padded columns
  // padded versions of other nodes: numbers, ramps, broadcasts
  std::unordered_map<const Node*, Tensor> grown_;
  std::vector<Tensor> kept_;  // keeps the keys of grown_ alive
};

}  // namespace

Roots pad_logit_rows(Roots roots, const PlanOptions& options) {
  std::unordered_set<const Node*> scores = find_scores(roots);
  if (scores.empty()) return roots;
  RowConverter converter(std::move(scores), options.traits.has_product_library);
  return rewrite(roots, [&converter](Node& node, std::span<const Tensor> inputs) {
    return converter.rule(node, inputs);
  });
}

}  // namespace tenon
