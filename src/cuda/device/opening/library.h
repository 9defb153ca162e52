// Finding and opening NVIDIA's libraries at run time: in the system's search path, in CUDA toolkits
// and in the folders of NVIDIA's Python wheels.
//
// A library is opened once and stays open to the end of the process.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tenon::cuda {

struct Library {
  void* handle = nullptr;
  std::string path;     // the file that was opened, or the names searched
  std::string problem;  // why it was not opened; empty when it was
  /// The address of a symbol; null if there is none.
  void* symbol(const char* name) const;
};

/// Fills a table of function pointers from a library.
class FunctionFinder {
 public:
  explicit FunctionFinder(const Library& library) : library_(library) {}
  template <class F>
  void operator()(F& function, const char* name) {
    function = reinterpret_cast<F>(library_.symbol(name));
    if (function == nullptr) missing_ = name;
  }
  /// "/usr/lib/libcudnn.so.9 has no cudnnCreate"; empty if everything was found.
  std::string problem() const;

 private:
  const Library& library_;
  const char* missing_ = nullptr;
};

/// A library to look for.
struct LibraryName {
  const char* title;                       // "NVRTC"
  const char* variable;                    // environment variable that names a file, or is "off"
  std::vector<std::string> files;          // sonames, the preferred one first
  std::vector<std::string> wheel_folders;  // under site-packages: "nvidia/cuda_nvrtc/lib"
};

/// True if the variable is "off".
bool switched_off(const LibraryName& name);
/// True if the variable names a file.
bool named_by_user(const LibraryName& name);
/// True if open_library() will most likely succeed. Does not load a large library if its file can
/// be seen.
bool is_present(const LibraryName& name);
/// "no libnvrtc.so.13 in …": the places searched and what to do.
std::string missing_text(const LibraryName& name);
/// Opens one file.
Library open_file(const std::string& path);
/// Opens the first file that can be opened, in this order: the file that the variable names, wheels
/// of an active virtual environment, the system's search path, toolkits, wheels of python3 on PATH.
Library open_library(const LibraryName& name);
/// Full paths and sonames in the order in which open_library() tries them.
std::vector<std::string> library_candidates(const LibraryName& name);

}  // namespace tenon::cuda
