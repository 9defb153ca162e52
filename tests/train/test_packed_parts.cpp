// Samples of several inputs and targets: packing, a plain loop, and the Trainer.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/packed_parts.h>
#include <tenon/train.h>

using namespace tenon;

namespace {

// An image and a row of a table; a class and two numbers.
struct Layout {
  PackedParts inputs{{{"image", {1, 4, 4}, DType::UInt8}, {"row", {3}}}};
  PackedParts targets{{{"class", {}, DType::Int64}, {"place", {2}}}};
  PackedParts outputs{{{"scores", {3}}, {"place", {2}}}};
};

// Takes both inputs and gives both outputs.
class TwoHeads : public nn::Module {
 public:
  explicit TwoHeads(Layout layout)
      : layout_(std::move(layout)),
        of_image_(child("image", nn::Linear(16, 8))),
        of_row_(child("row", nn::Linear(3, 8))),
        scores_(child("scores", nn::Linear(8, 3))),
        place_(child("place", nn::Linear(8, 2))) {}
  Tensor forward(const Tensor& x) const override {
    const std::vector<Tensor> in = layout_.inputs.unpack(x);
    const Tensor pixels = flatten(in[0].to(DType::Float32), 1) / 255;
    const Tensor hidden = tanh(of_image_(pixels) + of_row_(in[1]));
    return layout_.outputs.pack({scores_(hidden), place_(hidden)});
  }

 private:
  Layout layout_;
  nn::Linear of_image_, of_row_, scores_, place_;
};

Tensor loss_of(const Layout& layout, const Tensor& output, const Tensor& target) {
  const std::vector<Tensor> out = layout.outputs.unpack(output),
                            want = layout.targets.unpack(target);
  return cross_entropy(out[0], want[0]) + mse_loss(out[1], want[1]);
}

struct Samples {
  explicit Samples(std::int64_t count) {
    manual_seed(5);
    image = randint(0, 256, {count, 1, 4, 4}).to(DType::UInt8).compute();
    row = randn({count, 3}).compute();
    kind = argmax(row, 1).compute();
    place = row.narrow(1, 0, 2).compute();
  }
  Tensor image, row, kind, place;
};

struct LossOnly : train::Task {
  std::string name() const override { return "loss_only"; }
};

}  // namespace

TEST_CASE("packed parts: parts come back with their values, shapes and dtypes") {
  const Samples s(5);
  const Layout layout;
  CHECK(layout.inputs.shape() == Shape{19});
  CHECK(layout.inputs.dtype() == DType::Float32);
  const Tensor packed = layout.inputs.pack({s.image, s.row});
  CHECK(packed.shape() == Shape{5, 19});
  const std::vector<Tensor> parts = layout.inputs.unpack(packed);
  REQUIRE(parts.size() == 2);
  CHECK(equal(parts[0], s.image));
  CHECK(parts[0].dtype() == DType::UInt8);
  CHECK(equal(parts[1], s.row));
  CHECK(equal(layout.inputs.unpack(packed, "row"), s.row));
  CHECK(equal(layout.targets.unpack(layout.targets.pack({s.kind, s.place}), "class"), s.kind));
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32}) {
    CAPTURE(name(dtype));
    const PackedParts one({{"a", {2, 0}, dtype}, {"b", {3}, dtype}, {"c", {}, dtype}});
    const Tensor b = randint(0, 2, {4, 3}).to(dtype), c = ones({4}, dtype);
    const std::vector<Tensor> back = one.unpack(one.pack({zeros({4, 2, 0}, dtype), b, c}));
    CHECK(back[0].shape() == Shape{4, 2, 0});
    CHECK(equal(back[1], b));
    CHECK(equal(back[2], c));
    CHECK(
        one.unpack(one.pack({zeros({0, 2, 0}, dtype), zeros({0, 3}, dtype), zeros({0}, dtype)}))[1]
            .shape() == Shape{0, 3});
  }
  // Gradients flow to floating parts.
  const PackedParts two({{"a", {2}}, {"b", {}}});
  const Tensor a = ones({3, 2}), b = ones({3});
  const Tensor of_b = two.unpack(two.pack({a * 2, b}), "b");
  CHECK(grad(sum(of_b * 5), b).to_vector<float>() == std::vector<float>{5, 5, 5});
  const PackedParts large({{"id", {}, DType::Int64}, {"x", {}, DType::Float64}}, DType::Float64);
  const Tensor id = Tensor::from<std::int64_t>({(1LL << 53) - 1, -5}, {2});
  CHECK(equal(large.unpack(large.pack({id, zeros({2}, DType::Float64)}), "id"), id));
}

TEST_CASE("packed parts: what does not fit is refused") {
  const PackedParts parts({{"a", {2}}, {"id", {}, DType::Int64}});
  const Tensor a = ones({3, 2}), id = zeros({3}, DType::Int64);
  CHECK_THROWS_WITH_AS(parts.pack({a}), doctest::Contains("2 parts"), ValueError);
  CHECK_THROWS_WITH_AS(parts.pack({a, zeros({2}, DType::Int64)}), doctest::Contains("'id'"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(parts.pack({ones({3, 4}), id}), doctest::Contains("'a'"), ShapeError);
  CHECK_THROWS_WITH_AS(parts.pack({a, zeros({3})}), doctest::Contains("'id'"), DTypeError);
  CHECK_THROWS_AS(parts.pack({Tensor(), id}), ShapeError);
  const Tensor big = Tensor::from<std::int64_t>({0, 16777217, 1}, {3});
  CHECK_THROWS_WITH_AS(parts.pack({a, big}), doctest::Contains("Float64"), ValueError);
  CHECK_THROWS_AS(parts.unpack(ones({3, 4})), ShapeError);
  CHECK_THROWS_AS(parts.unpack(ones({3})), ShapeError);
  CHECK_THROWS_WITH_AS(parts.unpack(ones({3, 3}), "ids"), doctest::Contains("did you mean 'id'?"),
                       ValueError);
  CHECK_THROWS_AS(PackedParts(std::vector<Part>{}), ValueError);
  CHECK_THROWS_AS(PackedParts(std::vector<Part>{{"", {}}}), ValueError);
  CHECK_THROWS_AS(PackedParts({{"a", {}}, {"a", {}}}), ValueError);
  CHECK_THROWS_AS(PackedParts({{"a", {}, DType::Float64}}), ValueError);
  CHECK_THROWS_AS(PackedParts({{"a", {}}}, DType::Int64), ValueError);
}

TEST_CASE("packed parts: a loader and the Trainer train a network of two inputs and two outputs") {
  const Samples s(96), t(32);
  const Layout layout;
  const auto set = [&](const Samples& of) {
    return data::from_tensors(layout.inputs.pack({of.image, of.row}).compute(),
                              layout.targets.pack({of.kind, of.place}).compute());
  };
  data::Loader loader(set(s), {.batch = 16, .seed = 1}),
      test(set(t), {.batch = 10, .shuffle = false});
  data::Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(layout.inputs.unpack(batch.input, "image").shape() == Shape{16, 1, 4, 4});
  CHECK(layout.targets.unpack(batch.target, "class").dtype() == DType::Int64);

  manual_seed(1);
  const TwoHeads net(layout);
  optim::Adam adam(net, {.lr = 0.02});
  train::TrainOptions o;
  o.epochs = 30;
  o.task = std::make_shared<LossOnly>();
  const nn::Loss loss = [layout](const Tensor& output, const Tensor& target) {
    return loss_of(layout, output, target);
  };
  const train::TrainResult result = train::Trainer(net, loss, adam, o).fit(loader, test);
  CHECK(*result.epochs.back().validation_loss < 0.4 * *result.epochs.front().validation_loss);
  const Tensor scores = layout.outputs.unpack(net(layout.inputs.pack({t.image, t.row})), "scores");
  CHECK(mean(cast(eq(argmax(scores, 1), t.kind), DType::Float32)).item() > 0.8);
}
