// NVRTC, loaded at run time: one program in, a cubin (or PTX) out.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tenon::cuda {

/// How loading NVRTC went. `problem` is empty when it can be used.
struct Compiler {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // that it makes cubins for, ascending
  std::string problem;
};

/// The process's compiler, loaded once; never throws. Among those that are found, one that the
/// driver is new enough for is preferred.
const Compiler& compiler();

/// What the architecture option becomes for a card of `arch`, and whether that gives a cubin.
struct ArchChoice {
  std::string option;  // "--gpu-architecture=sm_90a"
  bool cubin = true;
};
ArchChoice choose_arch(int arch);
/// Options that every kernel is compiled with, the architecture's aside. Fixed, so that results do
/// not depend on where they are compiled.
const std::vector<const char*>& common_options();

struct CompileResult {
  std::string image;  // cubin, or PTX with its final zero; empty when it failed
  std::string log;    // the compiler's words
};
/// Compiles text with headers (name, text). Any thread may call it.
CompileResult compile_text(const std::string& text, const std::string& file_name,
                           const std::vector<std::pair<std::string, const std::string*>>& headers,
                           int arch);

}  // namespace tenon::cuda
