// Writes the store of kernels that are compiled ahead (cmake/TenonCubins.cmake). Runs the work of
// 'tenon train', 'eval', 'predict', 'bench' and 'doctor' for the reference networks on GPUs that do
// nothing (tools/idle_gpu.cpp), and stores every kernel that was requested. So the list follows the
// library. Compiled kernels stay in TENON_CACHE, and a later build compiles only new ones.
//
//   tenon_built_in STORE [OTHER]    OTHER is a store whose kernels are added
#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/train.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/str.h"
#include "base/system/cache_file.h"
#include "base/thread_pool.h"
#include "cuda/cuda.h"
#include "cuda/jit/build.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/kernel_cache.h"
#include "cuda/jit/nvrtc.h"
#include "step.h"

using namespace tenon;
namespace fs = std::filesystem;

namespace {

// Tiles depend on sizes, also on the size of an epoch's last batch. Parts of these sizes end with
// the same last batch as MNIST's 54,000 training samples, its 6,000 validation and 10,000 test
// samples, and as the 60,000 training samples of 'digits', for batch sizes that divide 256, and for
// evaluations, which take 500 samples at once.
constexpr std::int64_t kEvaluated = 500, kStored = 768 + 54000 % 256 + kEvaluated,
                       kDrawn = 1024 + 60000 % 256;

struct Row {
  const char* model;
  std::int64_t batch;
};
const Row kBenchRows[] = {
    {"lenet5", 64}, {"keras_cnn", 128}, {"fcn_r", 1024}, {"mlp:26752-2048-2048-2048-26752", 64}};
const char* const kTrained[] = {"lenet5", "keras_cnn", "mlp", "fcn_r"};
const Precision kPrecisions[] = {Precision::Fp32, Precision::Tf32, Precision::Bf16,
                                 Precision::Fp16};

/// The workloads of 'tenon bench'.
void bench(const Row& row) {
  const cli::Network network = cli::network_of(row.model);
  cli::Step training = cli::training_step(network, row.batch, cli::UpdateOptions());
  training.function(training.inputs);
  training.function.run_many(2, cli::shared_inputs(training));
  cli::Step inference = cli::make_step("infer", network, row.batch, cli::UpdateOptions());
  inference.function(inference.inputs);
}

void write_idx(const std::string& path, const std::vector<std::int64_t>& extents,
               const std::string& bytes) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const std::int64_t extent : extents)
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(extent >> shift & 255);
  io::write_file(path, file + bytes);
}

/// White images of ten classes, in the form of MNIST's files.
void write_images(const std::string& folder) {
  fs::create_directories(folder);
  for (const auto& [stem, count] : {std::pair("train", kStored), std::pair("t10k", kEvaluated)}) {
    std::string labels;
    for (std::int64_t i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
    write_idx(cat(folder, "/", stem, "-images-idx3-ubyte"), {count, 28, 28},
              std::string(static_cast<std::size_t>(count) * 784, '\0'));
    write_idx(cat(folder, "/", stem, "-labels-idx1-ubyte"), {count}, labels);
  }
}

/// A run from a dataset in GPU memory ('tenon train --data mnist'), or from batches that the host
/// produces (drawn digits).
void train(const std::string& model, const std::string& optimizer, Precision precision,
           const std::string& data, const std::string& run) {
  train::Settings settings = train::Settings::for_model(model);
  settings.set("data", data);
  settings.set("device", current_device().str());
  settings.set("precision", name(precision));
  settings.set("tune", name(tune()));
  settings.set("epochs", "1");
  if (!optimizer.empty()) settings.set("optimizer", optimizer);
  fs::remove_all(run);
  train::start_run(settings, run);
}

/// The programs of all networks on the default device, with the default choice of engines.
void run_networks(const std::string& folder) {
  const auto share = [](std::int64_t samples) {  // for kEvaluated validation samples
    return cat(",validation=", static_cast<double>(kEvaluated) / static_cast<double>(samples));
  };
  const std::string drawn = cat("digits:", kDrawn, ",", kEvaluated, share(kDrawn)),
                    stored = cat("idx:", folder, share(kStored)),
                    run = folder + "/run";
  for (const Precision precision : kPrecisions) {
    set_precision(precision);
    for (const Row& row : kBenchRows) bench(row);
  }
  set_precision(Precision::Fp32);
  for (const char* model : kTrained) {
    const bool adam = models::info(model).recipe.optimizer == "adam";
    for (const Precision precision : kPrecisions)
      for (const std::string& data : {drawn, stored})
        for (const char* optimizer : {"", adam ? "sgd" : "adam"})
          train(model, optimizer, precision, data, "");
    train(model, "", Precision::Fp32, stored, run);
    train::TrainedModel trained = train::TrainedModel::open(run);
    for (const Precision precision : kPrecisions) {
      trained.set_precision(precision);
      trained.evaluate();
      for (const std::int64_t count : {1, 5})
        trained.predict(zeros({count, 1, 28, 28}, DType::UInt8));
      trained.predict(*trained.open_set({.data = drawn, .part = data::Split::Test}), 0, 5,
                      [](train::Prediction&&, const Tensor&) {});
    }
  }
}

/// Adds the kernels of `sources` for an architecture: ten times the compute capability; 0 for PTX.
/// Kernels that are there already are left out.
void add_kernels(std::vector<cuda::BuiltIn>& kernels, std::vector<cuda::Source> sources, int arch,
                 const cuda::KernelCache& cache) {
  std::erase_if(sources, [&](const cuda::Source& source) {
    const std::string option = cuda::nvrtc().choose_arch(arch).option;
    const auto key = cuda::built_in_key(source, option);
    return std::any_of(kernels.begin(), kernels.end(), [&](const cuda::BuiltIn& k) {
      return k.arch_option == option && k.key == key;
    });
  });
  const std::size_t first = kernels.size();
  kernels.resize(first + sources.size());
  parallel_for(static_cast<std::int64_t>(sources.size()), [&](std::int64_t i, int) {
    const cuda::Source& source = sources[static_cast<std::size_t>(i)];
    const std::string option = cuda::nvrtc().choose_arch(arch).option;
    kernels[first + static_cast<std::size_t>(i)] = {option, cuda::built_in_key(source, option),
                                                    cuda::build_image(source, arch, cache).bytes};
  });
}

void write_store(const std::string& path, const std::string& other) {
  const std::string folder = path + ".work";
  write_images(folder);
  const int toolkit = 1000 * cuda::nvrtc().major + 10 * cuda::nvrtc().minor;
  std::vector<cuda::BuiltIn> kernels;
  if (!other.empty()) kernels = cuda::read_store(io::read_file(other));
  const cuda::KernelCache cache(cache_folder_of("kernels"));
  for (const int gpu : {0, 1, 2}) {
    set_device(cat("cuda:", gpu));
    for (const Tune mode : {Tune::Read, Tune::Off}) {
      set_tune(mode);
      run_networks(folder);
    }
    cuda::measure_rates(gpu);
    const std::vector<cuda::Source> sources = cuda::sources_for(gpu);
    const int arch = cuda::target_of(gpu).arch;
    if (arch <= 90) add_kernels(kernels, sources, arch, cache);
    // GPUs that are newer than the compiler run the kernels for GPUs before Hopper. Tiles depend on
    // the number of multiprocessors, so those of a newer GPU are added.
    if (arch != 90) add_kernels(kernels, sources, 0, cache);
  }
  fs::remove_all(folder);
  const std::string store = cuda::make_store(toolkit, kernels);
  io::write_file(path, store);
  const cuda::JitStats stats = cuda::jit_stats();
  std::printf("%s: %.1f MB; %lld compiled while planning, the slowest in %.1f s\n",
              cuda::store_text(cuda::store_facts(store)).c_str(),
              static_cast<double>(store.size()) * 1e-6, static_cast<long long>(stats.compiled),
              stats.longest_ms * 1e-3);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr char kUsage[] =
      "usage: tenon_built_in STORE [OTHER]\n"
      "compiles the kernels of the reference networks into STORE, with those that OTHER holds\n";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
    if (!word.starts_with('-')) continue;
    std::fprintf(stderr, "tenon_built_in: there is no option %s\n%s", argv[i], kUsage);
    return 2;
  }
  if (argc != 2 && argc != 3) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    write_store(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon_built_in: %s\n", error.what());
    return 1;
  }
  return 0;
}
