// Finds the data of a run. The settings hold the path as it was given; a run that was moved, or
// that is opened from another folder, finds its data again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/train.h>

namespace tenon::train {

/// Whether a data source names files or folders ("csv:flowers.csv"), which mean nothing elsewhere.
bool has_path(const std::string& spec);

/// The source with paths that exist: as they are written, or, when they are relative, from the
/// run's folder or one above it. Throws IoError that names what is missing and how to say where it
/// is.
/// A file or folder that a run's settings name: where it is not at a relative path from here, at
/// the same one from the run's folder or one above it. The path itself where it is nowhere.
std::string locate_file(const std::string& path, const std::string& run_dir);

/// Tells what a file holds, or of a folder its files of weights, texts and settings; "" for "", and
/// where nothing is there.
std::string digest_of_path(const std::string& path);

std::string locate_data(const std::string& spec, const std::string& run_dir);

/// The source `located`, where the run's data lies, when `data` names the same files, whatever
/// options stand behind them; else none. Files are the same when their paths lead to the same file.
/// A `data` that names another test file than the run's is not the run's own.
std::optional<std::string> own_data(const std::string& data, const std::string& located);
/// `data` with the run's options behind its paths, when these have the last names that the run's
/// have: what the run's data may be where its own files are gone. Else none.
std::optional<std::string> moved_data(const std::string& data, const std::string& run_data);
/// The run's data from the folder of the run and those above it, nearest first, as far as there are
/// files of its names.
std::vector<std::string> data_near(const std::string& run_data, const std::string& run_dir);

/// `data` with the options of the run's data that say how files are written (separators, comments,
/// quotes, headers, numbers, frames), where both are of one kind and `data` does not say otherwise.
/// The run's encoding is added for a file that is not UTF-8. Columns of tables are found by what
/// the model keeps of them.
std::string read_as_run(const std::string& data, const std::string& run_data);

/// Whether two sources read and divide their samples alike, wherever the files of each lie: they
/// are of one kind, with as many files and the same options.
bool read_alike(const std::string& a, const std::string& b);

/// Throws ValueError where the test part is the training part, which measures what was learnt by
/// heart.
void refuse_tested_training(const std::string& spec);

/// Windows of a text are as long as the network sees, and lines no longer, unless the data's name
/// says otherwise.
std::string as_long_as_seen(const std::string& data, const models::Info& model);

/// Tokens that a model of these settings is given of one text: as many as it learnt from, where it
/// learnt from "lines:FILE", else all that it takes.
std::int64_t text_length(const Settings& settings);

/// Whether a source's samples are drawn by seeds: its test part is drawn apart from what training
/// sees.
bool is_drawn_source(const std::string& spec);
/// Whether a source has a test part by its own nature: published sets, and files with "test=".
bool names_test_part(const std::string& spec);

/// Changes the settings of a run that goes on. Throws ValueError for one that shapes its results.
void override_settings(Settings& settings,
                       const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace tenon::train
