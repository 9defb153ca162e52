// "validation=0.1,split=0.2,seed=3": the split options of a data source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// Split options of a data source, and their text.
struct SplitSpec {
  SplitOptions options{};
  std::string test{};  ///< path of the test part's files; "": none
  std::vector<std::string> given{};
};

/// The options of read_split_option(), for messages.
constexpr const char* kSplitOptions =
    "validation=SHARE, split=SHARE, test=PATH, fold=I/K, seed=N, stratify=yes|no, group=NAME, "
    "chronological";

/// Parses one option; false if it is not a split option. Throws ValueError.
bool read_split_option(const std::string& part, const std::string& spec, SplitSpec& out);

/// Throws ValueError if the test part is in separate files and also requested from the split, or if
/// these files are the samples themselves, at the path `samples`.
void check_split_spec(const SplitSpec& split, const std::string& spec, const std::string& samples);

/// Throws ValueError if an option is not in `allowed`, a list such as "validation seed".
void allow_split_options(const SplitSpec& split, std::string_view allowed, const std::string& spec,
                         const char* why);

}  // namespace tenon::data
