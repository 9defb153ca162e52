// Calls of host code for each matrix of a batch.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/host_call.h>

#include "base/make_error.h"
#include "graph/called.h"
#include "linalg/lapack.h"
#include "linalg/matrix.h"
#include "ops/infer.h"

namespace tenon::linalg {

using Inputs = std::span<const HostInput>;
using Outputs = std::span<const HostOutput>;

/// The part of an array that belongs to matrix k of a batch.
template <class T>
const T* part(const HostInput& array, std::int64_t k, std::int64_t count) {
  return array.values<T>().data() + k * (array.numel() / count);
}
template <class T>
T* part(const HostOutput& array, std::int64_t k, std::int64_t count) {
  return array.values<T>().data() + k * (array.numel() / count);
}

/// The shape with its last `axes` axes replaced by these sizes.
inline Shape with_last(const Shape& shape, int axes, const Ints& sizes) {
  Ints all(shape.begin(), shape.end() - axes);
  all.insert(all.end(), sizes.begin(), sizes.end());
  return Shape(all.data(), static_cast<int>(all.size()));
}

/// Results of `run(T(), inputs, outputs)`, whose T is the element type of the first input. The
/// operation has the name that the user called (Called).
template <class Run>
std::vector<Tensor> call(std::vector<Tensor> inputs, std::vector<TensorType> results, Run run) {
  const OpPlace place = where("linalg");
  if (const std::string& problem = lapack_problem(); !problem.empty())
    throw make_error<NotSupported>(place, ": ", problem);
  const DType dtype = inputs[0].dtype();
  return host_call(place.operation, inputs, std::move(results),
                   [run, dtype](Inputs in, Outputs out) {
                     with_element(dtype, [&](auto element) { run(element, in, out); });
                   });
}

/// Calls a routine twice: for the size of its workspace, then with the workspace.
template <class T, class Call>
int with_workspace(Call call) {
  int info = 0, size = -1;
  T wanted{};
  call(&wanted, &size, &info);
  if (info != 0) return info;
  size = std::max(1, static_cast<int>(wanted));
  std::vector<T> work(static_cast<std::size_t>(size));
  call(work.data(), &size, &info);
  return info;
}

}  // namespace tenon::linalg
