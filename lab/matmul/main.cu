// Checks and times every step of the ladder beside cuBLAS and one CPU core; prints a table and
// writes JSON. Not linked into the library.
//
//   matmul [--steps thread,shared,registers,mma,wgmma] [--sizes 1024,4096,8192] [--all]
//          [--json FILE] [--limit SECONDS]
//
// --all measures every choice of tiles of step 5. Each step runs in a process of its own, which is
// ended after --limit seconds (60), so that a kernel that hangs affects its own step only.
// README.md explains the figures.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "cpu.h"
#include "element.cuh"
#include "ladder.h"

using namespace lab;

namespace {

struct Options {
  std::vector<int> sizes = {1024, 4096, 8192};
  std::string steps = "thread,shared,registers,mma,wgmma", json;
  bool all = false;
  unsigned limit = 60;
};

/// The host's data for one size: operands as floats (for bfloat16: rounded), and some rows of the
/// product.
struct Operands {
  Product p;
  std::vector<float> a, b;
  std::vector<int> rows;
  std::vector<double> reference;
  double cpu_flops = 0;  // of one core
};

struct Row {
  int step = 0, size = 0, samples = 0;
  Element element = Element::Float32;
  bool trans_a = false, trans_b = false, right = false;
  char way[64] = {};
  double ms = 0, spread = 0, cublas_ms = 0, cublaslt_ms = 0, error = 0, cpu_ms = 0;
  double rested_ms = 0, rested_cublas_ms = 0;
};

/// The processes' results for their parent, in shared memory.
struct Report {
  char gpu[320], driver[32], vendor[64];
  Peaks peaks;
  int rows, wrong;
  int checking;        // the way under check, as an index into all_ways()
  bool broken[5][32];  // by step and way: not to be measured
  Row row[256];
};

const char* name_of(Element element) { return element == Element::Float32 ? "fp32" : "bf16"; }
double flop(const Product& p) { return 2.0 * p.m * p.n * p.k; }

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  std::fflush(stdout);
  std::_Exit(2);
}

/// With `all_rows` the whole reference; otherwise one random row of every 64, so that every tile is
/// checked.
Operands make_operands(const Product& p, bool all_rows, std::uint64_t seed) {
  Operands o;
  o.p = p;
  o.a.resize(static_cast<std::size_t>(p.m) * p.k);
  o.b.resize(static_cast<std::size_t>(p.k) * p.n);
  fill_random(o.a, seed);
  fill_random(o.b, seed + 1);
  if (p.element == Element::BFloat16) {
    o.a = from_bf16(to_bf16(o.a));
    o.b = from_bf16(to_bf16(o.b));
  }
  std::srand(static_cast<unsigned>(seed));
  for (int row = 0; row < p.m; row += all_rows ? 1 : 64) {
    o.rows.push_back(std::min(p.m - 1, row + (all_rows ? 0 : std::rand() % 64)));
  }
  o.reference = reference_rows(o.rows, o.a.data(), o.b.data(), p.n, p.k);
  return o;
}

/// FLOP/s of one core on as many rows of the product as take about a third of a second.
double time_one_core(const Operands& o) {
  const double wanted = 3e10;
  const int m = std::min(o.p.m, static_cast<int>(wanted / (2.0 * o.p.n * o.p.k)) / 12 * 12);
  std::vector<float> c(static_cast<std::size_t>(m) * o.p.n);
  std::vector<double> seconds;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    multiply_on_one_core(o.a.data(), o.b.data(), c.data(), m, o.p.n, o.p.k);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return 2.0 * m * o.p.n * o.p.k / seconds[1];
}

// ---- on the GPU ----

__global__ void transpose_kernel(const bf16* from, bf16* to, int rows, int columns) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (row < rows && column < columns) {
    to[static_cast<long long>(column) * rows + row] =
        from[static_cast<long long>(row) * columns + column];
  }
}

/// Sums of (x - y)² and y², one pair per block.
template <class T>
__global__ void distance_kernel(const T* x, const T* y, long long count, double* out) {
  __shared__ double sums[2][256];
  double off = 0, all = 0;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
    const double u = to_float(x[i]), v = to_float(y[i]);
    off += (u - v) * (u - v);
    all += v * v;
  }
  sums[0][threadIdx.x] = off;
  sums[1][threadIdx.x] = all;
  __syncthreads();
  if (threadIdx.x < 2) {
    double total = 0;
    for (int i = 0; i < 256; ++i) total += sums[threadIdx.x][i];
    out[blockIdx.x * 2 + threadIdx.x] = total;
  }
}

/// Copies of the operands on the GPU, enough of them that cycling through them misses the cache.
class OnGpu {
 public:
  /// Stored as `p` says; `o` has row-major operands.
  OnGpu(const Operands& o, const Product& p, int sets) : o_(o) {
    const std::size_t size = o.p.element == Element::Float32 ? 4 : 2;
    bytes_a_ = o.a.size() * size, bytes_b_ = o.b.size() * size;
    bytes_c_ = static_cast<std::size_t>(o.p.m) * o.p.n * size;
    for (int i = 0; i < sets; ++i)
      sets_.push_back({make(bytes_a_), make(bytes_b_), make(bytes_c_)});
    upload(o.a, sets_[0].a);
    upload(o.b, sets_[0].b);
    if (p.trans_a) transpose(sets_[0].a, bytes_a_, p.m, p.k);
    if (p.trans_b) transpose(sets_[0].b, bytes_b_, p.k, p.n);
    for (int i = 1; i < sets; ++i) {
      must(cudaMemcpy(sets_[i].a, sets_[0].a, bytes_a_, cudaMemcpyDeviceToDevice), "copy");
      must(cudaMemcpy(sets_[i].b, sets_[0].b, bytes_b_, cudaMemcpyDeviceToDevice), "copy");
    }
    other_ = make(bytes_c_);
    must(cudaDeviceSynchronize(), "operands");
  }
  ~OnGpu() {
    for (const Set& set : sets_) cudaFree(set.a), cudaFree(set.b), cudaFree(set.c);
    cudaFree(other_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  /// Queues the way on the i-th set, cyclically.
  bool run(const Way& way, int i, cudaStream_t stream) const {
    const Set& set = sets_[static_cast<std::size_t>(i) % sets_.size()];
    return way.run(set.a, set.b, set.c, stream);
  }

  /// Runs a way into poisoned memory. Returns the larger of the relative distances to the float64
  /// rows and, over all elements, to the result of `trusted` (if it can run).
  double error(const Way& way, const Way& trusted) const {
    const Set& set = sets_[0];
    must(cudaMemset(set.c, 0xFF, bytes_c_), "poison");
    if (!way.run(set.a, set.b, set.c, nullptr)) return NAN;
    must(cudaDeviceSynchronize(), way.name.c_str());
    double worst = row_error();
    if (trusted.run) {
      if (!trusted.run(set.a, set.b, other_, nullptr)) return NAN;
      const double whole = o_.p.element == Element::Float32 ? distance<float>() : distance<bf16>();
      if (!(whole <= worst)) worst = whole;
    }
    return worst;
  }

 private:
  struct Set {
    void *a, *b, *c;
  };
  static void* make(std::size_t bytes) {
    void* data = nullptr;
    must(cudaMalloc(&data, bytes), "memory of the GPU");
    return data;
  }
  void upload(const std::vector<float>& values, void* to) const {
    if (o_.p.element == Element::Float32) {
      must(cudaMemcpy(to, values.data(), values.size() * 4, cudaMemcpyHostToDevice), "upload");
    } else {
      const std::vector<std::uint16_t> rounded = to_bf16(values);
      must(cudaMemcpy(to, rounded.data(), rounded.size() * 2, cudaMemcpyHostToDevice), "upload");
    }
  }
  static void transpose(void*& data, std::size_t bytes, int rows, int columns) {
    void* permuted = make(bytes);
    const dim3 grid((columns + 31) / 32, (rows + 7) / 8);
    transpose_kernel<<<grid, dim3(32, 8)>>>(static_cast<const bf16*>(data),
                                            static_cast<bf16*>(permuted), rows, columns);
    must(cudaDeviceSynchronize(), "transposition");
    cudaFree(data);
    data = permuted;
  }
  double row_error() const {
    const int n = o_.p.n;
    double off = 0, all = 0;
    std::vector<float> line(static_cast<std::size_t>(n));
    std::vector<std::uint16_t> rounded(static_cast<std::size_t>(n));
    for (std::size_t r = 0; r < o_.rows.size(); ++r) {
      const std::size_t at = static_cast<std::size_t>(o_.rows[r]) * n;
      if (o_.p.element == Element::Float32) {
        must(cudaMemcpy(line.data(), static_cast<float*>(sets_[0].c) + at, n * 4ul,
                        cudaMemcpyDeviceToHost),
             "download");
      } else {
        must(cudaMemcpy(rounded.data(), static_cast<std::uint16_t*>(sets_[0].c) + at, n * 2ul,
                        cudaMemcpyDeviceToHost),
             "download");
        line = from_bf16(rounded);
      }
      for (int j = 0; j < n; ++j) {
        const double expected = o_.reference[r * n + j], d = line[j] - expected;
        off += d * d, all += expected * expected;
      }
    }
    return std::sqrt(off / all);
  }
  template <class T>
  double distance() const {
    constexpr int kBlocks = 512;
    double* sums = static_cast<double*>(make(kBlocks * 2 * sizeof(double)));
    distance_kernel<T><<<kBlocks, 256>>>(static_cast<const T*>(sets_[0].c),
                                         static_cast<const T*>(other_),
                                         static_cast<long long>(o_.p.m) * o_.p.n, sums);
    double host[kBlocks * 2], off = 0, all = 0;
    must(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost), "distance");
    cudaFree(sums);
    for (int i = 0; i < kBlocks; ++i) off += host[i * 2], all += host[i * 2 + 1];
    return std::sqrt(off / all);
  }

  const Operands& o_;
  std::size_t bytes_a_ = 0, bytes_b_ = 0, bytes_c_ = 0;
  std::vector<Set> sets_;
  void* other_ = nullptr;
};

struct Timing {
  double median = NAN, spread = 0;  // ms; spread: (third quartile - first) / median
  int samples = 0;
  double rested = 0;  // median of samples that follow a pause, ms
};

/// Launches of one way as a CUDA graph, cycling through the operands' copies; the host's launch
/// time is not measured.
class Sample {
 public:
  Sample(const OnGpu& gpu, const Way& way, cudaStream_t stream) : stream_(stream) {
    must(cudaEventCreate(&start_), "event");
    must(cudaEventCreate(&stop_), "event");
    good_ = gpu.run(way, 0, stream);  // choices and loads of the first call are done now
    must(cudaStreamSynchronize(stream), way.name.c_str());
    record(gpu, way, 3);
    run();
    const double once = std::max(1e-4, run());
    record(gpu, way, std::clamp(static_cast<int>(std::ceil(2.0 / once)), 1, 400));
  }
  ~Sample() {
    cudaGraphExecDestroy(graph_);
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  int launches() const { return launches_; }
  /// Milliseconds per launch.
  double run() const {
    float ms = 0;
    cudaEventRecord(start_, stream_);
    cudaGraphLaunch(graph_, stream_);
    cudaEventRecord(stop_, stream_);
    must(cudaEventSynchronize(stop_), "sample");
    must(cudaEventElapsedTime(&ms, start_, stop_), "sample");
    return good_ ? ms / launches_ : NAN;
  }

 private:
  void record(const OnGpu& gpu, const Way& way, int launches) {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < launches; ++i) good_ = gpu.run(way, i, stream_) && good_;
    must(cudaStreamEndCapture(stream_, &graph), "capture");
    must(cudaGraphInstantiate(&graph_, graph, 0), "capture");
    cudaGraphDestroy(graph);
    launches_ = launches;
  }

  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  int launches_ = 0;
  bool good_ = true;
};

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(values.size() - 1, index)];
}

/// Times all ways alternately, so that changes of the GPU's clock affect all of them. A sample is
/// about two milliseconds of launches; at least three rounds. On request once more with pauses, in
/// which a GPU at its power limit recovers.
std::vector<Timing> time_in_turn(const OnGpu& gpu, const std::vector<Way>& ways, double budget_ms,
                                 bool with_pauses) {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  std::vector<std::unique_ptr<Sample>> samples;
  double round_ms = 0;
  for (const Way& way : ways) {
    samples.push_back(std::make_unique<Sample>(gpu, way, stream));
    round_ms += samples.back()->run() * samples.back()->launches();
  }
  const int rounds = round_ms > 0 ? std::clamp(static_cast<int>(budget_ms / round_ms), 3, 60) : 1;
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) times[i].push_back(samples[i]->run());
  }
  std::vector<Timing> out;
  for (std::vector<double>& t : times) {
    const double median = quantile(t, .5);
    out.push_back(
        {median, (quantile(t, .75) - quantile(t, .25)) / median, static_cast<int>(t.size())});
  }
  for (std::size_t i = 0; with_pauses && i < ways.size(); ++i) times[i].clear();
  for (int round = 0; with_pauses && round < 9; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      usleep(25000);
      samples[i]->run();  // wakes the clocks
      times[i].push_back(samples[i]->run());
    }
  }
  for (std::size_t i = 0; with_pauses && i < ways.size(); ++i) {
    out[i].rested = quantile(times[i], .5);
  }
  samples.clear();
  cudaStreamDestroy(stream);
  return out;
}

double tolerance(Element element) { return element == Element::Float32 ? 2e-5 : 5e-3; }

/// The storage of step 5's operands: A as [m, k] or [k, m], B as [k, n] or [n, k]. The other steps
/// take the first form only.
constexpr struct {
  bool trans_a, trans_b;
} kStorage[] = {{false, false}, {false, true}, {true, false}, {true, true}};

Product stored(Product p, std::size_t storage) {
  p.trans_a = kStorage[storage].trans_a;
  p.trans_b = kStorage[storage].trans_b;
  return p;
}

/// Every way of a step, for every storage that it can take.
std::vector<Way> all_ways(int step, const Product& p) {
  std::vector<Way> ways;
  for (std::size_t storage = 0; storage < (step == 4 ? 4 : 1); ++storage) {
    for (Way& way : ways_of(step, stored(p, storage), true)) ways.push_back(std::move(way));
  }
  return ways;
}

/// Checks sizes that no tile divides against the whole float64 product. False if one is wrong.
bool check_odd_sizes(int step, int index) {
  constexpr int kOdd[][3] = {{1, 1, 1}, {33, 65, 17}, {127, 129, 130}};
  constexpr int kEven[][3] = {{1, 8, 8},         {130, 264, 72},   {257, 520, 200},  {136, 264, 72},
                              {640, 1032, 1096}, {1544, 1800, 72}, {1544, 1800, 328}};
  bool right = true;
  const auto check = [&](const int(&size)[3], Element element) {
    Product p{size[0], size[1], size[2], element};
    const Way way = all_ways(step, p)[static_cast<std::size_t>(index)];
    p.trans_a = way.trans_a, p.trans_b = way.trans_b;
    if (p.trans_a && p.m % kSteps[step].multiple != 0) return;  // its lines would not be aligned
    const Operands operands = make_operands(p, true, 77);
    const double error = OnGpu(operands, p, 1).error(way, {});
    if (error <= tolerance(element)) return;
    std::printf("WRONG %s %s %s %dx%dx%d: relative error %.3g\n", kSteps[step].name,
                way.name.c_str(), name_of(element), p.m, p.n, p.k, error);
    right = false;
  };
  for (const Element element : {Element::Float32, Element::BFloat16}) {
    if (element == Element::Float32 && !kSteps[step].float32) continue;
    if (kSteps[step].multiple == 1) {
      for (const auto& size : kOdd) check(size, element);
    }
    for (const auto& size : kEven) check(size, element);
  }
  return right;
}

bool is_broken(const Report& report, int step, const Product& p, const std::string& name) {
  const std::vector<Way> ways = all_ways(step, p);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].name == name && ways[i].trans_a == p.trans_a && ways[i].trans_b == p.trans_b &&
        report.broken[step][i]) {
      return true;
    }
  }
  return false;
}

void measure(int step, const Operands& o, const Product& p, bool all, Vendor& vendor,
             Report& report) {
  const double bytes = (o.a.size() + o.b.size() + static_cast<double>(p.m) * p.n) *
                       (p.element == Element::Float32 ? 4 : 2);
  const OnGpu gpu(o, p, std::clamp(static_cast<int>(150e6 / bytes) + 1, 1, 32));
  const auto by = [&](auto method) {
    return [&vendor, p, method](const void* a, const void* b, void* c, cudaStream_t stream) {
      return (vendor.*method)(p, a, b, c, stream);
    };
  };
  std::vector<Way> ways;
  for (Way& way : ways_of(step, p, all)) {
    if (!is_broken(report, step, p, way.name)) ways.push_back(std::move(way));
  }
  const std::size_t ours = ways.size();
  if (ours == 0) return;
  if (vendor.ready()) {
    ways.push_back({"cublasGemmEx", p.trans_a, p.trans_b, by(&Vendor::gemm)});
    ways.push_back({"cublasLt", p.trans_a, p.trans_b, by(&Vendor::tuned_gemm)});
  }
  std::vector<double> errors;
  for (std::size_t i = 0; i < ours; ++i) {
    errors.push_back(gpu.error(ways[i], vendor.ready() ? ways[ours] : Way{}));
  }
  const std::vector<Timing> times =
      time_in_turn(gpu, ways, 120.0 * ways.size(), step >= 3 && !p.trans_a);
  for (std::size_t i = 0; i < ours && report.rows < 256; ++i) {
    Row& row = report.row[report.rows++];
    row.step = step, row.size = p.m, row.element = p.element;
    row.trans_a = p.trans_a, row.trans_b = p.trans_b;
    std::snprintf(row.way, sizeof row.way, "%s", ways[i].name.c_str());
    row.error = errors[i], row.right = errors[i] <= tolerance(p.element);
    row.ms = times[i].median, row.spread = times[i].spread, row.samples = times[i].samples;
    row.rested_ms = times[i].rested;
    if (vendor.ready()) {
      row.cublas_ms = times[ours].median, row.cublaslt_ms = times[ours + 1].median;
      row.rested_cublas_ms = std::min(times[ours].rested, times[ours + 1].rested);
    }
    row.cpu_ms = flop(p) / o.cpu_flops * 1e3;
    if (!row.right) ++report.wrong;
  }
}

void describe_gpu(Report& report) {
  int device = 0, driver = 0;
  cudaDeviceProp prop{};
  must(cudaGetDevice(&device), "gpu");
  must(cudaGetDeviceProperties(&prop, device), "gpu");
  cudaDriverGetVersion(&driver);
  std::snprintf(report.gpu, sizeof report.gpu, "%s, %d multiprocessors, %d MB of L2", prop.name,
                prop.multiProcessorCount, prop.l2CacheSize >> 20);
  std::snprintf(report.driver, sizeof report.driver, "%d", driver);
}

// ---- Processes ----

/// Runs work in a process of its own with a time limit; false if it did not end normally.
template <class Work>
bool in_process(unsigned limit, const char* what, Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(limit);
    work();
    std::fflush(stdout);
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  std::printf("%s: %s\n", what, late ? "did not end in time" : "failed");
  return false;
}

/// Checks every way of a step. A way that is wrong, crashes or hangs is excluded, and a new process
/// continues after it.
void check_ways(int step, const Options& options, Report& report) {
  const std::vector<Way> ways = all_ways(step, {64, 64, 64, Element::BFloat16});
  const int count = static_cast<int>(ways.size());
  for (int first = 0; first < count; first = report.checking + 1) {
    report.checking = first;
    const bool ended = in_process(std::min(options.limit, 12u), kSteps[step].name, [&] {
      for (int& i = report.checking; i < count; ++i) {
        report.broken[step][i] = true;
        report.broken[step][i] = !check_odd_sizes(step, i);
      }
    });
    if (!ended)
      std::printf("  at way %d, %s\n", report.checking, ways[report.checking].name.c_str());
  }
  for (int i = 0; i < count; ++i) report.wrong += report.broken[step][i];
}

double share_of_peak(const Row& row, const Peaks& peaks) {
  const double flops = 2.0 * std::pow(row.size, 3) / row.ms * 1e3;
  return flops / (row.element == Element::Float32 ? peaks.float32 : peaks.bfloat16);
}
/// The share of the faster of cuBLAS's two interfaces.
double share_of_cublas(const Row& row) { return std::min(row.cublas_ms, row.cublaslt_ms) / row.ms; }
/// The share for samples after a pause, in percent, or `none` if there are none.
std::string rested_share(const Row& row, const char* none) {
  if (!(row.rested_ms > 0)) return none;
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 100 * row.rested_cublas_ms / row.rested_ms);
  return text;
}

void print_table(const Report& report) {
  std::printf("\n%s; driver %s; cuBLAS %s\n", report.gpu, report.driver, report.vendor);
  std::printf("multipliers alone: %.1f TFLOP/s float32, %.0f bfloat16\n\n",
              report.peaks.float32 * 1e-12, report.peaks.bfloat16 * 1e-12);
  std::printf("%-10s %-4s %5s %10s %9s %8s %8s %7s %9s %9s %7s  %s\n", "step", "type", "size", "ms",
              "TFLOP/s", "cuBLAS%", "rested%", "peak%", "x 1 core", "error", "spread",
              "way: A and B as stored");
  for (int i = 0; i < report.rows; ++i) {
    const Row& row = report.row[i];
    std::printf("%-10s %-4s %5d %10.4f %9.2f %8.1f %8s %7.1f %9.0f %9.1e %6.1f%%  %s%s %s%s\n",
                kSteps[row.step].name, name_of(row.element), row.size, row.ms,
                2e-9 * std::pow(row.size, 3) / row.ms, 100 * share_of_cublas(row),
                rested_share(row, "-").c_str(), 100 * share_of_peak(row, report.peaks),
                row.cpu_ms / row.ms, row.error, 100 * row.spread, row.trans_a ? "T" : "N",
                row.trans_b ? "T" : "N", row.way, row.right ? "" : " WRONG");
  }
}

bool write_json(const Report& report, const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  std::fprintf(file, "{\n \"date\": \"%s\",\n \"gpu\": \"%s\",\n \"driver\": \"%s\",\n", date,
               report.gpu, report.driver);
  std::fprintf(file, " \"cublas\": \"%s\",\n \"peak_tflops\": {\"fp32\": %.2f, \"bf16\": %.1f},\n",
               report.vendor, report.peaks.float32 * 1e-12, report.peaks.bfloat16 * 1e-12);
  std::fprintf(file, " \"results\": [");
  for (int i = 0; i < report.rows; ++i) {
    const Row& row = report.row[i];
    std::fprintf(
        file,
        "%s\n  {\"step\": \"%s\", \"way\": \"%s\", \"dtype\": \"%s\", \"size\": %d, "
        "\"a_stored\": \"%s\", \"b_stored\": \"%s\", \"ms\": %.5f, \"spread\": %.4f, "
        "\"samples\": %d, "
        "\"tflops\": %.3f, \"cublas_ms\": %.5f, \"cublaslt_ms\": %.5f, "
        "\"share_of_cublas\": %.4f, \"rested_ms\": %s, \"rested_share_of_cublas_percent\": %s, "
        "\"share_of_peak\": %.4f, \"one_core_ms\": %.1f, "
        "\"relative_error\": %.3g, \"right\": %s}",
        i == 0 ? "" : ",", kSteps[row.step].name, row.way, name_of(row.element), row.size,
        row.trans_a ? "k,m" : "m,k", row.trans_b ? "n,k" : "k,n", row.ms, row.spread, row.samples,
        2e-9 * std::pow(row.size, 3) / row.ms, row.cublas_ms, row.cublaslt_ms, share_of_cublas(row),
        row.rested_ms > 0 ? std::to_string(row.rested_ms).c_str() : "null",
        rested_share(row, "null").c_str(), share_of_peak(row, report.peaks), row.cpu_ms, row.error,
        row.right ? "true" : "false");
  }
  std::fprintf(file, "\n ]\n}\n");
  return std::fclose(file) == 0;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--all") {
      options.all = true;
    } else if (word == "--steps" && has_value) {
      options.steps = words[++i];
    } else if (word == "--json" && has_value) {
      options.json = words[++i];
    } else if (word == "--limit" && has_value) {
      options.limit = static_cast<unsigned>(std::atoi(words[++i]));
    } else if (word == "--sizes" && has_value) {
      options.sizes.clear();
      for (char* part = std::strtok(words[++i], ","); part; part = std::strtok(nullptr, ",")) {
        options.sizes.push_back(std::atoi(part));
      }
    } else {
      std::printf("matmul: what is '%s'? See the head of lab/matmul/main.cu\n", word.c_str());
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  void* const shared =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Report& report = *new (shared) Report{};

  // Before any process uses the GPU: operands, references and the CPU's time for all processes.
  std::vector<Operands> operands;
  for (const int size : options.sizes) {
    for (const Element element : {Element::Float32, Element::BFloat16}) {
      operands.push_back(make_operands({size, size, size, element}, false, size + 5));
      operands.back().cpu_flops = element == Element::Float32
                                      ? time_one_core(operands.back())
                                      : operands[operands.size() - 2].cpu_flops;
    }
    std::printf("%d: one core %.1f GFLOP/s\n", size, operands.back().cpu_flops * 1e-9);
  }
  bool good = in_process(options.limit, "peaks", [&] {
    describe_gpu(report);
    report.peaks = measure_peaks();
    must(cudaDeviceSynchronize(), "peaks");
    std::snprintf(report.vendor, sizeof report.vendor, "%s", Vendor().version().c_str());
  });
  for (int step = 0; good && step < kStepCount; ++step) {
    if (options.steps.find(kSteps[step].name) == std::string::npos) continue;
    check_ways(step, options, report);
    const bool ended = in_process(options.limit, kSteps[step].name, [&] {
      Vendor vendor;
      for (const Operands& o : operands) {
        if (o.p.element == Element::Float32 && !kSteps[step].float32) continue;
        for (std::size_t storage = 0; storage < (step == 4 ? 4 : 1); ++storage) {
          measure(step, o, stored(o.p, storage), options.all, vendor, report);
        }
      }
    });
    if (!ended) ++report.wrong;
  }
  print_table(report);
  if (!options.json.empty() && !write_json(report, options.json)) {
    std::printf("cannot write %s\n", options.json.c_str());
    return 2;
  }
  return good && report.wrong == 0 ? 0 : 1;
}
