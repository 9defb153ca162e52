// The arena layout: values of sequential steps share bytes. Where steps run concurrently, freed
// bytes are held back from steps that do not wait for the previous users.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/ops.h>

#include <algorithm>
#include <vector>

#include "planning.h"

using namespace tenon;
using test::leaf;
using test::planned;

namespace {

constexpr std::int64_t kSize = 1024, kMatrix = kSize * kSize * 4;  // 4 MiB

enum class Beside { Nothing, Products };

/// A chain of matrix products; each product also has a second reader, which the next product does
/// not wait for.
std::shared_ptr<const Program> products(int count, Device::Kind kind,
                                        Beside beside = Beside::Nothing, std::int64_t limit = 0) {
  const Tensor w = leaf({kSize, kSize}), v = leaf({kSize, kSize});
  Tensor y = leaf({kSize, kSize});
  std::vector<Tensor> roots;
  for (int k = 0; k < count; ++k) {
    y = matmul(y, w);
    if (beside == Beside::Products) roots.push_back(sum(matmul(y, v)));
  }
  roots.push_back(y);
  return planned(roots, {.kind = kind, .memory_limit = limit});
}

std::vector<const Value*> arena_of(const Program& program) {
  std::vector<const Value*> values;
  for (const Value& value : program.values)
    if (value.kind == Value::Kind::Arena) values.push_back(&value);
  return values;
}

}  // namespace

TEST_CASE("memory: sequential steps reuse freed bytes") {
  const auto p = products(60, Device::Kind::Cpu);
  CHECK(p->workspace_offset == 2 * kMatrix);
  for (const Step& step : p->steps) CHECK(step.workspace_offset == p->workspace_offset);
}

TEST_CASE("memory: with concurrent steps 64 MiB are freed before bytes are reused") {
  const auto p = products(60, Device::Kind::Cuda, Beside::Products);
  std::vector<std::int64_t> freed(p->steps.size(), 0);  // by a step
  std::vector<int> readers(p->values.size(), 0);
  for (std::size_t s = 0; s < freed.size(); ++s) {
    freed[s] = static_cast<std::int64_t>(p->steps[s].kernel->workspace_bytes);
    for (const ValueId id : p->steps[s].region.reads) ++readers[static_cast<std::size_t>(id)];
  }
  for (const Value* value : arena_of(*p))
    freed[static_cast<std::size_t>(value->last_step)] += value->bytes;
  CHECK(p->arena_bytes < 59 * kMatrix);
  int pairs = 0;
  for (const Value* early : arena_of(*p))
    for (const Value* late : arena_of(*p)) {
      if (early->offset != late->offset || early->last_step >= late->first_step) continue;
      if (late->bytes < kMatrix || readers[static_cast<std::size_t>(early - &p->values[0])] < 2)
        continue;
      ++pairs;
      std::int64_t rested = 0;  // bytes held back before this step
      for (int s = early->last_step; s <= late->first_step; ++s)
        rested += freed[static_cast<std::size_t>(s)];
      CHECK(rested > std::int64_t{64} << 20);
    }
  CHECK(pairs > 0);
}

TEST_CASE("memory: steps that wait for all previous users reuse bytes at once") {
  const auto p = products(60, Device::Kind::Cuda);
  std::size_t workspace = 0;
  for (const Step& step : p->steps) workspace = std::max(workspace, step.kernel->workspace_bytes);
  CHECK(p->arena_bytes <= 2 * kMatrix + static_cast<std::int64_t>(workspace));
}

TEST_CASE("memory: delayed reuse hardly raises the peak of a large program") {
  // The results of a hundred products of 4 MiB are kept for the backward products that read them,
  // two each.
  const Tensor w = leaf({kSize, kSize});
  std::vector<Tensor> kept{leaf({kSize, kSize})}, roots;
  for (int k = 0; k < 100; ++k) kept.push_back(matmul(kept.back(), w));
  Tensor y = kept.back();
  for (kept.pop_back(); kept.size() > 1; kept.pop_back()) {
    roots.push_back(sum(matmul(kept.back(), y)));
    y = matmul(y, kept.back());
  }
  roots.push_back(y);
  const auto p = planned(roots);
  std::vector<std::int64_t> live(p->steps.size(), 0);
  for (std::size_t s = 0; s < live.size(); ++s)
    live[s] = static_cast<std::int64_t>(p->steps[s].kernel->workspace_bytes);
  for (const Value* value : arena_of(*p))
    for (int s = value->first_step; s <= value->last_step; ++s)
      live[static_cast<std::size_t>(s)] += value->bytes;
  const std::int64_t peak = *std::max_element(live.begin(), live.end());
  CHECK(peak > std::int64_t{384} << 20);
  CHECK(p->arena_bytes <= peak + peak / 32 + 2 * kMatrix);
}

TEST_CASE("memory: bytes are held back only within the memory limit") {
  const auto planned_within = [](std::int64_t limit) {
    return products(60, Device::Kind::Cuda, Beside::Products, limit);
  };
  const auto rested = planned_within(0), p = planned_within(rested->peak_bytes() - 1);
  CHECK(p->arena_bytes < rested->arena_bytes);
  CHECK_NOTHROW(planned_within(p->peak_bytes()));
  CHECK_THROWS_AS(planned_within(p->peak_bytes() - 1), MemoryError);
}

TEST_CASE(
    "memory: a program that exceeds the limit or the device's memory is refused by its plan") {
  const Tensor w = leaf({kSize, kSize});
  const std::vector<Tensor> roots{matmul(matmul(leaf({kSize, kSize}), w), w)};
  const auto refusal = [&](std::int64_t limit, std::int64_t device) {
    try {
      (void)planned(roots, {.memory_limit = limit, .device_memory = device});
    } catch (const MemoryError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  const std::int64_t little = kMatrix, much = 100 * kMatrix;
  CHECK(refusal(much, much) == "");
  CHECK(refusal(0, 0) == "");
  for (const std::int64_t device : {std::int64_t{0}, much}) {
    CHECK(has(refusal(little, device), "more than the limit of"));
    CHECK(has(refusal(little, device), "use a smaller batch or raise the limit"));
  }
  // A limit that the user raises does not enlarge the device.
  for (const std::int64_t limit : {std::int64_t{0}, much}) {
    const std::string text = refusal(limit, little);
    CHECK(has(text, "of the device (largest: "));
    CHECK(has(text, "use a smaller batch, a lower precision or a smaller network"));
    CHECK(!has(text, "raise the limit"));
  }
}

TEST_CASE("memory: small values and workspaces share no bytes") {
  const Tensor w = leaf({300, 300});
  Tensor y = leaf({300, 300});
  for (int k = 0; k < 10; ++k) y = matmul(y, w);
  const auto p = planned({y});
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const Value* value : arena_of(*p)) places.push_back({value->offset, value->bytes});
  for (const Step& step : p->steps)
    if (const auto bytes = static_cast<std::int64_t>(step.kernel->workspace_bytes); bytes > 0)
      places.push_back({step.workspace_offset, bytes});
  std::sort(places.begin(), places.end());
  for (std::size_t k = 1; k < places.size(); ++k)
    CHECK(places[k - 1].first + places[k - 1].second <= places[k].first);
}

TEST_CASE("memory: steps that read only leaves are delayed past the largest values") {
  // Two values of 64 MiB first, then four layers whose weights, 8 MiB each, are read before.
  const Tensor first = matmul(leaf({4096, 4096}), leaf({4096, 4096}));
  Tensor y = matmul(matmul(first, leaf({4096, 4096})), leaf({4096, 512}));
  for (int k = 0; k < 4; ++k) y = matmul(matmul(y, exp(leaf({512, 4096}))), leaf({4096, 512}));
  const auto p = planned({y}, {.kind = Device::Kind::Cpu});
  int kernels = 0;
  for (std::size_t s = 0; s < p->steps.size(); ++s) {
    const Region& region = p->steps[s].region;
    if (region.kind != RegionKind::Map) continue;
    ++kernels;
    REQUIRE(s + 1 < p->steps.size());
    const std::vector<ValueId>& reads = p->steps[s + 1].region.reads;
    CHECK(std::find(reads.begin(), reads.end(), region.writes.at(0)) != reads.end());
  }
  CHECK(kernels == 4);
  CHECK(p->workspace_offset < std::int64_t{144} << 20);  // all weights in front would take 160
}
