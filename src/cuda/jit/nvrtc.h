// NVRTC, loaded at run time: compiles one program to a cubin or PTX.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/opening/library.h"

namespace tenon::cuda {

/// The architecture option for a GPU, and whether the result is a cubin.
struct ArchChoice {
  std::string option;  // "--gpu-architecture=sm_90a"
  bool cubin = true;
};

struct CompileResult {
  std::string image;  // cubin, or PTX with its final zero; empty when it failed
  std::string log;    // the compiler's messages
};

/// Headers by the names under which they are included.
using HeaderList = std::vector<std::pair<std::string, const std::string*>>;

/// A compiler. `problem` is empty if it can be used.
struct Nvrtc {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // with cubin support, ascending
  std::string problem;

  /// A cubin if the compiler knows the architecture (ten times the compute capability), otherwise
  /// PTX of the newest architecture that the compiler knows and the GPU can run.
  ArchChoice choose_arch(int arch) const;
  /// May be called by any thread. If the compiler can be stopped (12.8 and newer), it calls
  /// `should_continue` repeatedly in the calling thread; the result is empty after a stop.
  CompileResult compile(const std::string& text, const std::string& file_name,
                        const HeaderList& headers, int arch,
                        const std::function<bool()>& should_continue = {}) const;

  struct Api;
  std::shared_ptr<const Api> api;
};

/// Loads one file.
Nvrtc load_nvrtc(const std::string& path);
/// Where NVRTC is looked for.
LibraryName nvrtc_name();
/// The process's compiler, loaded once; never throws. Prefers a version that the driver is new
/// enough for.
const Nvrtc& nvrtc();
/// Options of every kernel besides the architecture. They are fixed, so that results do not depend
/// on where a kernel is compiled.
const std::vector<const char*>& common_options();

}  // namespace tenon::cuda
