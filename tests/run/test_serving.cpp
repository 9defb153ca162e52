// Readers beside a training thread: they see the weights of the last finished step, all from one
// step, and are never refused. Run under ThreadSanitizer by ./dev tsan.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "graph/node.h"

using namespace tenon;
using Floats = std::vector<float>;

namespace {

constexpr std::int64_t kWide = 20000;

/// Two variables whose elements all hold the step's number.
struct Counted {
  Tensor a = variable(zeros({kWide}), "a"), b = variable(zeros({kWide}), "b");
  std::vector<Tensor> step() const { return {assign(a, a + 1.0), assign(b, b + 1.0)}; }
  Tensor both() const { return concat({a * 1.0, b * 1.0}, 0); }
};

/// Counts how often `read` returns values from different steps, or from an earlier step than
/// before, while another thread runs `step` `steps` times.
int torn(int steps, const std::function<void()>& step, const std::function<Tensor()>& read) {
  std::atomic<bool> done{false};
  std::thread training([&] {
    for (int k = 0; k < steps; ++k) step();
    done = true;
  });
  int wrong = 0;
  float last = 0;
  while (!done) {
    const Floats seen = read().to_vector<float>();
    for (float v : seen) wrong += v != seen[0];
    wrong += seen[0] < last;
    last = seen[0];
  }
  training.join();
  return wrong + (read().to_vector<float>()[0] != static_cast<float>(steps));
}

}  // namespace

TEST_CASE("serving: values read beside a training thread come from one finished step") {
  const Counted evaluated;
  CHECK(torn(
            300, [&] { eval(evaluated.step()); }, [&] { return evaluated.both(); }) == 0);
  const Counted compiled;
  const CompiledFunction step =
      compile([&](const std::vector<Tensor>&) { return compiled.step(); });
  const CompiledFunction read =
      compile([&](const std::vector<Tensor>&) { return std::vector<Tensor>{compiled.both()}; });
  CHECK(torn(
            300, [&] { step({}); }, [&] { return read({})[0]; }) == 0);
}

TEST_CASE("serving: a variable given as an input is protected like a captured one") {
  const Counted counted;
  const CompiledFunction read = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{concat({in[0] * 1.0, in[0] + 0.0}, 0)};
  });
  CHECK(torn(
            300, [&] { eval(counted.step()); }, [&] { return read({counted.a})[0]; }) == 0);
}

TEST_CASE("serving: a value set by another thread is never seen half-written") {
  const Tensor w = variable(zeros({kWide}), "w");
  int k = 0;
  CHECK(torn(
            300, [&] { set_value(w, full({kWide}, static_cast<float>(++k))); },
            [&] { return w * 1.0; }) == 0);
}

TEST_CASE("serving: a graph built before another thread's step reads the step's weights") {
  const Tensor w = variable(full({3}, 1), "w");
  const Tensor pending = w * 2.0;
  std::thread([&] { eval({assign(w, w + 1.0)}); }).join();
  CHECK(pending.to_vector<float>() == Floats(3, 4));
  const Tensor own = w * 2.0;
  eval({assign(w, w + 1.0)});
  CHECK_THROWS_WITH_AS(own.eval(), doctest::Contains("w was assigned after"), ValueError);
}

TEST_CASE("serving: without readers a thread assigns in place") {
  const Tensor w = variable(full({1000}, 1), "w");
  const Tensor kept = w;
  const void* before = w.data();
  for (int k = 0; k < 5; ++k) eval({assign(w, w * 2.0)}), (w + 1.0).eval();
  CHECK(w.data() == before);
  CHECK(w.to_vector<float>()[7] == 32);
}

TEST_CASE("serving: two threads that step one optimizer at once get an error") {
  const nn::AnyModule net = nn::Sequential(nn::Linear(256, 256), nn::Tanh(), nn::Linear(256, 256));
  optim::Sgd sgd(net, {.lr = 1e-3});
  const Tensor x = ones({256, 256}).eval();
  std::atomic<bool> told{false};
  std::atomic<int> other{0};
  const auto work = [&] {
    for (int k = 0; k < 500 && !told; ++k) try {
        sgd.step(mean(square(net(x))));
      } catch (const ValueError& error) {
        const std::string text = error.what();
        if (text.find("two threads assign") != std::string::npos)
          told = true;
        else
          ++other;
      }
  };
  std::thread second(work);
  work();
  second.join();
  CHECK(told);
  CHECK(other == 0);
  CHECK(std::isfinite(sgd.step(mean(square(net(x))))));  // works afterwards
}

TEST_CASE("serving: a weight assigned while its 16-bit copy is made is rounded again") {
  const Precision before = precision();
  set_precision(Precision::Bf16);
  constexpr std::int64_t kSide = 1024;
  const Tensor weight = variable(zeros({kSide, kSide}), "weight");
  const Tensor x = ones({64, kSide}).eval();
  const CompiledFunction serve = compile(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{matmul(in[0], weight)}; });
  int stale = 0;
  for (int k = 1; k <= 200; ++k) {
    std::atomic<bool> done{false};
    std::thread training([&] {
      for (const int number : {100 + k, 200 + k, k})
        set_value(weight, full(weight.shape(), number));
      done = true;
    });
    while (!done) serve({x});
    training.join();
    stale += serve({x})[0].to_vector<float>()[0] != static_cast<float>(kSide * k);
  }
  CHECK(stale == 0);
  set_precision(before);
}

TEST_CASE("serving: of two assignments the later one is recorded, whichever thread finishes last") {
  const Tensor weight = variable(zeros({4}), "weight");
  const std::uint64_t earlier = advance_clock(), later = advance_clock();
  mark_assigned(*weight.node(), later);
  mark_assigned(*weight.node(), earlier);
  CHECK(weight.node()->assigned_at() == later);
}
