// The CUDA part of `tenon doctor`: libraries, where they were found, GPUs.
#include "cuda/cuda.h"
#include "cuda/device/gpu.h"
#include "cuda/device/nvjpeg.h"
#include "cuda/device/opening/driver.h"
#include "cuda/device/vendor_library.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

LibraryFact driver_fact() {
  const LoadedDriver& loaded = loaded_driver();
  if (loaded.version == 0) return {"driver", false, loaded.path, loaded.problem};
  return {"driver", true, loaded.path, cat("CUDA ", version_text(loaded.version))};
}

LibraryFact compiler_fact() {
  const Nvrtc& facts = nvrtc();
  if (!facts.problem.empty()) return {"NVRTC", false, facts.path, facts.problem};
  return {"NVRTC", true, facts.path, cat(facts.major, ".", facts.minor)};
}

LibraryFact library_fact(const char* name, const Library& library, const char* version_symbol) {
  if (library.handle == nullptr) return {name, false, library.path, library.problem};
  using Version = std::size_t (*)();
  const auto version = reinterpret_cast<Version>(library.symbol(version_symbol));
  // Both count 10000 * major + 100 * minor + patch.
  const std::size_t number = version != nullptr ? version() : 0;
  return {name, true, library.path,
          cat(number / 10000, ".", number / 100 % 100, ".", number % 100)};
}

LibraryFact jpeg_fact() {
  const Nvjpeg& jpeg = loaded_nvjpeg();
  if (!jpeg.problem.empty()) return {"nvJPEG", false, jpeg.path, jpeg.problem};
  return {"nvJPEG", true, jpeg.path, jpeg.version};
}

std::string built_in_fact() {
  const StoreFacts store = store_facts(usable_store());
  if (store.sets.empty()) return {};
  const int served = loaded_driver().version;
  const bool too_new = served != 0 && store.toolkit / 1000 > served / 1000;
  return cat(store_text(store), ", by CUDA ", version_text(store.toolkit),
             too_new ? ", which this driver is too old for" : "");
}

std::int64_t free_memory(int index) {
  std::size_t available = 0, total = 0;
  context_of(index);
  if (driver().cuMemGetInfo(&available, &total) != CUDA_SUCCESS) return 0;
  return static_cast<std::int64_t>(available);
}

}  // namespace

std::vector<std::string_view> measured_choices() {
  std::vector<std::string_view> tables;
  if (!nvrtc().problem.empty() && usable_store().empty()) return tables;
  for (const EmbeddedFile& file : embedded_files())
    if (file.name.starts_with("cuda/tuned/")) tables.push_back(file.text);
  return tables;
}

Facts facts() {
  Facts all;
  all.libraries = {driver_fact(), compiler_fact(),
                   library_fact("cuBLASLt", cublaslt_library(), "cublasLtGetVersion"),
                   library_fact("cuDNN", cudnn_library(), "cudnnGetVersion"), jpeg_fact()};
  all.why_none = why_no_gpu();
  all.built_in = built_in_fact();
  for (int index = 0; index < usable_gpus(); ++index) {
    const Gpu& gpu = gpu_at(index);
    all.gpus.push_back({gpu.name, gpu.target, gpu.memory_total, free_memory(index)});
  }
  return all;
}

}  // namespace tenon::cuda
