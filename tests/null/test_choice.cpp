// How an engine is chosen for a step: claims, estimates, and libraries that have no kernel after
// all.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "plan/steps/schedule.h"

using namespace tenon;

namespace {

class Nothing final : public Kernel {
 public:
  void run(const Binding&) const override {}
};

struct FakeEngine final : Engine {
  FakeEngine(const char* its_name, double its_time, bool claims_all, bool has_kernel)
      : title(its_name), time(its_time), claiming(claims_all), able(has_kernel) {}
  const char* name() const override { return title; }
  bool claims(const Region&, std::span<const Value>, std::string* why) const override {
    *why = "runs nothing here";
    return claiming;
  }
  double estimate(const Region&, std::span<const Value>) const override { return time; }
  std::unique_ptr<Kernel> prepare(const Region&, std::span<const Value>, int) const override {
    if (!able) throw NotSupported("no algorithm");
    return std::make_unique<Nothing>();
  }

  const char* title;
  double time;
  bool claiming, able;
};

/// The name of the engine that a step gets.
std::string chosen(const std::vector<const Engine*>& engines, std::string* passed_over = nullptr) {
  Program program;
  program.steps.emplace_back();
  PlanOptions options;
  options.engines = engines;
  choose_engines(program, options);
  if (passed_over != nullptr) *passed_over = program.steps[0].passed_over;
  CHECK(program.steps[0].kernel != nullptr);
  return program.steps[0].engine->name();
}

}  // namespace

TEST_CASE("choice: the lowest estimate, then order; engines that cannot prepare are skipped") {
  const FakeEngine native("native", 2, true, true), map("map", 2, false, true);
  const FakeEngine fast("fast", 1, true, true), slow("slow", 3, true, true);
  const FakeEngine empty("empty", 1, true, false), unknown("unknown", 0, true, true);
  CHECK(chosen({&map, &native, &slow}) == "native");
  CHECK(chosen({&slow, &native}) == "native");
  CHECK(chosen({&native, &fast}) == "fast");
  CHECK(chosen({&unknown, &slow}) == "slow");  // an engine without an estimate comes last
  CHECK(chosen({&unknown, &map}) == "unknown");
  std::string passed_over;
  CHECK(chosen({&native, &empty, &map}, &passed_over) == "native");
  CHECK(passed_over == "map runs nothing here; empty: no algorithm");
  CHECK_THROWS_WITH_AS(chosen({&map, &empty}),
                       doctest::Contains("map runs nothing here; empty: no algorithm"),
                       NotSupported);
}
