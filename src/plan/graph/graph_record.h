// A compact copy of the graph that a program was planned from, for Plan::graph(). It is stored as
// numbers: most plans are never printed, and building text for all nodes would take a tenth of the
// planning time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/number.h>
#include <tenon/tensor.h>

#include "graph/order.h"

namespace tenon {

class GraphRecord {
 public:
  GraphRecord() = default;
  explicit GraphRecord(const NumberedOrder& order);

  int node_count() const { return static_cast<int>(lines_.size()); }
  /// Bytes of memory that the record occupies.
  std::int64_t bytes() const;
  /// One line for each node, inputs before users: "%2 = mul(%0,%1) float32[64, 10]  # scale".
  /// `indent` is put in front of each line.
  std::string text(const std::string& indent) const;

 private:
  struct Line {
    std::uint32_t label = 0;
    Op op{};
    DType dtype{};
    std::uint8_t rank = 0, inputs = 0;
    bool is_constant = false;
  };
  std::vector<Line> lines_;
  // The sizes of all shapes, one shape after another.
  std::vector<std::int64_t> sizes_;
  std::vector<std::uint32_t> inputs_;
  std::vector<Scalar> constants_;
};

}  // namespace tenon
