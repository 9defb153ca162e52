// A set whose examples lie in two tensors. What is read from files ends up here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

struct TensorDatasetParts {
  Tensor input;   ///< [N, …]
  Tensor target;  ///< int64 [N] for classes, else any [N, …]
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  ///< empty: the numbers
  std::string description;
  std::shared_ptr<const TableColumns> table{};  ///< of rows of a table
  std::int64_t views = 1;                       ///< of what an example shows: axis 1 of the input
  Notes notes{};                                ///< Dataset::notes()
};

/// Checks that the parts belong together: throws ShapeError or ValueError naming the description.
std::shared_ptr<Dataset> make_tensor_dataset(TensorDatasetParts parts);

/// Labels as int64 [N]. Throws when one is negative or not below `classes`; counts the classes when
/// that is 0.
Tensor class_targets(const Tensor& labels, std::int64_t& classes, const std::string& what);

/// Examples for a split of a set that has no test set of its own: every tenth is for testing.
TensorDatasetParts split_parts(const TensorDatasetParts& parts, Split split);

}  // namespace tenon::data
