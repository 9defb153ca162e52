// Layers and options that PyTorch's fixtures do not cover: indices of maxima for every dtype,
// errors with names, descriptions, channel dropout, given embedding tables.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/transformer.h>

using namespace tenon;

namespace {

using Longs = std::vector<std::int64_t>;

Longs places(const ValuesAndIndices& y) { return y.indices.to_vector<std::int64_t>(); }

}  // namespace

TEST_CASE(
    "pooling: indices of maxima are the first ones, for every dtype, and NaN is the largest") {
  const Tensor x = Tensor::from<float>({1, 7, 7, 2, 7, 0, 3, 7, 5, 5, 5, 5}, {1, 1, 3, 4});
  for (const DType t : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                        DType::UInt8, DType::Int8, DType::Int32, DType::Int64}) {
    CAPTURE(static_cast<int>(t));
    const ValuesAndIndices y =
        max_pool2d_with_indices(cast(x, t), {.kernel = {2, 2}, .stride = {1, 1}});
    CHECK(y.values.dtype() == t);
    CHECK(places(y) == Longs{1, 1, 2, 4, 9, 7});
    const Tensor zeros_in = zeros({1, 1, 2, 2}, t);  // the smallest uint8
    CHECK(places(max_pool2d_with_indices(zeros_in, {.kernel = {2, 2}, .padding = {1, 1}})) ==
          Longs{0, 1, 2, 3});
    CHECK(max_pool2d_with_indices(zeros({0, 1, 2, 2}, t)).indices.shape() == Shape{0, 1, 1, 1});
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor with_nan = Tensor::from<float>({1, nan, 3, 9}, {1, 1, 4});
  CHECK(places(max_pool1d_with_indices(with_nan)) == Longs{1, 3});
  CHECK(places(adaptive_max_pool1d_with_indices(x[0][0], 3)) == Longs{1, 1, 2, 0, 2, 3, 0, 1, 2});
  CHECK_THROWS_WITH_AS(max_pool2d_with_indices(x[0][0]),
                       doctest::Contains("max_pool2d_with_indices"), ShapeError);
  CHECK_THROWS_AS(max_pool1d_with_indices(zeros({1, 1, 4}, DType::Bool)), DTypeError);
}

TEST_CASE("pooling: max_unpool refuses shapes and indices that do not fit") {
  const ValuesAndIndices y = max_pool2d_with_indices(randn({2, 3, 6, 8}));
  const Pool2dOptions o;
  CHECK(max_unpool2d(y.values, y.indices).shape() == Shape{2, 3, 6, 8});
  CHECK(max_unpool2d(y.values, y.indices, o, Pair{7, 9}).shape() == Shape{2, 3, 7, 9});
  CHECK_THROWS_WITH_AS(max_unpool2d(y.values, y.indices, o, Pair{8, 8}),
                       doctest::Contains("must be between 4 and 8"), ValueError);
  CHECK_THROWS_AS(max_unpool2d(y.values, y.indices[0]), ShapeError);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(max_unpool2d(y.values, y.indices, {.padding = {kHuge, kHuge}}), ShapeError);
  CHECK_THROWS_AS(max_unpool2d(y.values, y.indices, {.kernel = {kHuge, 2}}), ShapeError);
  CHECK_THROWS_AS(max_unpool2d(y.values, y.indices, {.stride = {kHuge / 2, 2}}), ShapeError);
  CHECK_THROWS_AS(max_unpool2d(y.values, y.indices + 100).compute(), ValueError);
  CHECK(max_unpool2d(zeros({0, 3, 2, 2}), zeros({0, 3, 2, 2}, DType::Int64)).shape() ==
        Shape{0, 3, 4, 4});
  CHECK_THROWS_AS(lp_pool2d(randn({1, 1, 4, 4}), 0), ValueError);
  CHECK_THROWS_AS(lp_pool1d(zeros({1, 1, 4}, DType::Int64), 2), DTypeError);
}

TEST_CASE("layers: invalid strides, paddings and dilations are refused at construction") {
  CHECK_THROWS_WITH_AS(nn::Conv2d(1, 1, 3, {.stride = 0}),
                       "Conv2d: the stride is 0, must be at least 1", ValueError);
  CHECK_THROWS_AS(nn::Conv2d(1, 1, 3, {.dilation = {1, 0}}), ValueError);
  CHECK_THROWS_AS(nn::Conv2d(1, 1, 3, {.padding = -1}), ValueError);
  CHECK_THROWS_AS(nn::Conv1d(1, 1, 3, {.stride = 0}), ValueError);
  CHECK_THROWS_AS(nn::Conv3d(1, 1, 3, {.dilation = 0}), ValueError);
  CHECK_THROWS_AS(nn::ConvTranspose2d(1, 1, 3, {.stride = 0}), ValueError);
  CHECK_THROWS_AS(nn::ConvTranspose2d(1, 1, 3, {.output_padding = -1}), ValueError);
  CHECK_THROWS_AS(nn::MaxPool2d(2, {.stride = -1}), ValueError);
  CHECK_THROWS_AS(nn::AvgPool1d(2, {.padding = -1}), ValueError);
  CHECK_NOTHROW(nn::MaxPool2d(2, {.stride = 0}));
}

TEST_CASE("pooling: a layer's description has every option that is not the default") {
  CHECK(nn::MaxPool2d({3, 2}, {.stride = 1, .padding = 1, .dilation = 2}).describe() ==
        "MaxPool2d(kernel_size=(3, 2), stride=(1, 1), padding=(1, 1), dilation=(2, 2))");
  CHECK(nn::MaxPool1d(3, {.dilation = 2}).describe() == "MaxPool1d(kernel_size=3, dilation=2)");
  CHECK(nn::AvgPool2d(2, {.stride = 2, .ceil_mode = true}).describe() ==
        "AvgPool2d(kernel_size=(2, 2), ceil_mode=true)");
}

TEST_CASE("embedding: padding begins as zeros, a table may be given, indices outside are refused") {
  const nn::Embedding drawn(5, 3, {.padding_index = -2});
  CHECK(sum(abs(drawn.weight()[3])).item() == 0);
  CHECK(sum(abs(drawn.weight()[2])).item() > 0);
  const Tensor table = randn({5, 3}).compute();
  const nn::Embedding given(5, 3, {}, {.weight = table});
  CHECK(equal(given.weight(), table));
  CHECK_THROWS_AS(nn::Embedding(4, 3, {}, {.weight = table}), ShapeError);
  CHECK_THROWS_AS(nn::Embedding(4, 3, {.padding_index = 4}), ValueError);
  CHECK(nn::Embedding(4, 3, {.padding_index = 1, .max_norm = 2}).describe() ==
        "Embedding(4, 3, padding_index=1, max_norm=2)");
  const Tensor index = Tensor::from<std::int64_t>({0, 9}, {2});
  CHECK_THROWS_AS(given(index).compute(), ValueError);
  CHECK_THROWS_AS(embedding_bag(index, table), ShapeError);
  const Tensor two = zeros({1, 2}, DType::Int64);
  CHECK_THROWS_AS(embedding_bag(two, table, {}, {}, zeros({1, 2})), ValueError);
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max})
    CHECK(equal(embedding_bag(zeros({2, 0}, DType::Int64), table, {}, {.mode = mode}),
                zeros({2, 3})));
}

TEST_CASE("embedding: a padding index is a number, an optional one, or options in braces") {
  const Tensor table = ones({5, 2}), index = Tensor::from<std::int64_t>({3, 1}, {2});
  const auto learns = [&](const Tensor& rows) {  // whether row 3 has a gradient
    return grad(sum(rows), table)[3][0].item() == 1;
  };
  CHECK(learns(embedding(index, table)));
  CHECK(learns(embedding(index, table, {})));
  CHECK(learns(embedding(index, table, std::nullopt)));
  CHECK(!learns(embedding(index, table, 3)));
  CHECK(!learns(embedding(index, table, {3})));
  CHECK(!learns(embedding(index, table, -2)));
  CHECK(!learns(embedding(index, table, std::optional<std::int64_t>(3))));
  CHECK(!learns(embedding(index, table, {.padding_index = 3})));
}

TEST_CASE("embedding: bags may be empty, in a row and at the end, and begin with 0") {
  const Tensor table = reshape(arange(1, 6, 1, DType::Float32), {5, 1}), index = arange(0, 5);
  const auto bags = [&](BagMode mode, const std::vector<std::int64_t>& offsets, bool last) {
    return embedding_bag(index, table, Tensor::from(offsets, Shape{std::ssize(offsets)}),
                         {.mode = mode, .include_last_offset = last});
  };
  const auto values = [&](BagMode mode, const std::vector<std::int64_t>& offsets, bool last) {
    return bags(mode, offsets, last).to_vector<float>();
  };
  using Values = std::vector<float>;
  CHECK(values(BagMode::Sum, {0, 0, 2, 2, 2, 5, 5}, false) == Values{0, 3, 0, 0, 12, 0, 0});
  CHECK(values(BagMode::Mean, {0, 0, 2, 2, 2, 5, 5}, false) == Values{0, 1.5, 0, 0, 4, 0, 0});
  CHECK(values(BagMode::Max, {0, 0, 2, 2, 2, 5, 5}, false) == Values{0, 2, 0, 0, 5, 0, 0});
  // Indices after the last offset belong to no bag.
  CHECK(values(BagMode::Sum, {0, 2, 2, 4}, true) == Values{3, 0, 7});
  CHECK(values(BagMode::Mean, {0, 2, 2, 4}, true) == Values{1.5, 0, 3.5});
  CHECK(values(BagMode::Max, {0, 2, 2, 4}, true) == Values{2, 0, 4});
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max}) {
    CHECK_THROWS_AS(bags(mode, {1, 3}, false).compute(), ValueError);
    CHECK_THROWS_AS(bags(mode, {0, 7}, false).compute(), ValueError);
    CHECK(bags(mode, {}, false).shape() == Shape{0, 1});
    const Tensor none = zeros({0}, DType::Int64);
    CHECK_THROWS_AS(
        embedding_bag(none, table, full({1}, 5, DType::Int64), {.mode = mode}).compute(),
        ValueError);
    CHECK(
        equal(embedding_bag(none, table, zeros({2}, DType::Int64), {.mode = mode}), zeros({2, 1})));
  }
}

TEST_CASE("embedding: offsets that do not increase from 0 to the end are refused") {
  const Tensor table = ones({5, 2}), index = arange(0, 5);
  const auto refuses = [&](const std::vector<std::int64_t>& offsets, const char* message) {
    for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max})
      for (const bool last : {false, true}) {
        const Tensor bags =
            embedding_bag(index, table, Tensor::from(offsets, {std::ssize(offsets)}),
                          {.mode = mode, .include_last_offset = last});
        CHECK_THROWS_WITH_AS(bags.compute(), doctest::Contains(message), ValueError);
      }
  };
  refuses({0, 3, 1, 5}, "embedding_bag (offsets must not fall): index -2 is out of range");
  refuses({0, 7}, "embedding_bag (offsets): index 7 is out of range");
  refuses({2, 3},
          "embedding_bag (offsets[0] must be 0): index 2 is out of range for axis 0 of size 1");
  const Scope scope("words");
  refuses({0, 3, 1}, "embedding_bag (words.offsets must not fall): index -2 is out of range");
}

TEST_CASE("embedding: rows outside all bags do not affect gradients, even NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor table = Tensor::from<float>({1, 2, 3, 4, nan, nan}, {3, 2});
  const auto learned = [&](const Tensor& index, const Tensor& offsets, const EmbeddingBagOptions& o,
                           const Tensor& weights) {
    const Tensor wanted[] = {table, weights};
    return grad(sum(embedding_bag(index, table, offsets, o, weights)), wanted);
  };
  using Values = std::vector<float>;
  // After the last bag: a NaN row with a NaN weight.
  std::vector<Tensor> g = learned(Tensor::from<std::int64_t>({0, 1, 2, 0}, {4}),
                                  Tensor::from<std::int64_t>({0, 2}, {2}),
                                  {.mode = BagMode::Sum, .include_last_offset = true},
                                  Tensor::from<float>({2, 3, 1, nan}, {4}));
  CHECK(g[0].to_vector<float>() == Values{2, 2, 3, 3, 0, 0});
  CHECK(g[1].to_vector<float>() == Values{3, 7, 0, 0});
  // The same for the padding index, in bags of equal length and with offsets.
  const EmbeddingBagOptions o{.padding_index = 2, .mode = BagMode::Sum};
  const Tensor index = Tensor::from<std::int64_t>({0, 1, 2, 1}, {2, 2});
  const Tensor weights = Tensor::from<float>({2, 3, nan, 5}, {2, 2});
  g = learned(index, {}, o, weights);
  CHECK(g[0].to_vector<float>() == Values{2, 2, 8, 8, 0, 0});
  CHECK(g[1].to_vector<float>() == Values{3, 7, 0, 7});
  g = learned(index.reshape({4}), Tensor::from<std::int64_t>({0, 2}, {2}), o, weights.reshape({4}));
  CHECK(g[0].to_vector<float>() == Values{2, 2, 8, 8, 0, 0});
  CHECK(g[1].to_vector<float>() == Values{3, 7, 0, 7});
}

TEST_CASE("embedding: the maximum of a padded bag is one of its own rows, even -infinity") {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor table = Tensor::from<float>({5, 5, -inf, 1, -inf, 2}, {3, 2});
  const Tensor index = Tensor::from<std::int64_t>({0, 1, 2, 0, 0, 0}, {2, 3});
  const Tensor bags = embedding_bag(index, table, {}, {.padding_index = 0, .mode = BagMode::Max});
  const Tensor learned = grad(sum(bags), table);
  CHECK(bags.to_vector<float>() == std::vector<float>{-inf, 2, 0, 0});
  CHECK(learned.to_vector<float>() == std::vector<float>{0, 0, 1, 0, 0, 1});
}

TEST_CASE("embedding: maxima of 10,000 bags with 100,000 indices, and their gradients") {
  constexpr std::int64_t kBags = 10000, kEach = 10, kPlaces = kBags * kEach;
  // Row k is k % 7: a bag's maximum occurs several times, and the first one gets the gradient.
  const Tensor table =
      cast(reshape(remainder(arange(0, kPlaces), 7), {kPlaces, 1}), DType::Float32);
  const Tensor out =
      embedding_bag(arange(0, kPlaces), table, arange(0, kPlaces, kEach), {.mode = BagMode::Max});
  const Tensor gradient = grad(sum(out), table);
  const std::vector<float> found = out.to_vector<float>(), learned = gradient.to_vector<float>();
  std::int64_t wrong = 0;
  for (std::int64_t bag = 0; bag < kBags; ++bag) {
    std::int64_t best = bag * kEach;
    for (std::int64_t k = best; k < (bag + 1) * kEach; ++k)
      if (k % 7 > best % 7) best = k;
    wrong += found[bag] != static_cast<float>(best % 7);
    for (std::int64_t k = bag * kEach; k < (bag + 1) * kEach; ++k)
      wrong += learned[k] != (k == best ? 1.F : 0.F);
  }
  CHECK(wrong == 0);
}

TEST_CASE("layers: instance norm and channel dropout state the shapes that they take") {
  const nn::InstanceNorm1d net(3, {.affine = true});
  CHECK(net(randn({3, 5})).shape() == Shape{3, 5});
  CHECK(net(zeros({0, 3, 5})).shape() == Shape{0, 3, 5});
  CHECK_THROWS_WITH_AS(net(randn({2, 4, 5})), doctest::Contains("InstanceNorm1d"), ShapeError);
  CHECK_THROWS_AS(net(randn({2, 3, 1})), ValueError);
  CHECK(nn::InstanceNorm2d(4, {.track_running_stats = true}).describe() ==
        "InstanceNorm2d(4, track_running_stats=true)");
  manual_seed(5);
  nn::Dropout2d drop(0.5);
  const Tensor y = drop(ones({4, 8, 3, 3})).compute();
  CHECK(equal(amax(y, {2, 3}), amin(y, {2, 3})));  // whole channels are dropped
  CHECK(any(y == 0).item() == 1);
  CHECK(any(y == 2).item() == 1);
  drop.eval();
  CHECK(equal(drop(y), y));
  CHECK_THROWS_AS(nn::Dropout1d()(y), ShapeError);
  CHECK(nn::ConvTranspose2d(2, 3, {2, 3}).describe() ==
        "ConvTranspose2d(2, 3, kernel_size=(2, 3))");
  const nn::ConvTranspose2d doubled(16, 8, 4, {.stride = 2, .padding = 1});
  CHECK(doubled.weight().shape() == Shape{16, 8, 4, 4});
  CHECK(doubled.bias().shape() == Shape{8});
  CHECK(doubled(zeros({1, 16, 5, 5})).shape() == Shape{1, 8, 10, 10});
  CHECK(nn::EmbeddingBag(4, 2, {.padding_index = 2}).describe() ==
        "EmbeddingBag(4, 2, padding_index=2, mode=mean)");
  CHECK_THROWS_AS(nn::Conv1d(3, 4, 2, {.groups = 2}), ValueError);
}

TEST_CASE("losses: loss objects have the options of the functions") {
  const Tensor logits = randn({4, 3}).compute(),
               target = Tensor::from<std::int64_t>({0, 2, -1, 1}, {4});
  const Tensor weight = Tensor::from<float>({1, 2, 3}, {3});
  const nn::CrossEntropyLoss loss{
      .label_smoothing = 0.1, .weight = weight, .ignore_index = -1, .reduction = Reduction::Sum};
  CHECK(loss(logits, target).item() ==
        cross_entropy(logits, target, {Reduction::Sum, 0.1, weight, -1}).item());
  const Tensor p = sigmoid(logits), yes = ones({4, 3}), share = weight / 6;
  CHECK(nn::NLLLoss{.weight = weight, .ignore_index = -1}(log_softmax(logits, 1), target).item() ==
        doctest::Approx(
            cross_entropy(logits, target, {.weight = weight, .ignore_index = -1}).item()));
  CHECK(nn::BCELoss{.weight = share}(p, yes).item() ==
        doctest::Approx(nn::BCEWithLogitsLoss{.weight = share}(logits, yes).item()));
  CHECK(nn::BCEWithLogitsLoss{.pos_weight = weight}(logits, yes).item() ==
        doctest::Approx(nn::BCELoss{.weight = weight}(p, yes).item()));
  CHECK(nn::MSELoss{.reduction = Reduction::None}(logits, logits).shape() == Shape{4, 3});
}

TEST_CASE("attention: keys added by options are visible to every query, with any mask") {
  const nn::MultiheadAttention net(8, 4,
                                   {.kv_heads = 2, .add_bias_kv = true, .add_zero_attn = true});
  const Tensor x = randn({5, 2, 8}).compute();
  const auto [y, weights] = net(x, x, x, nn::AttentionMask{.causal = true}, nn::HeadWeights::Each);
  CHECK(weights.shape() == Shape{2, 4, 5, 7});
  CHECK(amax(abs(sum(weights, {-1}) - 1)).item() < 1e-5);
  CHECK(amin(slice(weights, 3, 5, 7)).item() > 0);
  CHECK(weights[0][0][0][1].item() == 0);  // a key after the query
  CHECK(amax(abs(y - net(x, x, x, nn::AttentionMask{.causal = true}))).item() < 1e-5);
  CHECK(net(x[0], x[0], x[0]).shape() == Shape{2, 8});
}
