// Where the data of a run lies. Its settings name it as it was given; a run that was moved, or is
// looked at from another folder, finds it again.
#pragma once

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
std::string locate_data(const std::string& spec, const std::string& run_dir);

/// Changes the settings of a run that goes on. Throws ValueError for one that shapes its results.
void override_settings(Settings& settings,
                       const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace tenon::train
