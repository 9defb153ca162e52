// Declares NVRTC's interface, loads it, and compiles.
#include "cuda/jit/nvrtc.h"

#include <algorithm>

#include "base/str.h"
#include "cuda/device/opening/driver.h"
#include "cuda/device/opening/library.h"

namespace tenon::cuda {

struct NvrtcProgram;

struct Nvrtc::Api {
  using Program = NvrtcProgram*;
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
  // Null in compilers that cannot be stopped.
  int (*set_callback)(Program, int (*)(void*, void*), void*) = nullptr;
};

namespace {

constexpr int kSuccess = 0;
// Older versions cannot compile the C++ of our headers or make cubins for Hopper.
constexpr int kOldestMajor = 12;

template <class F>
bool bind(const Library& library, const char* name, F& function) {
  function = reinterpret_cast<F>(library.symbol(name));
  return function != nullptr;
}

bool bind_all(const Library& library, Nvrtc::Api& api) {
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

// A driver loads cubins of its own and of older major versions of CUDA, not of newer ones.
bool suits_driver(const Nvrtc& compiler) {
  const int version = loaded_driver().version;
  return version == 0 || compiler.major <= version / 1000;
}

Nvrtc load_best() {
  const LibraryName name = nvrtc_name();
  Nvrtc best;
  best.problem = cat("NVRTC is ", switched_off(name) ? "switched off" : "not installed", ": ",
                     missing_text(name));
  if (switched_off(name)) return best;
  for (const std::string& path : library_candidates(name)) {
    Nvrtc next = load_nvrtc(path);
    const bool good = next.problem.empty();
    if (good && suits_driver(next)) return next;
    if (best.problem.empty()) continue;
    if (good || named_by_user(name) || next.major != 0) best = std::move(next);
  }
  return best;
}

/// NVRTC's callback; it gets the address of `should_continue`.
int is_stopped(void* should_continue, void*) {
  return (*static_cast<const std::function<bool()>*>(should_continue))() ? 0 : 1;
}

template <class Size, class Get>
std::string text_of(NvrtcProgram* program, Size size, Get get) {
  std::size_t bytes = 0;
  if (size(program, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(program, text.data()) != kSuccess) return {};
  return text;
}

}  // namespace

LibraryName nvrtc_name() {
  return {"NVRTC",
          "TENON_NVRTC",
          {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
          {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}};
}

Nvrtc load_nvrtc(const std::string& path) {
  Nvrtc loaded;
  const Library library = open_file(path);
  loaded.path = library.path;
  if (library.handle == nullptr) {
    loaded.problem = cat("NVRTC cannot be loaded: ", library.problem);
    return loaded;
  }
  const auto api = std::make_shared<Nvrtc::Api>();
  loaded.api = api;
  int count = 0;
  if (!bind_all(library, *api) || api->version(&loaded.major, &loaded.minor) != kSuccess ||
      api->num_archs(&count) != kSuccess) {
    loaded.problem = cat(path, " lacks functions of NVRTC ", kOldestMajor, ".0 or newer");
    return loaded;
  }
  bind(library, "nvrtcSetFlowCallback", api->set_callback);
  loaded.archs.resize(static_cast<std::size_t>(std::max(count, 0)));
  api->archs(loaded.archs.data());
  std::sort(loaded.archs.begin(), loaded.archs.end());
  if (loaded.major < kOldestMajor)
    loaded.problem = cat("NVRTC ", loaded.major, ".", loaded.minor, " (", path,
                         ") is too old: install ", kOldestMajor, ".0 or newer");
  return loaded;
}

const Nvrtc& nvrtc() {
  static const Nvrtc* const loaded = new Nvrtc(load_best());
  return *loaded;
}

ArchChoice Nvrtc::choose_arch(int arch) const {
  // sm_90a has the instructions that only Hopper has.
  if (std::find(archs.begin(), archs.end(), arch) != archs.end())
    return {cat("--gpu-architecture=sm_", arch, arch == 90 ? "a" : ""), true};
  int newest = 80;
  for (const int each : archs)
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

CompileResult Nvrtc::compile(const std::string& text, const std::string& file_name,
                             const HeaderList& headers, int arch,
                             const std::function<bool()>& should_continue) const {
  CompileResult result;
  result.log = problem;
  if (!problem.empty()) return result;
  std::vector<const char*> names, texts;
  for (const auto& [name, body] : headers) {
    names.push_back(name.c_str());
    texts.push_back(body->c_str());
  }
  NvrtcProgram* program = nullptr;
  int status = api->create(&program, text.c_str(), file_name.c_str(),
                           static_cast<int>(names.size()), texts.data(), names.data());
  if (status != kSuccess) {
    result.log = api->error_text(status);
    return result;
  }
  const ArchChoice choice = choose_arch(arch);
  std::vector<const char*> options = common_options();
  options.push_back(choice.option.c_str());
  // Without textures and the runtime library's declarations, which the kernels do not use: a third
  // less to parse.
  if (std::pair(major, minor) >= std::pair(12, 4)) options.push_back("--minimal");
  // Our own cache has a size limit and a configurable folder.
  if (std::pair(major, minor) >= std::pair(12, 9)) options.push_back("--no-cache");
  std::function<bool()> callback = should_continue;
  if (callback && api->set_callback != nullptr) api->set_callback(program, is_stopped, &callback);
  status = api->compile(program, static_cast<int>(options.size()), options.data());
  result.log = text_of(program, api->log_size, api->log);
  if (status == kSuccess)
    result.image = choice.cubin ? text_of(program, api->cubin_size, api->cubin)
                                : text_of(program, api->ptx_size, api->ptx);
  if (result.image.empty()) result.log = cat(api->error_text(status), "\n", result.log.c_str());
  api->destroy(&program);
  return result;
}

}  // namespace tenon::cuda
