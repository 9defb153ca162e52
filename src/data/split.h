// Splits the samples of a source into training, validation and test parts.
//
// One function serves every kind of source. The split depends only on the options, the number of
// samples, and their classes and groups: never on the order of calls, on threads or on the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The part of each sample; nullopt: in no part, as what comes after the test part of a
/// chronological fold.
using Parts = std::vector<std::optional<Split>>;

/// A sample's class, group and unit, by number; empty where there are none. Samples of a unit are
/// never apart, as rows about one file are: a unit counts as one sample of its first one's class
/// and group.
struct SampleMarks {
  std::vector<std::int64_t> classes{}, groups{}, units{};
};

/// The part of each sample. With `options.test` 0 and no folds there is no test part. Every part
/// that is asked for gets at least one sample; where validation was asked for and fewer than three
/// samples (or groups) are left, there is none. Of a class that is stratified at least one sample
/// stays in training. Throws ValueError that begins with `name` for options that contradict each
/// other or leave a part empty.
Parts divide(const SplitOptions& options, std::int64_t samples, const SampleMarks& marks,
             const std::string& name);

/// The samples of `part` in their order in the source; of Split::All every one.
std::vector<std::int64_t> samples_of(const Parts& parts, Split part);

/// What a source knows of its samples before one part of them is opened.
struct Samples {
  std::string name{};      ///< of the source, for messages
  std::int64_t count = 0;  ///< of them
  SampleMarks marks{};
  /// Parts of those that have files of their own; nullopt: of the samples that are divided. Empty:
  /// all are divided.
  Parts lies_in{};
  std::vector<std::string> class_names{};  ///< empty: the numbers
};
struct Chosen {
  Parts parts{};                        ///< of every sample
  std::vector<std::int64_t> samples{};  ///< of the part that was asked for
  Notes notes{};  ///< how groups came into parts, and classes that this part lacks
};
/// Divides the samples that have no files of their own and chooses those of `part`. Samples whose
/// part lies elsewhere are never divided: `options.test` and folds (`options.validation`) are then
/// refused. Throws as divide().
Chosen choose_samples(const SplitOptions& options, Split part, const Samples& samples);

/// The shares of the test and the validation part. Throws ValueError for what is out of range.
std::pair<double, double> checked_shares(const SplitOptions& options, const std::string& name);

/// Options of a source whose test part has files of its own: no test part is divided off. Throws
/// ValueError where the options ask for one.
SplitOptions without_test(const SplitOptions& options, const std::string& name);

/// A note that names the classes of `classes` that `part` lacks; none where it has them all.
/// `classes[k]` is the class of sample k of the source, `own` are the samples of the part.
Notes notes_of_classes(const std::string& source, Split part,
                       const std::vector<std::int64_t>& classes,
                       const std::vector<std::int64_t>& own,
                       const std::vector<std::string>& class_names);

/// The files of a part of a source whose test part may be another file, for descriptions.
std::string of_files(const std::string& file, const std::string& test_file, Split part);

/// "FILE: MESSAGE", or the message where it names the file already.
std::string message_of(const std::string& file, const std::string& message);

/// Numbers for equal words, in the order in which they first occur.
std::vector<std::int64_t> numbers_of_words(const std::vector<std::string_view>& words);

/// Seeds of drawn samples: those of the test and the validation part come from others than
/// training's.
std::uint64_t drawn_seed(std::uint64_t seed, Split part);
/// How many samples are drawn for validation beside so many for training; 0 for none.
std::int64_t drawn_validation(const SplitOptions& options, std::int64_t train,
                              const std::string& name);

}  // namespace tenon::data
