// The graph of a traced function as a record: JSON that names operations, dtypes and attributes.
// The format is described in docs/programs.md.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/io.h>
#include <tenon/tensor.h>

#include "io/text/json.h"
#include "programs/traced_function.h"

namespace tenon {

/// The names of the tensors that a function reads. Filled by the first record that is written;
/// records of other batch sizes must read the same tensors.
class WeightNames {
 public:
  /// The name of a leaf that has a value. Throws ShapeError for a leaf that the first record had
  /// with another value, and ValueError for one without memory.
  std::string name_of(const Tensor& leaf);
  /// Begins a record for another batch size.
  void begin_next_size() { next_ = 0; }
  io::TensorMap tensors() const;

 private:
  std::string new_name(const Tensor& leaf);
  std::vector<std::pair<std::string, Tensor>> all_{};
  std::unordered_set<std::string> taken_{};
  std::unordered_map<std::string, int> counts_{};  // of names that end in a number
  std::size_t next_ = 0;
};

/// Throws NotSupported for an operation that a program cannot hold, also in bodies.
io::Json record_of(const TracedFunction& traced, WeightNames& names);

}  // namespace tenon
