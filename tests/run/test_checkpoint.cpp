// checkpoint(): the bits of results and gradients are those without it, and the arena is smaller.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float32) {
  return randn(shape, dtype, Generator(seed)).compute();
}

bool same_bits(const Tensor& a, const Tensor& b) { return a.equal(b); }

void check_same(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    INFO("tensor " << k);
    CHECK(same_bits(a[k], b[k]));
  }
}

constexpr int kBlocks = 6, kLayers = 4;

/// A chain of blocks; each computes several activations of the size of its input.
struct Chain {
  explicit Chain(std::int64_t width) {
    for (int k = 0; k < kBlocks * kLayers; ++k)
      weights.push_back(variable(draw({width, width}, 100 + static_cast<std::uint64_t>(k)) * 0.1));
  }
  Tensor block(Tensor x, int b) const {
    for (int k = b * kLayers; k < (b + 1) * kLayers; ++k)
      x = gelu(matmul(x, weights[static_cast<std::size_t>(k)]));
    return x;
  }
  Tensor loss(Tensor x, bool recomputes) const {
    for (int b = 0; b < kBlocks; ++b)
      x = recomputes ? checkpoint([this, b](const Tensor& v) { return block(v, b); }, x)
                     : block(x, b);
    return mean(square(x));
  }
  Tensors step(const Tensor& x, bool recomputes) const {
    const Tensor l = loss(x, recomputes);
    Tensors out = grad(l, weights);
    out.insert(out.begin(), l);
    return out;
  }
  Tensors weights;
};

TEST_CASE("checkpoint: the memory of a deep chain shrinks, the bits stay") {
  const Chain chain(32);
  const Tensor x = draw({512, 32}, 1);
  const Tensors kept = chain.step(x, false), recomputed = chain.step(x, true);
  const std::int64_t activation = x.numel() * 4, before = plan(kept).arena_bytes(),
                     after = plan(recomputed).arena_bytes();
  MESSAGE("arena: " << before << " bytes, with checkpoint " << after);
  // Without: what each layer keeps. With: the inputs of the blocks, and what one block keeps.
  CHECK(before >= 3 * kBlocks * kLayers * activation);
  CHECK(after <= (kBlocks + 4 * kLayers) * activation);
  check_same(recomputed, kept);
}

TEST_CASE("checkpoint: compiled, and with any number of threads") {
  const Chain chain(16);
  const Tensor x = draw({64, 16}, 2);
  const auto kept = compile([&](Tensor v) { return chain.step(v, false); });
  const auto recomputed = compile([&](Tensor v) { return chain.step(v, true); });
  const Tensors wanted = kept(x);
  const int usual = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    check_same(recomputed(x), wanted);
  }
  set_threads(usual);
}

/// With dropout, attention with dropout, and a mask drawn in the block.
Tensor random_block(const Tensor& x, const Tensor& w) {
  const Tensor h = dropout(gelu(matmul(x, w)), 0.4, true);
  const Tensor a = scaled_dot_product_attention(h, h, h, {}, {.dropout_p = 0.3});
  return h + a * rand({1, 8}) + bernoulli({1, 8}, 0.5);
}

Tensors random_step(const Tensor& x, const Tensor& w, bool recomputes) {
  Tensor y = x;
  for (int k = 0; k < 3; ++k)
    y = recomputes ? checkpoint([&w](const Tensor& v) { return random_block(v, w); }, y)
                   : random_block(y, w);
  const Tensor loss = sum(square(y));
  return {loss, grad(loss, w), grad(loss, x)};
}

TEST_CASE("checkpoint: random draws are the same in the recomputation") {
  const Tensor x = variable(draw({2, 5, 8}, 3)), w = variable(draw({8, 8}, 4));
  manual_seed(7);
  const Tensors wanted = random_step(x, w, false);
  compute(wanted);
  manual_seed(7);
  check_same(random_step(x, w, true), wanted);
  const auto kept = compile([&](Tensor v) { return random_step(v, w, false); });
  const auto recomputed = compile([&](Tensor v) { return random_step(v, w, true); });
  manual_seed(8);
  const Tensors first = kept(x), second = kept(x);
  manual_seed(8);
  check_same(recomputed(x), first);
  check_same(recomputed(x), second);
  CHECK(!same_bits(first[0], second[0]));
}

TEST_CASE("checkpoint: several inputs and results, integers among them, captured tensors") {
  const Tensor a = variable(draw({4, 3}, 5)), b = variable(draw({3}, 6)),
               index = Tensor::from<std::int64_t>({2, 0, 1, 2}, {4, 1}),
               scale = ones({3});    // not a number: gradients may be asked for
  const Tensor c = b * scale + 1.0;  // pending, and computed from another input
  const auto f = [&](const Tensor& x, const Tensor& y, const Tensor& i) {
    const Tensor z = tanh(x * y + c) * scale;
    return std::tuple(gather(z, 1, i), argmax(z, 1), z);
  };
  const auto results = [&](bool recomputes) {
    Tensors r;
    if (recomputes) {
      r = checkpoint(f, {a, b, index});
    } else {
      const auto [p, q, s] = f(a, b, index);
      r = {p, q, s};
    }
    const Tensor loss = sum(exp(r[0])) + sum(square(r[2]));
    for (const Tensor& g : grad(loss, std::vector<Tensor>{a, b, c, scale})) r.push_back(g);
    // A result that nothing reads gets no gradient.
    r.push_back(grad(sum(r[2]), a));
    return r;
  };
  check_same(results(true), results(false));
}

TEST_CASE("checkpoint: second derivatives, forward mode, jacobian") {
  const Tensor x = variable(draw({3, 4}, 8, DType::Float64)), w = draw({4, 4}, 9, DType::Float64);
  const auto f = [&w](const Tensor& v) { return sum(sin(matmul(v, w)) * v); };
  const auto g = [&f](const Tensor& v) { return checkpoint(f, v); };
  const auto second = [&x](const TensorFunction& of) {
    const Tensor first = grad(of({x})[0], x);
    return grad(sum(first * first), x);
  };
  CHECK(allclose(second(g), second(f), 1e-13, 1e-13));
  CHECK(allclose(hessian(g, x), hessian(f, x), 1e-13, 1e-13));
  CHECK(allclose(jvp(g, {x}, {x * x}).products[0], jvp(f, {x}, {x * x}).products[0], 1e-13));
}

TEST_CASE("checkpoint: in a loop, mapped over a batch, nested, under NoGrad") {
  const Tensor x = variable(draw({5, 4}, 10, DType::Float64)),
               w = variable(draw({4, 4}, 11, DType::Float64));
  const auto block = [&w](const Tensor& v) { return tanh(matmul(v, w) + v); };
  const auto own = [&block](const Tensor& v) { return checkpoint(block, v); };
  const auto looped = [&](const TensorFunction& f) {
    const auto [last, all] = scan(
        [&](const Tensor& c, const Tensor& row) {
          const Tensor y = f({c + row})[0];
          return std::pair(y, y * row);
        },
        x[0], x);
    return grad(sum(last) + sum(square(all)), std::vector<Tensor>{x, w});
  };
  const auto mapped = [&](const TensorFunction& f) {
    const auto sums = vmap([&f](const Tensor& row) { return sum(square(f({row})[0])); });
    const auto each = vmap([&](const Tensor& row) { return grad(sum(square(f({row})[0])), w); });
    return Tensors{grad(sum(sums(x)), w), each(x)};
  };
  const auto nested = [&](const TensorFunction& f) {
    return grad(sum(checkpoint([&f](const Tensor& v) { return f({f({v})[0]}); }, x)), w);
  };
  const auto close = [](const Tensors& a, const Tensors& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(allclose(a[k], b[k], 1e-12, 1e-12));
  };
  close(looped(own), looped(block));
  close(mapped(own), mapped(block));
  close({nested(own)}, {grad(sum(block(block(x))), w)});
  const NoGrad constants;
  close({grad(sum(own(x)), w)}, {zeros_like(w)});
}

TEST_CASE("checkpoint: random draws of a mapped function, and of the rows of a jacobian") {
  const Tensor x = draw({3, 2, 5, 8}, 19), w = variable(draw({8, 8}, 20));
  const auto block = [&w](const Tensor& v) { return random_block(v, w); };
  const auto own = [&block](const Tensor& v) { return checkpoint(block, v); };
  const auto results = [&](const TensorFunction& f, Randomness randomness) {
    const auto loss = [&f](const Tensor& v) { return sum(square(f({v})[0])); };
    manual_seed(9);
    Tensors out{
        vmap([&](const Tensor& v) { return grad(loss(v), w); }, {.randomness = randomness})(x)};
    out.push_back(grad(sum(vmap(loss, {.randomness = randomness})(x)), w));
    out.push_back(jacobian([&f](const Tensor& v) { return sum(f({v})[0], {0, 1}); }, x[0]));
    compute(out);
    return out;
  };
  for (const Randomness randomness : {Randomness::Same, Randomness::Different}) {
    const Tensors kept = results(block, randomness), recomputed = results(own, randomness);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      INFO("result " << k);
      CHECK(allclose(recomputed[k], kept[k], 1e-4, 1e-4));
    }
  }
}

TEST_CASE("checkpoint: a gradient that is built under NoGrad") {
  const Tensor x = draw({3, 4}, 12), w = variable(draw({4, 4}, 13));
  const Tensor y = sum(checkpoint([&w](const Tensor& v) { return tanh(matmul(v, w)); }, x));
  const Tensor wanted = grad(y, w);
  const NoGrad constants;
  CHECK(same_bits(grad(y, w), wanted));
}

TEST_CASE("checkpoint: after the loss was read") {
  const Chain chain(8);
  const Tensor x = draw({4, 8}, 14), loss = chain.loss(x, true);
  loss.item();
  check_same(grad(loss, chain.weights), grad(chain.loss(x, false), chain.weights));
}

/// Trains a few steps; returns all parameters and running statistics.
Tensors trained(bool recomputes) {
  manual_seed(3);
  const nn::Sequential layers(nn::Conv2d(2, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Dropout(0.2),
                              nn::Conv2d(4, 4, 3), nn::BatchNorm2d(4), nn::ReLU());
  const nn::Checkpoint recomputing(layers);
  auto sgd = optim::Sgd(layers.parameters(), {.lr = 0.1});
  const auto step = compile([&](Tensor x) {
    const Tensor loss = mean(square(recomputes ? recomputing(x) : layers(x)));
    return std::tuple(loss, sgd.updates(grad(loss, sgd.parameters())));
  });
  Tensors out;
  for (std::uint64_t k = 0; k < 3; ++k)
    out.push_back(std::get<0>(step(draw({2, 2, 8, 8}, 20 + k))));
  for (const auto& [name, tensor] : layers.state_dict()) out.push_back(tensor);
  return out;
}

TEST_CASE("nn::Checkpoint: training with batch normalization and dropout") {
  check_same(trained(true), trained(false));
}

TEST_CASE("checkpoint: evaluating the gradient alone carries out the updates") {
  const Tensor count = variable(zeros({})), x = variable(draw({3}, 17)), other = draw({3}, 18);
  const Tensor y = checkpoint(
      [&count](const Tensor& v) { return with_updates(v * v, {assign(count, count + 1.0)}); }, x);
  CHECK(same_bits(grad(sum(y * other), x), 2 * x * other));
  CHECK(count.item() == 1);
  const Tensor z = checkpoint(
      [&count](const Tensor& v) { return with_updates(v * v, {assign(count, count + 1.0)}); }, x);
  CHECK(same_bits(grad(sum(z), x), 2 * x));
  CHECK(count.item() == 2);
}

TEST_CASE("nn::Checkpoint: a Sequential, whose names and clones it has") {
  const nn::Checkpoint block(nn::Linear(4, 4), nn::GELU());
  CHECK(block.parameters().size() == 2);
  CHECK(block.state_dict().contains("0.weight"));
  const nn::Checkpoint copy = clone(block);
  const Tensor x = draw({2, 4}, 15);
  CHECK(same_bits(copy(x), block(x)));
  const Tensor w = block.parameters()[0];
  CHECK(same_bits(grad(sum(block(x)), w), grad(sum(gelu(block[0](x))), w)));
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

TEST_CASE("checkpoint: what cannot be recomputed is refused") {
  const Tensor x = draw({3}, 16), v = variable(x);
  refuses<ValueError>([&] { checkpoint([](const Tensor& t) { return (t * 2).compute() * t; }, x); },
                      "checkpoint: the function evaluates a tensor [3]");
  refuses<NotSupported>(
      [&] { checkpoint([&v](const Tensor& t) { return with_updates(t * v, {assign(v, t)}); }, x); },
      "reads a variable that it also assigns");
  refuses<ValueError>([&] { checkpoint([](const Tensor& t) { return t; }, Tensor()); },
                      "checkpoint: argument 0 has no value");
  refuses<ValueError>([&] { checkpoint([](const Tensor&) { return Tensor(); }, x); },
                      "checkpoint: result 0 has no value");
  refuses<ValueError>([&] { checkpoint([](const Tensor& t) { return std::tuple(t, t); }, x); },
                      "checkpoint: the function returns 2 tensors");
  const Tensors many(300, x);
  Tensors different;
  for (const Tensor& t : many) different.push_back(t + 1.0);
  refuses<ValueError>(
      [&] { checkpoint([](const Tensors& t) { return sum(concat(t)); }, different); },
      "at most 255 together");
}

}  // namespace
