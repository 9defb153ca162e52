// The map engine and its kernels: launches are prepared once and get addresses at each run.
#include "cuda/engines/maps/map_engine.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/tickets.h"
#include "cuda/engines/maps/map_kernel.h"
#include "cuda/engines/maps/print_loop_nest.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {

namespace {

constexpr std::uint64_t kVectorAlignment = 16;  // alignment of vector accesses

class MapKernel final : public Kernel {
 public:
  MapKernel(PrintedMap printed, const Target& target) {
    workspace_bytes = static_cast<std::size_t>(printed.workspace_bytes);
    for (PrintedLaunch& launch : printed.launches) {
      launches_.push_back({compile(target, std::move(launch.source)), std::move(launch.arguments),
                           static_cast<std::uint32_t>(launch.threads),
                           static_cast<std::uint32_t>(launch.shared_bytes),
                           static_cast<std::uint32_t>(launch.blocks), launch.resident,
                           launch.tickets, std::move(launch.first_tickets), launch.arrival_word});
      take_counters(launches_.back());
    }
  }

  std::unique_ptr<Kernel> on_values(std::span<const ValueId> renamed) const override {
    auto other = std::make_unique<MapKernel>(*this);
    for (Launch& launch : other->launches_) {
      launch.arguments.rename(renamed);
      take_counters(launch);
    }
    return other;
  }

  void run(const Binding& binding) const override {
    std::vector<std::uint64_t>& words = words_of_thread();
    for (const Launch& launch : launches_) {
      launch.arguments.fill(words, binding);
      check_alignment(launch.arguments, words);
      void* params[] = {words.data()};
      if (launch.resident)
        launch.kernel->launch_resident(binding.stream, launch.blocks, launch.threads, params);
      else
        launch.kernel->launch(binding.stream, {launch.blocks, 1, 1}, {launch.threads, 1, 1},
                              launch.shared_bytes, params);
    }
  }

  std::string source() const override {
    std::string text;
    for (const Launch& launch : launches_)
      text += cat(text.empty() ? "" : kNextLaunch, launch.kernel->source().text);
    return text;
  }

 private:
  struct Launch {
    std::shared_ptr<const CompiledKernel> kernel;
    ArgumentBlock arguments;
    std::uint32_t threads, shared_bytes, blocks;
    bool resident;
    std::int64_t tickets;
    std::vector<PrintedLaunch::FirstTicket> first_tickets;
    int arrival_word;
  };

  /// Counters of this launch alone: identical kernels may run concurrently.
  static void take_counters(Launch& launch) {
    std::vector<std::uint64_t>& words = launch.arguments.words;
    if (launch.tickets > 0) {
      static Tickets tickets(kTickets);
      const std::uint64_t first = tickets.take(launch.tickets);
      for (const auto& [word, number] : launch.first_tickets)
        words[static_cast<std::size_t>(word)] = first + static_cast<std::uint64_t>(number);
    }
    if (launch.arrival_word >= 0) {
      static Tickets arrivals(kArrivals);
      words[static_cast<std::size_t>(launch.arrival_word)] = arrivals.take(1);
    }
  }

  static void check_alignment(const ArgumentBlock& arguments,
                              std::span<const std::uint64_t> words) {
    const auto check = [words](int word, const char* what, std::int64_t number) {
      if (words[static_cast<std::size_t>(word)] % kVectorAlignment != 0)
        throw InternalError(cat(what, number, " starts at an address that is not a multiple of ",
                                kVectorAlignment));
    };
    for (const auto& [word, value] : arguments.pointers) check(word, "value ", value);
    for (const auto& [word, offset] : arguments.temporaries)
      check(word, "the temporary at byte ", offset);
  }

  std::vector<Launch> launches_;
};

class MapEngine final : public Engine {
 public:
  explicit MapEngine(const Target& target) : target_(target) {}
  const char* name() const override { return "generated"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    if (region.kind == RegionKind::Map || region.kind == RegionKind::Joined) return true;
    *why = "runs map regions only (element-wise operations and reductions)";
    return false;
  }
  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    can.no_shared_launch = share_of(region, values, can.share);
    return can;
  }
  double saves(std::span<const LaunchPart> parts, std::string* why) const override {
    const PhaseSizes sizes = sizes_of(parts, launch_words(target_));
    const GpuModel& gpu = target_.model;
    double saved = (sizes.phases - 1) * gpu.launch_us;
    if (sizes.repeats_first_phase) saved -= gpu.repeated_row_us;
    if (sizes.ends_last) saved -= gpu.last_block_us;
    if (!sizes.never_waits) {
      *why = "in one launch blocks would have to wait for one another";
    } else if (!sizes.fits) {
      *why = "together the phases need more arguments than a launch can have";
    } else if (saved > 0) {
      return saved;
    }
    return 0;
  }
  /// The time of an element-wise map or of one that only reduces. Reductions whose results the
  /// elements need have no model.
  double estimate(const Region& region, std::span<const Value> values) const override {
    const MapProgram& map = region.map;
    if (region.kind != RegionKind::Map) return 0;
    const bool reduces = map.has_rows || !map.reduces.empty();
    if (reduces && !only_reduces(map)) return 0;
    double bytes = 0;
    for (const std::vector<ValueId>* list : {&region.reads, &region.writes})
      for (const ValueId id : *list)
        bytes += static_cast<double>(values[static_cast<std::size_t>(id)].bytes);
    return microseconds(target_.model, {.bytes = bytes}) +
           (reduces ? target_.model.last_block_us : 0);
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    const std::size_t words = launch_words(target_);
    PrintedMap printed = region.kind == RegionKind::Joined
                             ? print_together(region.parts, values, words)
                             : print_map(region, values, words, target_.shared_bytes);
    return std::make_unique<MapKernel>(std::move(printed), target_);
  }

 private:
  static bool only_reduces(const MapProgram& map) {
    return std::all_of(map.stores.begin(), map.stores.end(), [&map](const MapStore& store) {
      return map.instrs[static_cast<std::size_t>(store.source)].code == MapCode::RowReduce;
    });
  }

  const Target target_;
};

}  // namespace

const Engine& map_engine(const Target& target) { return per_target<MapEngine>(target); }

}  // namespace tenon::cuda
