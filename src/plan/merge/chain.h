// Chains: steps that hand values on, run one after another for a few samples at a time, so that
// what they hand on is still in cache when it is read.
//
// A convolution and the pooling behind it; a pooling's gradient and the gradient of the filters
// before it. What nobody else reads is never a whole tensor: it stands in the step's workspace, a
// slice at a time. Where a pooling's gradient reads what a convolution of few taps made, that is
// computed again rather than kept (rematerialisation; Griewank and Walther, "Algorithm 799", 2000).
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// How a part of a chain meets a value: a piece of so many bytes a sample, or (0) the whole of it
/// for every slice.
struct ChainAccess {
  ValueId value = kNoValue;
  std::int64_t sample_bytes = 0;
};

/// Lists what the part reads and writes while slices run. Null, or why it cannot run slice by slice
/// of `samples` entries of the first axis. The epilogue of a weight gradient is left out: it runs
/// after all slices, on their sum.
const char* list_accesses(const Region& part, std::span<const Value> values, std::int64_t samples,
                          std::vector<ChainAccess>& out);

/// The part for fewer samples. `values` takes the shapes that go with it.
Region narrowed(const Region& part, std::int64_t samples, std::span<Value> values);

}  // namespace tenon
