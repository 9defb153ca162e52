// Where fetched data lies.
#pragma once

#include <string>

namespace tenon::cli {

/// The folder that `--data mnist` reads and `tenon data fetch mnist` fills.
std::string mnist_folder();
/// Whether all four files are there, compressed or not.
bool holds_mnist(const std::string& folder);

}  // namespace tenon::cli
