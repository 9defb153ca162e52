// Calls that the builders refuse, and the essential words of each message: op, layer, shapes,
// advice.
#include <doctest/doctest.h>

#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

constexpr DType B = DType::Bool, U8 = DType::UInt8, I64 = DType::Int64, F32 = DType::Float32,
                F64 = DType::Float64;

Tensor input(const Shape& shape, DType dtype = F32) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.numel()) * item_size(dtype));
  return Tensor::from_data(bytes.data(), shape, dtype);
}

}  // namespace

#define REFUSES(expression, Type, text) \
  CHECK_THROWS_WITH_AS(expression, doctest::Contains(text), Type)

TEST_CASE("errors: the layer is named") {
  const Scope outer("block"), inner("conv1");
  REFUSES(conv2d(input({1, 64, 8, 8}), input({128, 32, 3, 3})), ShapeError,
          "conv2d (block.conv1): input has 64 channels, weight [128, 32, 3, 3] takes 32");
  REFUSES(linear(input({2, 64}), input({10, 32})), ShapeError,
          "linear (block.conv1): input [2, 64] has 64 features, weight [10, 32] takes 32");
  REFUSES(add(input({2, 3}), input({4})), ShapeError, "add (block.conv1): shapes [2, 3] and [4]");
}

TEST_CASE("errors: creating tensors") {
  REFUSES(full({2}, 300, U8), ValueError, "the number 300 does not fit uint8");
  REFUSES(full({2}, 1.5, I64), ValueError, "int64 cannot represent 1.5");
  REFUSES(arange(0, 5, 0), ValueError, "arange: the step is 0");
  REFUSES(arange(0, 5, 0.5), DTypeError, "fractional");
  REFUSES(rand({2}, I64), DTypeError, "use randint");
  REFUSES(randint(3, 3, {2}), ValueError, "the range [3, 3) is empty");
  REFUSES(randint(0, std::int64_t{1} << 40, {2}), ValueError, "2^31");
  REFUSES(bernoulli({2}, 1.5), ValueError, "the probability 1.5 is outside [0, 1]");
  REFUSES(dropout(input({2}), -0.1), ValueError, "outside [0, 1]");
  REFUSES(dropout(input({2}, I64), 0.1), DTypeError, "takes a floating tensor, not int64");
}

TEST_CASE("errors: element-wise") {
  REFUSES(neg(input({2}, B)), DTypeError, "neg: does not take bool");
  REFUSES(sub(input({2}, B), input({2}, B)), DTypeError, "use logical_xor");
  REFUSES(floor(input({2}, B)), DTypeError, "floor");
  const Tensor texts = input({1, 2, 3, 4});
  REFUSES(scaled_dot_product_attention(texts, texts, texts, input({3, 3}, I64)), DTypeError,
          "the mask is int64, must be bool");
  REFUSES(pow(input({2}, I64), -1), ValueError, "int64 to the negative power -1");
  REFUSES(add(input({2}, U8), 256), ValueError, "add: the number 256 does not fit uint8");
  REFUSES(where(input({2}), input({2}), input({2})), DTypeError,
          "the condition is float32, not bool");
  REFUSES(where(input({3}, B), input({2}), input({2})), ShapeError, "where: shapes [3] and [2]");
  REFUSES(softplus(input({2}), 0), ValueError, "beta is 0");
  REFUSES(add(Tensor{}, input({2})), ValueError, "add: tensor 1 of 2 has no value");
  REFUSES(matmul(input({2, 2}), Tensor{}), ValueError, "tensor 2 of 2 has no value");
  REFUSES(neg(Tensor{}), ValueError, "never assigned");
}

TEST_CASE("errors: reductions and axes") {
  REFUSES(sum(input({2, 3}), {2}), ShapeError, "sum: axis 2 is outside [-2, 1]");
  REFUSES(mean(input({2, 3}), {0, -2}), ShapeError, "mean: axis -2 is given twice");
  REFUSES(amax(input({2, 0})), ShapeError, "amax: no elements to choose from in [2, 0]");
  REFUSES(argmax(input({2, 0})), ShapeError,
          "argmax: no elements to choose from on axis -1 of [2, 0]");
  REFUSES(argmin(input({0, 3}), 0), ShapeError,
          "argmin: no elements to choose from on axis 0 of [0, 3]");
  REFUSES(softmax(input({2}), 1), ShapeError, "softmax: axis 1");
  REFUSES(softmax(input({}), 1), ShapeError, "softmax: axis 1");
  REFUSES(sort(input({}), 1), ShapeError, "sort: axis 1 is outside [-1, 0] for a scalar");
  REFUSES(topk(input({}), 1, 2), ShapeError, "topk: axis 2 is outside [-1, 0] for a scalar");
}

TEST_CASE("errors: shapes") {
  REFUSES(reshape(input({2, 3}), {4, -1}), ShapeError, "[2, 3] has 6 elements");
  REFUSES(reshape(input({2, 3}), {std::int64_t{1} << 62, 4, -1}), ShapeError, "2^59 elements");
  REFUSES(repeat(input({3, 3}), {std::int64_t{1} << 62, 1}), ShapeError, "exceed int64");
  REFUSES(repeat_interleave(input({3}), std::int64_t{1} << 62, 0), ShapeError, "exceed int64");
  const std::int64_t huge = std::int64_t{1} << 61;
  REFUSES(split(input({4}), Ints{huge, huge, huge, huge}, 0), ShapeError, "2^59");
  REFUSES(reshape(input({2, 3}), {-3, -1}), ShapeError, "negative size -3");
  REFUSES(reshape(input({2, 3}), {-1, -1}), ShapeError, "more than one size is -1");
  REFUSES(reshape(input({2, 3}), {5}), ShapeError, "reshape: [2, 3] has 6 elements, [5] has 5");
  REFUSES(reshape(input({0, 3}), {0, -1}), ShapeError, "reshape");
  REFUSES(permute(input({2, 3}), {0}), ShapeError, "1 axes given for a tensor of rank 2");
  REFUSES(permute(input({2, 3}), {0, 0}), ShapeError, "given twice");
  REFUSES(expand(input({2, 3}), {2, 4}), ShapeError, "expand: [2, 3] does not broadcast to [2, 4]");
  REFUSES(expand(input({2, 3}), {3}), ShapeError, "has more axes than [3]");
  REFUSES(expand(input({3}), {-1, 3}), ShapeError, "-1 keeps a size");
  REFUSES(slice(input({2}), 0, 0, 1, 0), ValueError, "slice: the step is 0");
  REFUSES(select(input({2}), 0, 2), ShapeError, "select: index 2 is outside axis 0 of [2]");
  REFUSES(split(input({2}), 0), ValueError, "split");
  REFUSES(flatten(input({2, 3}), 1, 0), ShapeError, "comes after");
  Tensor deep = input({1, 1, 1, 1, 1, 1, 1, 1});
  REFUSES(unsqueeze(deep, 0), ShapeError, "at most 8");
}

TEST_CASE("errors: movement") {
  REFUSES(concat({}), ValueError, "concat: no tensors given");
  REFUSES(concat({input({2, 3}), input({2, 4})}, 0), ShapeError,
          "concat: shapes [2, 3] and [2, 4] differ on an axis other than 0");
  REFUSES(concat({input({2}), input({2, 4})}, 0), ShapeError, "concat");
  REFUSES(stack({input({2}), input({3})}), ShapeError, "stack: shapes [2] and [3]");
  REFUSES(pad(input({2}), {1}), ShapeError, "pad: 1 numbers");
  REFUSES(pad(input({2}), {0, 0, 0, 0}), ShapeError, "pad: 4 numbers");
  REFUSES(pad(input({2}), {-2, -1}), ShapeError, "crops more");
  REFUSES(pad(input({2}, U8), {1, 1}, -1), ValueError, "does not fit uint8");
  REFUSES(gather(input({2, 3}), 0, input({2, 3})), DTypeError,
          "the index is float32; cast it to int64");
  REFUSES(gather(input({2, 3}), 0, input({2}, I64)), ShapeError, "the same rank");
  REFUSES(gather(input({2, 3}), 0, input({2, 4}, I64)), ShapeError, "larger");
  REFUSES(scatter_add(input({2}), 0, input({2}, I64), input({2}, F64)), DTypeError,
          "updates of float64");
  REFUSES(scatter(input({2}), 0, input({2}, I64), input({2}, F64)), DTypeError,
          "updates of float64");
  REFUSES(scatter(input({2}), 0, input({3}, I64), input({2})), ShapeError,
          "is larger than updates");
  REFUSES(index_select(input({2}), 0, input({1, 2}, I64)), ShapeError, "the index is a vector");
  REFUSES(one_hot(input({2}), 3), DTypeError, "one_hot: the index is float32");
}

TEST_CASE("errors: contractions") {
  REFUSES(matmul(input({2, 3}), input({4, 5})), ShapeError,
          "matmul: [2, 3] and [4, 5] do not multiply: 3 columns meet 4 rows");
  REFUSES(matmul(input({}), input({4})), ShapeError, "use mul");
  REFUSES(matmul(input({2, 2, 3}), input({3, 3, 5})), ShapeError, "matmul: shapes [2] and [3]");
  REFUSES(matmul(input({2, 2}, B), input({2, 2}, B)), DTypeError,
          "takes floating tensors, not bool");
  REFUSES(linear(input({2, 3}), input({4, 3}), input({3})), ShapeError,
          "linear: the bias is [3], the output has 4 features");
  REFUSES(linear(input({2, 3}), input({3})), ShapeError, "weight must be [out, in]");
  REFUSES(conv2d(input({8, 8}), input({4, 3, 3, 3})), ShapeError,
          "conv2d: input must be [N, C, H, W] or [C, H, W], not [8, 8]");
  REFUSES(conv2d(input({1, 3, 8, 8}), input({4, 3, 9, 3})), ShapeError,
          "the kernel covers 9 pixels, the padded input has 8");
  Conv2dOptions o;
  o.groups = 2;
  REFUSES(conv2d(input({1, 4, 8, 8}), input({3, 2, 3, 3}), {}, o), ShapeError,
          "3 output channels do not divide into 2 groups");
  REFUSES(conv2d(input({1, 4, 8, 8}), input({4, 4, 3, 3}), {}, o), ShapeError,
          "takes 8 in 2 groups");
  o.stride = {0, 1};
  REFUSES(conv2d(input({1, 4, 8, 8}), input({4, 2, 3, 3}), {}, o), ValueError, "stride 0 x 1");
  REFUSES(conv_transpose2d(input({1, 4, 8, 8}), input({4, 2, 3, 3}), {}, {.groups = 0}), ValueError,
          "conv_transpose2d: 0 groups");
}

TEST_CASE("errors: pooling") {
  REFUSES(max_pool2d(input({8, 8})), ShapeError,
          "max_pool2d: input must be [N, C, H, W] or [C, H, W]");
  REFUSES(max_pool2d(input({1, 3, 1, 8})), ShapeError,
          "the window covers 2 pixels, the padded input has 1");
  Pool2dOptions o;
  o.padding = {2, 0};
  REFUSES(avg_pool2d(input({1, 3, 8, 8}), o), ValueError, "padding 2 for a kernel of 2");
  o.padding = {0, 0};
  o.dilation = {2, 2};
  REFUSES(avg_pool2d(input({1, 3, 8, 8}), o), ValueError, "has no dilation");
}

TEST_CASE("errors: losses") {
  REFUSES(cross_entropy(input({}), input({}, I64)), ShapeError, "must be [C], [N, C] or");
  REFUSES(cross_entropy(input({4, 10}), input({5}, I64)), ShapeError,
          "cross_entropy: input is [4, 10], so the class indices must be [4], not [5]");
  REFUSES(cross_entropy(input({4, 10}), input({4}, U8)), DTypeError, "int64 or int32, not uint8");
  REFUSES(cross_entropy(input({4, 10}), input({4, 9})), ShapeError, "they must be equal");
  REFUSES(cross_entropy(input({4, 10}), input({4}, I64), Reduction::Mean, 2), ValueError,
          "label smoothing 2");
  REFUSES(mse_loss(input({4}), input({4, 1})), ShapeError, "mse_loss: input is [4], target [4, 1]");
  REFUSES(huber_loss(input({4}), input({4}), Reduction::Mean, 0), ValueError, "delta is 0");
}

TEST_CASE("errors: floating class indices are reported as such") {
  const Tensor logits = input({3, 4}), numbers = input({3});
  REFUSES(cross_entropy(logits, numbers), DTypeError,
          "class indices are int64 or int32, not float32: cast them");
  REFUSES(cross_entropy(logits, input({3, 5})), ShapeError, "they must be equal");
}

TEST_CASE("errors: effects and gradients") {
  const Tensor x = input({3});
  REFUSES(assign(x, x), ValueError, "the target is the result of data, not a variable");
  REFUSES(grad(x * 2, x), ShapeError, "the output is [3], not a scalar");
  REFUSES(grad(sum(x), input({2}, I64)), DTypeError, "input 0 is int64[2]");
  REFUSES(grad(sum(input({2}, I64)), x), DTypeError, "the output is int64");
  REFUSES(grad(x * 2, x, input({2})), ShapeError, "the seed is float32[2]");
}

TEST_CASE("errors: sizes that overflow, null pointers") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 61, kMost = INT64_MAX;
  REFUSES(zeros({kHuge}, F64), ShapeError, "more than 2^59 elements");
  const Tensor x = input({1, 1, 4, 4}), w = input({1, 1, 3, 3});
  REFUSES(conv2d(x, w, {}, {.padding = {kMost, kMost}}), ShapeError, "too large");
  REFUSES(conv2d(x, w, {}, {.padding = {kHuge * 2 + 5, 0}}), ShapeError, "too large");
  REFUSES(conv2d(x, w, {}, {.dilation = {kMost, 1}}), ShapeError, "too large");
  REFUSES(max_pool2d(x, {.kernel = {kMost, 2}, .padding = {kMost / 2, 1}}), ShapeError,
          "too large");
  REFUSES(avg_pool2d(x, {.stride = {kMost, 1}, .ceil_mode = true}), ShapeError, "too large");
  REFUSES(pad(input({4}), {kMost, kMost}), ShapeError, "too large");
  REFUSES(pad(input({4}), {INT64_MIN, 0}), ShapeError, "too large");
  REFUSES(Tensor::from_data(nullptr, {3}, F32), ValueError, "a null pointer was given");
  CHECK(Tensor::from_data(nullptr, {0}, F32).numel() == 0);
  const Tensor v = variable(input({3}));
  REFUSES(set_value(v, nullptr, 12), ValueError, "a null pointer was given");
}
