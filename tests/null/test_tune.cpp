// The tuner without a GPU: the rules of the competition between engines, and whose choice is taken.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/engines/products/native_engine.h"
#include "tune_fakes.h"

using namespace tenon;
using namespace fake_tune;

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
