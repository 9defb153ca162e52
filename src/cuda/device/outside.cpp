// Records and sites; both live until the end of the process.
#include "cuda/device/outside.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "cuda/device/gpu.h"
#include "cuda/device/opening/driver.h"
#include "plan/graph/outside.h"

namespace tenon::cuda {
namespace {

// op, layer, axis, size
using Site = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;

struct Sites {
  std::mutex mutex;
  std::map<Site, std::int64_t> numbers;
  std::vector<Site> by_number;
  std::vector<Outside*> records;  // by GPU; null until asked for
};

Sites& sites() {
  static Sites* const instance = new Sites;
  return *instance;
}

Outside* pinned(const Context& context) {
  const OutsideCapture outside;
  void* memory = nullptr;
  check(driver().cuMemHostAlloc(&memory, sizeof(Outside), CU_MEMHOSTALLOC_PORTABLE),
        "pinning host memory for ", context.title());
  return new (memory) Outside;
}

}  // namespace

Outside* outside_record(int index) {
  const Context& context = context_of(index);
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  const auto gpu = static_cast<std::size_t>(index);
  if (all.records.size() <= gpu) all.records.resize(gpu + 1);
  if (all.records[gpu] == nullptr) all.records[gpu] = pinned(context);
  return all.records[gpu];
}

std::int64_t outside_site(const OpPlace& op, std::int64_t axis, std::int64_t size) {
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  const auto [found, is_new] =
      all.numbers.try_emplace({op.operation, op.layer, axis, size}, all.by_number.size());
  if (is_new) all.by_number.push_back(found->first);
  return found->second;
}

void throw_outside(int index) {
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  const auto gpu = static_cast<std::size_t>(index);
  if (all.records.size() <= gpu || all.records[gpu] == nullptr) return;
  volatile Outside& record = *all.records[gpu];
  const std::int64_t mark = record.mark, found = record.index;
  if (mark == 0) return;
  record.mark = 0;
  const auto& [op, layer, axis, size] = all.by_number[static_cast<std::size_t>(mark >> kSiteShift)];
  const std::int64_t place = (mark & ((std::int64_t{1} << kSiteShift) - 1)) - 1;
  throw index_outside({op, layer}, found, axis, size, place,
                      "; a GPU reports this only after all queued work has run, updates included");
}

}  // namespace tenon::cuda
