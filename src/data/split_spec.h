// "validation=0.1,split=0.2,seed=3": the split options of a data source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// What a name says of parts, and the words that said it.
struct SplitSpec {
  SplitOptions options{};
  std::string test{};  ///< path of the test part's own files; "": none
  std::vector<std::string> given{};
};

/// The options that read_split_option() knows, for messages.
constexpr const char* kSplitOptions =
    "validation=SHARE, split=SHARE, test=PATH, fold=I/K, seed=N, stratify=yes|no, group=NAME, "
    "chronological";

/// Takes one part of a name: false for a word that says nothing of parts. Throws ValueError.
bool read_split_option(const std::string& part, const std::string& spec, SplitSpec& out);

/// Throws ValueError where a test part of its own files is to be divided off too.
void check_split_spec(const SplitSpec& split, const std::string& spec);

/// Throws ValueError for an option that is none of `allowed`, a list such as "validation seed".
void allow_split_options(const SplitSpec& split, std::string_view allowed, const std::string& spec,
                         const char* why);

}  // namespace tenon::data
