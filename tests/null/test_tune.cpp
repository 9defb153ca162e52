// The tuner without a GPU: keys, tables, files, the rules of the competition, the sources of
// advice.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>

#include "../io/folder.h"
#include "cuda/cuda.h"
#include "cuda/engines/products/native_engine.h"
#include "plan/steps/schedule.h"
#include "run/tuning/tune.h"

using namespace tenon;

namespace {

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
Program product(std::int64_t m, std::int64_t n, std::int64_t k) {
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

std::string key_of(const Program& p) { return tune_key("gpu", p.steps[0].region, p.values); }

TuneChoice choice(const std::string& engine, const std::string& way, double us = 1) {
  TuneChoice c;
  c.engine = engine, c.configuration = way, c.version = "1", c.microseconds = us;
  c.rivals = "good 1, other 1";
  return c;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_text(const std::string& path, const std::string& text) {
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

}  // namespace

TEST_CASE("tune: a key contains everything that decides the speed and nothing else") {
  Program p = product(3, 4, 5);
  const std::string key = key_of(p);
  CHECK(key ==
        "gpu | matmul [m, k]float32{5,1} [k, 4]float32{4,1} -> [m, 4]float32 in float32 stored "
        "with m 3 k 5");
  const auto changed = [&](auto&& change) {
    Program q = product(3, 4, 5);
    change(q, q.steps[0].region.contraction);
    return key_of(q) != key;
  };
  CHECK(changed([](Program&, Contraction& c) { c.a.stride[0] = 6; }));
  CHECK(changed([](Program&, Contraction& c) { c.a.offset = 1; }));
  CHECK_FALSE(changed([](Program&, Contraction& c) { c.a.offset = 16; }));
  CHECK(changed([](Program& q, Contraction&) { q.values[0].dtype = DType::BFloat16; }));
  CHECK(changed([](Program&, Contraction& c) { c.attrs.precision = Precision::Bf16; }));
  CHECK(changed([](Program&, Contraction& c) { c.attrs.precision = Precision::Tf32; }));
  CHECK(changed([](Program&, Contraction& c) { c.out = kNoValue; }));
  CHECK_FALSE(changed([](Program& q, Contraction&) { q.steps[0].region.title = "other"; }));
  CHECK_FALSE(changed([](Program& q, Contraction&) { q.values[0].label = 3; }));
  CHECK(tune_key("another", p.steps[0].region, p.values) != key);
  CHECK(key_of(product(3, 4, 6)) != key);

  const auto epilogue = [](double number, Op op) {
    Program q = product(3, 4, 5);
    Region& r = q.steps[0].region;
    r.contraction.has_epilogue = true;
    r.map.space = {1, 3, 4};
    MapInstr accumulator, constant, compute;
    accumulator.code = MapCode::Accumulator;
    constant.code = MapCode::Number;
    constant.attrs = ConstantAttrs{number};
    compute.code = MapCode::Compute;
    compute.op = op;
    compute.args[0] = 0, compute.args[1] = 1;
    r.map.instrs = {accumulator, constant, compute};
    return key_of(q);
  };
  CHECK(epilogue(1, Op::Add) == epilogue(2, Op::Add));
  CHECK(epilogue(1, Op::Add) != epilogue(1, Op::Mul));
}

TEST_CASE("tune: keys of incomplete and full batches differ only in the sizes at the end") {
  const auto pattern = [](const std::string& key) { return key.substr(0, key.find(" with ")); };
  // A product whose epilogue adds a row, over its elements.
  const auto key = [](std::int64_t m, std::int64_t n) {
    Program p = product(m, n, 5);
    Region& r = p.steps[0].region;
    r.contraction.has_epilogue = true;
    r.map.space = {1, m, n};
    MapInstr accumulator, row;
    accumulator.code = MapCode::Accumulator;
    row.code = MapCode::Load;
    row.view.value = 1;
    row.view.stride[2] = 1;
    r.map.instrs = {accumulator, row};
    return key_of(p);
  };
  CHECK(pattern(key(64, 10)) == pattern(key(32, 10)));
  CHECK(pattern(key(64, 10)) != pattern(key(64, 12)));
  CHECK(key(64, 10).ends_with(" with m 64 k 5"));

  const auto convolution = [](Op op, Shape a, Shape b, Shape out, Shape space) {
    Program p = product(1, 1, 1);
    Region& r = p.steps[0].region;
    Contraction& c = r.contraction;
    c.op = op;
    c.a_shape = a, c.b_shape = b, c.out_shape = out;
    c.has_epilogue = true;
    r.map.space = space;
    return key_of(p);
  };
  const auto forward = [&](std::int64_t n) {  // rows and columns are one axis of the epilogue
    return convolution(Op::Conv2d, {n, 3, 8, 8}, {6, 3, 3, 3}, {n, 6, 6, 6}, {n, 6, 36});
  };
  const auto gradient = [&](std::int64_t n) {
    return convolution(Op::Conv2dWeightGrad, {n, 3, 8, 8}, {n, 6, 6, 6}, {6, 3, 3, 3}, {6, 27});
  };
  CHECK(pattern(forward(64)) == pattern(forward(32)));
  CHECK(forward(32).ends_with(" with n 32"));
  CHECK(pattern(gradient(64)) == pattern(gradient(32)));
  CHECK(gradient(64).find("[n, 3, 8, 8]") != std::string::npos);
  CHECK(gradient(64).find("-> [6, 3, 3, 3]") != std::string::npos);
}

TEST_CASE("tune: among rows that differ in one size, the nearest larger one is used") {
  TuneTable table;
  const auto put = [&](const std::string& key) { table.put(key, choice(key, "")); };
  for (const char* key :
       {"p with m 64 k 5", "p with m 128 k 5", "p with m 48 k 6", "p with n 64", "pq with m 40 k 5",
        "p", "r with m -9223372036854775808 k 5", "r with m 99999999999999999999 k 5",
        "r with m 9223372036854775807 k 5", "r with", "r with m", "r with m 70"})
    put(key);
  const auto found = [&](const std::string& key) {
    const TuneChoice* row = table.find_larger(key);
    return row == nullptr ? std::string("none") : row->engine;
  };
  CHECK(found("p with m 32 k 5") == "p with m 64 k 5");
  CHECK(found("p with m 65 k 5") == "p with m 128 k 5");
  CHECK(found("p with m 64 k 5") == "p with m 128 k 5");
  CHECK(found("p with m 128 k 5") == "none");
  CHECK(found("p with m 48 k 5") == "p with m 48 k 6");
  CHECK(found("p with m 32 k 4") == "none");
  CHECK(found("p with n 63") == "p with n 64");
  CHECK(found("r with m 64 k 5") == "r with m 9223372036854775807 k 5");
  CHECK(found("r with m 64 k 6") == "none");
  CHECK(found("p") == "none");
  CHECK(found("q with m 32 k 5") == "none");
  CHECK(TuneTable().find_larger("p with m 1 k 5") == nullptr);
}

TEST_CASE("tune: a table's text is read back unchanged") {
  TuneTable table;
  table.put("one", choice("native", "64x64x32-256/4", 12.345));
  TuneChoice full = choice("cublaslt", "", 0.001);
  full.next = "native 1x1x1-1/1", full.next_microseconds = 7.5,
  full.rivals = "native, cublaslt 130002";
  table.put("two\twith a tab", full);
  int damaged = -1;
  const TuneTable again = TuneTable::parse(table.text(), &damaged);
  CHECK(damaged == 0);
  CHECK(again == table);
  CHECK(again.text() == table.text());
  REQUIRE(again.find("two\twith a tab") != nullptr);
  CHECK(*again.find("two\twith a tab") == full);
  CHECK(again.find("three") == nullptr);

  TuneTable more;
  more.put("one", choice("other", ""));
  more.put("three", choice("other", ""));
  more.merge(table);
  CHECK(more.size() == 3);
  CHECK(more.find("one")->engine == "other");
}

TEST_CASE("tune: an engine that earlier builds called by another name is read by its present one") {
  TuneTable table;
  TuneChoice old = choice("picture", "16x16", 3);
  old.next = "picture 8x8", old.rivals = "native, picture 3, cublaslt 130002";
  table.put("one", old);
  const TuneTable read = TuneTable::parse(table.text());
  REQUIRE(read.find("one") != nullptr);
  CHECK(read.find("one")->engine == "image");
  CHECK(read.find("one")->configuration == "16x16");
  CHECK(read.find("one")->next == "image 8x8");
  CHECK(read.find("one")->rivals == "native, image 3, cublaslt 130002");
  CHECK(TuneTable::parse(read.text()) == read);
}

TEST_CASE("tune: damaged lines are skipped, unknown text is refused") {
  TuneTable table;
  table.put("one", choice("native", "a"));
  table.put("two", choice("native", "b"));
  const std::string text = table.text();
  for (std::size_t k = text.find('\n') + 1; k < text.size(); ++k) {
    std::string bad = text;
    bad[k] = bad[k] == 'x' ? 'y' : 'x';
    int damaged = 0;
    const TuneTable read = TuneTable::parse(bad, &damaged);
    CHECK(read.size() < 2);
    CHECK(damaged >= 1);
  }
  for (std::size_t length = text.find('\n') + 1; length < text.size(); ++length)
    CHECK(TuneTable::parse(text.substr(0, length)).size() <= (length + 1 < text.size() ? 1u : 2u));
  for (const char* foreign : {"", "\n", "tenon-tune 2\n", "tenon-tune 1 \n", "{}"})
    CHECK_THROWS_AS(TuneTable::parse(foreign), FormatError);
  CHECK(TuneTable::parse("tenon-tune 1").size() == 0);
  CHECK(TuneTable::parse("tenon-tune 1\n\n\n" + text.substr(text.find('\n'))).size() == 2);
}

TEST_CASE("tune: candidates are timed round-robin, the fastest wins, slow ones are dropped") {
  World w;
  Program p = product(3, 4, 5);
  PlanOptions options;
  options.engines = w.engines;
  const auto race = [&](std::map<std::string, std::vector<double>> times,
                        std::vector<std::string> wrong = {}) {
    w.bench = {};
    w.bench.times = std::move(times);
    w.bench.wrong = std::move(wrong);
    std::vector<Candidate> candidates = candidates_of(p.steps[0].region, p.values, options);
    REQUIRE(candidates.size() == 3);
    CHECK(candidates[0].title() == "good a");
    CHECK(candidates[1].title() == "other c");
    CHECK(candidates[2].title() == "good b");
    return fastest(candidates, w.bench, 10);
  };
  auto won = race({{"good a", {10}}, {"good b", {13}}, {"other c", {8}}});
  REQUIRE(won);
  CHECK(won->engine == "other");
  CHECK(won->configuration == "c");
  CHECK(won->version == "1");
  CHECK(won->microseconds == 8);
  CHECK(won->next == "good a");
  CHECK(won->next_microseconds == 10);
  CHECK(std::count(w.bench.asked.begin(), w.bench.asked.end(), "good b") == 1);
  CHECK(w.bench.asked.size() == 9);
  CHECK(w.bench.asked[3] == "good a");

  // A lucky first round does not decide; the minimum of all rounds does.
  won = race({{"good a", {10, 7}}, {"good b", {30}}, {"other c", {9}}});
  CHECK(won->engine == "good");
  // Within 2 % the engine that would be chosen without measurements wins.
  CHECK(race({{"good a", {10}}, {"good b", {9.9}}, {"other c", {9.85}}})->configuration == "a");
  // Wrong results lose, however fast.
  won = race({{"good a", {10}}, {"good b", {11}}, {"other c", {1}}}, {"other c"});
  CHECK(won->engine == "good");
  CHECK(std::count(w.bench.asked.begin(), w.bench.asked.end(), "other c") == 0);
  CHECK(won->next == "good b");
  // A candidate that cannot run is dropped.
  CHECK(race({{"good a", {-1}}, {"good b", {11}}, {"other c", {-1}}})->configuration == "b");
  CHECK_FALSE(race({{"good a", {-1}}, {"good b", {-1}}, {"other c", {-1}}}));
  CHECK_FALSE(race({}, {"good a", "good b", "other c"}));
  // A candidate that needs much memory must be faster in proportion.
  std::vector<Candidate> candidates = candidates_of(p.steps[0].region, p.values, options);
  candidates[1].configuration = "large-c";
  w.bench = {};
  w.bench.times = {{"good a", {10}}, {"good b", {13}}, {"other c", {6}}};
  won = fastest(candidates, w.bench, 10);
  REQUIRE(won);
  CHECK(won->configuration == "a");
  CHECK(won->next_microseconds == 6);
  w.bench.times["other c"] = {4};
  won = fastest(candidates, w.bench, 10);
  REQUIRE(won);
  CHECK(won->configuration == "large-c");
  CHECK(won->microseconds == 4);
}

TEST_CASE("tune: an engine whose first two configurations are slow is not timed further") {
  World w;
  w.other.ways = {"c", "d", "e"};
  w.other.number = "";  // no library
  Program p = product(3, 4, 5);
  PlanOptions options;
  options.engines = w.engines;
  w.bench.times = {
      {"good a", {10}}, {"good b", {11}}, {"other c", {40}}, {"other d", {31}}, {"other e", {1}}};
  std::vector<Candidate> candidates = candidates_of(p.steps[0].region, p.values, options);
  auto won = fastest(candidates, w.bench, 10);
  REQUIRE(won);
  CHECK(won->configuration == "a");
  CHECK(std::count(w.bench.asked.begin(), w.bench.asked.end(), "other e") == 0);
  w.bench.times["other d"] = {29};
  won = fastest(candidates, w.bench, 10);
  REQUIRE(won);
  CHECK(won->configuration == "e");
  w.bench.times["other d"] = {31};
  w.other.number = "1";
  won = fastest(candidates, w.bench, 10);
  REQUIRE(won);
  CHECK(won->configuration == "e");
}

TEST_CASE("tune: at the time limit the competition ends with the timings so far") {
  World w;
  Program p = product(3, 4, 5);
  PlanOptions options;
  options.engines = w.engines;
  w.bench.times = {{"good a", {10}}, {"good b", {1}}, {"other c", {1}}};
  std::vector<Candidate> candidates = candidates_of(p.steps[0].region, p.values, options);
  const auto won = fastest(candidates, w.bench, 0);
  REQUIRE(won);
  CHECK(won->configuration == "a");
  CHECK(w.bench.asked.size() == 1);
}

TEST_CASE("tune: off, read, write") {
  World w;
  w.bench.times["other c"] = {5};
  CHECK(w.plan(Tune::Off) == "good, model");
  CHECK(w.plan(Tune::Read) == "good, model");
  CHECK(w.benches == 0);
  CHECK(w.plan(Tune::Write) == "other c, tuned now: 5.0 us, next good a 10.0 us");
  CHECK(w.benches == 1);
  CHECK(w.plan(Tune::Write) == "other c, tuned: 5.0 us, next good a 10.0 us");
  CHECK(w.plan(Tune::Read) == "other c, tuned: 5.0 us, next good a 10.0 us");
  CHECK(w.plan(Tune::Off) == "good, model");
  CHECK(w.benches == 1);
  CHECK(w.plan(Tune::Read, product(7, 7, 7)) == "good, model");

  // Another process reads the same file.
  TuneStore elsewhere{w.folder.path()};
  CHECK(elsewhere.find(key_of(product(3, 4, 5)))->engine == "other");
}

TEST_CASE("tune: an outdated row is ignored") {
  World w;
  w.bench.times["other c"] = {5};
  w.plan(Tune::Write);
  w.other.number = "2";
  CHECK(w.plan(Tune::Read) == "good, model");
  CHECK(w.plan(Tune::Write) == "other c, tuned now: 5.0 us, next good a 10.0 us");
  w.other.claiming = false;
  CHECK(w.plan(Tune::Read) == "good, model");
  w.other.claiming = true;
  const std::string key = key_of(product(3, 4, 5));
  w.store.put(key, choice("other", "absent"));  // for another version of the library
  CHECK(w.plan(Tune::Read) == "good, model");
  w.store.put(key, choice("nobody", ""));
  CHECK(w.plan(Tune::Read) == "good, model");

  // A new engine may be better: the model decides until the engine has competed.
  w.plan(Tune::Write);
  FakeEngine late("late", 0);
  w.bench.times["late"] = {1};
  w.engines.push_back(&late);
  CHECK(w.plan(Tune::Read) == "good, model");
  CHECK(w.plan(Tune::Write).starts_with("late, tuned now: 1.0"));
}

TEST_CASE("tune: equal regions are measured once, unclaimed and wrong ones not at all") {
  World w;
  Program p = product(3, 4, 5);
  Program q = product(3, 4, 5);
  Step map;
  map.region.kind = RegionKind::Map;
  p.steps.push_back(std::move(q.steps[0]));
  p.steps.push_back(std::move(map));
  w.bench.times["good"] = {1};
  w.plan(Tune::Write, std::move(p));
  CHECK(w.benches == 1);
  w.bench.wrong = {"good a", "good b", "other c"};
  CHECK(w.plan(Tune::Write, product(9, 9, 9)) == "good, model");
  CHECK(w.plan(Tune::Read, product(9, 9, 9)) == "good, model");
  CHECK(w.plan(Tune::Write, product(0, 9, 9)) == "good, ");
}

TEST_CASE("tune: progress is reported, and ends") {
  World w;
  std::vector<std::string> told;
  on_tune([&](const TuneProgress& p) {
    told.push_back(std::to_string(p.done) + "/" + std::to_string(p.total) + " " + p.what);
  });
  w.plan(Tune::Write);
  on_tune({});
  w.plan(Tune::Write, product(1, 1, 1));
  CHECK(told == std::vector<std::string>{"0/1 matmul", "1/1 "});
}

TEST_CASE("tune: choices recorded by the run take precedence over newer ones on disk") {
  World w;
  TuneTable kept;
  {
    const TuneRecord record;
    CHECK(w.plan(Tune::Read) == "good, model");
    kept = record.table();
  }
  CHECK(kept.size() == 1);
  w.store.put(key_of(product(3, 4, 5)), choice("other", "c"));
  CHECK(w.plan(Tune::Read).starts_with("other c, tuned"));
  {
    const TuneRecord record(TuneTable::parse(kept.text()));
    CHECK(w.plan(Tune::Read) == "good, as before in this run");
    CHECK(w.plan(Tune::Write) == "good, as before in this run");
    const TuneRecord inner;  // a part of the run, as in verify
    CHECK(w.plan(Tune::Read) == "good, as before in this run");
    CHECK(inner.table() == kept);
    CHECK(w.plan(Tune::Read, product(2, 2, 2)) == "good, model");
    CHECK(inner.table().size() == 2);
    CHECK(record.table().size() == 1);
  }
  CHECK(w.plan(Tune::Read).starts_with("other c, tuned"));
}

TEST_CASE("tune: an incomplete batch uses the choice of the full batch") {
  World w;
  w.good.number = w.other.number = "";
  w.store.put(key_of(product(64, 4, 5)), [] {
    TuneChoice c = choice("other", "c");
    c.version = "";
    return c;
  }());
  CHECK(w.plan(Tune::Read, product(32, 4, 5)) == "good, model");
  TuneTable kept;
  {
    const TuneRecord record;
    CHECK(w.plan(Tune::Read, product(64, 4, 5)).starts_with("other c, tuned"));
    CHECK(w.plan(Tune::Read, product(32, 4, 5)).starts_with("other c, as for the whole batch"));
    CHECK(w.plan(Tune::Off, product(31, 4, 5)).starts_with("other c, as for the whole batch"));
    CHECK(w.plan(Tune::Read, product(128, 4, 5)) == "good, model");
    CHECK(w.plan(Tune::Read, product(32, 6, 5)) == "good, model");
    // Claimed or not, as long as the engine is able to run it.
    w.other.claiming = false, w.other.able = true;
    CHECK(w.plan(Tune::Read, product(16, 4, 5)).starts_with("other c, as for the whole batch"));
    w.other.able = false;
    CHECK(w.plan(Tune::Read, product(15, 4, 5)) == "good, model");
    w.other.claiming = true;
    // An engine's own choice is recorded by name, so that it can be repeated.
    CHECK(w.plan(Tune::Read, product(100, 4, 5)).starts_with("good a, as for the whole batch"));
    kept = record.table();
  }
  {
    const TuneRecord resumed(std::move(kept));
    CHECK(w.plan(Tune::Read, product(32, 4, 5)).starts_with("other c, as before in this run"));
    CHECK(w.plan(Tune::Read, product(20, 4, 5)).starts_with("other c, as for the whole batch"));
  }
  // A library numbers its algorithms differently for another size.
  w.other.number = "2";
  w.store.put(key_of(product(64, 4, 5)), [] {
    TuneChoice c = choice("other", "c");
    c.version = "2";
    return c;
  }());
  const TuneRecord record;
  CHECK(w.plan(Tune::Read, product(64, 4, 5)).starts_with("other c, tuned"));
  CHECK(w.plan(Tune::Read, product(32, 4, 5)).starts_with("other, as for the whole batch"));
}

TEST_CASE("tune: a library is not started for a small gain") {
  World w;
  w.good.number = "";
  const auto put = [&](std::int64_t m, double us, double next_us, const std::string& next) {
    TuneChoice c = choice("other", "c", us);
    c.next = next, c.next_microseconds = next_us;
    w.store.put(key_of(product(m, 4, 5)), c);
  };
  put(3, 5, 8, "good a");
  CHECK(w.plan(Tune::Read) ==
        "good a, no library is started for this: 8.0 us, next other c 5.0 us");
  put(3, 5, 10, "good a");
  CHECK(w.plan(Tune::Read) == "other c, tuned: 5.0 us, next good a 10.0 us");
  put(3, 5, 8, "other b");
  CHECK(w.plan(Tune::Read).starts_with("other c, tuned"));
  put(3, 5, 8, "");
  CHECK(w.plan(Tune::Read).starts_with("other c, tuned"));

  // The gains of several steps add up; a step that needs the library anyway counts too.
  put(3, 5, 8, "good a");
  const auto beside = [&](std::int64_t m) {
    Program p = product(3, 4, 5), q = product(m, 4, 5);
    p.steps.push_back(std::move(q.steps[0]));
    return w.plan(Tune::Read, std::move(p));
  };
  put(6, 5, 8, "good a");
  CHECK(beside(6).starts_with("other c, tuned"));
  CHECK(beside(7).starts_with("good a, no library"));
  w.good.rank = 0, w.other.rank = 1;
  CHECK(beside(7).starts_with("other c, tuned"));

  // A run that has used the library continues to use it.
  const TuneRecord record([&] {
    TuneTable kept;
    kept.put(key_of(product(3, 4, 5)), choice("other", "c"));
    return kept;
  }());
  CHECK(w.plan(Tune::Read) == "other c, as before in this run: 1.0 us");
}

TEST_CASE("tune: the built-in tables are valid") {
  for (const std::string_view text : cuda::measured_choices()) {
    int damaged = 0;
    CHECK(TuneTable::parse(text, &damaged).size() > 0);
    CHECK(damaged == 0);
  }
}

TEST_CASE("tune: damaged, unknown or unwritable files do no harm") {
  World w;
  const std::string key = key_of(product(3, 4, 5)), file = w.store.file();
  w.store.put(key, choice("other", "c"));
  w.store.put("second", choice("other", "c"));
  const std::string whole = read_text(file);
  for (const std::string& text :
       {std::string(), std::string("tenon-tune 1\n"),
        std::string("\x7f"
                    "ELF\0\0\n",
                    7),
        std::string(100000, 'x'), std::string("tenon-tune 1\n") + std::string(100000, '\t'),
        whole.substr(0, whole.size() - 20)}) {
    write_text(file, text);
    TuneStore store{w.folder.path()};
    CHECK(store.find("third") == std::nullopt);
    store.put("third", choice("good", "a"));
    CHECK(TuneStore(w.folder.path()).find("third") == choice("good", "a"));
  }
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // a folder in its place: neither read nor replaced
  TuneStore store{w.folder.path()};
  CHECK(store.find(key) == std::nullopt);
  store.put(key, choice("good", "a"));
  CHECK(store.find(key) == choice("good", "a"));  // kept for this process
  CHECK(w.folder.count() == 1);                   // no temporary file remains
}

TEST_CASE("tune: simultaneous writers leave a valid table") {
  const TestFolder folder;
  constexpr int kWriters = 4, kRows = 20;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([&, w] {
      TuneStore store{folder.path()};  // as another process
      for (int r = 0; r < kRows; ++r)
        store.put(std::to_string(w) + "-" + std::to_string(r), choice("good", "a"));
    });
  for (std::thread& t : writers) t.join();
  int damaged = 0;
  const TuneTable table = TuneTable::parse(read_text(TuneStore(folder.path()).file()), &damaged);
  CHECK(damaged == 0);
  CHECK(table.size() >= kRows);  // the last writer's own rows, at least
  CHECK(folder.count() == 1);
}

TEST_CASE("tune: the names of the native engine's configurations do not change") {
  const cuda::Target target;
  const Engine& engine = cuda::native_contraction_engine(target);
  const Program p = product(64, 300, 784);
  const Region& region = p.steps[0].region;
  const std::vector<std::string> names = engine.configurations(region, p.values);
  REQUIRE(names.size() > 8);
  CHECK(engine.prepare_as(names[0], region, p.values, 1)->source() ==
        engine.prepare(region, p.values, 1)->source());
  for (std::size_t k = 0; k < names.size(); ++k) {
    CHECK(std::find(names.begin() + static_cast<std::ptrdiff_t>(k) + 1, names.end(), names[k]) ==
          names.end());
    CHECK_FALSE(engine.prepare_as(names[k], region, p.values, 1)->source().empty());
  }
  CHECK(engine.prepare_as(kReferenceConfiguration, region, p.values, 1)
            ->source()
            .find("plain_gemm") != std::string::npos);
  CHECK_THROWS_AS(engine.prepare_as("1x2x3-4/5", region, p.values, 1), NotSupported);
}

TEST_CASE("tune: without memory for large workspaces the other candidates are measured") {
  World w;
  w.good.ways = {"large", "b"};
  w.bench.times["good large"] = {1};
  w.room = std::size_t{64} << 20;
  CHECK(w.plan(Tune::Write).starts_with("good b, tuned now"));
}
