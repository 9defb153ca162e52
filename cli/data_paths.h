// Where fetched data, runs and models lie.
#pragma once

#include <string>

namespace tenon::cli {

/// The folder that `--data mnist` reads and `tenon data fetch mnist` fills.
std::string mnist_folder();
/// Whether all four files are there, compressed or not.
bool holds_mnist(const std::string& folder);
/// What MODEL stands for: a name, or the model of a run folder or of a file of weights.
std::string model_of(const std::string& name_or_run);
/// Throws IoError when the folder holds no run.
void require_run(const std::string& folder);

}  // namespace tenon::cli
