// Sources: NVIDIA's data sheets of H200, H100, A100, L40 and L40S; the white papers of GA100, AD102
// and GH100 for rates of a multiprocessor. Clocks are those at which the sheets' rates hold.
#include "cuda/device/gpu_models.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/str.h"
#include "base/system/cache_file.h"

namespace tenon::cuda {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::string_view kFormat = "tenon-gpu 1\n";

/// `cache`: bytes of the L2 cache, as the driver reports them.
constexpr GpuModel hopper(int multiprocessors, double clock, double memory, std::int64_t cache) {
  GpuModel gpu;
  gpu.cache_bytes = cache;
  gpu.multiprocessors = multiprocessors;
  gpu.clock = clock;
  gpu.memory = memory;
  return gpu;
}

constexpr GpuModel ampere(int multiprocessors, double clock, double memory) {
  GpuModel gpu = hopper(multiprocessors, clock, memory, 40 * kMiB);
  gpu.shared_bytes = 156 * 1024;
  gpu.fp64 = 32, gpu.fp32 = 64, gpu.tf32 = 512, gpu.half = 1024;
  gpu.mma_share = 0.9;  // from measurements of CUTLASS: mma.sync is the only matrix instruction
  return gpu;
}

/// Also for compute capability 8.6, which has the same multiprocessor. `half`: the 16-bit rate with
/// float32 sums, which GeForce GPUs compute at half the rate.
constexpr GpuModel ada(int multiprocessors, double clock, double memory, std::int64_t cache,
                       double half) {
  GpuModel gpu = ampere(multiprocessors, clock, memory);
  gpu.cache_bytes = cache;
  gpu.shared_bytes = 96 * 1024;
  gpu.fp64 = 2, gpu.fp32 = 128, gpu.tf32 = half / 2, gpu.half = half;
  return gpu;
}

/// The rate of mma.sync is Hopper's; Blackwell's own instructions reach twice that.
constexpr GpuModel blackwell(int multiprocessors, double clock, double memory) {
  GpuModel gpu = hopper(multiprocessors, clock, memory, 126 * kMiB);
  gpu.tf32 *= 2, gpu.half *= 2, gpu.mma_share /= 2;
  return gpu;
}

struct Named {
  std::string_view name;  // how the driver's name of the GPU begins
  GpuModel gpu;
};

// A longer name comes before a name that it begins with.
constexpr Named kNamed[] = {
    {"NVIDIA B200", blackwell(148, 1.85e9, 8.0e12)},
    {"NVIDIA H200", hopper(132, 1.755e9, 4.8e12, 60 * kMiB)},
    {"NVIDIA H100 PCIe", hopper(114, 1.62e9, 2.0e12, 50 * kMiB)},
    {"NVIDIA H100", hopper(132, 1.755e9, 3.35e12, 50 * kMiB)},
    {"NVIDIA A100-PCIE-40GB", ampere(108, 1.41e9, 1.555e12)},
    {"NVIDIA A100-SXM4-40GB", ampere(108, 1.41e9, 1.555e12)},
    {"NVIDIA A100", ampere(108, 1.41e9, 2.039e12)},
    {"NVIDIA GeForce RTX 4090", ada(128, 2.52e9, 1.008e12, 72 * kMiB, 256)},
    {"NVIDIA L40S", ada(142, 2.52e9, 0.864e12, 96 * kMiB, 512)},
    {"NVIDIA L40", ada(142, 2.49e9, 0.864e12, 96 * kMiB, 256)},
};

/// The figures that `tenon doctor` measures, by name.
template <class Gpu>
auto figures(Gpu& gpu) {
  return std::array<std::pair<std::string_view, decltype(&gpu.memory)>, 4>{
      {{"memory", &gpu.memory}, {"fp32", &gpu.fp32}, {"tf32", &gpu.tf32}, {"half", &gpu.half}}};
}

}  // namespace

std::optional<GpuModel> named_gpu(std::string_view name) {
  for (const Named& each : kNamed)
    if (name.starts_with(each.name)) return each.gpu;
  return {};
}

GpuModel gpu_of_arch(int arch) {
  if (arch == 80 || arch == 87) return *named_gpu("NVIDIA A100");
  if (arch < 90) return *named_gpu("NVIDIA GeForce RTX 4090");
  return *named_gpu(arch == 90 ? "NVIDIA H200" : "NVIDIA B200");
}

GpuModel gpu_compiled_for(int arch) { return gpu_of_arch(arch < 90 ? 80 : arch); }

std::string gpu_text(const GpuModel& gpu) {
  std::string text(kFormat);
  for (const auto& [name, figure] : figures(gpu))
    text += cat(name, " ", static_cast<std::int64_t>(std::llround(*figure)), "\n");
  return text;
}

bool read_gpu(std::string_view text, GpuModel& gpu) {
  if (!text.starts_with(kFormat)) return false;
  text.remove_prefix(kFormat.size());
  GpuModel read = gpu;
  for (const auto& [name, figure] : figures(read)) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with(' ')) return false;
    text.remove_prefix(name.size() + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *figure);
    if (error != std::errc() || !(*figure > 0 && std::isfinite(*figure))) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('\n')) return false;
    text.remove_prefix(1);
  }
  gpu = read;
  return text.empty();
}

namespace {

std::string file_of(std::string_view name) {
  std::string file;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    file += plain ? c : '_';
  }
  const std::string folder = cache_folder_of("gpus");
  return folder.empty() ? "" : cat(folder, "/", file);
}

}  // namespace

void add_measured(std::string_view name, GpuModel& gpu) {
  constexpr std::size_t kLargest = std::size_t{1} << 16;
  const std::string file = file_of(name);
  if (file.empty()) return;
  if (const std::optional<std::string> text = read_cache_file(file, kLargest)) read_gpu(*text, gpu);
}

void keep_measured(std::string_view name, const GpuModel& gpu) {
  if (const std::string file = file_of(name); !file.empty())
    write_cache_file(file, {gpu_text(gpu)});
}

}  // namespace tenon::cuda
