// Where fetched data and runs lie.
#pragma once

#include <string>

namespace tenon::cli {

/// The folder that `--data mnist` reads and `tenon data fetch mnist` fills.
std::string mnist_folder();
/// Whether all four files are there, compressed or not.
bool holds_mnist(const std::string& folder);
/// Throws IoError when the folder holds no run.
void require_run(const std::string& folder);

}  // namespace tenon::cli
