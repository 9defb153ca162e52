// Plans of small graphs for both backends, without a device.
#pragma once

#include <tenon/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "device/backend.h"
#include "graph/node.h"
#include "graph/order.h"
#include "plan/program/program.h"
#include "plan/program/tune.h"

namespace tenon::test {

inline Tensor leaf(const Shape& shape, DType dtype = DType::Float32) {
  return cast(
             Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.5f), shape),
             dtype)
      .compute();
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The number of arena values with this many elements and this dtype.
inline int stored(const Program& program, std::int64_t elements, DType dtype) {
  return static_cast<int>(
      std::count_if(program.values.begin(), program.values.end(), [&](const Value& value) {
        return value.kind == Value::Kind::Arena && value.shape.numel() == elements &&
               value.dtype == dtype;
      }));
}

struct Settings {
  Device::Kind kind = Device::Kind::Cuda;
  PassSet disabled = {};
  bool checks_passes = true;
  bool convolves_channels_last = false;  // a GPU with cuDNN
  bool has_product_library = false;      // a GPU with cuBLASLt
  std::int64_t memory_limit = 0;
  std::int64_t device_memory = 0;
  Tuning* tuning = nullptr;  // advice about engines; null: none
};

inline std::shared_ptr<const Program> planned(const std::vector<Tensor>& roots,
                                              Settings settings = {}) {
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  std::vector<const Engine*> engines;
  if (settings.kind == Device::Kind::Cuda) {
    const auto of_gpu = cuda::engines(cuda::Target());
    engines.assign(of_gpu.begin(), of_gpu.end());
  } else {
    const auto of_host = cpu::backend().engines(0, false);
    engines.assign(of_host.begin(), of_host.end());
  }
  PlanOptions options;
  options.device = {settings.kind, 0};
  options.traits =
      (settings.kind == Device::Kind::Cuda ? cuda::backend() : cpu::backend()).traits();
  options.traits.convolves_channels_last = settings.convolves_channels_last;
  options.traits.has_product_library = settings.has_product_library;
  options.engines = engines;
  options.disabled = settings.disabled;
  options.checks_passes = settings.checks_passes;
  options.memory_limit = settings.memory_limit;
  options.device_memory = settings.device_memory;
  options.tuning = settings.tuning;
  return plan_program(roots, leaves, options);
}

}  // namespace tenon::test
