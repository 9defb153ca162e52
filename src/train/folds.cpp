// Cross-validation: one run for each of K folds.
//
//   folds.toml  lock  fold-1/  fold-2/  …
//
// folds.toml holds the number of folds, their common settings, and digests of the data and of the
// files that each fold starts from. It is written before the first fold starts, so a killed
// cross-validation can always be resumed.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/folder_names.h"
#include "io/file.h"
#include "io/text/toml.h"
#include "train/runs/run_data.h"
#include "train/runs/run_folder.h"
#include "train/runs/sample_record.h"
#include "train/sessions/session.h"
#include "train/settings/registered.h"
#include "train/settings/settings.h"

namespace tenon::train {

namespace fs = std::filesystem;

constexpr int kMostFolds = 10000;
constexpr char kData[] = "data";

/// The file of a folder of folds.
struct FoldsFile {
  int count = 0;
  Settings settings{};
  /// Digests of the data and files that these settings name, as of the first fold. Later folds must
  /// start from the same content.
  std::map<std::string, std::string> digests{};
  static constexpr const char* kDigested[] = {"weights", "teacher", "tokenizer", kData};

  static std::string path(const std::string& dir) { return dir + "/folds.toml"; }
  static FoldsFile read(const std::string& dir);
  void write(const std::string& dir) const;
};

namespace {

std::string digest_key(const std::string& setting) { return setting + "_digest"; }

}  // namespace

FoldsFile FoldsFile::read(const std::string& dir) {
  const std::string file = path(dir);
  std::vector<SettingText> lines = parse_settings(io::read_file(file, kMostSettingsText), file);
  FoldsFile out;
  if (!lines.empty() && lines.front().key == "folds") {
    const std::string& text = lines.front().value;
    std::from_chars(text.data(), text.data() + text.size(), out.count);
    lines.erase(lines.begin());
  }
  if (out.count < 2 || out.count > kMostFolds)
    throw make_error<FormatError>(
        FileName{file},
        " does not begin with the number of folds, as in 'folds = 5': the file "
        "is damaged or truncated");
  for (const char* key : kDigested) {
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const SettingText& one) {
      return one.key == digest_key(key);
    });
    if (line == lines.end()) continue;
    out.digests[key] = line->value;
    lines.erase(line);
  }
  out.settings = Settings::of_lines(lines, file);
  return out;
}

void FoldsFile::write(const std::string& dir) const {
  std::error_code error;
  // Remove the temporary files of a writer that was killed.
  for (const std::string& name : names_in(dir, error))
    if (name.starts_with("folds.toml.tmp-")) fs::remove(cat(dir, "/", name), error);
  std::string text = cat("folds = ", count, "\n");
  for (const auto& [key, digest] : digests)
    text += cat(digest_key(key), " = ", io::toml_quoted(digest), "\n");
  io::write_file(path(dir), text + settings.toml());
}

namespace {

std::string fold_dir(const std::string& dir, int fold) { return cat(dir, "/fold-", fold); }

Settings settings_of_fold(const FoldsFile& folds, int fold) {
  Settings out = folds.settings;
  out.data += cat(",fold=", fold, "/", folds.count);
  return out;
}

// How all folds read their data, resolved when it is first asked for: folds that have begun have a
// tokenizer of their own.
class Reading {
 public:
  explicit Reading(const Settings& settings) : settings_(settings) {}
  const data::SourceOptions& options() {
    if (!known_)
      known_ =
          source_options(ResolvedModel(Settings(settings_)), nullptr, tokenizer_of(settings_, ""));
    return *known_;
  }

 private:
  const Settings& settings_;
  std::optional<data::SourceOptions> known_;
};

// The digest of all samples; each fold's own digest covers its training part only. "" if the
// settings determine the samples. Class names are not included: they are compared when a fold is
// opened.
std::string digest_of_data(const Settings& settings, Reading& reading) {
  const auto set = data::open_dataset(settings.data, data::Split::All, reading.options());
  return set == nullptr ? "" : held_out_digest(*set);
}

// The digest of what a setting of FoldsFile::kDigested names; "" if there is nothing to compare.
std::string digest_of(const Settings& settings, Reading& reading, const std::string& key) {
  return key == kData ? digest_of_data(settings, reading) : digest_of_path(settings.get(key));
}

// Refuses to start a fold if a file has changed since the first fold, because the folds would not
// be comparable.
void require_same_files(const FoldsFile& folds, Reading& reading) {
  for (const auto& [key, digest] : folds.digests) {
    if (digest_of(folds.settings, reading, key) == digest) continue;
    const std::string value = folds.settings.get(key);
    const bool is_data = key == kData;
    throw ValueError(cat(
        "setting '", key, "': ", value,
        is_data || io::is_there(value) ? " was changed since the folds began" : " no longer exists",
        ", and all folds must ", is_data ? "divide the same samples" : "start from the same file",
        ": restore it, or start new folds"));
  }
}

bool is_begun(const std::string& run) { return io::file_exists(run + "/settings.toml"); }

void require_no_runs(const std::string& dir) {
  if (folds_in(dir) > 0 || is_begun(dir) || is_begun(fold_dir(dir, 1)))
    throw make_error<ValueError>(FileName{dir},
                                 " already holds runs: resume them, or choose another folder");
}

void create_folder(const std::string& dir) {
  std::error_code error;
  fs::create_directories(io::system_path(dir), error);
  if (error)
    throw make_error<IoError>(FileName{dir},
                              ": cannot create the folder of the folds: ", error.message(),
                              "; choose another folder or check its permissions");
}

// A fold that has ended has its results in its log, so resuming it measures nothing again.
TrainResult run_fold(const FoldsFile& folds, Reading& reading, int fold, const std::string& dir,
                     const FoldOptions& options,
                     std::vector<std::pair<std::string, std::string>> overrides) {
  const Settings settings = settings_of_fold(folds, fold);
  const std::string own = fold_dir(dir, fold);
  const RunOptions watched = options ? options(fold, settings, own) : RunOptions();
  if (!is_begun(own)) {
    require_same_files(folds, reading);
    return start_run(settings, own, watched);
  }
  for (auto& [key, value] : overrides)
    if (key == "data") value = settings.data;
  return resume_run(own, watched, overrides);
}

std::vector<TrainResult> run_folds(
    const FoldsFile& folds, Reading& reading, const std::string& dir, const FoldOptions& options,
    const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::vector<TrainResult> out;
  for (int fold = 1; fold <= folds.count; ++fold) {
    out.push_back(run_fold(folds, reading, fold, dir, options, overrides));
    if (out.back().reason == StopReason::Interrupted) break;
  }
  return out;
}

}  // namespace

std::vector<TrainResult> start_folds(const Settings& settings, int folds, const std::string& dir,
                                     const FoldOptions& options) {
  require_in_range(settings);
  if (folds < 2 || folds > kMostFolds)
    throw ValueError(cat("folds: ", folds, " were asked for; give 2 to ", kMostFolds));
  if (dir.empty()) throw ValueError("folds: a folder for the runs is missing");
  require_no_runs(dir);
  FoldsFile file{folds, settings, {}};
  file.settings.plugins = plugins_text();
  // If there are too many folds, the last fold is the first one without samples.
  const Settings last = settings_of_fold(file, folds);
  if (DataSource(settings.data).option("fold"))
    throw ValueError(
        cat("folds: '", settings.data, "' already selects one fold: remove 'fold' from it"));
  Reading reading(file.settings);
  if (data::open_dataset(last.data, data::Split::Test, reading.options()) == nullptr)
    throw ValueError(
        cat("'", last.data, "' has no test samples in the last fold: use fewer folds"));
  for (const char* key : FoldsFile::kDigested)
    if (std::string digest = digest_of(settings, reading, key); !digest.empty())
      file.digests[key] = std::move(digest);
  create_folder(dir);
  const FolderLock lock(dir);
  require_no_runs(dir);  // another process may have started some meanwhile
  file.write(dir);
  return run_folds(file, reading, dir, options, {});
}

std::vector<TrainResult> resume_folds(
    const std::string& dir, const FoldOptions& options,
    const std::vector<std::pair<std::string, std::string>>& overrides) {
  FoldsFile file = FoldsFile::read(dir);
  const FolderLock lock(dir);
  override_settings(file.settings, overrides);
  file.settings.data = locate_data(DataSource(file.settings.data), dir).text;
  file.settings.weights = locate_file(file.settings.weights, dir);
  file.settings.teacher = locate_file(file.settings.teacher, dir);
  file.settings.tokenizer = locate_file(file.settings.tokenizer, dir);
  if (!overrides.empty()) file.write(dir);
  Reading reading(file.settings);
  return run_folds(file, reading, dir, options, overrides);
}

int folds_in(const std::string& dir) {
  return io::file_exists(FoldsFile::path(dir)) ? FoldsFile::read(dir).count : 0;
}

Settings settings_of_folds(const std::string& dir) { return FoldsFile::read(dir).settings; }

}  // namespace tenon::train
