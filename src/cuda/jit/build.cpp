// Keys of kernels, and the path through the built-in store, the disk cache and the compiler.
#include "cuda/jit/build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include <tenon/error.h>

#include "base/make_error.h"
#include "cuda/device/opening/driver.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/helpers.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/jit/workers.h"
#include "graph/element_code.h"

namespace tenon::cuda {

namespace {

// A process may end while its kernels are compiled. NVRTC creates objects of static lifetime during
// its first compilations, some of them late in a compilation. A thread that continues after their
// destruction crashes or never ends. The very first compilation is therefore short, and during the
// next ones the process's end is told repeatedly to wait for the workers.
constexpr int kFirstCompilations = 16;

void prepare_compiler(int arch) {
  static std::once_flag once;
  std::call_once(once, [&] {
    nvrtc().compile("extern \"C\" __global__ void nothing() {}\n", "nothing.cu", {}, arch);
    stop_workers_at_exit();
  });
}

CompileResult compile_here(const Source& source, const std::string& file_name, int arch) {
  if (are_workers_stopped()) return {};
  static std::atomic<int> begun{0};
  prepare_compiler(arch);
  const bool is_early = begun < kFirstCompilations && begun++ < kFirstCompilations;
  return nvrtc().compile(source.text, file_name, headers_of(source.text), arch, [is_early] {
    if (is_early) stop_workers_at_exit();
    return !are_workers_stopped();
  });
}

}  // namespace

std::string own_operations(const std::string& text) {
  std::string names;
  const std::size_t length = std::strlen(kOwnOperation);
  for (std::size_t at = text.find(kOwnOperation); at != std::string::npos;
       at = text.find(kOwnOperation, at + length)) {
    const std::size_t begin = at + length, end = std::min(text.find('\n', begin), text.size());
    names += cat(names.empty() ? "" : ", ", text.substr(begin, end - begin));
  }
  return names;
}

void warm_compiler() {
  if (nvrtc().problem.empty() && most_helpers() == 0) prepare_compiler(nvrtc().archs.back());
}

Digest key_of(const Source& source, int arch) {
  Digester digester;
  digester.add(source.text);
  for (const auto& [name, text] : headers_of(source.text)) {
    digester.add(name);
    digester.add(*text);
  }
  for (const char* option : common_options()) digester.add(option);
  digester.add(nvrtc().choose_arch(arch).option);
  digester.add(cat(nvrtc().major, ".", nvrtc().minor));
  return digester.result();
}

Image find_image(const Source& source, int arch, const KernelCache& cache) {
  Image image;
  const bool no_compiler = !nvrtc().problem.empty();
  image.origin = Image::Origin::BuiltIn;
  image.bytes = find_built_in(usable_store(), source, arch, loaded_driver().version, no_compiler);
  if (!image.bytes.empty()) return image;
  if (no_compiler)
    throw DeviceError(
        cat(nvrtc().problem, "; the kernel ", source.entry,
            " is not compiled ahead in this build: install a CUDA toolkit or the Python "
            "wheel nvidia-cuda-nvrtc, or use --device cpu"));
  image.origin = Image::Origin::Disk;
  image.bytes = cache.read(key_of(source, arch));
  return image;
}

Image compile_image(const Source& source, int arch, const KernelCache& cache) {
  Image image;
  image.origin = Image::Origin::Compiler;
  const auto start = std::chrono::steady_clock::now();
  const std::string file_name = cat(source.entry, ".cu");
  CompileResult result = compile_or_have_compiled(
      source.text, file_name, arch, [&] { return compile_here(source, file_name, arch); });
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  image.compile_ms = spent.count();
  if (result.image.empty() && !own_operations(source.text).empty())
    throw make_error<ValueError>(OpPlace{own_operations(source.text), {}},
                                 ": its CUDA source does not compile for sm_", arch, " with NVRTC ",
                                 nvrtc().major, ".", nvrtc().minor, "; the compiler says:\n",
                                 result.log);
  if (result.image.empty())
    throw NotSupported(cat("the device kernel ", source.entry, " does not compile for sm_", arch,
                           " with NVRTC ", nvrtc().major, ".", nvrtc().minor,
                           ": please report it; the compiler says:\n", result.log));
  cache.write(key_of(source, arch), result.image);
  image.bytes = std::move(result.image);
  return image;
}

Image build_image(const Source& source, int arch, const KernelCache& cache) {
  Image image = find_image(source, arch, cache);
  return image.bytes.empty() ? compile_image(source, arch, cache) : image;
}

}  // namespace tenon::cuda
