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
  std::shared_ptr<const TableColumns> table{};  ///< of rows of a table
  std::int64_t views = 1;                       ///< of what a sample shows: axis 1 of the input
  /// Where sample `number` of the source comes from, and of each row here that number. Empty: as
  /// Dataset::sample_name() says, and the row's own number.
  std::function<std::string(std::int64_t number)> place{};
  std::vector<std::int64_t> numbers{};
  Notes notes{};
  /// Which rows of the tensors are the samples, in order; unset: all. Parts of a source share its
  /// tensors.
  std::optional<std::vector<std::int64_t>> rows{};

  std::int64_t size() const { return rows ? std::ssize(*rows) : input.shape()[0]; }
};

/// Checks that the parts belong together: throws ShapeError or ValueError naming the description.
std::shared_ptr<Dataset> make_tensor_dataset(TensorDatasetParts parts);

/// Labels as int64 [N]. Throws when one is negative or not below `classes`; counts the classes when
/// that is 0.
Tensor class_targets(const Tensor& labels, std::int64_t& classes, const std::string& what);

/// Labels that are names of classes, as 10 and 20 or -1 and 1 are: each value that there is becomes
/// a class, in the order of values. `values` empty: those of `labels`, which it gets; else a label
/// that is none of them is a ValueError. kIgnoredTarget stays as it is.
Tensor valued_targets(const Tensor& labels, std::vector<std::int64_t>& values,
                      const std::string& what);
/// Names of such classes, and a note that says how they are numbered; none where the labels are the
/// numbers themselves, from 0 on.
void name_by_values(TensorDatasetParts& set, const std::vector<std::int64_t>& values,
                    const std::string& what);

/// The rows of one part, divided as `split` says; no rows where there is no such part. `groups` are
/// any numbers, equal ones of which stay together; empty where split.group says nothing. The
/// tensors stay those of the set.
TensorDatasetParts part_of(const TensorDatasetParts& set, Split part, const SplitOptions& split,
                           std::vector<std::int64_t> groups = {});
/// The same where it is known which rows those are.
TensorDatasetParts rows_of(const TensorDatasetParts& set, std::vector<std::int64_t> rows,
                           const Notes& notes);

/// make_tensor_dataset(), and nullptr where there are no rows.
std::shared_ptr<Dataset> part_or_null(TensorDatasetParts parts);

/// Notes which classes of the training set a test set from other files lacks.
void add_lacking_classes(TensorDatasetParts& test, const TensorDatasetParts& train,
                         const std::string& name);

/// Whole numbers of a tensor [N]. Throws DTypeError that begins with `what`.
std::vector<std::int64_t> whole_numbers(const Tensor& numbers, const std::string& what);

}  // namespace tenon::data
