// tenon doctor: shows the hardware, which of its features Tenon uses, and measured speed.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/io.h>
#include <tenon/system.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "json.h"
#include "terminal.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

struct DoctorOptions {
  int threads = 0;
  bool quick = false, json = false;
};

struct FoundData {
  std::string name;
  bool present;
  std::string place;  // where the data is or, if not present, the places searched
};

std::vector<FoundData> look_for_data() {
  const FetchedMnist mnist = fetched_mnist();
  return {{"digits", true, "generated on demand"},
          {"scenes", true, "generated on demand"},
          {"mnist", mnist.present,
           mnist.present          ? mnist.folder
           : mnist.folder.empty() ? "no folder: neither HOME nor TENON_DATA_DIR names one"
           : mnist.problem.empty()
               ? fmt::format("not found in {}; 'tenon data fetch mnist' gets it", mnist.folder)
               : fmt::format("{} cannot be read: {}", mnist.folder, mnist.problem)}};
}

// Advice about the machine, if there is any.
std::vector<std::string> advice(const SystemInfo& info, int used) {
  std::vector<std::string> lines;
  if (info.isa_available == "base")
    lines.push_back("this processor has no AVX2: training is several times slower");
  if (used > info.cpus_allowed)
    lines.push_back(fmt::format("{} threads share {} CPUs: that is slower than {}", used,
                                info.cpus_allowed, info.cpus_allowed));
  if (info.memory_available > 0 && info.memory_available < (std::int64_t{512} << 20))
    lines.push_back(
        "little memory is free: use a small --batch; 'tenon summary MODEL --batch N' shows the "
        "memory it needs");
  return lines;
}

// GPUs with their rates, and NVIDIA libraries with their paths.
void print_gpus(bool measured) {
  const Terminal& terminal = stdout_terminal();
  const auto line = [&](const std::string& name, const std::string& text) {
    fmt::print("{} {}\n", terminal.paint(TextStyle::Cyan, pad_right(name, 14)), text);
  };
  const CudaInfo cuda = cuda_info();
  if (!cuda.why_none.empty()) line("cuda", fmt::format("none: {}", cuda.why_none));
  for (std::size_t k = 0; k < cuda.gpus.size(); ++k) {
    const GpuInfo& gpu = cuda.gpus[k];
    line(gpu.device, fmt::format("{}, capability {}.{}, {} multiprocessors, {}, {} free", gpu.name,
                                 gpu.capability / 10, gpu.capability % 10, gpu.multiprocessors,
                                 bytes_text(gpu.memory_total), bytes_text(gpu.memory_free)));
    if (!measured) continue;
    const GpuSpeed speed = measure_gpu(static_cast<int>(k));
    line("", fmt::format("fp32 {:.1f}, tf32 {:.0f}, bf16 {:.0f} TFLOP/s, memory {:.0f} GB/s read "
                         "and written",
                         speed.fp32_flops * 1e-12, speed.tf32_flops * 1e-12,
                         speed.bf16_flops * 1e-12, speed.copy_bytes * 1e-9));
  }
  for (const CudaLibrary& library : cuda.libraries)
    line(library.name, library.found ? fmt::format("{} in {}", library.version, library.path)
                                     : fmt::format("not found: {}", library.version));
  line("kernels", cuda.built_in.empty() ? std::string("none compiled ahead in this build")
                                        : fmt::format("compiled ahead: {}", cuda.built_in));
}

Json json_of_gpus(bool measured) {
  const CudaInfo cuda = cuda_info();
  Json gpus = Json::array(), libraries = Json::array();
  for (std::size_t k = 0; k < cuda.gpus.size(); ++k) {
    const GpuInfo& gpu = cuda.gpus[k];
    Json row{{"device", gpu.device},
             {"name", gpu.name},
             {"capability", gpu.capability},
             {"multiprocessors", gpu.multiprocessors},
             {"memory_total", gpu.memory_total},
             {"memory_free", gpu.memory_free}};
    if (measured) {
      const GpuSpeed speed = measure_gpu(static_cast<int>(k));
      row["fp32_tflops"] = speed.fp32_flops * 1e-12;
      row["tf32_tflops"] = speed.tf32_flops * 1e-12;
      row["bf16_tflops"] = speed.bf16_flops * 1e-12;
      row["copy_gb_per_s"] = speed.copy_bytes * 1e-9;
    }
    gpus.push_back(std::move(row));
  }
  for (const CudaLibrary& library : cuda.libraries)
    libraries.push_back({{"name", library.name},
                         {"found", library.found},
                         {"path", library.path},
                         {"version", library.version}});
  return {{"why_none", cuda.why_none},
          {"gpus", gpus},
          {"libraries", libraries},
          {"built_in", cuda.built_in}};
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (const std::int64_t bytes : sizes) texts.push_back(bytes_text(bytes));
  return sizes.empty() ? "unknown" : join(texts, ", ");
}

void print_text(const SystemInfo& info, const SystemSpeed* speed, int used) {
  const Terminal& terminal = stdout_terminal();
  const auto line = [&](const char* name, const std::string& text) {
    fmt::print("{} {}\n", terminal.paint(TextStyle::Cyan, pad_right(name, 14)), text);
  };
  line("tenon", fmt::format("{} ({})", info.version, info.build));
  line("processor", info.cpu);
  line("instructions", info.features.empty() ? "baseline only" : join(info.features, " "));
  line("kernels used", info.isa == info.isa_available
                           ? info.isa
                           : fmt::format("{}; the processor has {}, and TENON_ISA limits it",
                                         info.isa, info.isa_available));
  line("data caches", fmt::format("{}; plans assume {} per core", sizes_text(info.caches),
                                  sizes_text(info.caches_assumed)));
  line("CPUs", fmt::format("{}, this process may use {}", info.cpus, info.cpus_allowed));
  line("threads", fmt::format("{}", used));
  line("memory", fmt::format("{}, {} available", bytes_text(info.memory_total),
                             bytes_text(info.memory_available)));
  if (speed != nullptr) {
    line("fp32 peak", fmt::format("{:.1f} GFLOP/s with {} thread{}", speed->fp32_flops * 1e-9, used,
                                  used == 1 ? "" : "s"));
    line("bf16 peak", fmt::format("{:.1f} GFLOP/s", speed->bf16_flops * 1e-9));
    line("memory copy", fmt::format("{:.1f} GB/s read and written", speed->copy_bytes * 1e-9));
  }
  print_gpus(speed != nullptr);
  std::vector<std::string> formats, missing;
  for (const io::ImageFormat& format : io::image_formats()) {
    auto& list = format.library.empty() ? missing : formats;
    list.push_back(format.library.empty() || format.library == "Tenon"
                       ? format.name
                       : fmt::format("{} ({})", format.name, format.library));
  }
  line("images", join(formats, ", ") + (missing.empty() ? "" : "; not in this build: ") +
                     join(missing, ", "));
  const std::string video = io::video_format().library;
  line("videos", video.empty() ? "none: FFmpeg is not in this build, or not installed" : video);
  const std::string cache = cache_folder();
  std::error_code failed;
  const bool exists = std::filesystem::exists(cache, failed);
  line("cache folder", cache.empty() ? "none: neither HOME nor TENON_CACHE names a folder"
                       : failed ? fmt::format("{} (cannot be used: {})", cache, failed.message())
                       : exists ? cache
                                : cache + " (not created yet)");
  for (const FoundData& data : look_for_data()) line(("data " + data.name).c_str(), data.place);
  for (const std::string& text : advice(info, used))
    fmt::print("{} {}\n", terminal.paint(TextStyle::Yellow, "note:"), text);
}

void print_json(const SystemInfo& info, const SystemSpeed* speed, int used) {
  Json json{{"version", info.version},
            {"build", info.build},
            {"cpu", info.cpu},
            {"features", info.features},
            {"isa", info.isa},
            {"isa_available", info.isa_available},
            {"caches", info.caches},
            {"caches_assumed", info.caches_assumed},
            {"cpus", info.cpus},
            {"cpus_allowed", info.cpus_allowed},
            {"threads", used},
            {"memory_total", info.memory_total},
            {"memory_available", info.memory_available}};
  if (speed != nullptr) {
    json["fp32_gflops"] = speed->fp32_flops * 1e-9;
    json["bf16_gflops"] = speed->bf16_flops * 1e-9;
    json["copy_gb_per_s"] = speed->copy_bytes * 1e-9;
  }
  json["cuda"] = json_of_gpus(speed != nullptr);
  json["images"] = Json::object();
  for (const io::ImageFormat& format : io::image_formats())
    json["images"][format.name] = format.library;
  json["videos"] = io::video_format().library;
  json["cache_folder"] = cache_folder();
  json["data"] = Json::object();
  for (const FoundData& data : look_for_data()) json["data"][data.name] = data.present;
  print(json, 2);
}

int run_doctor(const DoctorOptions& options) {
  if (options.threads < 0)
    throw UsageError(fmt::format("--threads: {} is negative", options.threads));
  use_threads(options.threads);
  const int used = threads();
  const SystemInfo info = system_info();
  SystemSpeed speed;
  if (!options.quick) {
    if (!options.json) status_line("measuring for about a second ...");
    speed = measure_system(used);
    clear_status_line();
  }
  const SystemSpeed* measured = options.quick ? nullptr : &speed;
  if (options.json)
    print_json(info, measured, used);
  else
    print_text(info, measured, used);
  return kOk;
}

}  // namespace

Command doctor_command() {
  auto options = std::make_shared<DoctorOptions>();
  Command command;
  command.name = "doctor";
  command.summary = "show the machine, the features in use and measured speed";
  command.about =
      "Shows the processor with the instruction sets that Tenon has kernels for, threads and "
      "memory, measured peak arithmetic and memory copy rates, NVIDIA GPUs with their rates and "
      "libraries, and the datasets on disk. Measuring takes about two seconds; other load on the "
      "machine lowers the rates. Attach the output to bug reports.";
  command.examples = {{"tenon doctor", "The whole report."},
                      {"tenon doctor --threads 1", "The peak rate of one core."},
                      {"tenon doctor --json", "The report as JSON for programs."}};
  command.option(options->threads, "--threads", "N", "threads to measure with",
                 "all CPUs this process may use");
  command.flag(options->quick, "--quick", "show facts only, without measuring");
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_doctor(*options); };
  return command;
}

}  // namespace tenon::cli
