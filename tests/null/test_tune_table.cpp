// Tables of the tuner: what a key contains, which row is used, and their text and files.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "cuda/cuda.h"
#include "tune_fakes.h"

using namespace tenon;
using namespace fake_tune;

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

TEST_CASE("tune: the built-in tables are valid") {
  for (const std::string_view text : cuda::measured_choices()) {
    int damaged = 0;
    CHECK(TuneTable::parse(text, &damaged).size() > 0);
    CHECK(damaged == 0);
  }
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
