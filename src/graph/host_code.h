// Host code and own kernels in a graph (tenon/host_call.h, tenon/cuda_kernel.h): the leaf that
// holds host code, and the attributes of a call.
//
// The code is a leaf and not an attribute, because leaves are bound at every run: a plan serves all
// calls that differ in their code only, and a body of a loop takes the code as a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/cuda_kernel.h>
#include <tenon/host_call.h>

#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

/// The dtypes and shapes of a call's results.
struct HostCallTypes {
  std::vector<TensorType> types;
};

/// The kernel of a call, and the key of its source and its launch. Unlike host code it is a part of
/// the program's key: a plan holds its compiled form.
struct OwnKernelCode {
  CudaKernel kernel;
  GraphKey key;
};
std::shared_ptr<const OwnKernelCode> own_kernel_code(CudaKernel kernel);

/// The attributes of a call; `name` is interned. Without a kernel: of a call of host code.
HostCallAttrs host_call_attrs(std::uint64_t name, HostCallTypes types,
                              std::shared_ptr<const OwnKernelCode> kernel = nullptr);

/// Whether any of these tensors has elements; a kernel is not launched if none of its results has.
bool has_elements(const std::vector<TensorType>& types);

/// The name of an own operation. Throws ValueError if it is empty or has several lines.
const std::string& checked_operation_name(const std::string& name);

/// The op's name as errors and plans show it: for a call, the name that the call was given. It
/// lives as long as the process.
const char* shown_name(Op op, const Attrs& attrs);

/// A leaf in host memory that owns the code. Its element is the code's address.
Tensor code_leaf(HostCode code);
/// The code of such a leaf, whose value is at `element`. It lives as long as the leaf.
const HostCode& code_at(const std::byte* element);

}  // namespace tenon
