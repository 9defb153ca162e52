// Host code as an operation: values of every dtype, several results, plans that serve other code,
// compiled functions, loops, errors, threads.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tenon/tenon.h>

#include "run/tuning/known_plans.h"

using namespace tenon;

namespace {

// a * x + b, in host code.
Tensor affine(const Tensor& x, double a, double b) {
  return host_call("affine", {x}, {x.dtype(), x.shape()},
                   [a, b](std::span<const HostInput> in, std::span<const HostOutput> out) {
                     const auto from = in[0].values<double>();
                     const auto to = out[0].values<double>();
                     for (std::size_t k = 0; k < from.size(); ++k) to[k] = a * from[k] + b;
                   });
}

Tensor draw(const Shape& shape, std::uint64_t seed) {
  return randn(shape, DType::Float64, Generator(seed)).compute();
}

double error_of(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  if (found.numel() == 0) return 0;
  return abs(found - expected).max().item();
}

// Copies the bytes of each input to the result of the same index.
void copy_all(std::span<const HostInput> in, std::span<const HostOutput> out) {
  for (std::size_t k = 0; k < in.size(); ++k)
    std::copy_n(static_cast<const std::byte*>(in[k].data()),
                static_cast<std::size_t>(in[k].numel()) * item_size(in[k].dtype()),
                static_cast<std::byte*>(out[k].data()));
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "host call: views, odd sizes, empty and scalar arrays reach the code in row-major order") {
  const Tensor x = draw({5, 7}, 1);
  CHECK(error_of(affine(x, 2, 1), 2 * x + 1) == 0);
  CHECK(error_of(affine(transpose(x), 2, 1), 2 * transpose(x) + 1) == 0);
  CHECK(error_of(affine(x[Slice(4, 0, -2)], -1, 3), 3 - x[Slice(4, 0, -2)]) == 0);
  CHECK(error_of(affine(expand(x[0], {3, 7}), 2, 0), 2 * expand(x[0], {3, 7})) == 0);
  CHECK(error_of(affine(draw({0, 3}, 2), 2, 1), zeros({0, 3}, DType::Float64)) == 0);
  CHECK(affine(scalar(3, DType::Float64), 2, 1).item() == 7);
  CHECK(affine(x.sum() * 0, 2, 1).item() == 1);
  CHECK(error_of(affine(exp(x) + 1, 2, 1) * 3, 3 * (2 * (exp(x) + 1) + 1)) < 1e-12);
}

TEST_CASE("host call: every dtype, several results") {
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    const Tensor a = cast(arange(0, 6), dtype), b = cast(ones({2, 3}), DType::Int32);
    const std::vector<Tensor> out =
        host_call("copy", {a, b}, {{dtype, {6}}, {DType::Int32, {3, 2}}}, copy_all);
    REQUIRE(out.size() == 2);
    CHECK(out[0].dtype() == dtype);
    CHECK(eq(out[0], a).all().item<bool>());
    CHECK(out[1].sum().item() == 6);
  }
}

TEST_CASE("host call: a result that nothing reads has memory and is reported as unread") {
  std::vector<bool> reads;
  const std::vector<Tensor> out = host_call(
      "two", {draw({40}, 1)}, {{DType::Float64, {40}}, {DType::Float64, {1000}}},
      [&reads](std::span<const HostInput> in, std::span<const HostOutput> results) {
        reads = {results[0].is_read(), results[1].is_read()};
        std::copy_n(in[0].values<double>().begin(), 40, results[0].values<double>().begin());
        std::iota(results[1].values<double>().begin(), results[1].values<double>().end(), 0);
      });
  compute({out[0]});
  CHECK(reads == std::vector<bool>{true, false});
  CHECK(out[1].sum().item() == 999 * 500);
  CHECK(reads[1]);
}

TEST_CASE("host call: one plan serves every code of the same name and types") {
  const Tensor x = draw({11}, 3);
  CHECK(error_of(affine(x, 1, 5), x + 5) < 1e-15);
  const std::int64_t before = runner_stats().programs_planned;
  for (int k = 0; k < 5; ++k)
    CHECK(affine(x, k, 0).to_vector<double>()[3] == k * x.to_vector<double>()[3]);
  CHECK(runner_stats().programs_planned - before <= 1);  // without the comparison above
}

TEST_CASE("host call: two calls with different code in one program stay apart") {
  const Tensor x = draw({9}, 4), a = affine(x, 2, 0), b = affine(x, 3, 0);
  CHECK(error_of(a * b, 6 * x * x) < 1e-12);
  CHECK(error_of(b - a, x) < 1e-12);
}

TEST_CASE("host call: compiled functions of several sizes keep their code") {
  const auto make = [](double a) {
    return compile([a](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{affine(in[0] * 2, a, 1).sum() + in[0].sum()};
    });
  };
  CompiledFunction twice = make(2), thrice = make(3);
  for (const std::int64_t rows : {3, 5, 9, 12, 40, 3}) {
    const Tensor x = draw({rows, 6}, 5);
    const double sum = x.sum().item();
    const double numel = static_cast<double>(x.numel());
    CHECK(twice({x})[0].item() == doctest::Approx(5 * sum + numel));
    CHECK(thrice({x})[0].item() == doctest::Approx(7 * sum + numel));
  }
}

TEST_CASE("host call: a plan is re-bound to other sizes, also of results that nothing reads") {
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    const std::int64_t rows = in[0].size(0);
    const std::vector<Tensor> out = host_call(
        "two", {in[0] * 2}, {{DType::Float64, {rows, 6}}, {DType::Float64, {2 * rows, 5}}},
        [](std::span<const HostInput> from, std::span<const HostOutput> to) {
          if (to[1].shape() != Shape{2 * from[0].shape()[0], 5} || to[1].is_read())
            throw ValueError("the unread result has another shape");
          std::fill_n(to[1].values<double>().data(), to[1].numel(), 7.0);
          copy_all(from, to.first(1));
        });
    return std::vector<Tensor>{out[0] + 1};
  });
  const std::int64_t before = programs_rebound();
  for (const std::int64_t rows : {17, 29, 53, 71, 97}) {
    const Tensor x = draw({rows, 6}, 8);
    CHECK(error_of(f({x})[0], 2 * x + 1) < 1e-14);
  }
  CHECK(programs_rebound() > before);
}

TEST_CASE("host call: in loops and branches") {
  const Tensor x = draw({6, 4}, 6);
  const auto [last, all] = scan(
      [](const Tensor& carry, const Tensor& row) {
        const Tensor next = affine(carry + row, 0.5, 1);
        return std::pair(next, next);
      },
      zeros({4}, DType::Float64), x);
  Tensor expected = zeros({4}, DType::Float64);
  for (int t = 0; t < 6; ++t) expected = 0.5 * (expected + x[t]) + 1;
  CHECK(error_of(last, expected) < 1e-14);
  const auto branch = [](double a) {
    return [a](const std::vector<Tensor>& in) { return std::vector<Tensor>{affine(in[0], a, 0)}; };
  };
  for (const double sign : {1.0, -1.0}) {
    const Tensor y = cond(scalar(sign) > 0, branch(2), branch(3), {x})[0];
    CHECK(error_of(y, (sign > 0 ? 2 : 3) * x) < 1e-14);
  }
}

TEST_CASE("host call: exceptions name the operation and the layer, and keep their type") {
  const auto failing = [](const std::function<void()>& fail) {
    const Scope scope("block.1");
    return host_call("risky", {ones({2})}, {DType::Float32, {2}},
                     [fail](std::span<const HostInput>, std::span<const HostOutput>) { fail(); });
  };
  const Tensor typed = failing([] { throw NumericError("singular"); });
  CHECK_THROWS_AS(typed.compute(), NumericError);
  CHECK(message_of([&] { typed.compute(); }) == "risky (block.1): singular");
  const Tensor other = failing([] { throw std::runtime_error("no licence"); });
  CHECK(message_of([&] { other.compute(); }) == "risky (block.1): no licence");
  try {
    other.compute();
    FAIL("no exception");
  } catch (const Error& e) {
    CHECK(e.operation() == "risky");
    CHECK(e.layer() == "block.1");
    CHECK_THROWS_AS(std::rethrow_if_nested(e), std::runtime_error);
  }
  CHECK((ones({2}) + 1).sum().item() == 4);  // later programs are not disturbed
}

TEST_CASE("host call: an exception comes before an assignment") {
  const Tensor w = variable(ones({2}));
  bool fails = true;
  const Tensor checked =
      host_call("check", {w + 1}, {DType::Float32, {2}},
                [&fails](std::span<const HostInput> in, std::span<const HostOutput> out) {
                  if (fails) throw ValueError("refused");
                  copy_all(in, out);
                });
  CHECK_THROWS_AS(compute({assign(w, checked * 2)}), ValueError);
  CHECK(w.sum().item() == 2);
  fails = false;
  compute({assign(w, host_call("check", {w + 1}, {DType::Float32, {2}}, copy_all))});
  CHECK(w.sum().item() == 4);
}

TEST_CASE("host call: code lives as long as what may call it, and a loop keeps nothing") {
  std::weak_ptr<int> seen;
  const auto counted = [&seen](const Tensor& x) {
    const auto held = std::make_shared<int>(1);
    seen = held;
    return host_call("held", {x}, {x.dtype(), x.shape()},
                     [held](std::span<const HostInput> in, std::span<const HostOutput> out) {
                       for (std::size_t k = 0; k < in[0].values<double>().size(); ++k)
                         out[0].values<double>()[k] = in[0].values<double>()[k] + *held;
                     });
  };
  const Tensor x = draw({5}, 9);
  {
    const Tensor y = counted(x);
    CHECK_FALSE(seen.expired());
    y.compute();
    CHECK(seen.expired());  // an evaluated value of no variable releases its inputs
  }
  CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{counted(in[0])}; });
  CHECK(error_of(f({x})[0], x + 1) < 1e-15);
  CHECK_FALSE(seen.expired());
  CHECK(error_of(f({x})[0], x + 1) < 1e-15);
  f = CompiledFunction();
  clear_caches();
  CHECK(seen.expired());
  Tensor carried = x;
  const auto step = [&] {
    carried = counted(carried);
    carried.compute();
  };
  for (int k = 0; k < 10; ++k) step();
  const std::int64_t before = runner_stats().memory_in_use;
  const std::int64_t planned = runner_stats().programs_planned;
  for (int k = 0; k < 1000; ++k) step();
  CHECK(runner_stats().memory_in_use == before);
  CHECK(runner_stats().programs_planned == planned);
}

TEST_CASE("host call: refused calls") {
  const Tensor x = ones({2});
  CHECK_THROWS_AS(host_call("f", {x}, std::vector<TensorType>{}, copy_all), ValueError);
  CHECK_THROWS_AS(host_call("f", {x}, {DType::Float32, {2}}, HostCode{}), ValueError);
  CHECK_THROWS_AS(host_call("f", {Tensor()}, {DType::Float32, {2}}, copy_all), ValueError);
  const Tensor wrong = host_call(
      "f", {x}, {DType::Float32, {2}},
      [](std::span<const HostInput> in, std::span<const HostOutput>) { in[0].values<double>(); });
  CHECK(message_of([&] { wrong.compute(); }) ==
        "f: the code asks for an array of float64, this one is float32[2]");
  const Tensor y = host_call("f", {x * 2}, {DType::Float32, {2}}, copy_all);
  CHECK_THROWS_AS(grad((y * x).sum(), x), NotSupported);
  CHECK(grad((detach(y) * x).sum(), x).sum().item() == 4);
}

TEST_CASE("host call: many threads run one compiled function") {
  CompiledFunction f = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{affine(in[0], 2, 1)}; });
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&f, &right, t] {
      for (int k = 0; k < 50; ++k) {
        const Tensor x = full({17}, t + k, DType::Float64);
        if (f({x})[0].sum().item() == 17.0 * (2 * (t + k) + 1)) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);
}

TEST_CASE("parallel_for: ranges cover the interval once, whatever the number of threads") {
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    std::vector<std::atomic<int>> seen(1003);
    parallel_for(3, 1003, 7, [&](std::int64_t first, std::int64_t last) {
      CHECK(last - first <= 7);
      CHECK((first - 3) % 7 == 0);
      for (std::int64_t k = first; k < last; ++k) ++seen[static_cast<std::size_t>(k)];
    });
    for (std::size_t k = 0; k < seen.size(); ++k) CHECK(seen[k] == (k < 3 ? 0 : 1));
  }
  set_threads(0);
  parallel_for(5, 5, 1, [](std::int64_t, std::int64_t) { FAIL("an empty interval"); });
  CHECK_THROWS_AS(parallel_for(0, 1, 0, [](std::int64_t, std::int64_t) {}), ValueError);
  CHECK_THROWS_AS(
      parallel_for(0, 100, 1, [](std::int64_t, std::int64_t) { throw ValueError("stop"); }),
      ValueError);
}
