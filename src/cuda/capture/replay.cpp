// Running programs: step by step, or captured once as a CUDA graph and launched again and again.
//
// A graph is made step by step: each step's launches are captured behind the steps it must wait for
// (order.h) and behind nothing else, so independent steps may overlap. Addresses are part of a
// graph; an input or output whose address moved gets a place of its own with a copy in front or
// behind, and from then on only that copy's address is patched.
#include <algorithm>
#include <map>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/capture/order.h"
#include "cuda/cuda.h"
#include "cuda/device/card.h"
#include "cuda/device/driver.h"

namespace tenon::cuda {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

CUdeviceptr address(const void* memory) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
}

CUDA_MEMCPY3D flat_copy(const void* to, const void* from, std::int64_t bytes) {
  CUDA_MEMCPY3D copy;
  copy.srcDevice = address(from);
  copy.dstDevice = address(to);
  copy.WidthInBytes = static_cast<std::size_t>(bytes);
  return copy;
}

using Nodes = std::vector<CUgraphNode>;

// A graph under construction and, once instantiated, its executable.
class Graph {
 public:
  explicit Graph(const Context& context) : context_(context) {
    check(driver().cuGraphCreate(&graph_, 0), "making a graph on ", context.title());
  }
  ~Graph() {
    if (executable_ != nullptr) driver().cuGraphExecDestroy(executable_);
    driver().cuGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// What `work` queues on the stream, behind `before`; returns the nodes that end it.
  template <class Work>
  Nodes capture(CUstream stream, const Nodes& before, const Work& work) {
    const Driver& d = driver();
    check(d.cuStreamBeginCaptureToGraph(stream, graph_, before.data(), nullptr, before.size(),
                                        CU_STREAM_CAPTURE_MODE_RELAXED),
          "capturing a step");
    Nodes last;
    try {
      work();
      CUstreamCaptureStatus status{};
      const CUgraphNode* nodes = nullptr;
      std::size_t count = 0;
      check(d.cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &count),
            "capturing a step");
      last.assign(nodes, nodes + count);
    } catch (...) {
      CUgraph unused = nullptr;
      d.cuStreamEndCapture(stream, &unused);
      throw;
    }
    CUgraph same = nullptr;
    check(d.cuStreamEndCapture(stream, &same), "capturing a step");
    return last;
  }

  CUgraphNode add_copy(const Nodes& before, const CUDA_MEMCPY3D& copy) {
    CUgraphNode node = nullptr;
    check(driver().cuGraphAddMemcpyNode(&node, graph_, before.data(), before.size(), &copy,
                                        context_.context),
          "adding a copy to a graph");
    return node;
  }
  void patch_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy) {
    check(driver().cuGraphExecMemcpyNodeSetParams(executable_, node, &copy, context_.context),
          "patching a copy of a graph");
  }

  void instantiate() {
    check(driver().cuGraphInstantiateWithFlags(&executable_, graph_, 0),
          "instantiating a graph on ", context_.title());
  }
  void launch(CUstream stream) {
    check(driver().cuGraphLaunch(executable_, stream), "launching a captured program on ",
          context_.title());
  }

 private:
  const Context& context_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

// A stream that only captures: work queued meanwhile goes to the card's own.
class CaptureStream {
 public:
  CaptureStream() {
    check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  }
  ~CaptureStream() { driver().cuStreamDestroy(stream_); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

using Addresses = std::vector<std::byte*>;

// One captured form of a program: so many runs in a row.
struct Captured {
  explicit Captured(const Context& context) : graph(context) {}
  struct Copy {
    int run;
    ValueId value;
    CUgraphNode node;
    std::byte* place;
  };
  Graph graph;
  std::vector<Addresses> given;  // as the caller gave them, run by run
  std::vector<Copy> copies;
  std::vector<std::shared_ptr<Buffer>> places;
};

class GraphReplay final : public Replay {
 public:
  explicit GraphReplay(std::shared_ptr<const Program> program)
      : program_(std::move(program)),
        index_(program_->device.index),
        moves_(program_->values.size(), 0) {
    for (std::size_t k = 0; k < program_->values.size(); ++k)
      if (program_->values[k].kind != Value::Kind::Arena) outside_.push_back(k);
  }

  void run(std::byte* const* values, std::byte* arena) override {
    const std::byte* const* one[] = {values};
    run_all(one, arena);
  }

  void run_many(std::span<const Addresses> values, std::byte* arena) override {
    std::vector<const std::byte* const*> runs;
    for (const Addresses& v : values) runs.push_back(v.data());
    run_all(runs, arena);
  }

 private:
  using Runs = std::span<const std::byte* const* const>;

  void run_all(Runs runs, std::byte* arena) {
    const Context& context = context_of(index_);
    // The first run is queued step by step: kernels are still being compiled, and a program that
    // runs only once is not worth a graph. Drivers before 12.3 cannot capture into a graph.
    if (!warm_ || driver().cuStreamBeginCaptureToGraph == nullptr ||
        driver().cuStreamGetCaptureInfo == nullptr) {
      for (const std::byte* const* values : runs)
        run_once(*program_, const_cast<std::byte* const*>(values), arena);
      warm_ = true;
      return;
    }
    std::unique_ptr<Captured>& captured = captured_[runs.size()];
    if (captured == nullptr || arena != arena_ || !fits(*captured, runs))
      captured = capture(context, runs, arena);
    else
      patch(*captured, runs);
    captured->graph.launch(context.work);
  }

  bool may_move(std::size_t value) const {
    const Value::Kind kind = program_->values[value].kind;
    return kind == Value::Kind::Leaf || kind == Value::Kind::Output;
  }

  // Whether patching copies is enough. A value whose address moved for the first time gets a place
  // of its own, and the program is captured again.
  bool fits(const Captured& captured, Runs runs) {
    bool good = true;
    for (std::size_t r = 0; r < runs.size(); ++r)
      for (std::size_t k : outside_) {
        if (captured.given[r][k] == runs[r][k] || moves_[k] != 0) continue;
        good = false;
        moves_[k] = may_move(k) ? 1 : 0;
      }
    return good;
  }

  void patch(Captured& captured, Runs runs) {
    for (Captured::Copy& copy : captured.copies) {
      std::byte*& known = captured.given[at(copy.run)][at(copy.value)];
      auto* now = const_cast<std::byte*>(runs[at(copy.run)][copy.value]);
      if (known == now) continue;
      known = now;
      captured.graph.patch_copy(copy.node, copy_of(copy, now));
    }
  }

  CUDA_MEMCPY3D copy_of(const Captured::Copy& copy, std::byte* outside) const {
    const Value& value = program_->values[at(copy.value)];
    return value.kind == Value::Kind::Leaf ? flat_copy(copy.place, outside, value.bytes)
                                           : flat_copy(outside, copy.place, value.bytes);
  }

  std::unique_ptr<Captured> capture(const Context& context, Runs runs, std::byte* arena) {
    // The old graph may still run; its places must not be handed out before it has ended.
    check(driver().cuStreamSynchronize(context.work), "waiting for ", context.title());
    arena_ = arena;
    auto out = std::make_unique<Captured>(context);
    const int count = static_cast<int>(runs.size()),
              steps = static_cast<int>(program_->steps.size());
    const std::vector<std::vector<int>> before = waits(*program_, count);
    std::vector<Nodes> ends(before.size());
    const CaptureStream stream;
    for (int r = 0; r < count; ++r) {
      Addresses values(program_->values.size());
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = const_cast<std::byte*>(runs[at(r)][k]);
      out->given.push_back(values);
      std::vector<Nodes> arrivals(values.size());
      set_apart(*out, r, values, arrivals);
      for (int s = 0; s < steps; ++s) {
        const Step& step = program_->steps[at(s)];
        const int entry = r * steps + s;
        Nodes after;
        for (int e : before[at(entry)]) add(after, ends[at(e)]);
        for (ValueId id : step.region.reads) add(after, arrivals[at(id)]);
        ends[at(entry)] = out->graph.capture(stream.get(), after, [&] {
          step.kernel->run({values.data(), arena + step.workspace_offset, stream.get()});
        });
      }
      copy_out(*out, r, ends);
    }
    out->graph.instantiate();
    return out;
  }

  static void add(Nodes& to, const Nodes& from) {
    for (CUgraphNode node : from)
      if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }

  // Gives the values that move a place of their own and inputs the copy into it.
  void set_apart(Captured& out, int run, Addresses& values, std::vector<Nodes>& arrivals) {
    for (std::size_t k : outside_) {
      const Value& value = program_->values[k];
      if (moves_[k] == 0 || value.bytes == 0 || values[k] == nullptr) continue;
      out.places.push_back(
          Buffer::allocate(static_cast<std::size_t>(value.bytes), program_->device));
      Captured::Copy copy{run, static_cast<ValueId>(k), nullptr,
                          static_cast<std::byte*>(out.places.back()->data())};
      if (value.kind == Value::Kind::Leaf) {
        copy.node = out.graph.add_copy({}, copy_of(copy, values[k]));
        arrivals[k] = {copy.node};
      }
      values[k] = copy.place;
      out.copies.push_back(copy);
    }
  }

  void copy_out(Captured& out, int run, const std::vector<Nodes>& ends) {
    const int steps = static_cast<int>(program_->steps.size());
    for (Captured::Copy& copy : out.copies) {
      if (copy.run != run || copy.node != nullptr) continue;
      Nodes after;
      for (int s = 0; s < steps; ++s) {
        const std::vector<ValueId>& writes = program_->steps[at(s)].region.writes;
        if (std::find(writes.begin(), writes.end(), copy.value) != writes.end())
          add(after, ends[at(run * steps + s)]);
      }
      copy.node = out.graph.add_copy(after, copy_of(copy, out.given[at(run)][at(copy.value)]));
    }
  }

  std::shared_ptr<const Program> program_;
  int index_;
  bool warm_ = false;
  std::byte* arena_ = nullptr;
  std::vector<std::size_t> outside_;  // values whose addresses come from outside
  std::vector<char> moves_;           // 1: an input or output whose address has changed before
  std::map<std::size_t, std::unique_ptr<Captured>> captured_;  // by number of runs
};

}  // namespace

void run_once(const Program& program, std::byte* const* values, std::byte* arena) {
  const Context& context = context_of(program.device.index);
  for (const Step& step : program.steps)
    step.kernel->run({values, arena + step.workspace_offset, context.work});
}

std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program) {
  return std::make_unique<GraphReplay>(std::move(program));
}

namespace {

// Milliseconds on the card between two points of its work stream.
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
  if (driver().cuStreamBeginCaptureToGraph == nullptr) {
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
