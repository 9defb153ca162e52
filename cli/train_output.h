// The output of 'tenon train': progress, the summary of a run or of folds, and the next commands.
#pragma once

#include <tenon/train.h>

#include <memory>
#include <string>
#include <vector>

#include "progress.h"

namespace tenon::cli {

/// Prints the progress of a run, after lines about its settings and its folder.
std::shared_ptr<Progress> make_progress(const train::Settings& settings, const std::string& folder,
                                        bool quiet);
/// Prints the results of a run that has ended or was interrupted; returns the exit code.
int finish(const train::TrainResult& result, const train::Settings& settings,
           const Progress& progress, bool quiet);
/// The same for the results of all folds; only the last one can be interrupted.
int finish_folds(const std::vector<train::TrainResult>& results, const train::Settings& settings,
                 const std::string& folder);

}  // namespace tenon::cli
