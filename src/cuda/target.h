// Target: what device kernels are made for. Pure data, so that plans and sources can be made and
// tested where there is no card.
#pragma once

#include <cstdint>

namespace tenon::cuda {

struct Target {
  bool operator==(const Target&) const = default;

  int ordinal = -1;  // the card; -1: none, kernels are printed and never compiled or run
  int arch = 90;     // ten times the compute capability: 80, 90, 100, …
  int multiprocessors = 132;
  std::int64_t shared_bytes = 227 * 1024;  // shared memory that one block may ask for
  std::int64_t memory_bytes = 0;           // of the card; 0: unknown
  std::int64_t l2_bytes = std::int64_t{50} << 20;
  int launch_bytes = 32764;  // of arguments that a launch may take
  bool cublaslt = false;     // vendor libraries that were found
  bool cudnn = false;
};

}  // namespace tenon::cuda
