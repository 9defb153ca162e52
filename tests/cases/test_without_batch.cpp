// Convolutions, pooling and classification losses of one sample without a batch axis: the same
// values and gradients as a batch of one.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/ops.h>
#include <tenon/pooling.h>
#include <tenon/pooling_layers.h>

using namespace tenon;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed) {
  Generator data(seed);
  return randn(shape, DType::Float32, &data).eval();
}

/// f of x and of a batch with only x: values, and gradients of a weighted sum.
void check_same(const char* name, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  CAPTURE(name);
  const Tensor one = f(x), batch = f(unsqueeze(x, 0));
  REQUIRE(one.rank() + 1 == batch.rank());
  REQUIRE(batch.size(0) == 1);
  CHECK(one.to_vector<float>() == batch.to_vector<float>());
  const Tensor weights = random(one.shape(), 9);
  const auto slope = [&](const Tensor& y) { return grad(sum(y * weights), std::vector{x})[0]; };
  CHECK(slope(f(x)).to_vector<float>() == slope(f(unsqueeze(x, 0))).to_vector<float>());
}

}  // namespace

TEST_CASE("without a batch: convolutions") {
  const Tensor row = random({4, 9}, 1), image = random({4, 9, 7}, 2),
               volume = random({4, 5, 6, 7}, 3), bias = random({6}, 4);
  check_same("conv1d", row, [&, w = random({6, 2, 3}, 5)](const Tensor& x) {
    return conv1d(x, w, bias, {.stride = 2, .padding = 1, .groups = 2});
  });
  check_same("conv2d", image, [&, w = random({6, 4, 3, 2}, 5)](const Tensor& x) {
    return conv2d(x, w, bias, {.stride = {2, 1}, .padding = {1, 0}});
  });
  check_same("conv3d", volume, [&, w = random({6, 4, 2, 3, 2}, 5)](const Tensor& x) {
    return conv3d(x, w, bias, {.padding = {1, 1, 0}});
  });
  check_same("conv_transpose1d", row, [&, w = random({4, 6, 3}, 5)](const Tensor& x) {
    return conv_transpose1d(x, w, bias, {.stride = 2, .output_padding = 1});
  });
  check_same("conv_transpose2d", image, [&, w = random({4, 3, 3, 2}, 5)](const Tensor& x) {
    return conv_transpose2d(x, w, bias, {.stride = {2, 2}, .padding = {1, 0}, .groups = 2});
  });
  check_same("conv_transpose3d", volume, [&, w = random({4, 6, 2, 3, 2}, 5)](const Tensor& x) {
    return conv_transpose3d(x, w, bias, {.stride = {2, 1, 1}, .output_padding = {1, 0, 0}});
  });
}

TEST_CASE("without a batch: pooling") {
  const Tensor row = random({3, 11}, 1), image = random({3, 8, 9}, 2),
               volume = random({3, 5, 6, 7}, 3);
  const Pool1dOptions one{.kernel = 3, .stride = 2, .padding = 1};
  const Pool2dOptions two{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
  const Pool3dOptions three{.kernel = {2, 3, 2}, .stride = {2, 1, 2}};
  check_same("max_pool1d", row, [&](const Tensor& x) { return max_pool1d(x, one); });
  check_same("avg_pool1d", row, [&](const Tensor& x) { return avg_pool1d(x, one); });
  check_same("max_pool2d", image, [&](const Tensor& x) { return max_pool2d(x, two); });
  check_same("avg_pool2d", image, [&](const Tensor& x) { return avg_pool2d(x, two); });
  check_same("avg_pool2d, divided by 5", image,
             [&](const Tensor& x) { return avg_pool2d(x, two, 5); });
  check_same("max_pool3d", volume, [&](const Tensor& x) { return max_pool3d(x, three); });
  check_same("avg_pool3d", volume, [&](const Tensor& x) { return avg_pool3d(x, three); });
  const auto same_places = [](const ValuesAndIndices& a, const ValuesAndIndices& b) {
    CHECK(a.values.rank() + 1 == b.values.rank());
    CHECK(a.values.to_vector<float>() == b.values.to_vector<float>());
    CHECK(a.indices.to_vector<std::int64_t>() == b.indices.to_vector<std::int64_t>());
  };
  same_places(max_pool1d_with_indices(row, one), max_pool1d_with_indices(unsqueeze(row, 0), one));
  same_places(max_pool2d_with_indices(image, two),
              max_pool2d_with_indices(unsqueeze(image, 0), two));
  same_places(max_pool3d_with_indices(volume, three),
              max_pool3d_with_indices(unsqueeze(volume, 0), three));
}

TEST_CASE("without a batch: other numbers of axes are refused") {
  const Tensor flat = random({8}, 1);
  CHECK_THROWS_AS(max_pool2d(flat), ShapeError);
  CHECK_THROWS_AS(avg_pool1d(flat), ShapeError);
  CHECK_THROWS_AS(conv2d(random({3, 4}, 1), random({2, 3, 1, 1}, 2)), ShapeError);
  CHECK_THROWS_AS(conv_transpose1d(flat, random({8, 2, 3}, 2)), ShapeError);
  CHECK_THROWS_AS(conv3d(random({3, 4, 4}, 1), random({2, 3, 1, 1, 1}, 2)), ShapeError);
}

TEST_CASE("unpooling layers: values return to the positions of their maxima") {
  const Tensor image = random({2, 3, 8, 6}, 1);
  const ValuesAndIndices pooled = max_pool2d_with_indices(image, {.kernel = {2, 2}});
  const nn::MaxUnpool2d unpool(2);
  CHECK(unpool.describe() == "MaxUnpool2d(kernel_size=(2, 2))");
  CHECK(unpool(pooled.values, pooled.indices).to_vector<float>() ==
        max_unpool2d(pooled.values, pooled.indices, {.kernel = {2, 2}}).to_vector<float>());

  const Tensor odd = random({2, 3, 9}, 2);
  const ValuesAndIndices of_row = max_pool1d_with_indices(odd, {.kernel = 2});
  CHECK(nn::MaxUnpool1d(2)(of_row.values, of_row.indices, std::int64_t{9}).shape() ==
        Shape{2, 3, 9});

  const Tensor volume = random({1, 2, 4, 4, 6}, 3);
  const ValuesAndIndices of_box = max_pool3d_with_indices(volume, {.kernel = {2, 2, 3}});
  const nn::MaxUnpool3d boxes({2, 2, 3});
  const Tensor back = boxes(of_box.values, of_box.indices);
  REQUIRE(back.shape() == volume.shape());
  CHECK(max_pool3d(back, {.kernel = {2, 2, 3}}).to_vector<float>() ==
        maximum(of_box.values, 0.0).to_vector<float>());
  CHECK_THROWS_AS(nn::MaxUnpool1d(0), ValueError);
}

TEST_CASE("without a batch: classification losses") {
  const Tensor x = random({7}, 1), weight = random({7}, 2) + 3,
               index = Tensor::from(std::vector<std::int64_t>{4}, {1}),
               shares = softmax(random({7}, 3), -1);
  const auto batch_of = [](const Tensor& t, const Tensor& like) {
    return like.rank() == 1 ? t : unsqueeze(t, 0);
  };
  for (const double smoothing : {0.0, 0.1}) {
    check_same("cross_entropy of a class", x, [&](const Tensor& logits) {
      const Tensor target = logits.rank() == 1 ? squeeze(index, 0) : index;
      return cross_entropy(logits, target, Reduction::None, smoothing);
    });
    check_same("cross_entropy of probabilities", x, [&](const Tensor& logits) {
      return cross_entropy(logits, batch_of(shares, logits), Reduction::None, smoothing);
    });
    check_same("cross_entropy with weights and a class left out", x, [&](const Tensor& logits) {
      const Tensor target = logits.rank() == 1 ? squeeze(index, 0) : index;
      return cross_entropy(logits, target,
                           {.reduction = Reduction::None,
                            .label_smoothing = smoothing,
                            .weight = weight,
                            .ignore_index = 2});
    });
  }
  check_same("nll_loss", x, [&](const Tensor& logits) {
    const Tensor target = logits.rank() == 1 ? squeeze(index, 0) : index;
    return nll_loss(log_softmax(logits, -1), target, Reduction::None);
  });
  const Tensor one = squeeze(index, 0);
  CHECK(cross_entropy(x, one).item() == cross_entropy(unsqueeze(x, 0), index).item());
  CHECK_THROWS_WITH_AS(cross_entropy(x, index), doctest::Contains("the class indices must be []"),
                       ShapeError);
  CHECK_THROWS_AS(cross_entropy(sum(x), one), ShapeError);
}
