// Where NVIDIA's libraries may be installed, and dlopen.
#include "cuda/device/opening/library.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <dlfcn.h>

#include "base/str.h"
#include "base/system/env.h"
#include "base/system/folder_names.h"

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Sub-folders of `folder` whose name starts with `prefix`, highest version first.
std::vector<fs::path> subfolders(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const std::string& name : names_in(folder.string(), error))
    if (name.starts_with(prefix)) found.push_back(folder / name);
  std::sort(found.rbegin(), found.rend());
  return found;
}

// Folders in which the Python installation under `prefix` (a virtual environment, /usr, /usr/local,
// …) keeps its packages.
void add_package_folders(const fs::path& prefix, std::vector<fs::path>& out) {
  for (const char* lib : {"lib", "lib64", "local/lib"})
    for (const fs::path& python : subfolders(prefix / lib, "python3"))
      for (const char* packages : {"site-packages", "dist-packages"})
        if (is_there(python / packages)) out.push_back(python / packages);
}

std::vector<fs::path> path_prefixes() {
  std::vector<fs::path> prefixes;
  const std::string path = env_text("PATH");
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const fs::path folder = path.substr(start, end - start);
    start = end + 1;
    if (folder.is_absolute() && is_there(folder / "python3"))
      prefixes.push_back(folder.parent_path());
  }
  if (const std::string home = env_text("HOME"); !home.empty())
    prefixes.push_back(fs::path(home) / ".local");
  return prefixes;
}

std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string root = env_text(variable); !root.empty()) roots.emplace_back(root);
  for (const fs::path& root : subfolders("/usr/local", "cuda")) roots.push_back(root);
  std::vector<fs::path> folders;
  for (const fs::path& root : roots)
    for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      folders.push_back(root / lib);
  return folders;
}

void add_files(const LibraryName& name, const fs::path& folder, std::vector<std::string>& out) {
  for (const std::string& file : name.files)
    if (is_there(folder / file)) out.push_back((folder / file).string());
}

void add_wheels(const LibraryName& name, const fs::path& prefix, std::vector<std::string>& out) {
  std::vector<fs::path> packages;
  add_package_folders(prefix, packages);
  for (const fs::path& package : packages)
    for (const std::string& folder : name.wheel_folders) add_files(name, package / folder, out);
}

}  // namespace

void* Library::symbol(const char* name) const {
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

std::string FunctionFinder::problem() const {
  return missing_ == nullptr ? std::string() : cat(library_.path, " has no ", missing_);
}

Library open_file(const std::string& path) {
  Library library;
  library.path = path;
  library.handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library.handle == nullptr) {
    const char* why = dlerror();
    library.problem = why != nullptr ? why : cat(path, " cannot be loaded");
  } else if (path.find('/') == std::string::npos) {
    struct link_map_head {  // the documented beginning of link_map (dlinfo(3))
      void* address;
      const char* name;
    };
    link_map_head* map = nullptr;
    if (dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr &&
        map->name != nullptr)
      library.path = map->name;
  }
  return library;
}

std::vector<std::string> library_candidates(const LibraryName& name) {
  if (const std::string own = env_text(name.variable); !own.empty()) return {own};
  std::vector<std::string> out;
  if (const std::string active = env_text("VIRTUAL_ENV"); !active.empty())
    add_wheels(name, active, out);
  out.insert(out.end(), name.files.begin(), name.files.end());
  for (const fs::path& folder : toolkit_folders()) add_files(name, folder, out);
  for (const fs::path& prefix : path_prefixes()) add_wheels(name, prefix, out);
  return out;
}

bool switched_off(const LibraryName& name) { return env_text(name.variable) == "off"; }
bool named_by_user(const LibraryName& name) { return !env_text(name.variable).empty(); }

bool is_present(const LibraryName& name) {
  if (switched_off(name)) return false;
  for (const std::string& path : library_candidates(name))
    if (path.find('/') != std::string::npos && is_there(path)) return true;
  return open_library(name).handle != nullptr;
}

std::string missing_text(const LibraryName& name) {
  if (switched_off(name)) return cat(name.variable, " is 'off'");
  return cat("no ", name.files.front(),
             " in the system's search path, in a CUDA toolkit (CUDA_HOME, "
             "/usr/local/cuda*) or in NVIDIA's Python wheels; ",
             name.variable, " may name the file");
}

Library open_library(const LibraryName& name) {
  Library last;
  if (!switched_off(name))
    for (const std::string& path : library_candidates(name)) {
      last = open_file(path);
      if (last.handle != nullptr) return last;
    }
  // dlopen's own message is the most precise.
  if (named_by_user(name) && !switched_off(name)) return last;
  last = Library();
  last.problem = missing_text(name);
  return last;
}

}  // namespace tenon::cuda
