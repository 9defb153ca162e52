// Several runs in one call: the same bits as separate calls, on the CPU and on a real or emulated
// GPU.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/ops.h>

#include <string>
#include <vector>

#include "../cuda/gpu.h"

using namespace tenon;

namespace {

/// A recurrence with a random draw: each run's result depends on all previous runs.
struct Recurrence {
  explicit Recurrence(std::int64_t width)
      : state(variable(zeros({width}), "state")),
        count(variable(scalar(0, DType::Float64), "count")),
        step(compile([this](const std::vector<Tensor>& in) {
          const Tensor& x = in[0];
          const Tensor next = tanh(state * in[1] + x + in[2] * rand(x.shape()));
          const Tensor total = sum(next);
          return std::vector<Tensor>{total, next * 2.0f, assign(state, next),
                                     assign(count, count + 1.0), total};
        })) {}
  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;
  Tensor state, count;
  CompiledFunction step;
};

struct Course {
  std::vector<float> totals, values, state;
  double count = 0;
};

void append(std::vector<float>& to, const Tensor& from) {
  for (float f : from.to_vector<float>()) to.push_back(f);
}

constexpr int kRuns = 23;

/// The same kRuns runs, divided into calls of these sizes; 0: plain calls.
Course course(std::int64_t width, const std::vector<int>& calls) {
  manual_seed(11);
  Generator data(7);
  const Tensor x = randn({kRuns, width}, DType::Float32, &data).eval(),
               rate = rand({kRuns}, DType::Float32, &data).eval(),
               noise = randn({1, width}, DType::Float32, &data).eval();
  Recurrence r(width);
  Course out;
  std::int64_t at = 0;
  std::vector<Tensor> kept;  // outputs that the caller holds are left alone
  for (std::size_t c = 0; at < kRuns; ++c) {
    const int runs = calls[c % calls.size()];
    const std::int64_t count = std::min<std::int64_t>(std::max(runs, 1), kRuns - at);
    const Tensor rows = slice(x, 0, at, at + count).eval(),
                 rates = slice(rate, 0, at, at + count).eval();
    const std::vector<Tensor>& got =
        runs == 0 ? r.step({reshape(rows, {width}).eval(), reshape(rates, {}).eval(),
                            reshape(noise, {width}).eval()})
                  : r.step.run_many(static_cast<int>(count), {rows, rates, noise});
    if (runs != 0) {
      CHECK(got[0].shape() == Shape{count});
      CHECK(got[1].shape() == Shape{count, width});
      CHECK(got[2].shape() == Shape{width});
      CHECK(got[4].node() == got[0].node());
    }
    if (c % 3 == 0) kept = got;
    append(out.totals, got[0]);
    append(out.values, got[1]);
    at += count;
  }
  append(out.state, r.state);
  out.count = r.count.item();
  return out;
}

void check_same(const Course& a, const Course& b) {
  CHECK(a.totals == b.totals);
  CHECK(a.values == b.values);
  CHECK(a.state == b.state);
  CHECK(a.count == b.count);
}

void check_courses() {
  for (const std::int64_t width : {1, 7, 16, 33}) {  // 16: rows are aligned for a GPU
    CAPTURE(width);
    const Course single = course(width, {0});
    CHECK(single.totals.size() == kRuns);
    CHECK(single.count == kRuns);
    for (const std::vector<int>& calls :
         {std::vector<int>{1}, {4}, {0, 8, 8, 1}, {2, 3, 5}, {0, 0, 4, 0, 4, 2}}) {
      CAPTURE(calls[0]);
      check_same(single, course(width, calls));
    }
  }
}

}  // namespace

TEST_CASE("run_many: equals separate calls bit for bit") { check_courses(); }

TEST_CASE("run_many: on a GPU, too, whatever was captured before") {
  if (!test::has_gpu()) return;
  set_device("cuda");
  check_courses();
  set_device("cpu");
}

TEST_CASE("run_many: draws that no output needs advance the generator, too") {
  CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    const Tensor unread = rand({5});
    return std::vector<Tensor>{in[0] * 2.0};
  });
  manual_seed(3);
  rand({5});
  const std::uint64_t one = Generator::current().counter();
  REQUIRE(one > 0);
  manual_seed(3);
  f({ones({2}).eval()});
  CHECK(Generator::current().counter() == one);
  f.run_many(3, {ones({3, 2}).eval()});
  CHECK(Generator::current().counter() == 4 * one);
}

TEST_CASE("run_many: refuses unsupported functions") {
  CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1]}; });
  CHECK_THROWS_WITH_AS(f.run_many(0, {ones({1}), ones({1})}), doctest::Contains("0 runs"),
                       ValueError);
  CHECK_THROWS_WITH_AS(f.run_many(3, {ones({3, 2}), ones({2, 2})}),
                       doctest::Contains("input 1 is [2, 2]"), ShapeError);
  CHECK_THROWS_AS(f.run_many(3, {ones({3}), scalar(1)}), ShapeError);
  CHECK_THROWS_AS(CompiledFunction().run_many(1, {}), ValueError);
  CHECK(f.run_many(3, {ones({3, 2}), ones({1, 2})})[0].to_vector<float>() ==
        std::vector<float>(6, 2));
}
