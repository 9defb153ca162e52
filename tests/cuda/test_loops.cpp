// scan() and cond() on a GPU (the emulated one in CI): the values, gradients and draws of the CPU.
#include "../run/loop_cases.h"

#include <string>

#include <tenon/context.h>
#include <tenon/recurrent.h>

#include "../null/planning.h"
#include "gpu.h"

using namespace tenon;
using test::distance;
using test::Tensors;

TEST_CASE("GPU loops: a scan equals the unrolled loop, gradients too") {
  if (!test::has_gpu()) return;
  const Device gpu = device("cuda");
  for (const test::LoopCase& c : test::loop_cases(DType::Float32, 4))
    test::check_loop(c, gpu, 3e-6);
}

TEST_CASE("GPU loops: compiled, captured and replayed, as on the CPU") {
  if (!test::has_gpu()) return;
  const Device gpu = device("cuda");
  const auto course = [](Device device) {
    const Tensor w = variable(to(test::draw({4, 4}, 5, DType::Float32), device), "w");
    auto step = compile([&](const Tensors& in) {
      const ScanResult r = scan(
          [&](const Tensors& c, const Tensors& x) {
            const Tensor h = tanh(matmul(c[0], w) + dropout(x[0], 0.25));
            return ScanResult{{h}, {h}};
          },
          {in[0]}, {in[1]});
      const Tensor loss = sum(square(r.ys[0]));
      return Tensors{loss, assign(w, w - grad(loss, w) * 0.01)};
    });
    manual_seed(7);
    std::vector<double> losses;
    for (int k = 0; k < 4; ++k)
      losses.push_back(step(test::to_device(
          {test::draw({2, 4}, 6, DType::Float32),
           test::draw({9, 2, 4}, 7 + static_cast<unsigned>(k) % 2, DType::Float32)},
          device))[0]
                           .item());
    return losses;
  };
  const std::vector<double> ours = course(gpu), theirs = course({});
  for (std::size_t k = 0; k < ours.size(); ++k)
    CHECK(ours[k] == doctest::Approx(theirs[k]).epsilon(1e-5));
}

TEST_CASE("GPU loops: cond computes both branches and selects one") {
  if (!test::has_gpu()) return;
  const Device gpu = device("cuda");
  const Tensor a = variable(to(test::draw({3}, 1, DType::Float32), gpu));
  for (const double threshold : {-1e9, 1e9}) {
    const Tensors r = cond(
        gt(sum(a), threshold), [](const Tensors& x) { return Tensors{exp(x[0])}; },
        [](const Tensors& x) { return Tensors{log(x[0] * 0.0f)}; }, {a});
    const Tensor g = grad(sum(r[0]), a);
    if (threshold > 0) continue;
    CHECK(distance(r[0], exp(a)) < 1e-6);
    CHECK(distance(g, exp(a)) < 1e-6);
  }
}

TEST_CASE("GPU loops: one map writes all parts of a concatenation in place") {
  if (!test::has_gpu()) return;
  const Tensor a = test::draw({6, 5}, 3, DType::Float32), b = test::draw({5}, 4, DType::Float32);
  for (const int axis : {0, 1}) {
    CAPTURE(axis);
    const auto joined = [axis](const Tensors& x) {
      const Tensor difference = x[0] - x[1];
      return Tensors{concat({difference * x[1], exp(difference), difference}, axis)};
    };
    const CompiledFunction f = compile(joined);
    const Tensors there = {to(a, device("cuda")).eval(), to(b, device("cuda")).eval()};
    CHECK(distance(f(there)[0], joined({a, b})[0]) < 1e-6);
    CHECK(f.plan(there).step_count() == 1);
  }
}

namespace {

// A layer's output and its gradients; with `reads_state` the last state's too.
Tensors of_lstm(const nn::LSTM& layer, const Tensor& x, bool reads_state) {
  const nn::LstmResult y = layer(x);
  Tensor loss = sum(square(y.output));
  if (reads_state) loss = loss + sum(y.state.hidden) * 3 + sum(square(y.state.cell));
  Tensors wanted{x};
  for (const nn::NamedTensor& p : layer.named_parameters()) wanted.push_back(p.tensor);
  Tensors all = grad(loss, wanted);
  all.push_back(y.output);
  return all;
}

}  // namespace

TEST_CASE("GPU loops: recurrent weights and states that are rounded once, values and gradients") {
  if (!test::has_gpu()) return;
  for (const bool reads_state : {false, true}) {
    CAPTURE(reads_state);
    const auto computed = [&](Device device, Precision precision) {
      Context context = current_context();
      context.device = device;
      context.precision = precision;
      const ContextScope scope(context);
      manual_seed(3);
      const nn::LSTM layer(24, 256);
      const Tensor x = test::draw({3, 16, 24}, 8, DType::Float32);
      Tensors all = of_lstm(layer, to(x, device).eval(), reads_state);
      eval(all);
      Tensors here;
      for (const Tensor& t : all) here.push_back(to(t, Device()).eval());
      return here;
    };
    const Tensors exact = computed({}, Precision::Fp32),
                  gpu = computed(device("cuda"), Precision::Bf16),
                  again = computed(device("cuda"), Precision::Bf16);
    for (std::size_t k = 0; k < exact.size(); ++k) {
      CAPTURE(k);
      CHECK(distance(gpu[k], exact[k]) < 2e-2);
      CHECK(gpu[k].to_vector<float>() == again[k].to_vector<float>());
    }
  }
}

TEST_CASE("GPU loops: a step of a recurrent layer rounds only its results") {
  set_precision(Precision::Bf16);
  const nn::LSTM layer(256, 256);
  const Tensors roots = of_lstm(layer, test::leaf({5, 128, 256}), false);
  set_precision(Precision::Fp32);
  const auto program = test::planned(roots, {Device::Kind::Cuda});
  int loops = 0;
  for (const Step& step : program->steps)
    for (const std::shared_ptr<const Program>& body : step.region.opaque.bodies) {
      ++loops;
      INFO(print_steps(*body));
      CHECK(body->steps.size() == 2);  // a product and a map
      for (const Step& inside : body->steps) {
        if (inside.region.kind != RegionKind::Contraction) continue;
        const Contraction& c = inside.region.contraction;
        for (const ValueId id : {c.a.value, c.b.value})
          CHECK(body->values[static_cast<std::size_t>(id)].dtype == DType::BFloat16);
      }
    }
  CHECK(loops == 2);
}
