// Fakes for tests of the tuner: engines with names for kernels, timings that a test sets, and
// programs of one matrix product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <tenon/error.h>

#include "../io/folder.h"
#include "plan/steps/schedule.h"
#include "run/tuning/tune.h"

namespace fake_tune {

using namespace tenon;

class Nothing final : public Kernel {
 public:
  explicit Nothing(std::string way) : text(std::move(way)) {}
  void run(const Binding&) const override {}
  std::string source() const override { return text; }
  const std::string text;  // "engine configuration"
};

struct FakeEngine final : Engine {
  FakeEngine(std::string its_name, int its_rank, std::vector<std::string> its_ways = {})
      : title(std::move(its_name)), rank(its_rank), ways(std::move(its_ways)) {}
  const char* name() const override { return title.c_str(); }
  bool claims(const Region&, std::span<const Value>, std::string*) const override {
    return claiming;
  }
  bool is_able(const Region&, std::span<const Value>) const override { return claiming || able; }
  /// The higher the rank, the lower the estimate.
  double estimate(const Region&, std::span<const Value>) const override { return 9 - rank; }
  std::unique_ptr<Kernel> prepare(const Region&, std::span<const Value>, int) const override {
    return std::make_unique<Nothing>(title);
  }
  std::vector<std::string> configurations(const Region&, std::span<const Value>) const override {
    return ways;
  }
  std::unique_ptr<Kernel> prepare_as(const std::string& way, const Region& region,
                                     std::span<const Value> values, int threads) const override {
    if (way.empty()) return prepare(region, values, threads);
    if (way == "absent") throw NotSupported("no such algorithm");
    auto kernel = std::make_unique<Nothing>(title + " " + way);
    if (way == "large") kernel->workspace_bytes = std::size_t{65} << 20;
    return kernel;
  }
  std::string version() const override { return number; }

  std::string title;
  int rank;
  std::vector<std::string> ways;
  std::string number = "1";
  bool claiming = true, able = false;
};

/// Timings by candidate name, one for each call; the last one repeats.
struct FakeBench final : Bench {
  std::map<std::string, std::vector<double>> times;
  std::vector<std::string> wrong;
  std::vector<std::string> asked;  // for a timing, in order

  bool agrees(const Kernel& kernel, std::string* why) override {
    *why = "another result";
    return std::find(wrong.begin(), wrong.end(), kernel.source()) == wrong.end();
  }
  double microseconds(const Kernel& kernel) override {
    const std::vector<double>& own = times.at(kernel.source());
    const auto before = std::count(asked.begin(), asked.end(), kernel.source());
    asked.push_back(kernel.source());
    const double us = own[std::min(own.size() - 1, static_cast<std::size_t>(before))];
    if (us < 0) throw DeviceError("it cannot be run");
    return us;
  }
};

/// A program of one product of these sizes.
inline Program product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Program p;
  const auto value = [&](const Shape& shape) {
    Value v;
    v.shape = shape;
    v.bytes = shape.numel() * 4;
    p.values.push_back(v);
    return static_cast<ValueId>(p.values.size() - 1);
  };
  Step step;
  step.region.kind = RegionKind::Contraction;
  step.region.title = "matmul";
  Contraction& c = step.region.contraction;
  c.a_shape = {m, k}, c.b_shape = {k, n}, c.out_shape = {m, n};
  c.a.value = value(c.a_shape), c.b.value = value(c.b_shape), c.out = value(c.out_shape);
  c.a.stride[0] = k, c.a.stride[1] = 1, c.b.stride[0] = n, c.b.stride[1] = 1;
  step.region.reads = {c.a.value, c.b.value}, step.region.writes = {c.out};
  p.steps.push_back(std::move(step));
  return p;
}

inline std::string key_of(const Program& p) { return tune_key("gpu", p.steps[0].region, p.values); }

inline TuneChoice choice(const std::string& engine, const std::string& way, double us = 1) {
  TuneChoice c;
  c.engine = engine, c.configuration = way, c.version = "1", c.microseconds = us;
  c.rivals = "good 1, other 1";
  return c;
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// Two engines, "good" preferred to "other", with a bench that the test fills.
struct World {
  TestFolder folder;
  TuneStore store{folder.path()};
  FakeEngine good{"good", 1, {"a", "b"}}, other{"other", 0, {"c", "absent"}};
  FakeBench bench;
  int benches = 0;
  std::size_t room = SIZE_MAX;  // for a workspace
  std::vector<const Engine*> engines{&good, &other};

  World() { bench.times = {{"good a", {10}}, {"good b", {11}}, {"other c", {12}}, {"good", {10}}}; }
  /// The engine that the step of a planned product gets: "other c, tuned now …".
  std::string plan(Tune mode, Program p = product(3, 4, 5)) {
    const auto lend = [this](const Region&, std::span<const Value>, const PlanOptions&,
                             std::span<const Candidate> candidates) {
      for (const Candidate& c : candidates)
        if (c.kernel->workspace_bytes > room) throw MemoryError("no room");
      struct Lent final : Bench {
        explicit Lent(FakeBench& b) : lender(b) {}
        bool agrees(const Kernel& k, std::string* why) override { return lender.agrees(k, why); }
        double microseconds(const Kernel& k) override { return lender.microseconds(k); }
        FakeBench& lender;
      };
      ++benches;
      bench.asked.clear();
      return std::make_unique<Lent>(bench);
    };
    Tuner tuner("gpu", mode, store, lend);
    PlanOptions options;
    options.engines = engines;
    options.tuning = &tuner;
    choose_engines(p, options);
    const Step& step = p.steps[0];
    CHECK(step.kernel->source() ==
          step.engine->name() + (step.configuration.empty() ? "" : " " + step.configuration));
    return step.kernel->source() + ", " + step.choice;
  }
};

}  // namespace fake_tune
