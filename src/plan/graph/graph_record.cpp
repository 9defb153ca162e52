// Packing nodes into numbers, and printing the numbers as text.
#include "plan/graph/graph_record.h"

#include "base/str.h"
#include "graph/order.h"
#include "ops/table.h"

namespace tenon {

GraphRecord::GraphRecord(const NumberedOrder& order) {
  lines_.reserve(order.nodes.size());
  for (const Node* node : order.nodes) {
    Line line{node->label, node->op, node->dtype, static_cast<std::uint8_t>(node->shape.rank())};
    sizes_.insert(sizes_.end(), node->shape.begin(), node->shape.end());
    if (!node->realised()) {
      for (const Node* in : node->in()) inputs_.push_back(order.index[in]);
      line.inputs = node->input_count;
      line.is_constant = node->op == Op::Constant;
      if (line.is_constant) constants_.push_back(node->attrs.as<ConstantAttrs>().value);
    }
    lines_.push_back(line);
  }
}

std::int64_t GraphRecord::bytes() const {
  return static_cast<std::int64_t>(
      lines_.capacity() * sizeof(Line) + sizes_.capacity() * sizeof sizes_[0] +
      inputs_.capacity() * sizeof inputs_[0] + constants_.capacity() * sizeof(Scalar));
}

std::string GraphRecord::text(const std::string& indent) const {
  std::string all;
  auto input = inputs_.begin();
  auto constant = constants_.begin();
  auto size = sizes_.begin();
  for (std::size_t k = 0; k < lines_.size(); ++k) {
    const Line& line = lines_[k];
    all += cat(indent, "%", k, " = ", op_info(line.op).name);
    for (int i = 0; i < line.inputs; ++i) all += cat(i == 0 ? "(%" : ",%", *input++);
    if (line.inputs > 0) all += ')';
    if (line.is_constant) all += cat(" ", *constant++);
    Shape shape;
    for (int d = 0; d < line.rank; ++d) shape.push_back(*size++);
    all += cat(" ", line.dtype, shape);
    if (line.label != 0) all += cat("  # ", label_text(line.label));
    all += '\n';
  }
  return all;
}

}  // namespace tenon
