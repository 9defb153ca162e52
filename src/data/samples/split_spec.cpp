// Parses the split options of every kind of data source.
#include "data/samples/split_spec.h"

#include <algorithm>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/source_parts.h"
#include "io/file.h"
#include "io/text/numbers.h"

namespace tenon::data {
namespace {

bool is_yes(const std::string& key, const std::string& value, const std::string& spec) {
  if (value.empty() || value == "yes") return true;
  if (value == "no") return false;
  throw ValueError(cat("data '", spec, "': ", key, "=", value, ": must be yes or no"));
}

void read_fold(const std::string& value, const std::string& spec, SplitOptions& out) {
  const std::size_t slash = value.find('/');
  const auto number = [&](const std::string& text) {
    return static_cast<int>(std::min<std::int64_t>(spec_number(text, spec), 1 << 30));
  };
  if (slash != std::string::npos)
    out.fold = number(value.substr(0, slash)), out.folds = number(value.substr(slash + 1));
  if (out.folds == 0)
    throw ValueError(cat("data '", spec, "': fold=", value, ": as 1/5, the first of five"));
}

// Refuses "test=0.2" if no file has this name, because a share was probably meant.
void refuse_share_as_path(const std::string& value, const std::string& spec) {
  const bool percent = value.ends_with('%');
  double share = 0;
  if (!io::parse_number(percent ? value.substr(0, value.size() - 1) : value, share) ||
      io::is_there(value))
    return;
  throw ValueError(cat("data '", spec, "': test=", value,
                       " names files for testing, and there are none: a share of the samples is "
                       "split=",
                       value));
}

}  // namespace

bool read_split_option(const std::string& part, const std::string& spec, SplitSpec& out) {
  const std::size_t equals = part.find('=');
  const std::string key = part.substr(0, equals),
                    value = equals == std::string::npos ? "" : part.substr(equals + 1);
  SplitOptions& options = out.options;
  if (key == "stratify") {
    options.stratify = is_yes(key, value, spec);
  } else if (key == "chronological") {
    options.chronological = is_yes(key, value, spec);
  } else if (key == "validation" && !value.empty()) {
    options.validation = spec_share(value, spec);
  } else if (key == "split" && !value.empty()) {
    options.test = spec_share(value, spec);
  } else if (key == "test" && !value.empty()) {
    refuse_share_as_path(value, spec);
    out.test = value;
  } else if (key == "fold" && !value.empty()) {
    read_fold(value, spec, options);
  } else if (key == "seed" && !value.empty()) {
    options.seed = static_cast<std::uint64_t>(spec_number(value, spec));
  } else if (key == "group" && !value.empty()) {
    options.group = value;
  } else {
    return false;
  }
  out.given.push_back(key);
  return true;
}

void check_split_spec(const SplitSpec& split, const std::string& spec, const std::string& samples) {
  if (!split.test.empty() && (split.options.test || split.options.folds != 0))
    throw ValueError(cat("data '", spec, "': the test part has files of its own: leave out '",
                         split.options.test ? "split" : "fold", "'"));
  if (!split.test.empty() && same_path(samples, split.test))
    throw make_error<ValueError>(
        "data '", spec, "': the test part ", FileName{split.test},
        " is the training part: name another one, or leave it out and divide the samples "
        "(split=SHARE)");
}

void allow_split_options(const SplitSpec& split, std::string_view allowed, const std::string& spec,
                         const char* why) {
  for (const std::string& key : split.given)
    if (cat(" ", allowed, " ").find(cat(" ", key, " ")) == std::string::npos)
      throw ValueError(cat("data '", spec, "': ", why, ": leave out '", key, "'",
                           key == "fold" ? ", for there are no folds of such a source" : ""));
}

}  // namespace tenon::data
