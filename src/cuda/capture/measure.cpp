// Measures a step: launched repeatedly inside a graph, as a program would launch it.
#include <algorithm>
#include <vector>

#include "cuda/capture/graph.h"
#include "cuda/cuda.h"

namespace tenon::cuda {
namespace {

// Milliseconds on the GPU between two points of its work stream.
class Stopwatch {
 public:
  Stopwatch() {
    check(driver().cuEventCreate(&begin_, 0), "making an event");
    check(driver().cuEventCreate(&end_, 0), "making an event");
  }
  ~Stopwatch() {
    driver().cuEventDestroy(begin_);
    driver().cuEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  template <class Work>
  double time(CUstream stream, const Work& work) {
    check(driver().cuEventRecord(begin_, stream), "timing");
    work();
    check(driver().cuEventRecord(end_, stream), "timing");
    check(driver().cuEventSynchronize(end_), "timing");
    float ms = 0;
    check(driver().cuEventElapsedTime(&ms, begin_, end_), "timing");
    return static_cast<double>(ms);
  }

 private:
  CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace

double measure(const Kernel& kernel, const Binding& binding, int index, int repeats) {
  constexpr int kRounds = 5;
  const Context& context = context_of(index);
  Stopwatch watch;
  Binding queued = binding;
  queued.stream = context.work;
  kernel.run(queued);
  std::vector<double> rounds;
  if (!can_capture()) {
    for (int k = 0; k < kRounds; ++k)
      rounds.push_back(watch.time(context.work, [&] {
        for (int r = 0; r < repeats; ++r) kernel.run(queued);
      }));
  } else {
    Graph graph(context);
    const CaptureStream stream;
    Binding captured = binding;
    captured.stream = stream.get();
    graph.capture(stream.get(), {}, [&] {
      for (int r = 0; r < repeats; ++r) kernel.run(captured);
    });
    graph.instantiate();
    for (int k = 0; k < kRounds; ++k)
      rounds.push_back(watch.time(context.work, [&] { graph.launch(context.work); }));
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2] / repeats;
}

}  // namespace tenon::cuda
