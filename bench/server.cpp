// Runs a server under load for a long time. Checks its answers and shows whether its memory grows.
//
//   ./dev build all
//   build/bin/bench_server serve [seconds = 600] [threads = 8]
//   build/bin/bench_server shapes [count = 100000]
// serve: LeNet-5 answers batches of 1 to 256 images from all threads; every other call asks a
// second network, which another thread trains meanwhile. Answers of the first network are
// compared with those of one large batch. In the second network, equal images of a batch must get
// equal scores, whatever training step the answer sees. shapes: matrices of random sizes through a
// compiled function and through compute(), caches limited to 16 MiB. Rows: seconds or shapes,
// resident memory, bytes of caches. Ends with 1 if an answer was wrong.
#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

using namespace tenon;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::int64_t kImages = 256, kPixels = 784, kClasses = 10;

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  long total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void row(const char* unit, double at, long calls, long wrong) {
  const CacheStats kept = cache_stats();
  std::printf(
      "%s %.0f  calls %ld  wrong %ld  resident %.1f MiB  programs+traces %.1f MiB"
      "  arenas %.1f MiB  planned %lld\n",
      unit, at, calls, wrong, resident_mib(),
      static_cast<double>(kept.programs.bytes + kept.traces.bytes) / (1 << 20),
      static_cast<double>(kept.arenas.bytes) / (1 << 20),
      static_cast<long long>(runner_stats().programs_planned));
  std::fflush(stdout);
}

CompiledFunction served(const nn::AnyModule& net) {
  return compile([&net](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
}

int serve(double seconds, int threads) {
  nn::AnyModule fixed = models::create("lenet5"), trained = models::create("lenet5");
  fixed.eval();
  const std::vector<float> images = rand({kImages, 1, 28, 28}).to_vector<float>();
  const auto batch = [&](std::int64_t size) {
    std::vector<float> some(images.begin(), images.begin() + size * kPixels);
    std::copy_n(images.begin(), kPixels, some.end() - kPixels);  // the last image is the first
    return Tensor::from(some, {size, 1, 28, 28});
  };
  const CompiledFunction answer = served(fixed), ask = served(trained);
  const std::vector<float> expected = answer({batch(kImages)})[0].to_vector<float>();
  std::atomic<bool> done{false};
  std::atomic<long> calls{0}, wrong{0}, steps{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      set_threads(1);
      std::mt19937 random(static_cast<unsigned>(t));
      for (long k = 0; !done; ++k) {
        const auto size = static_cast<std::int64_t>(random() % kImages) + 1;
        const bool first = k % 2 == 0;
        const std::vector<float> scores =
            (first ? answer : ask)({batch(size)})[0].to_vector<float>();
        bool right = true;
        for (std::int64_t c = 0; c < kClasses; ++c) {
          const float a = scores[c], last = scores[(size - 1) * kClasses + c];
          right = right && std::isfinite(a) && std::fabs(a - last) <= 1e-4f * (1 + std::fabs(a));
        }
        for (std::int64_t c = 0; first && c < (size - 1) * kClasses; ++c)
          right = right && std::fabs(scores[c] - expected[c]) < 1e-4f;
        wrong += right ? 0 : 1;
        ++calls;
      }
    });
  all.emplace_back([&] {
    set_threads(1);
    optim::Sgd sgd(trained, {.lr = 0.001});
    const Tensor x = batch(64), y = randint(0, kClasses, {64}).compute();
    const CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
      const Tensor loss = cross_entropy(trained(in[0]), in[1]);
      std::vector<Tensor> out = sgd.updates(grad(loss, sgd.parameters()));
      out.push_back(loss);
      return out;
    });
    for (; !done; ++steps) step({x, y});
  });
  const auto start = Clock::now();
  for (int k = 1; k <= 10; ++k) {
    std::this_thread::sleep_until(start + std::chrono::duration<double>(seconds * k / 10));
    row("seconds", seconds * k / 10, calls, wrong);
  }
  done = true;
  for (std::thread& thread : all) thread.join();
  std::printf("steps of training beside it: %ld\n", steps.load());
  return wrong == 0 ? 0 : 1;
}

int shapes(long count) {
  set_cache_limit(16 << 20);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{sum(in[0] * 2.0), relu(in[0]) + 1.0};
  });
  std::mt19937 random(5);
  long wrong = 0;
  for (long k = 0; k < count; ++k) {
    const auto extent = [&] { return static_cast<std::int64_t>(random() % 300) + 1; };
    const Shape shape{extent(), extent()};
    const Tensor x =
        Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), 1), shape);
    const double got = k % 2 == 0 ? f({x})[0].item() : sum(x * 2.0).item();
    wrong += got == 2.0 * static_cast<double>(shape.numel()) ? 0 : 1;
    if ((k + 1) % (count / 10) == 0) row("shapes", static_cast<double>(k + 1), k + 1, wrong);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool serves = argc > 1 && std::strcmp(argv[1], "serve") == 0;
  if (!serves && (argc < 2 || std::strcmp(argv[1], "shapes") != 0)) {
    std::fprintf(stderr, "use: server serve [seconds] [threads] | server shapes [count]\n");
    return 2;
  }
  if (serves) return serve(argc > 2 ? std::atof(argv[2]) : 600, argc > 3 ? std::atoi(argv[3]) : 8);
  return shapes(argc > 2 ? std::atol(argv[2]) : 100000);
}
