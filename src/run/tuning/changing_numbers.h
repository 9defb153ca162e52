// Numbers of a graph that change from step to step, as in `loss * (1 + 0.001 * k)` or `x[k]`.
//
// A number is a constant of the plan, so another number is another plan. A number that has changed
// twice becomes a leaf instead, and one plan serves all its values. Results have the same bits as
// those of a plan with the number built in: constants that are computed from numbers alone are
// folded on the host, as fold_constants does, and planner rules that depend on a constant accept
// such a leaf (Node::is_number). A value with a rule of its own is built in: zero, and a divisor of
// a sum that equals the number of summands.
//
// The first row of a slice of a tensor that has a value is such a number too. The slice becomes the
// leaf: a window of the tensor's memory, or a copy if the window would not be aligned.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tenon/number.h>
#include <tenon/tensor.h>

#include "graph/order.h"
#include "run/caches.h"

namespace tenon {

/// Whether a node is a slice of rows of a value that does not change: its first row is a number.
bool is_slice_of_rows(const Node& node) noexcept;

/// The values that the numbers of one graph had so far, as words.
class NumberHistory {
 public:
  /// Records the numbers of an evaluation. Returns which of them are leaves, if any is.
  std::optional<std::vector<char>> note(std::span<const std::uint64_t> numbers);
  /// Makes these numbers constants from now on.
  void build_in(std::span<const std::uint32_t> numbers) noexcept;
  std::int64_t bytes() const noexcept;

 private:
  std::vector<std::uint64_t> last_;
  std::vector<char> changes_, leaves_;
};

/// A graph in which some numbers are leaves, and the host computation of these leaves' values.
class ChangingNumbers {
 public:
  struct Graph {
    std::vector<Tensor> roots;
    NumberedOrder order;
    std::vector<Node*> leaves;
  };
  /// `order`: all nodes of the graph of `roots`. `leaves`: which of its numbers become leaves, in
  /// this order. Returns null if a number is part of a value that can only be a constant, a 16-bit
  /// or bool value; `unfit` then has these numbers.
  static std::shared_ptr<const ChangingNumbers> make(const NumberedOrder& order,
                                                     std::span<const Tensor> roots,
                                                     std::span<const char> leaves, Device device,
                                                     Graph& graph,
                                                     std::vector<std::uint32_t>& unfit);

  /// The values of the leaves for a graph of the same form. If a value must be built in, the result
  /// is empty, and the numbers that it is computed from are in `unfit`.
  std::vector<Tensor> values(const NumberedOrder& order, Device device,
                             std::vector<std::uint32_t>& unfit) const;
  /// The leaves of `graph` by slot: those of the original graph and the values.
  std::vector<Node*> leaves(std::span<Node* const> own, std::span<const Tensor> values) const;

 private:
  class Maker;
  // A constant, or a value folded from constants.
  struct Step {
    std::uint32_t node = 0;
    std::int32_t in[2] = {-1, -1};  // earlier steps
    std::int32_t number = -1;       // number of the constant, if it is a leaf
  };
  struct Leaf {
    std::int32_t step = 0;
    std::int64_t summands = 0;  // number of summands, if the leaf divides a sum; otherwise 0
  };
  // Adds the numbers that a step is computed from.
  void add_numbers(std::int32_t step, std::vector<std::uint32_t>& numbers) const;
  std::vector<Step> steps_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> slices_;  // nodes; their leaves come after the other leaves
  std::vector<std::int32_t> source_;   // of each slot: a leaf of the original graph, or ~leaf
};

}  // namespace tenon
