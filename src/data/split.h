// How the samples of a source are divided into training, validation and test parts.
//
// One function serves every kind of source. The division depends on the options, the number of
// samples and their marks alone: never on the order of calls, on threads or on the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// A sample's class and group, by number; empty where there are none.
struct SampleMarks {
  std::vector<std::int64_t> classes, groups;
};

/// The part of each sample. nullopt: in no part, as what comes after the test part of a
/// chronological fold. With `options.test` 0 and no folds there is no test part, as where it has
/// files of its own. Every part that is asked for gets at least one sample; where validation was
/// asked for and fewer than three samples are left, there is none. Of a class that is stratified at
/// least one sample stays in training. Throws ValueError that begins with `name` for options that
/// contradict each other or leave a part empty.
std::vector<std::optional<Split>> divide(const SplitOptions& options, std::int64_t samples,
                                         const SampleMarks& marks, const std::string& name);

/// The samples of `part` in their order in the source; of Split::All every one.
std::vector<std::int64_t> samples_of(const std::vector<std::optional<Split>>& parts, Split part);

}  // namespace tenon::data
