// Looks for data and runs without opening them.
#include "data_paths.h"

#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/error.h>

#include <filesystem>

namespace tenon::cli {

std::string mnist_folder() { return data::default_data_dir() + "/mnist"; }

bool holds_mnist(const std::string& folder) {
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    std::error_code ignored;
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path, ignored) &&
        !std::filesystem::exists(path.string() + ".gz", ignored))
      return false;
  }
  return true;
}

void require_run(const std::string& folder) {
  std::error_code ignored;
  const std::string file = folder + "/settings.toml";
  if (!std::filesystem::exists(file, ignored))
    throw IoError(fmt::format("{} holds no run: there is no {}", folder, file));
}

}  // namespace tenon::cli
