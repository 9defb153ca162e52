// NVRTC, loaded at run time: one program in, a cubin (or PTX) out.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/library.h"

namespace tenon::cuda {

/// What the architecture option becomes for a GPU, and whether that gives a cubin.
struct ArchChoice {
  std::string option;  // "--gpu-architecture=sm_90a"
  bool cubin = true;
};

struct CompileResult {
  std::string image;  // cubin, or PTX with its final zero; empty when it failed
  std::string log;    // the compiler's words
};

/// Headers by the names under which they are included.
using HeaderList = std::vector<std::pair<std::string, const std::string*>>;

/// A compiler. `problem` is empty when it can be used.
struct Nvrtc {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // that it makes cubins for, ascending
  std::string problem;

  /// A cubin where the compiler knows the architecture (ten times the compute capability), else PTX
  /// of the newest one that it knows and the GPU can run.
  ArchChoice choose_arch(int arch) const;
  /// Any thread may call it. Asks `goes_on` again and again, in the calling thread, where
  /// the compiler can be stopped (12.8 and newer): the result is empty then.
  CompileResult compile(const std::string& text, const std::string& file_name,
                        const HeaderList& headers, int arch,
                        const std::function<bool()>& goes_on = {}) const;

  struct Api;
  std::shared_ptr<const Api> api;
};

/// Loads one file.
Nvrtc load_nvrtc(const std::string& path);
/// Where it is looked for.
LibraryName nvrtc_name();
/// The process's compiler, loaded once; never throws. Among those that are found, one that the
/// driver is new enough for is preferred.
const Nvrtc& nvrtc();
/// Options that every kernel is compiled with, the architecture's aside. Fixed, so that results do
/// not depend on where they are compiled.
const std::vector<const char*>& common_options();

}  // namespace tenon::cuda
