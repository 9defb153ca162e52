// Shapes and dtypes of everything that ops build, without running anything.
#include <doctest/doctest.h>

#include <limits>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "graph/random_trace.h"
#include "ops/table.h"

using namespace tenon;

namespace {

constexpr DType B = DType::Bool, U8 = DType::UInt8, I8 = DType::Int8, I32 = DType::Int32,
                I64 = DType::Int64, F16 = DType::Float16, BF = DType::BFloat16,
                F32 = DType::Float32, F64 = DType::Float64;

// A pending tensor that is not constant, so that nothing is folded.
Tensor input(const Shape& shape, DType dtype = F32) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.numel()) * item_size(dtype));
  return Tensor::from_data(bytes.data(), shape, dtype);
}

void check(const Tensor& t, const Shape& shape, DType dtype = F32) {
  CHECK(t.shape() == shape);
  CHECK(t.dtype() == dtype);
}

Op op_of(const Tensor& t) { return t.node()->op; }

}  // namespace

TEST_CASE("infer: creating tensors") {
  check(full({2, 3}, 1.5), {2, 3});
  check(full({}, true, B), {}, B);
  check(zeros({0, 4}, I8), {0, 4}, I8);
  check(ones_like(input({3}, F64)), {3}, F64);
  check(scalar(3, I32), {}, I32);
  check(arange(0, 5), {5}, I64);
  check(arange(5, 0), {0}, I64);
  check(arange(5, 0, -2), {3}, I64);
  check(arange(0, 1, 0.25, F32), {4}, F32);
  check(arange(1, 4, 1, BF), {3}, BF);
  check(rand({2, 2}, F16), {2, 2}, F16);
  check(randn({3}, F64), {3}, F64);
  check(randint(0, 10, {4}, I32), {4}, I32);
  check(bernoulli({4}, 0.5, U8), {4}, U8);
  check(dropout(input({4, 2}, BF), 0.3), {4, 2}, BF);
  const Tensor x = input({4});
  CHECK(dropout(x, 0.3, false).node() == x.node());
}

TEST_CASE("infer: two tensors promote, numbers do not") {
  check(add(input({2, 1}, I32), input({3}, F16)), {2, 3}, F16);
  check(add(input({2}, F16), input({2}, BF)), {2}, F32);
  check(mul(input({2}, U8), input({2}, I8)), {2}, I32);
  check(add(input({2}, F16), 1.5), {2}, F16);
  check(add(input({2}, U8), 3), {2}, U8);
  check(add(input({2}, U8), 3.0), {2}, F32);
  check(add(input({2}, B), 1), {2}, I64);
  check(add(input({2}, B), input({2}, B)), {2}, B);
  CHECK(op_of(add(input({2}, B), input({2}, B))) == Op::LogicalOr);
  check(div(input({2}, I64), input({2}, I64)), {2}, F32);
  check(div(6, input({2}, I32)), {2}, F32);
  check(floor_divide(input({2}, I64), 3), {2}, I64);
  check(remainder(input({2}, I32), input({1}, I64)), {2}, I64);
  check(pow(input({2}, I32), 2), {2}, I32);
  check(pow(input({2}, I32), 0.5), {2}, F32);
  check(pow(2, input({2}, F64)), {2}, F64);
  check(lt(input({2}, F64), 3), {2}, B);
  check(eq(input({2, 1}, I32), input({1, 5}, F32)), {2, 5}, B);
  check(logical_and(input({2}, F32), input({2}, I8)), {2}, B);
  check(where(input({2, 1}, B), input({3}, F16), input({}, F32)), {2, 3}, F32);
  check(where(input({2}, B), 1, input({2}, BF)), {2}, BF);
  check(where(input({2}, B), input({2}, I32), 0.5), {2}, F32);
  check(clamp(input({2}, I32), 0, 5), {2}, I32);
  check(add(input({0, 3}), input({1, 3})), {0, 3});
  check(add(input({0}), input({1})), {0});
}

TEST_CASE("infer: a binary node sees equal shapes and dtypes") {
  const Tensor t = add(input({2, 1}, I32), input({3}, F64));
  for (const Node* in : t.node()->in()) {
    CHECK(in->shape == Shape{2, 3});
    CHECK(in->dtype == F64);
  }
  CHECK(op_of(Tensor(t.node()->input(1))) == Op::Expand);
  CHECK(op_of(Tensor((input({2}) + 1).node()->input(1))) == Op::Constant);
}

TEST_CASE("infer: one tensor") {
  for (const DType t : {F16, BF, F32, F64}) check(exp(input({2, 0}, t)), {2, 0}, t);
  for (const DType t : {B, U8, I8, I32, I64}) {
    check(exp(input({2}, t)), {2}, F32);
    check(gelu(input({2}, t)), {2}, F32);
    check(isnan(input({2}, t)), {2}, B);
  }
  for (const DType t : {U8, I8, I32, I64}) {
    check(neg(input({2}, t)), {2}, t);
    check(relu(input({2}, t)), {2}, t);
    check(square(input({2}, t)), {2}, t);
    const Tensor x = input({2}, t);
    CHECK(floor(x).node() == x.node());
  }
  check(logical_not(input({2}, F32)), {2}, B);
  check(cast(input({2}), I8), {2}, I8);
  check(mish(input({2}, F16)), {2}, F16);
  check(softplus(input({2}, F64)), {2}, F64);
  check(elu(input({}, BF)), {}, BF);
}

TEST_CASE("infer: one axis of a reduction needs no braces") {
  const Tensor x = zeros({2, 3, 4});
  for (const auto& reduce : {sum, prod, mean, amax, amin, all, any, norm, logsumexp}) {
    CHECK(reduce(x, 1, false).shape() == Shape{2, 4});
    CHECK(reduce(x, -1, true).shape() == Shape{2, 3, 1});
    CHECK(reduce(x, {0, 2}, false).shape() == Shape{3});
    CHECK(reduce(x, {}, false).shape() == Shape{});
  }
  CHECK(var(x, 1).shape() == Shape{2, 4});
  CHECK(stddev(x, 2).shape() == Shape{2, 3});
  CHECK(vector_norm(x, 1, 0).shape() == Shape{3, 4});
  CHECK(flip(x, 1).shape() == x.shape());
  CHECK(sum(x, 1, true).shape() == x.sum(1, true).shape());
}

TEST_CASE("infer: reductions") {
  const Tensor x = input({2, 3, 4});
  check(sum(x), {});
  check(sum(x, {}, true), {1, 1, 1});
  check(sum(x, {1}), {2, 4});
  check(sum(x, {-1, 0}, true), {1, 3, 1});
  check(sum(input({2}, U8)), {}, I64);
  check(sum(input({}, B)), {}, I64);
  check(prod(input({2, 2}, I32), {0}), {2}, I64);
  check(mean(input({2}, I32)), {}, F32);
  check(mean(input({2}, BF)), {}, BF);
  check(var(x, {0, 2}), {3});
  check(amax(input({2, 2}, B), {0}), {2}, B);
  check(amin(input({2, 2}, I8), {0}), {2}, I8);
  check(amax(input({0, 3}), {1}), {0});
  check(all(x, {0}), {3, 4}, B);
  check(any(input({0}, B)), {}, B);
  check(logsumexp(x, {1}, true), {2, 1, 4});
  check(norm(x), {});
  check(argmax(x, 1), {2, 4}, I64);
  check(argmin(x, 0, true), {1, 3, 4}, I64);
  check(argmax(input({}), 0), {}, I64);
  check(softmax(x, 1), {2, 3, 4});
  check(log_softmax(input({2, 3}, BF)), {2, 3}, BF);
  check(softmax(input({2, 0})), {2, 0});
}

TEST_CASE("infer: views") {
  const Tensor x = input({2, 3, 4});
  check(reshape(x, {6, -1}), {6, 4});
  check(reshape(input({0, 3}), {3, 0}), {3, 0});
  check(reshape(input({1}), {}), {});
  CHECK(reshape(x, {2, 3, 4}).node() == x.node());
  check(flatten(x, 1), {2, 12});
  check(flatten(input({})), {1});
  check(permute(x, {2, 0, 1}), {4, 2, 3});
  CHECK(permute(x, {0, 1, 2}).node() == x.node());
  check(transpose(x), {2, 4, 3});
  check(expand(input({3, 1}), {2, -1, 4}), {2, 3, 4});
  check(broadcast_to(input({}), {2, 2}), {2, 2});
  check(squeeze(input({2, 1}), 1), {2});
  CHECK(squeeze(x, 1).node() == x.node());
  check(unsqueeze(x, -1), {2, 3, 4, 1});
  check(select(x, 1, -1), {2, 4});
  check(flip(x, {0, 2}), {2, 3, 4});
  CHECK(op_of(reshape(ones({4}, I64), {2, 2})) == Op::Constant);
  CHECK(op_of(reshape(ones({4}), {2, 2})) == Op::Reshape);  // gradients may be requested
}

TEST_CASE("infer: slices clip as in NumPy") {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  const Tensor x = input({10});
  struct {
    std::int64_t start, end, step, length, first;
  } const rows[] = {{0, 10, 1, 10, 0},       {2, 7, 2, 3, 2},
                    {-3, highest, 1, 3, 7},  {7, 2, 1, 0, 0},
                    {0, 100, 3, 4, 0},       {-100, 5, 1, 5, 0},
                    {9, lowest, -1, 10, 9},  {8, 2, -3, 2, 8},
                    {100, lowest, -4, 3, 9}, {-1, -11, -1, 10, 9},
                    {2, 8, -1, 0, 0},        {5, 6, 7, 1, 5},
                    {10, highest, 1, 0, 0},  {0, highest, highest, 1, 0}};
  for (const auto& r : rows) {
    CAPTURE(r.start);
    CAPTURE(r.end);
    CAPTURE(r.step);
    const Tensor y = slice(x, 0, r.start, r.end, r.step);
    CHECK(y.size(0) == r.length);
    if (op_of(y) == Op::Slice) CHECK(y.node()->attrs.as<SliceAttrs>().start[0] == r.first);
  }
  check(slice(input({0, 2}), 0, 0, 5), {0, 2});
}

TEST_CASE("infer: movement") {
  const Tensor x = input({2, 3});
  check(concat({x, input({4, 3}, F64)}, 0), {6, 3}, F64);
  check(concat({x, input({2, 0})}, -1), {2, 3});
  check(concat(std::vector<Tensor>(1000, input({1, 2}))), {1000, 2});
  check(stack({x, x}, -1), {2, 3, 2});
  CHECK(split(input({7, 2}), 3).size() == 3);
  check(split(input({7, 2}), 3)[2], {1, 2});
  check(pad(x, {1, 2}), {2, 6});
  check(pad(x, {0, 0, 1, 0}), {3, 3});
  check(pad(x, {-1, 1, -1, -1}), {0, 3});
  check(gather(x, 1, input({2, 5}, I64)), {2, 5});
  check(gather(x, 1, input({1, 5}, I32)), {1, 5});
  check(scatter_add(x, 0, input({5, 3}, I64), input({5, 3})), {2, 3});
  check(scatter_add(x, 0, input({5, 2}, I64), input({6, 3})), {2, 3});
  check(scatter(x, 0, input({5, 2}, I64), input({6, 3})), {2, 3});
  check(scatter(input({2, 3}, U8), 1, input({2, 0}, I32), input({2, 3}, U8)), {2, 3}, U8);
  check(index_select(input({4, 3, 2}, I8), 1, input({5}, I64)), {4, 5, 2}, I8);
  check(one_hot(input({2, 2}, I32), 5), {2, 2, 5}, I64);
}

TEST_CASE("infer: contractions") {
  check(matmul(input({3}), input({3})), {});
  check(matmul(input({2, 3}), input({3})), {2});
  check(matmul(input({3}), input({3, 4})), {4});
  check(matmul(input({3}), input({5, 3, 4})), {5, 4});
  check(matmul(input({5, 2, 3}), input({3})), {5, 2});
  check(matmul(input({7, 1, 2, 3}), input({5, 3, 4})), {7, 5, 2, 4});
  check(matmul(input({2, 0}), input({0, 4})), {2, 4});
  check(linear(input({5, 2, 3}), input({4, 3}), input({4})), {5, 2, 4});
  check(linear(input({3}), input({4, 3})), {4});
  check(linear(input({2, 0}), input({4, 0})), {2, 4});
  check(conv2d(input({2, 3, 28, 27}), input({8, 3, 3, 3}), input({8})), {2, 8, 26, 25});
  Conv2dOptions options;
  options.stride = {2, 1};
  options.padding = {1, 2};
  options.dilation = {1, 2};
  options.groups = 2;
  check(conv2d(input({0, 4, 9, 9}), input({6, 2, 3, 3}), {}, options), {0, 6, 5, 9});
}

TEST_CASE("infer: pooling sizes are PyTorch's") {
  const Tensor x = input({2, 3, 7, 8});
  check(max_pool2d(x), {2, 3, 3, 4});
  Pool2dOptions o;
  o.kernel = {3, 3};
  o.stride = {2, 2};
  o.padding = {1, 1};
  check(max_pool2d(x, o), {2, 3, 4, 4});
  o.ceil_mode = true;
  check(max_pool2d(x, o), {2, 3, 4, 5});
  o.padding = {0, 0};
  check(avg_pool2d(x, o), {2, 3, 3, 4});
  o.kernel = {2, 2};
  o.stride = {3, 3};
  check(avg_pool2d(input({1, 1, 4, 7}), o),
        {1, 1, 2, 3});  // a window that starts outside is dropped
  o.dilation = {2, 2};
  check(max_pool2d(input({1, 1, 5, 5}), o), {1, 1, 2, 2});
}

TEST_CASE("infer: losses") {
  check(cross_entropy(input({4, 10}), input({4}, I64)), {});
  check(cross_entropy(input({4, 10, 3, 2}), input({4, 3, 2}, I32), Reduction::None, 0.1),
        {4, 3, 2});
  check(cross_entropy(input({4, 10}, BF), input({4, 10}, BF), Reduction::None), {4}, BF);
  check(nll_loss(input({4, 10}), input({4}, I64), Reduction::Sum), {});
  check(mse_loss(input({4, 2}), input({4, 2}), Reduction::None), {4, 2});
  check(huber_loss(input({4}), input({4})), {});
  check(smooth_l1_loss(input({4}), input({4}), Reduction::None, 0), {4});
  check(l1_loss(input({4}, F64), input({4}, F64)), {}, F64);
  check(binary_cross_entropy_with_logits(input({4}), input({4})), {});
}

TEST_CASE("infer: gradients have their inputs' shapes and dtypes") {
  const Tensor x = input({2, 3, 8, 8}), w = input({4, 3, 3, 3}, F64), b = input({4});
  const Tensor loss = mean(square(conv2d(cast(x, F64), w, cast(b, F64))));
  const Tensor wanted[] = {x, w, b, input({5})};
  const std::vector<Tensor> g = grad(loss, wanted);
  check(g[0], {2, 3, 8, 8});
  check(g[1], {4, 3, 3, 3}, F64);
  check(g[2], {4});
  check(g[3], {5});
  CHECK(op_of(g[3]) == Op::Constant);
  check(grad(x * 2, x, x), {2, 3, 8, 8});
}

TEST_CASE("infer: gradients stop where they should") {
  const Tensor x = input({3});
  CHECK(op_of(grad(sum(detach(x)), x)) == Op::Constant);
  CHECK(op_of(grad(sum(cast(gt(x, 0), F32)), x)) == Op::Constant);
  CHECK(op_of(grad(sum(floor(x)), x)) == Op::Constant);
  CHECK(op_of(grad(sum(x), x)) == Op::Constant);
  const Tensor y = x * 2;  // an inner node is an input like any other
  CHECK(op_of(grad(sum(y * x), y)) != Op::Constant);
}

TEST_CASE("infer: gradient nodes carry the label of the node that they differentiate") {
  const Tensor x = input({3});
  Tensor loss;
  {
    const Scope scope("layer");
    loss = sum(exp(x));
  }
  CHECK(label_text(grad(loss, x).node()->label) == "layer");
}

TEST_CASE("infer: a long chain is built, differentiated and freed without recursion") {
  const Tensor x = input({});
  Tensor y = x;
  for (int k = 0; k < 200000; ++k) y = sin(y);
  CHECK(op_of(grad(y, x)) == Op::Mul);
}

TEST_CASE("infer: a traced function draws from its own leaf") {
  const Tensor state = Tensor::from<std::int64_t>({1, 2}, {2});
  RandomTrace trace{state};
  Generator generator(7);
  {
    const RandomTraceGuard guard(&trace);
    CHECK(rand({3}, F32, generator).node()->input(0) == state.node());
    CHECK(randn({3}, F32, generator).node()->attrs.as<RandomAttrs>().offset == 1);
    CHECK_THROWS_AS(rand({3}),
                    Error);  // the process's own generator: a call could advance only one
  }
  CHECK(trace.draws == 2);
  CHECK(generator.counter() == 0);
  CHECK(rand({3}, F32, generator).node()->input(0) != state.node());
  CHECK(generator.counter() == 1);
}
