// cuBLAS as the reference for speed: loaded at run time, so that the ladder builds and runs without
// it.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

namespace lab {

enum class Element { Float32, BFloat16 };

struct Product {
  int m, n, k;
  Element element;
  bool trans_a = false;  // A stored [k, m]
  bool trans_b = false;  // B stored [n, k]
  bool operator==(const Product&) const = default;
};

class Vendor {
 public:
  Vendor();
  ~Vendor();
  Vendor(const Vendor&) = delete;
  Vendor& operator=(const Vendor&) = delete;

  bool ready() const;
  const std::string& version() const;  // or why it is not ready
  /// Row-major C = A · B by cublasGemmEx with its own choice of kernel; float sums, no tf32.
  bool gemm(const Product& p, const void* a, const void* b, void* c, cudaStream_t stream);
  /// The same by cublasLt with the fastest of the algorithms that its heuristic proposes (up to 8),
  /// timed on the first call for a product.
  bool tuned_gemm(const Product& p, const void* a, const void* b, void* c, cudaStream_t stream);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lab
