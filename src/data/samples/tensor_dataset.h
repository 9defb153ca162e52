// A dataset in two tensors, input and target. All formats that are read completely use it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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
  std::shared_ptr<const TableColumns> table{};  ///< for rows of a table
  std::int64_t views = 1;                       ///< views per sample: axis 1 of the input
  /// Origin of sample `number` of the source, and the number of each row. Empty: as in
  /// Provenance::sample_name(), and the row's own number.
  std::function<std::string(std::int64_t number)> place{};
  std::vector<std::int64_t> numbers{};
  Notes notes{};
  /// Rows of the tensors that are samples, in order; unset: all. Parts of a source share its
  /// tensors.
  std::optional<std::vector<std::int64_t>> rows{};

  std::int64_t size() const { return rows ? std::ssize(*rows) : input.shape()[0]; }
};

/// Checks that the members are consistent: throws ShapeError or ValueError with the description.
std::shared_ptr<Dataset> make_tensor_dataset(TensorDatasetParts parts);

/// Labels as int64 [N]. Throws if a label is negative or not below `classes`; counts the classes if
/// that is 0. `what` begins the message, which counts samples from 1, as Dataset::sample_name().
Tensor class_targets(const Tensor& labels, std::int64_t& classes, const std::string& what);

/// Maps labels that are class names, such as 10 and 20 or -1 and 1, to class numbers: the distinct
/// values in ascending order. Empty `values` are filled from `labels`; otherwise a label that is
/// not in `values` is a ValueError, which names the sample by `unit`: "row". kIgnoredTarget is
/// kept.
Tensor valued_targets(const Tensor& labels, std::vector<std::int64_t>& values,
                      const std::string& what, const char* unit);
/// Names of these classes, and a note on their numbering; none if the labels are 0, 1, 2 …
void name_by_values(TensorDatasetParts& set, const std::vector<std::int64_t>& values,
                    const std::string& what);

/// The rows of one part of the split; no rows if the part does not exist. Rows with equal `groups`
/// stay together; `groups` is empty if split.group is not set. The tensors remain those of the
/// whole set.
TensorDatasetParts part_of(const TensorDatasetParts& set, Split part, const SplitOptions& split,
                           std::vector<std::int64_t> groups = {});
/// The same with given rows.
TensorDatasetParts rows_of(const TensorDatasetParts& set, std::vector<std::int64_t> rows,
                           const Notes& notes);

/// make_tensor_dataset(), or nullptr if there are no rows.
std::shared_ptr<Dataset> part_or_null(TensorDatasetParts parts);

/// Notes the classes of the training set that a separate test set lacks.
void add_lacking_classes(TensorDatasetParts& test, const TensorDatasetParts& train,
                         const std::string& name);

/// Integers of a tensor [N]. Throws DTypeError that begins with `what`.
std::vector<std::int64_t> whole_numbers(const Tensor& numbers, const std::string& what);

}  // namespace tenon::data
