// Declarations of NVRTC's interface, its loader and the call.
#include "cuda/jit/nvrtc.h"

#include <algorithm>

#include "base/str.h"
#include "cuda/device/driver.h"
#include "cuda/device/library.h"

namespace tenon::cuda {
namespace {

using Program = struct NvrtcProgram*;
constexpr int kSuccess = 0;

struct Api {
  int (*version)(int*, int*) = nullptr;
  int (*num_archs)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, std::size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

struct Loaded {
  Api api;
  Compiler facts;
};

template <class F>
bool bind(const Library& library, const char* name, F& function) {
  function = reinterpret_cast<F>(library.symbol(name));
  return function != nullptr;
}

bool bind_all(const Library& library, Api& api) {
  return bind(library, "nvrtcVersion", api.version) &&
         bind(library, "nvrtcGetNumSupportedArchs", api.num_archs) &&
         bind(library, "nvrtcGetSupportedArchs", api.archs) &&
         bind(library, "nvrtcCreateProgram", api.create) &&
         bind(library, "nvrtcDestroyProgram", api.destroy) &&
         bind(library, "nvrtcCompileProgram", api.compile) &&
         bind(library, "nvrtcGetCUBINSize", api.cubin_size) &&
         bind(library, "nvrtcGetCUBIN", api.cubin) &&
         bind(library, "nvrtcGetPTXSize", api.ptx_size) && bind(library, "nvrtcGetPTX", api.ptx) &&
         bind(library, "nvrtcGetProgramLogSize", api.log_size) &&
         bind(library, "nvrtcGetProgramLog", api.log) &&
         bind(library, "nvrtcGetErrorString", api.error_text);
}

// Older ones cannot read the C++ of our headers or make cubins for Hopper.
constexpr int kOldestMajor = 12;

Loaded load_file(const std::string& path) {
  Loaded loaded;
  const Library library = open_file(path);
  loaded.facts.path = library.path;
  if (library.handle == nullptr) {
    loaded.facts.problem = library.problem;
    return loaded;
  }
  int count = 0;
  if (!bind_all(library, loaded.api) ||
      loaded.api.version(&loaded.facts.major, &loaded.facts.minor) != kSuccess ||
      loaded.api.num_archs(&count) != kSuccess) {
    loaded.facts.problem = cat(path, " lacks functions of NVRTC ", kOldestMajor, " or newer");
    return loaded;
  }
  loaded.facts.archs.resize(static_cast<std::size_t>(std::max(count, 0)));
  loaded.api.archs(loaded.facts.archs.data());
  std::sort(loaded.facts.archs.begin(), loaded.facts.archs.end());
  if (loaded.facts.major < kOldestMajor)
    loaded.facts.problem = cat("NVRTC ", loaded.facts.major, ".", loaded.facts.minor, " (", path,
                               ") is too old: install ", kOldestMajor, ".0 or newer");
  return loaded;
}

const LibraryName& nvrtc_name() {
  static const LibraryName* const name =
      new LibraryName{"NVRTC",
                      "TENON_NVRTC",
                      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                      {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}};
  return *name;
}

// A driver reads cubins of its own and of older major versions of CUDA, not of newer ones.
bool suits_driver(const Compiler& facts) {
  const int version = loaded_driver().version;
  return version == 0 || facts.major <= version / 1000;
}

Loaded load() {
  Loaded best;
  best.facts.problem = cat("NVRTC is not installed: ", missing_text(nvrtc_name()));
  if (switched_off(nvrtc_name())) return best;
  bool have = false;
  for (const std::string& path : library_candidates(nvrtc_name())) {
    Loaded next = load_file(path);
    if (next.facts.problem.empty() && suits_driver(next.facts)) return next;
    if (next.facts.problem.empty() && !have) {
      best = std::move(next);
      have = true;
    } else if (!have && named_by_user(nvrtc_name())) {
      best = std::move(next);
    }
  }
  return best;
}

const Loaded& loaded_compiler() {
  static const Loaded* const loaded = new Loaded(load());
  return *loaded;
}

template <class Size, class Get>
std::string text_of(Program program, Size size, Get get) {
  std::size_t bytes = 0;
  if (size(program, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(program, text.data()) != kSuccess) return {};
  return text;
}

}  // namespace

const Compiler& compiler() { return loaded_compiler().facts; }

ArchChoice choose_arch(int arch) {
  const std::vector<int>& known = compiler().archs;
  if (std::find(known.begin(), known.end(), arch) != known.end())
    return {cat("--gpu-architecture=sm_", arch, arch == 90 ? "a" : ""), true};
  int newest = 80;
  for (const int each : known)
    if (each <= arch) newest = std::max(newest, each);
  return {cat("--gpu-architecture=compute_", newest), false};
}

const std::vector<const char*>& common_options() {
  static const std::vector<const char*>* const options =
      new std::vector<const char*>{"--std=c++17",      "--device-as-default-execution-space",
                                   "--ftz=false",      "--prec-div=true",
                                   "--prec-sqrt=true", "--fmad=true"};
  return *options;
}

CompileResult compile_text(const std::string& text, const std::string& file_name,
                           const std::vector<std::pair<std::string, const std::string*>>& headers,
                           int arch) {
  const Api& api = loaded_compiler().api;
  CompileResult result;
  if (!compiler().problem.empty()) {
    result.log = compiler().problem;
    return result;
  }
  std::vector<const char*> names, texts;
  for (const auto& [name, body] : headers) {
    names.push_back(name.c_str());
    texts.push_back(body->c_str());
  }
  Program program = nullptr;
  int status = api.create(&program, text.c_str(), file_name.c_str(), static_cast<int>(names.size()),
                          texts.data(), names.data());
  if (status != kSuccess) {
    result.log = api.error_text(status);
    return result;
  }
  const ArchChoice choice = choose_arch(arch);
  std::vector<const char*> options = common_options();
  options.push_back(choice.option.c_str());
  status = api.compile(program, static_cast<int>(options.size()), options.data());
  result.log = text_of(program, api.log_size, api.log);
  if (status == kSuccess)
    result.image = choice.cubin ? text_of(program, api.cubin_size, api.cubin)
                                : text_of(program, api.ptx_size, api.ptx);
  if (result.image.empty()) result.log = cat(api.error_text(status), "\n", result.log.c_str());
  api.destroy(&program);
  return result;
}

}  // namespace tenon::cuda
