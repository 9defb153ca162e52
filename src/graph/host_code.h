// Host code in a graph (tenon/host_call.h): the leaf that holds it, and the attributes of a call.
//
// The code is a leaf and not an attribute, because leaves are bound at every run: a plan serves all
// calls that differ in their code only, and a body of a loop takes the code as a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/host_call.h>

#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

/// The dtypes and shapes of a call's results.
struct HostCallTypes {
  std::vector<TensorType> types;
};

/// The attributes of a call; `name` is interned.
HostCallAttrs host_call_attrs(std::uint64_t name, HostCallTypes types);

/// The op's name as errors and plans show it: for a call, the name that the call was given. It
/// lives as long as the process.
const char* shown_name(Op op, const Attrs& attrs);

/// A leaf in host memory that owns the code. Its element is the code's address.
Tensor code_leaf(HostCode code);
/// The code of such a leaf, whose value is at `element`. It lives as long as the leaf.
const HostCode& code_at(const std::byte* element);

}  // namespace tenon
