// The flag of the thread, and the labels of the nodes of a gradient.
#include <utility>

#include <tenon/anomaly.h>

#include "base/str.h"
#include "graph/gradient_label.h"
#include "graph/node.h"

namespace tenon {
namespace {

thread_local bool t_detects = false;

}  // namespace

DetectAnomaly::DetectAnomaly() noexcept : before_(std::exchange(t_detects, true)) {}
DetectAnomaly::~DetectAnomaly() { t_detects = before_; }
bool DetectAnomaly::is_on() noexcept { return t_detects; }

NoAnomalyDetection::NoAnomalyDetection() noexcept : before_(std::exchange(t_detects, false)) {}
NoAnomalyDetection::~NoAnomalyDetection() { t_detects = before_; }

std::uint32_t gradient_label(const Node& node, const char* op_name) {
  if (!t_detects) return node.label;
  const std::string& layer = label_text(node.label);
  return intern_label(cat(layer, layer.empty() ? "" : ", ", "gradient of ", op_name));
}

}  // namespace tenon
