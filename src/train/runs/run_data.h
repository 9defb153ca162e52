// Finds the data of a run. The settings hold the path as it was given; a run that was moved, or
// that is opened from another folder, finds its data again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/train.h>

#include "train/settings/data_source.h"

namespace tenon::train {

struct ResolvedModel;

/// Finds a file or folder of a run's settings: a relative path is tried from the current folder,
/// then from the run's folder and those above. Returns the path itself if it is not found.
std::string locate_file(const std::string& path, const std::string& run_dir);

/// Digest of a file's content, or of the weight, text and settings files of a folder; "" for "" and
/// for missing paths.
std::string digest_of_path(const std::string& path);

/// The source with existing paths: as written, or, for relative paths, relative to the run's folder
/// or one above. Throws IoError that names the missing path and how to give its new location.
DataSource locate_data(const DataSource& source, const std::string& run_dir);

/// Whether `given` names the same files (whatever its options) as `own`, the run's data source as
/// found. Paths that resolve to the same file are the same. A source with another test file than
/// the run's is not the run's data.
bool is_own_data(const DataSource& given, const DataSource& own);
/// `given` with the run's options appended if its paths have the same file names as the run's, else
/// none: a candidate for the run's data if its original files are missing.
std::optional<DataSource> moved_data(const DataSource& given, const DataSource& own);
/// The run's data, searched in the folder of the run and those above, nearest first.
std::vector<DataSource> data_near(const DataSource& own, const std::string& run_dir);

/// `given` with the run's options for the file format (separators, comments, quotes, headers,
/// numbers, frames), if both are of one kind and `given` does not set them itself. The run's
/// encoding is added for files that are not UTF-8. Table columns are found by the names stored in
/// the model.
DataSource read_as_run(const DataSource& given, const DataSource& own);

/// Whether two sources read and split their samples in the same way, whatever their paths: same
/// kind, same number of files, same options.
bool have_same_reading(const DataSource& a, const DataSource& b);

/// The source with the length of text windows set to the network's context, and lines limited to
/// it, unless the source sets a length.
DataSource with_context_length(const DataSource& source, const models::Info& model);

/// Number of tokens of one text that a model gets: the length it was trained with for "lines:FILE",
/// else its context.
std::int64_t text_length(const ResolvedModel& model);

/// Whether the test part has files of its own: DataSource::names_test_part(), or a folder with a
/// test folder.
bool has_test_files(const DataSource& source);

/// Applies settings to a resumed run. Throws ValueError for a setting that would change its
/// results.
void override_settings(Settings& settings,
                       const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace tenon::train
