// vmap(): per-sample gradients, axes, random draws, loops, branches, functions with gradients of
// their own, host code, nesting, refusals. tests/cases/test_vmap.cpp maps every case of the table.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

void check_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  CHECK(allclose(a, b, tolerance, tolerance));
}

/// f(row) for each row of x, stacked.
template <class F>
Tensor by_loop(const F& f, const Tensor& x) {
  Tensors rows;
  for (std::int64_t b = 0; b < x.size(0); ++b) rows.push_back(f(x[b]));
  return stack(rows, 0);
}

TEST_CASE("vmap: per-sample gradients of a network agree with a loop") {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(1, 4, 3, {.stride = 2}), nn::ReLU(), nn::GroupNorm(2, 4),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 2 * 2, 5), nn::Tanh(),
                     nn::Linear(5, 3));
  const Tensor x = draw({6, 1, 11, 11}, 2, DType::Float32),
               labels = Tensor::from<std::int64_t>({0, 1, 2, 2, 1, 0}, {6});
  const Tensors weights = net.parameters();
  const auto gradients = [&](const Tensor& image, const Tensor& label) {
    return grad(cross_entropy(net(unsqueeze(image, 0)), unsqueeze(label, 0)), weights);
  };
  const Tensors all = vmap(gradients)(x, labels);
  REQUIRE(all.size() == weights.size());
  for (std::size_t w = 0; w < weights.size(); ++w) {
    Tensors rows;
    for (std::int64_t b = 0; b < x.size(0); ++b) rows.push_back(gradients(x[b], labels[b])[w]);
    check_close(all[w], stack(rows, 0), 1e-5);
    // The gradient of the mean loss is the mean of the gradients.
    check_close(mean(all[w], {0}), grad(cross_entropy(net(x), labels), weights[w]), 1e-5);
  }
  CHECK(plan(all).step_count() < 6 * plan(gradients(x[0], labels[0])).step_count());
}

TEST_CASE("vmap: axes of arguments and results") {
  const Tensor a = draw({4, 3}, 3), b = draw({5, 4}, 4), c = draw({3}, 5);
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return std::tuple(matmul(unsqueeze(x * z, 1), unsqueeze(y, 0)), z);
  };
  const auto [outer, repeated] =
      vmap(f, {.in_axes = {0, -1, kNotMapped}, .out_axes = {-1, 1}})(a, b, c);
  REQUIRE(outer.shape() == Shape{3, 5, 4});
  REQUIRE(repeated.shape() == Shape{3, 4});
  for (std::int64_t k = 0; k < 4; ++k) {
    check_close(select(outer, 2, k), matmul(unsqueeze(a[k] * c, 1), unsqueeze(select(b, 1, k), 0)));
    check_close(select(repeated, 1, k), c);
  }
  check_close(vmap([](Tensor v) { return v; }, {.in_axes = {1}})(a), transpose(a));
}

TEST_CASE("vmap: nested, and of a mapped function's derivatives") {
  const Tensor x = draw({3, 4}, 6), y = draw({5, 4}, 7);
  const auto dot = [](const Tensor& u, const Tensor& v) { return sum(u * v * v); };
  const auto pairs = vmap(vmap(dot, {.in_axes = {kNotMapped, 0}}), {.in_axes = {0, kNotMapped}});
  check_close(pairs(x, y), matmul(x, transpose(y * y)));
  const auto f = [](const Tensor& v) { return sin(v) * sum(v); };
  check_close(vmap([&](const Tensor& v) { return jacobian(f, v); })(x),
              by_loop([&](const Tensor& v) { return jacobian(f, v); }, x));
  check_close(
      vmap([&](const Tensor& v) { return hessian([&](const Tensor& t) { return sum(f(t)); }, v); })(
          x),
      by_loop(
          [&](const Tensor& v) { return hessian([&](const Tensor& t) { return sum(f(t)); }, v); },
          x));
  check_close(jacobian(vmap([](const Tensor& v) { return sum(v * v); }), x).shape().rank() == 3
                  ? sum(jacobian(vmap([](const Tensor& v) { return sum(v * v); }), x), {0})
                  : x,
              2 * x);
  const auto compiled = compile([&](Tensor u, Tensor v) { return pairs(u, v); });
  check_close(compiled(x, y), pairs(x, y));
  const auto inner = compile([&](Tensor v) { return f(v); });
  check_close(vmap(inner)(x), by_loop(f, x));
}

TEST_CASE("vmap: convolutions with weights of each sample") {
  for (const std::int64_t groups : {1, 2}) {
    const Tensor x = draw({3, 2, 4, 7, 6}, 8), w = draw({3, 6, 4 / groups, 3, 2}, 9);
    Conv2dOptions options;
    options.stride = 2, options.padding = 1, options.groups = groups;
    const auto conv = [&](const Tensor& image, const Tensor& weight) {
      return conv2d(image, weight, {}, options);
    };
    const auto both = [&](const Tensor& image, const Tensor& weight) {
      return grad(sum(sin(conv(image, weight))), std::vector<Tensor>{image, weight});
    };
    for (const int mapped : {1, 2, 3}) {
      const VmapOptions axes{
          .in_axes = {(mapped & 1) != 0 ? 0 : kNotMapped, (mapped & 2) != 0 ? 0 : kNotMapped}};
      const Tensor image = (mapped & 1) != 0 ? x : x[0], weight = (mapped & 2) != 0 ? w : w[0];
      const Tensor y = vmap(conv, axes)(image, weight);
      const Tensors g = vmap(both, axes)(image, weight);
      for (std::int64_t b = 0; b < 3; ++b) {
        const Tensor xb = (mapped & 1) != 0 ? x[b] : x[0], wb = (mapped & 2) != 0 ? w[b] : w[0];
        check_close(y[b], conv(xb, wb));
        check_close(g[0][b], both(xb, wb)[0]);
        check_close(g[1][b], both(xb, wb)[1]);
      }
    }
  }
}

TEST_CASE("vmap: random draws") {
  const Tensor x = ones({4, 1000}, DType::Float32);
  const auto noisy = [](const Tensor& v) { return dropout(v, 0.5, true); };
  manual_seed(5);
  const Tensor single = noisy(x[0]).compute();
  manual_seed(5);
  const Tensor different = vmap(noisy, {.randomness = Randomness::Different})(x).compute();
  CHECK(different[0].equal(single));
  for (int b = 1; b < 4; ++b) CHECK(!different[b].equal(different[0]));
  manual_seed(5);
  const Tensor same = vmap(noisy, {.randomness = Randomness::Same})(x).compute();
  for (int b = 0; b < 4; ++b) CHECK(same[b].equal(single));
  // A tensor that was drawn outside is a constant.
  const Tensor outside = rand({1000});
  check_close(vmap([&](const Tensor& v) { return v * outside; })(x)[3], outside);
  // Draws that do not depend on the sample, and draws in a loop.
  const auto drawn =
      vmap([](const Tensor&) { return rand({50}); }, {.randomness = Randomness::Different})(x)
          .compute();
  CHECK(!drawn[0].equal(drawn[1]));
  const auto walk = [](const Tensor& v) {
    return scan([](const Tensor& c, const Tensor& row) { return std::pair(c + rand({}) * row, c); },
                zeros({}), slice(v, 0, 0, 6))
        .first;
  };
  const Tensor ends = vmap(walk, {.randomness = Randomness::Different})(x).compute();
  CHECK(!ends[0].equal(ends[1]));
}

TEST_CASE("vmap: attention with dropout, in both modes of randomness") {
  const Tensor x = draw({3, 2, 5, 4}, 10, DType::Float32);
  const auto attend = [](const Tensor& v) {
    return scaled_dot_product_attention(v, v, v, {}, {.dropout_p = 0.5});
  };
  const auto gradient = [&](const Tensor& v) { return grad(sum(square(attend(v))), v); };
  for (const TensorFunction& f : {TensorFunction(attend), TensorFunction(gradient)}) {
    const auto g = [&f](const Tensor& v) { return f({v})[0]; };
    manual_seed(6);
    const Tensor first = g(x[0]).compute();
    manual_seed(6);
    check_close(vmap(g, {.randomness = Randomness::Different})(x)[0], first, 1e-5);
    for (std::int64_t b = 0; b < 3; ++b) {
      manual_seed(6);
      const Tensor wanted = g(x[b]).compute();
      manual_seed(6);
      check_close(vmap(g, {.randomness = Randomness::Same})(x)[b], wanted, 1e-5);
    }
  }
  // All rows of a Jacobian belong to one draw.
  const Tensor one = x[0];
  manual_seed(6);
  const Tensor j = jacobian([&](const Tensor& v) { return sum(attend(v), {0, 1}); }, one).compute();
  manual_seed(6);
  check_close(sum(j, {0}), grad(sum(attend(one)), one), 1e-5);
}

TEST_CASE("vmap: loops and branches") {
  const Tensor x = draw({4, 3}, 11), rows = draw({5, 4, 3}, 12), w = draw({3, 3}, 13);
  const auto loop = [&w](const Tensor& start, const Tensor& steps) {
    const auto [last, all] = scan(
        [&w](const Tensor& c, const Tensor& row) {
          const Tensor next = tanh(matmul(unsqueeze(c, 0), w)[0] + row);
          return std::pair(next, sum(next * row));
        },
        start, steps);
    return std::tuple(last, all);
  };
  const auto [last, all] = vmap(loop, {.in_axes = {0, 1}})(x, rows);
  const auto [shared_last, shared_all] =
      vmap(loop, {.in_axes = {0, kNotMapped}})(x, select(rows, 1, 0));
  for (std::int64_t b = 0; b < 4; ++b) {
    const auto [l, a] = loop(x[b], select(rows, 1, b));
    check_close(last[b], l);
    check_close(all[b], a);
    const auto [sl, sa] = loop(x[b], select(rows, 1, 0));
    check_close(shared_last[b], sl);
    check_close(shared_all[b], sa);
  }
  const auto slope = [&](const Tensor& start, const Tensor& steps) {
    return grad(sum(std::get<1>(loop(start, steps))), std::vector<Tensor>{start, steps, w});
  };
  const Tensors slopes = vmap(slope, {.in_axes = {0, 1}})(x, rows);
  for (std::int64_t b = 0; b < 4; ++b) {
    const Tensors each = slope(x[b], select(rows, 1, b));
    for (std::size_t k = 0; k < each.size(); ++k) check_close(slopes[k][b], each[k]);
  }
  for (const bool differs : {true, false}) {
    const auto branch = [&](const Tensor& v) {
      return cond(
          gt(sum(differs ? v : x[0]), 0.0),
          [&w](const Tensors& in) {
            return Tensors{matmul(w, unsqueeze(in[0], 1)), w};
          },
          [](const Tensors& in) {
            return Tensors{unsqueeze(exp(in[0]), 1), zeros({3, 3}, DType::Float64)};
          },
          {v});
    };
    const Tensors mapped = vmap(branch)(x);
    for (std::int64_t b = 0; b < 4; ++b)
      for (std::size_t k = 0; k < 2; ++k) check_close(mapped[k][b], branch(x[b])[k]);
    const auto branch_slope = [&](const Tensor& v) { return grad(sum(branch(v)[0]), v); };
    check_close(vmap(branch_slope)(x), by_loop(branch_slope, x));
  }
}

/// max(x, 0) y, with a gradient of its own; the second argument may be shared.
const Function& gated() {
  static const Function function(
      "gated",
      [](FunctionContext& context, const Tensor& x, const Tensor& y) {
        const Tensor open = gt(x, 0.0);
        context.save({open});
        return std::tuple(where(open, x * y, 0.0), x * x);
      },
      [](const FunctionContext& context, const Tensor& g, const Tensor& h) {
        const Tensor &x = context.arguments()[0], &y = context.arguments()[1];
        const Tensor here = where(context.saved()[0], g, 0.0);
        return std::tuple(3 * here * y + 2 * x * h, here * x + context.results()[0] * 0.0);
      });
  return function;
}

TEST_CASE("vmap: functions with a gradient of their own, inside and through") {
  const Tensor x = draw({4, 3}, 14), y = draw({3}, 15);
  const auto f = [&y](const Tensor& v) {
    const Tensors r = gated().apply({v, y});
    return sum(r[0] * r[1]);
  };
  const auto inside = [&](const Tensor& v) { return grad(f(v), std::vector<Tensor>{v, y}); };
  const Tensors both = vmap(inside)(x);
  check_close(both[0], by_loop([&](const Tensor& v) { return inside(v)[0]; }, x));
  check_close(both[1], by_loop([&](const Tensor& v) { return inside(v)[1]; }, x));
  const Tensors through = grad(sum(vmap(f)(x)), std::vector<Tensor>{x, y});
  check_close(through[0], both[0]);
  check_close(through[1], sum(both[1], {0}));
  const auto second = [&](const Tensor& v) { return grad(sum(square(inside(v)[0])), v); };
  check_close(vmap(second)(x), by_loop(second, x));
  check_close(grad(sum(square(grad(sum(vmap(f)(x)), x))), x), by_loop(second, x));
}

TEST_CASE("vmap: host code runs sample by sample") {
  const auto reversed = [](const Tensor& v) {
    return host_call("reversed", {v}, {v.dtype(), v.shape()},
                     [](std::span<const HostInput> in, std::span<const HostOutput> out) {
                       const auto from = in[0].values<double>();
                       for (std::size_t k = 0; k < from.size(); ++k)
                         out[0].values<double>()[k] = from[from.size() - 1 - k];
                     });
  };
  const Tensor x = draw({4, 3}, 16);
  check_close(vmap([&](const Tensor& v) { return reversed(v * 2) + v; })(x), flip(x * 2, {1}) + x);
}

TEST_CASE("vmap: integers, booleans, 16-bit types, and batches of 0 and 1") {
  const Tensor index = Tensor::from<std::int64_t>({2, 0, 1, 1}, {2, 2}), table = draw({3, 2}, 17);
  const Tensor found = vmap([&](const Tensor& i) { return index_select(table, 0, i); })(index);
  check_close(found, reshape(index_select(table, 0, reshape(index, {4})), {2, 2, 2}));
  CHECK(vmap([](const Tensor& v) { return argmax(v, 0); })(table).dtype() == DType::Int64);
  CHECK(vmap([](const Tensor& v) { return gt(v, 0.0); })(table).dtype() == DType::Bool);
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    const Tensor x = cast(draw({5, 4, 4}, 18), dtype);
    const auto f = [](const Tensor& v) { return softmax(matmul(v, v), 1); };
    check_close(cast(vmap(f)(x), DType::Float32), cast(by_loop(f, x), DType::Float32), 1e-2);
  }
  const auto f = [](const Tensor& v) { return std::tuple(matmul(v, v), argmax(v)); };
  const auto [none, nothing] = vmap(f)(zeros({0, 2, 2}));
  CHECK(none.shape() == Shape{0, 2, 2});
  CHECK(nothing.dtype() == DType::Int64);
  CHECK(nothing.to_vector<std::int64_t>().empty());
  CHECK(std::get<0>(vmap(f)(ones({1, 2, 2}))).shape() == Shape{1, 2, 2});
  check_close(vmap([](const Tensor& v) { return sum(v); })(zeros({3, 0}, DType::Float64)),
              zeros({3}, DType::Float64));
}

template <class E>
void refuses(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    FAIL_CHECK("nothing was thrown; expected: " << text);
  } catch (const E& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(text) != std::string::npos);
  }
}

TEST_CASE("vmap: what does not fit is named") {
  const Tensor x = draw({4, 3}, 19), v = variable(draw({3}, 20));
  const auto f = [](const Tensor& a, const Tensor& b) { return a + b; };
  refuses<ShapeError>(
      [&] {
        vmap(f)(x, draw({5, 3}, 1));
      },
      "vmap: argument 1 is [5, 3], a batch of 5; the first batch has 4");
  refuses<ValueError>([&] { vmap(f, {.in_axes = {0}})(x, x); }, "vmap: 1 in axes for 2 tensors");
  refuses<ValueError>(
      [&] {
        vmap(f, {.out_axes = {0, 0}})(x, x);
      },
      "vmap: 2 out axes for 1 tensors");
  refuses<ShapeError>([&] { vmap(f, {.in_axes = {0, 2}})(x, x); }, "vmap");
  refuses<ValueError>([&] { vmap(f, {.out_axes = {kNotMapped}})(x, x); },
                      "result 0 has a batch axis");
  refuses<ShapeError>([&] { vmap(f)(x, sum(x)); }, "argument 1 is a scalar");
  refuses<ValueError>(
      [&] {
        vmap(f, {.in_axes = {kNotMapped, kNotMapped}})(x, x);
      },
      "no argument is mapped");
  refuses<NotSupported>([&] { vmap([](const Tensor& a) { return a * rand({3}); })(x); },
                        "draws random numbers");
  refuses<NotSupported>(
      [&] { vmap([&v](const Tensor& a) { return with_updates(a * 2, {assign(v, a)}); })(x); },
      "a value that differs between samples");
  refuses<ShapeError>(
      [&] { vmap([](const Tensor& a) {
              return reshape(a, {1, 1, 1, 1, 1, 1, 1, 3});
            })(x); },
      "no room for the batch");
  refuses<ValueError>([&] { vmap([](const Tensor& a) { return a; })(Tensor()); },
                      "argument 0 has no value");
  refuses<ValueError>([&] { vmap([](const Tensor& a) { return a * a.sum().item(); })(x); },
                      "compiled or mapped have no values yet");
}

TEST_CASE("vmap: an update that is the same for all samples takes effect once") {
  const Tensor count = variable(zeros({}, DType::Float64)), x = draw({4, 3}, 21);
  const Tensor y =
      vmap([&](const Tensor& a) { return with_updates(a * 2, {assign(count, count + 1.0)}); })(x);
  check_close(y, x * 2);
  CHECK(count.item() == 1);
}

}  // namespace
