// One function, one network, one model, many threads: each call's results are its own and correct.
// Run under ThreadSanitizer by ./dev tsan.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace tenon;
using Floats = std::vector<float>;

namespace {

Tensor filled(const Shape& shape, float value) {
  return Tensor::from(Floats(static_cast<std::size_t>(shape.numel()), value), shape);
}

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads: many threads call one compiled function with several shapes") {
  const Tensor w = variable(filled({32, 8}, 0.5f), "w");
  const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    const Tensor h = relu(matmul(in[0], w));
    return std::vector<Tensor>{sum(h), h, softmax(matmul(h, transpose(w)))};
  });
  std::atomic<int> wrong{0};
  in_threads(6, [&](int t) {
    for (int k = 0; k < 40; ++k) {
      const std::int64_t rows = 1 + (t + k) % 5;
      const float value = static_cast<float>(1 + t * 40 + k);
      const Outputs out = f({filled({rows, 32}, value)});
      const float each = value * 16;
      if (out[0].item() != each * 8 * static_cast<float>(rows)) ++wrong;
      for (float h : out[1].to_vector<float>()) wrong += h != each;
      for (float p : out[2].to_vector<float>()) wrong += p != 1.0f / 32;
    }
  });
  CHECK(wrong == 0);
  CHECK(f.traced() == 5);  // once each
}

TEST_CASE("threads: a call's results stay valid while they, or tensors of them, are held") {
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] * 2.0, in[0] + 1.0};
  });
  const Outputs a = f({filled({4}, 1)}), b = f({filled({4}, 2)});
  const Tensor kept = f({filled({4}, 3)})[1];
  f({filled({4}, 9)});
  CHECK(a[0].to_vector<float>() == Floats(4, 2));
  CHECK(b[0].to_vector<float>() == Floats(4, 4));
  CHECK(kept.to_vector<float>() == Floats(4, 4));
  Outputs moved = a;
  moved = b;
  CHECK(moved[1].to_vector<float>() == Floats(4, 3));
  CHECK(std::vector<Tensor>(moved).size() == 2);
}

TEST_CASE("threads: a network evaluated by many threads plans once per shape") {
  const nn::AnyModule net = models::create("lenet5");
  net.eval();
  const auto scores = [&](std::int64_t rows, float value) {
    return net(filled({rows, 1, 28, 28}, value)).to_vector<float>();
  };
  std::vector<Floats> expected;
  for (int k = 0; k < 3; ++k) expected.push_back(scores(1 + k, 0.1f));
  const std::int64_t planned = runner_stats().programs_planned;
  std::atomic<int> wrong{0};
  in_threads(4, [&](int t) {
    for (int k = 0; k < 12; ++k) wrong += scores(1 + (t + k) % 3, 0.1f) != expected[(t + k) % 3];
  });
  CHECK(wrong == 0);
  CHECK(runner_stats().programs_planned == planned);
}

TEST_CASE("threads: calls that assign run one after another") {
  const Tensor count = variable(scalar(0), "count");
  const CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{count + in[0], assign(count, count + in[0])};
  });
  in_threads(4, [&](int) {
    for (int k = 0; k < 50; ++k) step({scalar(1).eval()});
  });
  CHECK(count.item() == 200);
}

TEST_CASE("threads: random draws of one function use each counter once") {
  manual_seed(5);
  const CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{rand({3}) + in[0]}; });
  std::vector<Floats> drawn(4);
  in_threads(4, [&](int t) {
    const Tensor zero = scalar(0).eval();
    for (int k = 0; k < 25; ++k)
      drawn[static_cast<std::size_t>(t)].push_back(f({zero})[0].to_vector<float>()[0]);
  });
  CHECK(Generator::current().counter() == 100);
  Floats all;
  for (const Floats& d : drawn) all.insert(all.end(), d.begin(), d.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("threads: an error in one call does not affect others") {
  const CompiledFunction f = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{gather(in[0], 0, in[1])}; });
  const Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f}, {4});
  std::atomic<int> refused{0}, wrong{0};
  in_threads(4, [&](int t) {
    for (int k = 0; k < 25; ++k) {
      const std::int64_t index = t == 0 ? 9 : t;
      const Tensor at = Tensor::from(std::vector<std::int64_t>{index}, {1});
      try {
        wrong += f({x, at})[0].item() != static_cast<double>(index + 1);
      } catch (const ValueError&) {
        ++refused;
      }
    }
  });
  CHECK(refused == 25);
  CHECK(wrong == 0);
}

TEST_CASE("threads: if two step one optimizer, one is refused, and steps are atomic") {
  const nn::AnyModule net = nn::Sequential(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 4));
  optim::Sgd sgd(net, {.lr = 0.001, .momentum = 0.9});
  const Tensor x = ones({64, 64}).eval();
  constexpr int kMost = 20000;
  std::atomic<int> tried{0}, taken{0}, refused{0};
  const auto take_steps = [&] {
    while (tried < kMost && (refused == 0 || taken < 100)) {
      ++tried;
      try {
        sgd.step(mean(square(net(x))));
        ++taken;
      } catch (const ValueError& error) {
        CHECK(std::string(error.what()).find("at once: step an optimizer") != std::string::npos);
        ++refused;
      }
    }
  };
  std::thread one(take_steps), two(take_steps);
  one.join(), two.join();
  CHECK(refused > 0);
  CHECK(taken + refused == tried);
  CHECK(sgd.steps() == taken);
  for (const nn::NamedTensor& p : net.named_parameters())
    CHECK(all(isfinite(p.tensor)).item() == 1);
}
