// Several GPUs: tensors that move between them, work on one beside work on another, the same bits
// on each.
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "cuda/cuda.h"
#include "gpu.h"

using namespace tenon;

namespace {

bool has_two_gpus() {
  if (cuda::gpu_count() > 1) return true;
  MESSAGE("skipped: fewer than two GPUs");
  return false;
}

// Products, a row reduction and element-wise work, some hundred microseconds of a GPU.
Tensor worked(Tensor x, int times) {
  for (int k = 0; k < times; ++k) x = softmax(matmul(x, x) + x, 1);
  return x;
}

std::vector<float> trained_weights(const std::string& where) {
  set_device(where);
  manual_seed(11);
  nn::AnyModule net = nn::Sequential(nn::Linear(20, 16), nn::ReLU(), nn::Linear(16, 4));
  const Tensor x = randn({64, 20});
  const Tensor labels = remainder(cast(arange(0, 64), DType::Int64), 4);
  optim::SgdOptions options;
  options.lr = 0.1;
  options.momentum = 0.9;
  optim::Sgd optimizer(net, options);
  for (int step = 0; step < 5; ++step) optimizer.step(cross_entropy(net(x), labels));
  std::vector<float> weights;
  for (const auto& [name, t] : net.state_dict())
    for (const float w : t.to_vector<float>()) weights.push_back(w);
  set_device("cpu");
  return weights;
}

}  // namespace

TEST_CASE("GPUs: copies between GPUs wait for the work before them, and later work for them") {
  if (!has_two_gpus()) return;
  manual_seed(5);
  const Tensor start = rand({96, 96}).eval();
  const Tensor alone = worked(worked(worked(to(start, device("cuda:0")), 4), 4), 4);
  Tensor moving = to(start, device("cuda:0"));
  for (const char* next : {"cuda:1", "cuda:0", "cuda:1"})
    moving = to(worked(moving, 4), device(next)).eval();
  CHECK(moving.device() == device("cuda:1"));
  CHECK(moving.to_vector<float>() == alone.to_vector<float>());
}

TEST_CASE("GPUs: threads with one GPU each get the bits of a single GPU") {
  if (!has_two_gpus()) return;
  manual_seed(6);
  const Tensor start = rand({64, 64}).eval();
  const std::vector<float> alone = worked(to(start, device("cuda:0")), 6).to_vector<float>();
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < got.size(); ++k)
    threads.emplace_back([&, k] {
      const Tensor x = to(start, device(k % 2 == 0 ? "cuda:0" : "cuda:1"));
      for (int round = 0; round < 3; ++round) got[k] = worked(x, 6).to_vector<float>();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : got) CHECK(result == alone);
}

TEST_CASE("GPUs: training gives the same bits on the second as on the first") {
  if (!has_two_gpus()) return;
  CHECK(trained_weights("cuda:1") == trained_weights("cuda:0"));
}

TEST_CASE("GPUs: a gradient goes back over two GPUs") {
  if (!has_two_gpus()) return;
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3});
  const Tensor w = to(Tensor::from(std::vector<float>{2, 2, 2}, {3}), device("cuda:1"));
  const Tensor y = to(to(x, device("cuda:0")) * 3.0, device("cuda:1")) * w;
  const Tensor slope = grad(sum(y * y), x);
  CHECK(slope.device() == device("cpu"));
  CHECK(slope.to_vector<float>() == std::vector<float>{72, 144, 216});
}

TEST_CASE("GPUs: a collective of two GPUs is a step of a captured program") {
  if (!has_two_gpus()) return;
  const Device first = device("cuda:0"), second = device("cuda:1");
  const Tensor a = Tensor::from(std::vector<float>{1, 2, 3, 4}, {4}),
               b = Tensor::from(std::vector<float>{10, 20, 30, 40}, {4});
  const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    std::vector<Tensor> out = all_reduce(std::vector<Tensor>{in[0] * 2.0, in[1] * 2.0});
    for (const Tensor& part : reduce_scatter(out)) out.push_back(part + 1.0);
    return out;
  });
  for (int round = 0; round < 3; ++round) {
    const Outputs got = f({to(a, first), to(b, second)});
    CHECK(got[1].device() == second);
    CHECK(got[0].to_vector<float>() == std::vector<float>{22, 44, 66, 88});
    CHECK(got[1].to_vector<float>() == std::vector<float>{22, 44, 66, 88});
    CHECK(got[2].to_vector<float>() == std::vector<float>{45, 89});
    CHECK(got[3].to_vector<float>() == std::vector<float>{133, 177});
  }
}

TEST_CASE("GPUs: the error about operands on two GPUs names them") {
  if (!has_two_gpus()) return;
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2});
  const Tensor a = to(x, device("cuda:0")), b = to(x, device("cuda:1"));
  try {
    (void)(a + b);
    FAIL("no error");
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    CHECK(text.find("cuda:0") != std::string::npos);
    CHECK(text.find("cuda:1") != std::string::npos);
  }
}

TEST_CASE("GPUs: each has its own memory") {
  if (!has_two_gpus()) return;
  const std::int64_t first = cuda::memory().stats(0).in_use,
                     second = cuda::memory().stats(1).in_use;
  const std::int64_t bytes = std::int64_t{4} << 18;
  {
    const Tensor x = to(rand({1 << 18}), device("cuda:1")).eval();
    CHECK(cuda::memory().stats(1).in_use >= second + bytes);
    CHECK(cuda::memory().stats(0).in_use < first + bytes);
  }
  CHECK(cuda::memory().stats(1).in_use < second + bytes);
}
