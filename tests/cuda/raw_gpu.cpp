// Loading the driver and NVRTC for tests, as the environment or the system names them.
#include "raw_gpu.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace raw {
namespace {

void* open_first(const char* variable, std::vector<std::string> files) {
  if (const char* named = std::getenv(variable); named != nullptr) files = {named};
  for (const std::string& file : files) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW); library != nullptr) return library;
  }
  throw std::runtime_error("no " + files[0]);
}

template <class F>
F* symbol(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

/// Headers that a kernel may include, from the source folder, where tests run.
std::string header(const std::string& name) {
  std::ifstream in("src/" + name);
  if (!in) throw std::runtime_error("no src/" + name + ": run the tests in the source folder");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Gpu::Gpu() {
  void* driver = open_first("TENON_CUDA_DRIVER", {"libcuda.so.1"});
  nvrtc_ = open_first("TENON_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
#define TENON_RAW_LOAD(name, text, parameters) \
  call.name = reinterpret_cast<decltype(call.name)>(dlsym(driver, text));
  TENON_DRIVER_REQUIRED(TENON_RAW_LOAD)
  TENON_DRIVER_OPTIONAL(TENON_RAW_LOAD)
#undef TENON_RAW_LOAD
  if (call.cuInit == nullptr) throw std::runtime_error("the driver lacks cuInit");
  check(call.cuInit(0));
  char name[64] = "";
  check(call.cuDeviceGetName(name, sizeof name, 0));
  emulated = std::string(name) == "Emulated GPU";
  check(call.cuDevicePrimaryCtxRetain(&context, 0));
  check(call.cuCtxSetCurrent(context));
  check(call.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

CUfunction Gpu::compile(const std::string& text, const std::string& entry) {
  auto* create =
      symbol<int(void**, const char*, const char*, int, const char* const*, const char* const*)>(
          nvrtc_, "nvrtcCreateProgram");
  auto* build = symbol<int(void*, int, const char* const*)>(nvrtc_, "nvrtcCompileProgram");
  auto* log_size = symbol<int(void*, std::size_t*)>(nvrtc_, "nvrtcGetProgramLogSize");
  auto* log = symbol<int(void*, char*)>(nvrtc_, "nvrtcGetProgramLog");
  auto* size = symbol<int(void*, std::size_t*)>(nvrtc_, "nvrtcGetCUBINSize");
  auto* get = symbol<int(void*, char*)>(nvrtc_, "nvrtcGetCUBIN");
  auto* destroy = symbol<int(void**)>(nvrtc_, "nvrtcDestroyProgram");
  const char* const names[] = {"cuda/kernels/intrinsics.cuh", "scalar/convert.h",
                               "scalar/config.h"};
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  for (const char* name : names) texts.push_back(header(name));
  for (const std::string& one : texts) pointers.push_back(one.c_str());
  int major = 0, minor = 0;
  call.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  call.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  const std::string arch = "--gpu-architecture=sm_" + std::to_string(10 * major + minor);
  const char* const options[] = {arch.c_str(), "--std=c++17"};
  void* program = nullptr;
  create(&program, text.c_str(), "test.cu", 3, pointers.data(), names);
  const int result = build(program, 2, options);
  std::size_t bytes = 0;
  log_size(program, &bytes);
  std::vector<char> words(bytes);
  log(program, words.data());
  std::vector<char> image;
  if (result == 0) {
    size(program, &bytes);
    image.resize(bytes);
    get(program, image.data());
  }
  destroy(&program);
  if (result != 0) throw std::runtime_error(words.data());
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(call.cuModuleLoadData(&module, image.data()));
  check(call.cuModuleGetFunction(&function, module, entry.c_str()));
  return function;
}

CUresult Gpu::launch(CUfunction function, Size grid, Size block, std::vector<void*> params,
                     unsigned shared_bytes) {
  return call.cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             shared_bytes, stream, params.data(), nullptr);
}

std::string Gpu::words(CUresult result) {
  const char* text = nullptr;
  call.cuGetErrorString(result, &text);
  return text == nullptr ? "error " + std::to_string(static_cast<int>(result)) : text;
}

void Gpu::check(CUresult result) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(words(result));
}

Gpu* gpu() {
  static std::string problem;
  static const std::unique_ptr<Gpu> only = []() -> std::unique_ptr<Gpu> {
    try {
      return std::unique_ptr<Gpu>(new Gpu);
    } catch (const std::exception& error) {
      problem = error.what();
      return nullptr;
    }
  }();
  if (only == nullptr) {
    std::printf("skipped: %s\n", problem.c_str());
    return nullptr;
  }
  only->call.cuCtxSetCurrent(only->context);
  return only.get();
}

}  // namespace raw
