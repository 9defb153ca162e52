// Adds gradients. Zero-padded gradients of disjoint slices become one concatenation.
#include "grad/sum.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"

namespace tenon {
namespace {

/// A zero padding along one axis only: the original is at [start, end) of the axis.
struct Piece {
  Tensor inner;
  int axis = -1;
  std::int64_t start = 0, end = 0;
};

bool as_piece(const Tensor& x, Piece& piece) {
  const Node& node = *x.node();
  if (node.op != Op::Pad || node.realised()) return false;
  const auto& margin = node.attrs.as<PadAttrs>();
  if (!margin.value.is_zero()) return false;
  piece.axis = -1;
  for (int a = 0; a < node.shape.rank(); ++a) {
    if (margin.before[a] == 0 && margin.after[a] == 0) continue;
    if (piece.axis >= 0) return false;
    piece = {Tensor(node.input(0)), a, margin.before[a], node.shape[a] - margin.after[a]};
  }
  return piece.axis >= 0;
}

/// Pieces along one axis, by start, without overlap.
using Layer = std::map<std::int64_t, Piece>;

Tensor laid_out(const Layer& layer, const Shape& shape) {
  const int axis = layer.begin()->second.axis;
  std::vector<Tensor> row;
  std::int64_t end = layer.begin()->first;
  for (const auto& [start, piece] : layer) {
    if (start != end) {
      Shape gap = shape;
      gap[axis] = start - end;
      row.push_back(zeros(gap, piece.inner.dtype()));
    }
    row.push_back(piece.inner);
    end = piece.end;
  }
  Ints margin(static_cast<std::size_t>(2 * (shape.rank() - axis)), 0);
  margin[margin.size() - 2] = layer.begin()->first;
  margin[margin.size() - 1] = shape[axis] - end;
  return pad(concat(row, axis), margin);
}

bool is_free(const Layer& layer, const Piece& piece) {
  if (layer.begin()->second.axis != piece.axis) return false;
  const auto after = layer.lower_bound(piece.start);
  if (after != layer.end() && after->first < piece.end) return false;
  return after == layer.begin() || std::prev(after)->second.end <= piece.start;
}

}  // namespace

Tensor sum_of(std::span<const Tensor> parts) {
  constexpr std::size_t kLayers = 8;  // layers searched for free space
  std::vector<Tensor> terms;
  std::vector<Layer> layers;
  for (const Tensor& part : parts) {
    Piece piece;
    if (parts.size() == 1 || !as_piece(part, piece)) {
      terms.push_back(part);
      continue;
    }
    const auto first = layers.end() - static_cast<std::ptrdiff_t>(std::min(layers.size(), kLayers));
    const auto free = std::find_if(first, layers.end(),
                                   [&](const Layer& layer) { return is_free(layer, piece); });
    (free == layers.end() ? layers.emplace_back() : *free).emplace(piece.start, piece);
  }
  for (const Layer& layer : layers) terms.push_back(laid_out(layer, parts[0].shape()));
  Tensor total = terms[0];
  for (std::size_t k = 1; k < terms.size(); ++k) total = add(total, terms[k]);
  return total;
}

}  // namespace tenon
