// Contexts: settings that decide results belong to a thread and to the nodes built in it, never to
// the process. Run under ThreadSanitizer by ./dev tsan.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/ops.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace tenon;
using Floats = std::vector<float>;

namespace {

Tensor thirds() { return Tensor::from(Floats(16 * 16, 1.0f / 3), {16, 16}); }
float product() { return matmul(thirds(), thirds()).to_vector<float>()[0]; }

Context in(Precision precision) {
  Context context;
  context.precision = precision;
  return context;
}

}  // namespace

TEST_CASE("context: a thread's precision does not affect other threads") {
  const float exact = product();
  float rounded = 0;
  {
    const ContextScope scope(in(Precision::Bf16));
    rounded = product();
  }
  REQUIRE(rounded != exact);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread other([&] {
    while (!stop) {
      set_precision(Precision::Bf16);
      wrong += product() != rounded;
      set_precision(Precision::Fp32);
    }
  });
  for (int k = 0; k < 300; ++k) wrong += product() != exact;
  stop = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("context: a new thread starts with the defaults, and can copy another's context") {
  const ContextScope scope(Context{});
  set_precision(Precision::Bf16);
  set_threads(3);
  set_memory_limit(1 << 20);
  set_pass_enabled("fuse", false);
  const Context mine = current_context();
  std::thread([&] {
    CHECK(precision() == Precision::Fp32);
    CHECK(current_context().threads == 0);
    CHECK(current_context().memory_limit == 0);
    CHECK(current_context().disabled_passes == 0);
    CHECK(current_context().generator != mine.generator);
    const ContextScope handed(mine);
    CHECK(precision() == Precision::Bf16);
    CHECK(threads() == 3);
    CHECK(current_context().disabled_passes == mine.disabled_passes);
    CHECK(current_context().generator == mine.generator);
    set_precision(Precision::Fp16);
  }).join();
  CHECK(precision() == Precision::Bf16);
}

TEST_CASE("context: scopes nest, and settings made inside end with them") {
  const Context before = current_context();
  {
    const ContextScope outer(in(Precision::Tf32));
    {
      const PrecisionScope inner(Precision::Bf16);
      CHECK(precision() == Precision::Bf16);
      const ContextScope innermost(in(Precision::Fp16));
      set_threads(2);
      CHECK(threads() == 2);
    }
    CHECK(precision() == Precision::Tf32);
    CHECK(current_context().threads == 0);
  }
  CHECK(precision() == before.precision);
  CHECK(threads() == (before.threads == 0 ? threads() : before.threads));
  Context none;
  none.generator = nullptr;
  CHECK_THROWS_WITH_AS(ContextScope{none}, doctest::Contains("without a generator"), ValueError);
}

TEST_CASE("context: a scope refuses the values that set_threads() and set_memory_limit() refuse") {
  const Context before = current_context();
  Context wrong;
  for (const int threads : {-1, 1025}) {
    wrong.threads = threads;
    CHECK_THROWS_WITH_AS(ContextScope{wrong}, doctest::Contains("use 1 to 1024"), ValueError);
  }
  wrong.threads = 0;
  wrong.memory_limit = -1;
  CHECK_THROWS_WITH_AS(ContextScope{wrong}, doctest::Contains("memory limit = -1"), ValueError);
  CHECK(current_context().threads == before.threads);
}

TEST_CASE("context: a graph keeps the precision that it was built in") {
  const float exact = product();
  Tensor pending;
  {
    const ContextScope scope(in(Precision::Bf16));
    pending = matmul(thirds(), thirds());
  }
  CHECK(pending.to_vector<float>()[0] != exact);
  const Tensor plain = matmul(thirds(), thirds());
  const ContextScope scope(in(Precision::Bf16));
  CHECK(plain.to_vector<float>()[0] == exact);
}

TEST_CASE("context: a compiled function keeps the context that it was compiled in") {
  const auto body = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{matmul(in[0], in[0])};
  };
  const float exact = product();
  const CompiledFunction plain = compile(body);
  set_precision(Precision::Bf16);
  const CompiledFunction rounded = compile(body);
  CHECK(plain({thirds()})[0].to_vector<float>()[0] == exact);
  set_precision(Precision::Fp32);
  float there = exact;
  std::thread([&] { there = rounded({thirds()})[0].to_vector<float>()[0]; }).join();
  CHECK(there != exact);
  set_precision(Precision::Bf16),
      set_precision(Precision::Fp32);  // switched back: nothing is planned
  const std::int64_t planned = runner_stats().programs_planned;
  plain({thirds()}), rounded({thirds()});
  CHECK(runner_stats().programs_planned == planned);
  CHECK(plain.traced() == 1);
}

TEST_CASE("context: each thread has its own generator unless they share one") {
  const auto four = [] { return rand({4}).to_vector<float>(); };
  const ContextScope scope(Context{});
  const Floats first = four();
  Floats there;
  std::thread([&] { there = four(); }).join();
  CHECK(there == first);  // seed 0 in every thread, whatever others have drawn
  const Floats second = four();
  manual_seed(0);
  CHECK(four() == first);
  std::thread([&, mine = current_context()] {
    const ContextScope shared(mine);
    there = four();
  }).join();
  CHECK(there == second);
  CHECK(Generator::current().counter() == 2);
}

TEST_CASE("context: many threads may draw from one generator, each counter once") {
  const ContextScope scope(Context{});
  const Context mine = current_context();
  std::vector<std::thread> drawing;
  for (int t = 0; t < 4; ++t)
    drawing.emplace_back([&mine] {
      const ContextScope shared(mine);
      for (int k = 0; k < 50; ++k) rand({2}).eval();
    });
  for (std::thread& thread : drawing) thread.join();
  CHECK(Generator::current().counter() == 200);
}
