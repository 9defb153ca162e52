// Splits the samples of a source into training, validation and test parts.
//
// One function serves every kind of source. The split depends only on the options, the number of
// samples, and their classes and groups: never on the order of calls, on threads or on the machine.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The part of each sample; nullopt: in no part, such as samples after the test part of a
/// chronological fold.
using Parts = std::vector<std::optional<Split>>;

/// Class, group and unit of each sample, by number; empty if there are none. Samples of a unit
/// (such as rows about one file) stay together: a unit counts as one sample with the class and
/// group of its first sample.
struct SampleMarks {
  std::vector<std::int64_t> classes{}, groups{}, units{};
};

/// Assigns a part to each sample. With `options.test` 0 and no folds there is no test part. Every
/// requested part gets at least one sample; if fewer than three samples (or groups) remain, there
/// is no validation part. With stratification at least one sample of each class stays in training.
/// Throws ValueError that begins with `name` if options contradict each other or leave a part
/// empty.
Parts divide(const SplitOptions& options, std::int64_t samples, const SampleMarks& marks,
             const std::string& name);

/// The samples of `part` in source order; all samples for Split::All.
std::vector<std::int64_t> samples_of(const Parts& parts, Split part);

/// Facts about the samples of a source before a part is opened.
struct Samples {
  std::string name{};      ///< name of the source, for messages
  std::int64_t count = 0;  ///< number of samples
  SampleMarks marks{};
  /// Parts of samples from separate files of a part; nullopt: assigned by the split. Empty: the
  /// split assigns all.
  Parts fixed_parts{};
  std::vector<std::string> class_names{};  ///< empty: the numbers
};
struct Chosen {
  Parts parts{};                        ///< part of every sample
  std::vector<std::int64_t> samples{};  ///< samples of the requested part
  Notes notes{};  ///< assignment of groups to parts, and classes that this part lacks
};
/// The division of a source's samples, for all parts that are opened: it is made once. Samples with
/// a fixed part are not divided; if some are for testing (validation), `options.test`
/// and folds (`options.validation`) are refused. Thread-safe.
class Division {
 public:
  Division(const SplitOptions& options, Samples samples);
  /// Selects the samples of a part. Throws like divide().
  Chosen choose(Split part) const;

 private:
  SplitOptions adapted(const SplitOptions& options) const;
  const Parts& parts_of_divided() const;
  Samples samples_;
  SplitOptions options_;
  std::vector<std::int64_t> divided_;  // samples without files of their own
  SampleMarks marks_;                  // of the divided samples
  mutable std::mutex mutex_;
  mutable std::optional<Parts> parts_;  // of the divided samples; guarded by mutex_
};
/// The same for a single part.
Chosen choose_samples(const SplitOptions& options, Split part, const Samples& samples);

/// The shares of the test and validation part. Throws ValueError if out of range.
std::pair<double, double> checked_shares(const SplitOptions& options, const std::string& name);

/// Options for a source whose test part is in separate files: no test part is split off. Throws
/// ValueError if the options request one.
SplitOptions without_test(const SplitOptions& options, const std::string& name);

/// A note that lists the classes that `part` lacks; none if it has all. `classes[k]` is the class
/// of sample k of the source, `own` are the samples of the part.
Notes notes_of_classes(const std::string& source, Split part,
                       const std::vector<std::int64_t>& classes,
                       const std::vector<std::int64_t>& own,
                       const std::vector<std::string>& class_names);

/// How times fit a chronological split. Samples without a time (NaN) or a part do not count.
struct OrderOfTimes {
  std::int64_t earlier = 0;  ///< samples with an earlier time than the sample before
  std::int64_t shared = 0;   ///< samples with the time of a sample in another part; 0 if `earlier`
  std::int64_t first = -1;   ///< the first of them
};
OrderOfTimes order_of_times(const std::vector<double>& times, const Parts& parts);

/// The files of a part of a source whose test part may be another file, for descriptions.
std::string of_files(const std::string& file, const std::string& test_file, Split part);

/// Numbers the distinct words in order of first occurrence.
std::vector<std::int64_t> numbers_of_words(const std::vector<std::string_view>& words);

}  // namespace tenon::data
