// The second launch of a weight gradient: adds the partial results in order and passes the sums to
// the epilogue (cuda/kernels/conv/conv_sum.cuh).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/engines/maps/print_map.h"
#include "cuda/jit/jit.h"
#include "cuda/kernels/conv/conv_args.cuh"
#include "plan/program/engine.h"

namespace tenon::cuda {

class PartialSums {
 public:
  /// For `splits` float32 partial results of rows x columns at the start of the workspace.
  PartialSums(const Target& target, const PrintedEpilogue& epilogue, std::int64_t rows,
              std::int64_t columns, std::int64_t splits);
  /// The workspace of both launches in bytes.
  std::size_t bytes() const { return bytes_; }
  static float* partials(const Binding& binding) {
    return reinterpret_cast<float*>(binding.workspace);
  }
  void run(const Binding& binding) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  EpilogueArguments epilogue_;
  ConvSum sum_;
  Grid grid_;
  std::size_t bytes_ = 0;
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace tenon::cuda
