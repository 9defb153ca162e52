// Runs programs: step by step, or captured once as a CUDA graph and launched repeatedly.
//
// A graph is built step by step. Each step's launches are captured after the steps that it must
// wait for (order.h) and nothing else, so independent steps may overlap. Several runs follow one
// another in one graph.
//
// Addresses are part of a graph. An input or output whose address changed gets a fixed place with a
// copy before or after the program; from then on only the copy's address is patched. Copies are
// renewed after memory was returned to the driver: a copy node belongs to an allocation, not to an
// address, and compute-sanitizer crashes when it launches a node whose allocation was freed, even
// if another allocation now has its address. Rows of stacked inputs and outputs whose layout does
// not suit the kernels are copied to such places too.
#include <algorithm>
#include <map>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "cuda/capture/graph.h"
#include "cuda/capture/order.h"
#include "cuda/cuda.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t kForms = 8;  // graphs kept per program, one for each number of runs
constexpr std::int64_t kValueAlignment = 64;  // alignment of every value, as in an arena
constexpr std::int64_t kLongStep = std::int64_t{64} << 20;  // bytes: 15 us of an H200's memory

// Addresses of the values in the first run, and their strides from run to run.
struct Given {
  std::span<std::byte* const> base;
  std::span<const std::int64_t> stride;
};
struct Located {
  Located() = default;
  explicit Located(const Given& given)
      : base(given.base.begin(), given.base.end()),
        stride(given.stride.begin(), given.stride.end()) {}
  std::vector<std::byte*> base;
  std::vector<std::int64_t> stride;
};

// One captured form of a program, for a given number of consecutive runs.
struct Captured {
  explicit Captured(const Context& context) : graph(context) {}
  struct Copy {
    std::size_t value;
    CUgraphNode node;
    std::byte* place;
  };
  Graph graph;
  std::uint64_t used = 0;  // number of the last call that used it
  std::byte* arena = nullptr;
  Located given;  // the caller's addresses
  std::vector<Copy> copies;
  std::vector<char> patched;  // values of `copies`
  bool fixed = false;         // a copy that cannot be patched accesses the caller's memory
  std::int64_t releases = 0;  // PoolStats::system_releases when the copies were set
  std::vector<std::shared_ptr<Buffer>> places;
};

class GraphReplay final : public Replay {
 public:
  explicit GraphReplay(std::shared_ptr<const Program> program)
      : program_(std::move(program)),
        index_(program_->device.index),
        moves_(program_->values.size(), 0) {
    for (std::size_t k = 0; k < program_->values.size(); ++k)
      if (program_->values[k].kind != Value::Kind::Arena && program_->values[k].bytes > 0)
        outside_.push_back(k);
  }

  void run(std::span<std::byte* const> values, std::span<const std::int64_t> strides, int runs,
           std::byte* arena) override {
    const Context& context = context_of(index_);
    const Given given{values, strides};
    // The first call is queued step by step: kernels may still be compiling, and a program that
    // runs only once does not pay for a graph.
    if (!warm_ || !can_capture()) {
      queue(context, Located(given), runs, arena);
      warm_ = true;
      return;
    }
    std::unique_ptr<Captured>& captured = form_of(context, runs);
    const std::int64_t releases = memory().stats(index_).system_releases;
    if (captured == nullptr || captured->arena != arena || !fits(*captured, given, releases))
      captured = capture(context, Located(given), runs, arena);
    else
      patch(*captured, given, runs, releases);
    captured->releases = releases;
    captured->used = ++calls_;
    captured->graph.launch(context.work);
  }

 private:
  // The number of forms is limited; the least recently launched form is dropped once it has
  // finished.
  std::unique_ptr<Captured>& form_of(const Context& context, int runs) {
    if (!captured_.contains(runs) && captured_.size() >= kForms) {
      check(driver().cuStreamSynchronize(context.work), "waiting for ", context.title());
      captured_.erase(std::min_element(captured_.begin(), captured_.end(), [](auto& a, auto& b) {
        return launched_at(a.second) < launched_at(b.second);
      }));
    }
    return captured_[runs];
  }
  static std::uint64_t launched_at(const std::unique_ptr<Captured>& form) {
    return form == nullptr ? 0 : form->used;
  }

  bool may_move(std::size_t value) const {
    const Value::Kind kind = program_->values[value].kind;
    return kind == Value::Kind::Leaf || kind == Value::Kind::Output;
  }
  bool is_output(std::size_t value) const {
    return program_->values[value].kind == Value::Kind::Output;
  }
  std::int64_t bytes(std::size_t value) const { return program_->values[value].bytes; }
  std::int64_t bytes(std::size_t value, std::int64_t stride, int runs) const {
    return stride * (runs - 1) + bytes(value);
  }
  static bool askew(std::int64_t stride, int runs) {
    return runs > 1 && stride % kValueAlignment != 0;
  }
  std::int64_t pitch(std::size_t value) const {
    return (bytes(value) + kValueAlignment - 1) / kValueAlignment * kValueAlignment;
  }

  // True if patching copies is enough. A value whose address changed for the first time gets a
  // fixed place, and the program is captured again.
  bool fits(const Captured& captured, const Given& now, std::int64_t releases) {
    bool good = !captured.fixed || captured.releases == releases;
    for (std::size_t k : outside_) {
      if (captured.given.stride[k] != now.stride[k]) good = false;
      if (captured.given.base[k] == now.base[k] || captured.patched[k] != 0) continue;
      good = false;
      moves_[k] = may_move(k) ? 1 : 0;
    }
    return good;
  }

  void patch(Captured& captured, const Given& now, int runs, std::int64_t releases) {
    for (const Captured::Copy& copy : captured.copies) {
      std::byte*& known = captured.given.base[copy.value];
      if (known == now.base[copy.value] && captured.releases == releases) continue;
      known = now.base[copy.value];
      captured.graph.patch_copy(copy.node, copy_of(copy, known, now.stride[copy.value], runs));
    }
  }

  CUDA_MEMCPY3D copy_of(const Captured::Copy& copy, std::byte* outside, std::int64_t stride,
                        int runs) const {
    const std::int64_t all = bytes(copy.value, stride, runs);
    return is_output(copy.value) ? flat_copy(outside, copy.place, all)
                                 : flat_copy(copy.place, outside, all);
  }

  std::unique_ptr<Captured> capture(const Context& context, const Located& given, int runs,
                                    std::byte* arena) {
    // The old graph may still run; its places must not be reused before it has ended.
    check(driver().cuStreamSynchronize(context.work), "waiting for ", context.title());
    auto out = std::make_unique<Captured>(context);
    out->arena = arena;
    out->given = given;
    out->patched.assign(given.base.size(), 0);
    Located places = given;
    std::vector<Nodes> arrivals(given.base.size());
    for (std::size_t k : outside_)
      if (!is_output(k)) bring_in(*out, k, runs, places, arrivals[k]);
    for (std::size_t k : outside_)
      if (is_output(k)) make_room(*out, k, runs, places);
    const std::vector<Nodes> ends = capture_steps(*out, runs, places, arrivals);
    for (std::size_t k : outside_)
      if (is_output(k)) carry_out(*out, k, runs, places, ends);
    out->graph.instantiate();
    return out;
  }

  std::byte* new_place(Captured& out, std::int64_t size) const {
    out.places.push_back(Buffer::allocate(static_cast<std::size_t>(size), program_->device));
    auto* place = static_cast<std::byte*>(out.places.back()->data());
    // Fills with NaN, so that reads of unwritten memory show. We write, because tools that detect
    // reads of unwritten memory inspect copy nodes when the graph is launched.
    if (size > 0)
      check(driver().cuMemsetD8Async(address(place), 0xFF, static_cast<std::size_t>(size),
                                     context_of(index_).work),
            "clearing a place of a captured program");
    return place;
  }

  // An input whose address changes is copied to a fixed place; rows with an unsuitable layout are
  // copied to a suitable one.
  void bring_in(Captured& out, std::size_t k, int runs, Located& places, Nodes& arrival) const {
    std::byte*& base = places.base[k];
    std::int64_t& stride = places.stride[k];
    if (moves_[k] != 0) {
      const Captured::Copy copy{k, nullptr, new_place(out, bytes(k, stride, runs))};
      add_patched(out, copy, {}, runs, arrival);
      base = copy.place;
    }
    if (!askew(stride, runs)) return;
    if (moves_[k] == 0) out.fixed = true;
    std::byte* spread = new_place(out, pitch(k) * runs);
    arrival = {
        out.graph.add_copy(arrival, rows_copy(spread, pitch(k), base, stride, bytes(k), runs))};
    base = spread;
    stride = pitch(k);
  }

  void add_patched(Captured& out, Captured::Copy copy, const Nodes& after, int runs,
                   Nodes& last) const {
    const std::size_t k = copy.value;
    copy.node =
        out.graph.add_copy(after, copy_of(copy, out.given.base[k], out.given.stride[k], runs));
    out.copies.push_back(copy);
    out.patched[k] = 1;
    last = {copy.node};
  }

  // The place of an output whose address changes or whose rows have an unsuitable layout.
  void make_room(Captured& out, std::size_t k, int runs, Located& places) const {
    std::int64_t& stride = places.stride[k];
    if (askew(stride, runs)) stride = pitch(k);
    if (moves_[k] != 0 || stride != out.given.stride[k])
      places.base[k] = new_place(out, bytes(k, stride, runs));
  }

  void carry_out(Captured& out, std::size_t k, int runs, const Located& places,
                 const std::vector<Nodes>& ends) const {
    if (places.base[k] == out.given.base[k]) return;
    const int steps = static_cast<int>(program_->steps.size());
    Nodes last;
    for (int e = 0; e < steps * runs; ++e) {
      const std::vector<ValueId>& writes = program_->steps[at(e % steps)].region.writes;
      if (contains(writes, static_cast<ValueId>(k))) add(last, ends[at(e)]);
    }
    std::byte* from = places.base[k];
    const std::int64_t stride = out.given.stride[k];
    if (places.stride[k] != stride) {
      std::byte* to = moves_[k] != 0 ? new_place(out, bytes(k, stride, runs)) : out.given.base[k];
      last = {
          out.graph.add_copy(last, rows_copy(to, stride, from, places.stride[k], bytes(k), runs))};
      from = to;
      if (moves_[k] == 0) out.fixed = true;
    }
    if (moves_[k] != 0) add_patched(out, {k, nullptr, from}, Nodes(last), runs, last);
  }

  std::vector<Nodes> capture_steps(Captured& out, int runs, const Located& places,
                                   const std::vector<Nodes>& arrivals) const {
    const int steps = static_cast<int>(program_->steps.size());
    const std::vector<std::vector<int>> before = waits(*program_, runs);
    std::vector<Nodes> ends(before.size());
    const CaptureStream stream;
    std::vector<std::byte*> values;
    int run = -1;  // the run that the values belong to
    for (const int entry : short_paths_last(*program_, before)) {
      if (entry / steps != run) values = in_run(places, run = entry / steps);
      const Step& step = program_->steps[at(entry % steps)];
      Nodes after;
      for (int e : before[at(entry)]) add(after, ends[at(e)]);
      for (ValueId id : step.region.reads) add(after, arrivals[at(id)]);
      ends[at(entry)] = out.graph.capture(stream.get(), after, [&] {
        step.kernel->run({values.data(), out.arena + step.workspace_offset, stream.get()});
      });
      if (!may_overlap(step)) out.graph.forbid_overlap(ends[at(entry)]);
    }
    return ends;
  }

  // True if the step's launches may begin before the steps they wait for have ended, and later
  // launches before this step has ended. False if the step moves so many bytes that a launch costs
  // little in comparison: a kernel that waits occupies multiprocessors and keeps out steps that
  // could run concurrently.
  bool may_overlap(const Step& step) const {
    const Region& region = step.region;
    std::int64_t moved = 0;
    for (ValueId id : region.writes) moved += bytes(static_cast<std::size_t>(id));
    if (region.kind != RegionKind::Opaque)  // these read parts of large values
      for (ValueId id : region.reads) moved += bytes(static_cast<std::size_t>(id));
    return moved <= kLongStep;
  }

  static std::vector<std::byte*> in_run(const Located& places, int run) {
    std::vector<std::byte*> values = places.base;
    for (std::size_t k = 0; k < values.size(); ++k)
      if (places.stride[k] != 0) values[k] += places.stride[k] * run;
    return values;
  }

  static void add(Nodes& to, const Nodes& from) {
    for (CUgraphNode node : from)
      if (!contains(to, node)) to.push_back(node);
  }

  // Queues the steps without a graph.
  void queue(const Context& context, const Located& given, int runs, std::byte* arena) const {
    std::map<std::size_t, std::shared_ptr<Buffer>> rooms;
    for (std::size_t k : outside_)
      if (askew(given.stride[k], runs))
        rooms[k] = Buffer::allocate(static_cast<std::size_t>(bytes(k)), program_->device);
    const auto copy = [&](const void* to, const void* from, std::size_t k) {
      check(driver().cuMemcpyDtoDAsync(address(to), address(from),
                                       static_cast<std::size_t>(bytes(k)), context.work),
            "copying a row on ", context.title());
    };
    for (int r = 0; r < runs; ++r) {
      const std::vector<std::byte*> outside = in_run(given, r);
      std::vector<std::byte*> values = outside;
      for (const auto& [k, room] : rooms) {
        values[k] = static_cast<std::byte*>(room->data());
        if (!is_output(k)) copy(values[k], outside[k], k);
      }
      run_once(*program_, values.data(), arena);
      for (const auto& [k, room] : rooms)
        if (is_output(k)) copy(outside[k], values[k], k);
    }
  }

  std::shared_ptr<const Program> program_;
  int index_;
  bool warm_ = false;
  std::vector<std::size_t> outside_;  // values whose addresses come from outside
  std::vector<char> moves_;           // 1: an input or output whose address has changed before
  std::map<int, std::unique_ptr<Captured>> captured_;  // by number of runs
  std::uint64_t calls_ = 0;
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

}  // namespace tenon::cuda
