// Guarantees of evaluation: effects, values that were held, compiled functions, callers on several
// threads.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

using Floats = std::vector<float>;

Tensor counting(const Shape& shape, float first = 0) {
  Floats values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), first);
  return Tensor::from(values, shape);
}

/// The value that assign(w, f(w)) leaves in w, and the value of f without an assignment.
template <class F>
void assigns_as_computed(const Shape& shape, F&& f) {
  const Tensor start = sin(counting(shape)).eval();
  const Floats expected = f(start).template to_vector<float>();
  const Tensor w = variable(start, "w");
  assign(w, f(w)).eval();
  CHECK(w.to_vector<float>() == expected);
}

}  // namespace

TEST_CASE("run: an assignment happens when it is evaluated, once") {
  const Tensor w = variable(full({3}, 1), "w");
  const Tensor update = assign(w, w + 1.0);
  CHECK(w.to_vector<float>() == Floats{1, 1, 1});
  update.eval();
  CHECK(w.to_vector<float>() == Floats{2, 2, 2});
  update.eval();
  CHECK(update.to_vector<float>() == Floats{2, 2, 2});
  CHECK(w.to_vector<float>() == Floats{2, 2, 2});
}

TEST_CASE("run: a held tensor that an update reads keeps the value it was built for") {
  const Tensor w = variable(full({2}, 3), "weight");
  const Tensor before = w * 10.0, outside = w * 20.0;
  assign(w, before + 1.0).eval();
  CHECK(before.to_vector<float>() == Floats{30, 30});
  CHECK((w * 10.0).to_vector<float>() == Floats{310, 310});
  // The update does not include this tensor: it is refused, not computed from the new value.
  CHECK_THROWS_WITH_AS(outside.eval(), doctest::Contains("weight"), ValueError);
}

TEST_CASE("run: a pending tensor whose variable was written from the host is refused") {
  const Tensor w = variable(full({2}, 3), "weight");
  const Tensor stale = w * 10.0;
  set_value(w, full({2}, 4));
  CHECK_THROWS_WITH_AS(stale.eval(), doctest::Contains("weight"), ValueError);
  CHECK((w * 10.0).to_vector<float>() == Floats{40, 40});
}

TEST_CASE("run: variables may be swapped, chained and read by one another in one evaluation") {
  const Tensor a = variable(counting({40, 30}), "a"), b = variable(counting({40, 30}, 5000), "b");
  const Floats old_a = a.to_vector<float>(), old_b = b.to_vector<float>();
  eval({assign(a, b), assign(b, a)});
  CHECK(a.to_vector<float>() == old_b);
  CHECK(b.to_vector<float>() == old_a);
  eval({assign(a, a + b), assign(b, a - b)});  // both read the old values
  CHECK(a.to_vector<float>()[7] == old_a[7] + old_b[7]);
  CHECK(b.to_vector<float>()[7] == old_b[7] - old_a[7]);
}

TEST_CASE("run: a variable cannot be assigned twice in one evaluation") {
  const Tensor w = variable(full({2}, 0), "w");
  const Tensor one = assign(w, w + 1.0), two = assign(w, w + 2.0);
  CHECK_THROWS_WITH_AS(eval({one, two}), doctest::Contains("twice"), ValueError);
}

TEST_CASE("run: a variable may be replaced by anything computed from it") {
  assigns_as_computed({70, 70}, [](const Tensor& w) { return transpose(w) * 1.0; });
  assigns_as_computed({70, 70}, [](const Tensor& w) { return transpose(w) + w; });
  assigns_as_computed({1000}, [](const Tensor& w) { return flip(w, {0}) * 2.0; });
  assigns_as_computed({3000}, [](const Tensor& w) {
    return concat({slice(w, 0, 1, 3000), slice(w, 0, 0, 1)});
  });
  assigns_as_computed({65, 65}, [](const Tensor& w) { return matmul(w, w); });
  assigns_as_computed({65, 65},
                      [](const Tensor& w) { return relu(matmul(transpose(w), w) + 1.0); });
  assigns_as_computed({33, 90}, [](const Tensor& w) { return softmax(w); });
  assigns_as_computed({33, 90}, [](const Tensor& w) { return w - mean(w, {0}, true); });
  assigns_as_computed({33, 90}, [](const Tensor& w) { return w / sum(w * w); });
  assigns_as_computed({90, 90}, [](const Tensor& w) { return w * slice(transpose(w), 0, 3, 4); });
  assigns_as_computed({2, 3, 12, 12}, [](const Tensor& w) {
    return max_pool2d(w, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
  });
}

TEST_CASE("run: results that the caller keeps are not overwritten by the next call") {
  CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] * 2.0, in[0] * 2.0, in[0]};
  });
  const Tensor x = counting({5}), y = counting({5}, 100);
  const std::vector<Tensor> kept = f({x});
  CHECK(f({y})[0].to_vector<float>() == Floats{200, 202, 204, 206, 208});
  CHECK(kept[0].to_vector<float>() == Floats{0, 2, 4, 6, 8});
  CHECK(kept[1].to_vector<float>() == Floats{0, 2, 4, 6, 8});
  CHECK(kept[2].to_vector<float>() == Floats{0, 1, 2, 3, 4});
}

TEST_CASE("run: results that share a value keep their own shapes") {
  CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 2.0;
    return std::vector<Tensor>{y, reshape(y, {2, 3}), unsqueeze(y, 0), y};
  });
  const auto check = [](const std::vector<Tensor>& out, const Floats& wanted) {
    CHECK(out[0].shape() == Shape{6});
    CHECK(out[1].shape() == Shape{2, 3});
    CHECK(out[2].shape() == Shape{1, 6});
    CHECK(out[3].shape() == Shape{6});
    for (const Tensor& t : out) CHECK(t.to_vector<float>() == wanted);
  };
  const Tensor kept = f({counting({6})})[1];
  check(f({counting({6})}), {0, 2, 4, 6, 8, 10});
  check(f({counting({6}, 10)}), {20, 22, 24, 26, 28, 30});
  CHECK(kept.shape() == Shape{2, 3});
  CHECK(kept.to_vector<float>() == Floats{0, 2, 4, 6, 8, 10});

  CompiledFunction both = compile([](const std::vector<Tensor>& in) {
    const Tensor a = in[0] * 1.0, b = in[1] * 1.0;
    return grad(sum(reshape(a, {3}) + b), std::vector<Tensor>{a, b});
  });
  const std::vector<Tensor>& slopes = both({counting({1, 3}), counting({3})});
  CHECK(slopes[0].shape() == Shape{1, 3});
  CHECK(slopes[1].shape() == Shape{3});
  const std::vector<Tensor>& many = f.run_many(2, {counting({2, 6})});
  CHECK(many[1].shape() == Shape{2, 2, 3});
  CHECK(many[2].to_vector<float>().back() == 22);
}

TEST_CASE("run: a compiled function reads variables at each call and updates them") {
  const Tensor w = variable(full({3}, 1), "w");
  CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{sum(w * in[0]), assign(w, w * 2.0)};
  });
  const Tensor one = counting({3}, 1);
  CHECK(f({one})[0].item() == 6);
  CHECK(f({one})[0].item() == 12);
  set_value(w, full({3}, 10));
  const std::vector<Tensor>& out = f({one});
  CHECK(out[0].item() == 60);
  CHECK(w.to_vector<float>() == Floats{20, 20, 20});
  CHECK(f.traced() == 1);
}

TEST_CASE("run: a compiled function keeps constants that it creates") {
  const CompiledFunction shifted = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] + Tensor::from(std::vector<float>(1000, 3), {1000})};
  });
  std::vector<Tensor> others;
  for (int k = 0; k < 3; ++k) {
    CHECK(shifted({ones({1000})})[0].to_vector<float>() == std::vector<float>(1000, 4));
    others.push_back(Tensor::from(std::vector<float>(1000, -9), {1000}));
  }
}

TEST_CASE("run: a compiled function that calls itself is refused") {
  CompiledFunction f;
  f = compile([&](const std::vector<Tensor>& in) { return f(in); });
  CHECK_THROWS_WITH_AS(f({ones({2})}), doctest::Contains("calls itself"), ValueError);
  CHECK_THROWS_AS(f({ones({2})}), ValueError);  // the function can be called again
}

TEST_CASE("run: an empty function is not compiled, and an uncompiled one is not run") {
  CHECK_THROWS_AS(compile(nullptr), ValueError);
  CompiledFunction nothing;
  CHECK_THROWS_AS(nothing({}), ValueError);
  CHECK_THROWS_AS(nothing.plan({}), ValueError);
  CHECK_THROWS_AS(nothing.profile({}), ValueError);
}

TEST_CASE("run: evaluating an unassigned tensor is an error") {
  const Tensor x = scalar(2) * 3, none;
  CHECK_THROWS_WITH_AS(eval({x, none}), "eval: tensor 2 of 2 has no value: it was never assigned",
                       ValueError);
  CHECK_THROWS_AS(plan(std::vector<Tensor>{none}), ValueError);
  CHECK(x.item() == 6);
}

TEST_CASE("run: an unassigned input of a compiled function is named") {
  const CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1]}; });
  const std::vector<Tensor> inputs{zeros({3}), Tensor()};
  const char* const words = "a compiled function: inputs[1] has no value: it was never assigned";
  CHECK_THROWS_WITH_AS(f(inputs), words, ValueError);
  CHECK_THROWS_WITH_AS(f.run_many(3, inputs), words, ValueError);
  CHECK_THROWS_WITH_AS(f.plan(inputs), words, ValueError);
  CHECK_THROWS_WITH_AS(f.profile(inputs), words, ValueError);
  CHECK(f.traced() == 0);
}

TEST_CASE("run: nothing, scalars and empty tensors") {
  eval(std::vector<Tensor>{});
  CHECK(scalar(4).item() == 4);
  const Tensor empty = zeros({0, 7});
  CHECK((exp(empty) + 1.0).to_vector<float>().empty());
  CHECK(sum(empty).item() == 0);
  CHECK(sum(empty, {0}).to_vector<float>() == Floats(7, 0));
  CHECK(matmul(zeros({3, 0}), zeros({0, 2})).to_vector<float>() == Floats(6, 0));
  CHECK(concat({empty, ones({2, 7})}).shape() == Shape{2, 7});
  CHECK(conv2d(zeros({0, 2, 5, 5}), ones({3, 2, 3, 3})).shape() == Shape{0, 3, 3, 3});
}

TEST_CASE("run: a long chain is planned and run") {
  Tensor x = full({17}, 0).eval();
  const Tensor one = counting({17}, 1);
  for (int k = 0; k < 2000; ++k) x = x + one;
  CHECK(x.to_vector<float>()[3] == 8000);
}

TEST_CASE("run: many threads evaluate at once, the same program and others") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([&wrong, t] {
      for (int k = 0; k < 25; ++k) {
        const auto value = static_cast<float>(t * 100 + k);
        const Tensor a = Tensor::from(Floats(64 * 48, value), {64, 48}),
                     b = Tensor::from(Floats(48 * 32, 0.5f), {48, 32});
        const Tensor product = matmul(a, b);
        const Tensor total = sum(relu(product) + static_cast<double>(t % 3));
        if (std::fabs(total.item() - 64 * 32 * (24.0 * value + t % 3)) >
            1e-3 * std::fabs(total.item()) + 1e-3)
          ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("run: after an error inside a step the process still works") {
  const Tensor x = counting({4}), bad = Tensor::from(std::vector<std::int64_t>{0, 9}, {2});
  for (const char* engine : {"fast", "reference"}) {
    set_engine(engine);
    CHECK_THROWS_WITH_AS(gather(x, 0, bad).eval(),
                         doctest::Contains("index 9 is out of range for axis 0 of size 4"),
                         ValueError);
    CHECK(sum(x).item() == 6);
  }
  set_engine("fast");
}

TEST_CASE("runner: a value that does not fit is refused by the variable's name") {
  CHECK_THROWS_WITH_AS(set_value(variable(ones({2}), "w"), zeros({3})),
                       "set_value: float32[3] given for w float32[2]", ShapeError);
  CHECK_THROWS_WITH_AS(set_value(variable(ones({2})), zeros({3})),
                       "set_value: float32[3] given for float32[2]", ShapeError);
}

TEST_CASE("runner: a tensor without a name is not reported with an empty name") {
  const Tensor v = variable(ones({2}));
  Tensor handle = v;
  CHECK_THROWS_WITH_AS(handle += 1, doctest::Contains("operator+=: it is a variable"), ValueError);
  const auto body = [&](const std::vector<Tensor>& carried, const std::vector<Tensor>&) {
    return ScanResult{{with_updates(carried[0], {assign(v, carried[0])})}, {}};
  };
  CHECK_THROWS_WITH_AS(
      scan(ScanStep(body), std::vector<Tensor>{ones({2})}, std::vector<Tensor>{zeros({3, 1})}),
      doctest::Contains("a variable is assigned inside"), NotSupported);
  CHECK_THROWS_WITH_AS(compile([](const std::vector<Tensor>&) {
                         return std::vector<Tensor>{rand({2}) * sum(rand({2})).item()};
                       })({}),
                       doctest::Contains("inputs and random draws of a function"), ValueError);
}
