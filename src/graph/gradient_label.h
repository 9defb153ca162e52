// What DetectAnomaly (tenon/anomaly.h) changes while graphs are built.
#pragma once

#include <cstdint>

namespace tenon {

struct Node;

/// The label of the nodes that compute the gradient through `node`: the node's own, or while
/// anomalies are detected one that also names the op.
std::uint32_t gradient_label(const Node& node, const char* op_name);

/// While it lives, the thread detects no anomalies: for the search itself.
class NoAnomalyDetection {
 public:
  NoAnomalyDetection() noexcept;
  ~NoAnomalyDetection();
  NoAnomalyDetection(const NoAnomalyDetection&) = delete;
  NoAnomalyDetection& operator=(const NoAnomalyDetection&) = delete;

 private:
  const bool before_;
};

}  // namespace tenon
