// A convolution, or one of its gradients, as an execution plan of cuDNN.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/shape.h>

#include "cuda/engines/vendor/cudnn_api.h"
#include "cuda/target.h"
#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon::cuda {

/// y[N, K, P, Q] of x[N, C, H, W] and w[K, C/g, R, S], all contiguous in the written order or all
/// in NHWC. Forward computes y; the gradients compute x or w from the other two.
struct CudnnConvolution {
  Op op = Op::Conv2d;
  ConvAttrs attrs;
  Shape x, w, y;
  DType operands = DType::Float32, result = DType::Float32;
  bool tf32 = false;
  bool channels_last = false;
  bool bias = false, relu = false;  // forward only: bias[K], float32
  bool large = false;               // by a plan whose workspace is large

  bool operator<(const CudnnConvolution& other) const { return words() < other.words(); }

 private:
  /// All fields, as a key.
  std::array<std::int64_t, 23> words() const;
};

/// A descriptor of the library, owned.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = nullptr;
  }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set_int(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int value) {
    set(name, type, 1, &value);
  }
  void set_descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  cudnnStatus_t finalize();

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// A plan that the heuristics propose: deterministic, with the requested precision, and with a
/// workspace of at most 64 MiB; for `large` up to a share of the GPU's memory.
class CudnnPlan {
 public:
  /// The plan of this rank. Throws NotSupported if there is none.
  CudnnPlan(const Target& target, const CudnnConvolution& convolution, int rank);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void run(void* stream, const void* x, const void* w, const void* y, const void* bias,
           void* workspace) const;

 private:
  bool take(const Target& target, CudnnDescriptor& config, const CudnnConvolution& convolution,
            bool compile);

  int ordinal_;
  bool bias_;
  std::shared_ptr<const void> operations_;  // the plan refers to these
  std::unique_ptr<CudnnDescriptor> graph_, config_, plan_;
  std::size_t workspace_bytes_ = 0;
};

/// Loads the parts of the library that every plan needs, so that the first real request is fast. An
/// error here recurs at that request.
void start_cudnn(const Target& target) noexcept;

/// The plan of this rank, made once for all equal convolutions: networks repeat convolutions, and
/// the library takes milliseconds for each plan.
std::shared_ptr<const CudnnPlan> shared_plan(const Target& target,
                                             const CudnnConvolution& convolution, int rank);
/// Makes the plan on a worker, for a later request.
void prefetch_plan(const Target& target, const CudnnConvolution& convolution, int rank);

}  // namespace tenon::cuda
