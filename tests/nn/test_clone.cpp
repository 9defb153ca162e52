// clone(): deep copies of modules and of variables.
#include <doctest/doctest.h>

#include <map>
#include <optional>

#include <tenon/compute.h>
#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/recurrent.h>
#include <tenon/transformer.h>

using namespace tenon;

namespace {

// Members of all kinds that hold handles.
class Mixed : public nn::Module {
 public:
  Mixed()
      : inner_(child("inner", nn::Linear(3, 3))),
        scale_(parameter("scale", full({1}, 2))),
        seen_(buffer("seen", zeros({}))),
        table_(linspace(0, 2, 3)) {
    for (int k = 0; k < 2; ++k)
      layers_.push_back(child("layer" + std::to_string(k), nn::Linear(3, 3)));
    by_name_.emplace("norm", child("norm", nn::BatchNorm1d(3)));
    gate_ = child("gate", nn::AnyModule(nn::Sequential(nn::Linear(3, 3), nn::Sigmoid())));
    step_ = [inner = inner_, scale = scale_](const Tensor& x) { return inner(x) * scale; };
  }
  Tensor forward(const Tensor& x) const override {
    update(seen_, seen_ + 1);
    Tensor y = step_(x) + table_;
    for (const nn::Linear& layer : layers_) y = tanh(layer(y));
    return (*gate_)(x)*by_name_.at("norm")(y);
  }

 private:
  nn::Linear inner_;
  Tensor scale_, seen_, table_;
  std::vector<nn::Linear> layers_;
  std::map<std::string, nn::BatchNorm1d> by_name_;
  std::optional<nn::AnyModule> gate_;
  std::function<Tensor(const Tensor&)> step_;
};

class Tied : public nn::Module {
 public:
  Tied()
      : words_(child("words", nn::Embedding(5, 4))),
        head_(child("head", nn::Linear(4, 5, {.bias = false, .tied_weight = words_.weight()}))) {}
  Tensor forward(const Tensor& x) const override { return head_(words_(x)); }
  const Tensor& head() const { return head_.weight(); }
  const Tensor& words() const { return words_.weight(); }

 private:
  nn::Embedding words_;
  nn::Linear head_;
};

// Two inputs, and a copy constructor that assigns.
class Two : public nn::ModuleOf<Two> {
 public:
  Two() : weight_(parameter("weight", randn({2, 2}))) {}
  Two(const Two& other) : nn::ModuleOf<Two>(other) { weight_ = other.weight_; }
  Two& operator=(const Two&) = default;
  Tensor forward(const Tensor& a, const Tensor& b) const { return matmul(a, weight_) + b; }
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;
};

void require_apart(const nn::ModuleBase& a, const nn::ModuleBase& b) {
  const StateDict first = a.state_dict(), second = b.state_dict();
  REQUIRE(first.size() == second.size());
  for (const auto& entry : first) {
    const auto& name = entry.first;
    const Tensor& tensor = entry.second;
    CAPTURE(name);
    REQUIRE(second.contains(name));
    CHECK(second.at(name).node() != tensor.node());
    CHECK(second.at(name).dtype() == tensor.dtype());
    CHECK(equal(second.at(name), tensor));
  }
}

void set_all(const nn::ModuleBase& net, double value) {
  for (const auto& [name, tensor] : net.state_dict())
    set_value(tensor, cast(full(tensor.shape(), value), tensor.dtype()));
}

}  // namespace

TEST_CASE("clone: a copy of a user's module has parameters of its own behind every member") {
  manual_seed(1);
  const Mixed net;
  const Tensor x = randn({4, 3}).compute();
  const Tensor before = net(x).compute();
  const Mixed copy = clone(net);
  require_apart(net, copy);
  CHECK(equal(copy(x), net(x)));
  // The copy does not follow the original, in no member.
  const Tensor of_copy = copy(x).compute();
  set_all(net, 0.25);
  CHECK(equal(copy(x), of_copy));
  CHECK(!equal(net(x), before));
  // Nor the original the copy: training moves only the copy.
  const Tensor of_net = net(x).compute();
  optim::Sgd sgd(copy, {.lr = 0.1});
  sgd.step(mean(square(copy(x))));
  CHECK(equal(net(x), of_net));
  CHECK(!equal(copy(x), of_copy));
  // Every parameter of the copy is reached by gradients.
  for (const Tensor& gradient : grad(sum(copy(x) * randn({4, 3})), copy.parameters()))
    CHECK(any(gradient != 0).item() != 0);
}

TEST_CASE("clone: buffers, modes, frozen parameters, precisions, names and labels are copied") {
  Mixed net;
  net.freeze("inner.weight");
  net.eval();
  net.set_precision(Precision::Bf16, "layer1");
  const Mixed copy = clone(net);
  CHECK(!copy.is_training());
  CHECK(copy.has_precision(Precision::Bf16));
  const auto names = [](const std::vector<nn::NamedTensor>& list) {
    std::vector<std::string> out;
    for (const nn::NamedTensor& item : list) out.push_back(item.name);
    return out;
  };
  CHECK(names(copy.named_parameters()) == names(net.named_parameters()));
  CHECK(names(copy.named_buffers()) == names(net.named_buffers()));
  CHECK(names(copy.named_trainable_parameters()) == names(net.named_trainable_parameters()));
  CHECK(copy.trainable_parameters().size() + 1 == copy.parameters().size());
  // Later changes are separate.
  net.unfreeze();
  net.train();
  CHECK(copy.trainable_parameters().size() + 1 == copy.parameters().size());
  CHECK(!copy.is_training());
  net(randn({4, 3})).compute();
  CHECK(copy.named_buffers()[0].tensor.item() == 0);
  CHECK(net.named_buffers()[0].tensor.item() == 1);
  // An error names the layer, as it does for the original.
  CHECK_THROWS_WITH_AS(copy(randn({4, 5})), doctest::Contains("inner"), ShapeError);
}

TEST_CASE("clone: tied weights stay tied in the copy, and are no longer those of the original") {
  const Tied net;
  const Tied copy = clone(net);
  CHECK(copy.head().node() == copy.words().node());
  CHECK(copy.head().node() != net.head().node());
  CHECK(copy.parameter_count() == 20);
  // A part of a network gets its own copy of a weight that it shares with the rest.
  const nn::Embedding words(5, 4);
  const nn::Linear head(4, 5, {.bias = false, .tied_weight = words.weight()});
  CHECK(clone(head).weight().node() != words.weight().node());
}

TEST_CASE("clone: the layers of the library, alone and in containers") {
  manual_seed(3);
  const Tensor x = randn({2, 4, 6, 6}).compute();
  const nn::Sequential net(nn::Conv2d(4, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::PReLU(),
                           nn::MaxPool2d(2),
                           nn::Sequential(nn::Flatten(), nn::Linear(36, 4), nn::LayerNorm({4})));
  const nn::Sequential copy = clone(net);
  require_apart(net, copy);
  CHECK(equal(copy(x), net(x)));
  set_all(net, 0);
  CHECK(any(copy(x) != 0).item() != 0);

  const nn::LSTM lstm(3, 5, {.num_layers = 2, .bidirectional = true});
  const nn::LSTM other = clone(lstm);
  const Tensor sequence = randn({7, 2, 3}).compute();
  const Tensor before = lstm(sequence).output.compute();
  set_all(lstm, 0);
  CHECK(equal(other(sequence).output, before));

  const nn::TransformerEncoderLayer encoder(8, 2, {.dropout = 0});
  const nn::TransformerEncoderLayer twin = clone(encoder);
  const Tensor tokens = randn({5, 2, 8}).compute();
  const Tensor encoded = encoder(tokens).compute();
  set_all(encoder, 0);
  CHECK(equal(twin(tokens), encoded));
}

TEST_CASE("clone: networks of a file and any module behind a handle") {
  manual_seed(4);
  for (const char* name : {"lenet5", "resnet20", "lstm"}) {
    CAPTURE(std::string(name));
    nn::AnyModule net = models::create(name);
    net.eval();
    const nn::AnyModule copy = clone(net);
    require_apart(net, copy);
    const models::Info info = models::info(name);
    Shape shape{2};
    for (const std::int64_t size : info.input) shape.push_back(size);
    const Tensor x = (info.takes_tokens() ? randint(0, 10, shape) : randn(shape)).compute();
    const Tensor before = net(x).compute();
    CHECK(equal(copy(x), before));
    set_all(net, 0);
    CHECK(equal(copy(x), before));
  }
  const nn::AnyModule any = Mixed();
  const nn::AnyModule copy = clone(any);
  REQUIRE(copy.as<Mixed>() != nullptr);
  CHECK(copy.as<Mixed>() != any.as<Mixed>());
  require_apart(*any.as<Mixed>(), *copy.as<Mixed>());
  const nn::AnyModule shared(std::make_shared<Mixed>());
  require_apart(shared, clone(shared));
  const Two pair;
  const Two twin = clone(pair);
  CHECK(twin.weight().node() != pair.weight().node());
  CHECK(equal(twin.weight(), pair.weight()));
}

TEST_CASE("clone: float64 parameters, empty modules, a clone of a clone, a part as a new child") {
  nn::Sequential net(nn::Linear(3, 2));
  net.to(DType::Float64);
  require_apart(net, clone(clone(net)));
  CHECK(clone(nn::ReLU()).parameter_count() == 0);
  CHECK(clone(nn::Sequential()).size() == 0);
  // The root of a clone can become a child under another name.
  nn::Sequential outer;
  outer.append(nn::Sequential(nn::Linear(3, 2)));
  nn::Sequential built;
  built.append("head", clone(outer[0]));
  CHECK(built.named_parameters()[0].name == "head.0.weight");
  CHECK_THROWS_WITH_AS(built(randn({1, 4})), doctest::Contains("head.0"), ShapeError);
  // A list's names are its own again.
  struct Lists : nn::Module {
    nn::ModuleList blocks = child("blocks", nn::ModuleList({nn::Linear(3, 3), nn::Linear(3, 3)}));
    Tensor forward(const Tensor& x) const override { return blocks[1](blocks[0](x)); }
  };
  const Lists lists;
  const nn::ModuleList copied = clone(lists.blocks);
  CHECK(copied.named_parameters()[0].name == "0.weight");
  CHECK_THROWS_WITH_AS(copied[1](randn({1, 4})), doctest::Contains("linear (1)"), ShapeError);
  require_apart(lists, clone(lists));
}

TEST_CASE("clone: what it cannot do is refused") {
  const nn::BatchNorm2d norm(3);
  const nn::BatchNorm& base = norm;
  (void)base;
  const nn::AnyModule pointed(
      std::shared_ptr<const nn::Module>(std::make_shared<nn::Linear>(2, 2)));
  CHECK_THROWS_WITH_AS(clone(pointed), doctest::Contains("pointer"), NotSupported);
  const nn::Linear net(2, 2);
  struct Derived : nn::Linear {
    Derived() : nn::Linear(2, 2) {}
  };
  const Derived derived;
  const nn::Linear& sliced = derived;
  CHECK_THROWS_WITH_AS(clone(sliced), doctest::Contains("base class"), ValueError);
  CHECK_THROWS_AS(compile([&](const std::vector<Tensor>& in) {
                    return std::vector<Tensor>{clone(net)(in[0])};
                  })({ones({1, 2})}),
                  ValueError);
  // After an error, copies are handles again.
  const nn::Linear handle = net;
  CHECK(handle.weight().node() == net.weight().node());
}

TEST_CASE("clone: a copied variable keeps its value and its gradient") {
  const Tensor w = variable(Tensor::from({1.f, 2.f, 3.f}, {3}), "w");
  const Tensor old = clone(w);
  set_value(w, zeros({3}));
  CHECK(old.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(grad(sum(clone(w) * 5), w).to_vector<float>() == std::vector<float>{5, 5, 5});
  const Tensor flags = variable(Tensor::from({true, false}, {2}));
  const Tensor kept = clone(flags);
  set_value(flags, zeros({2}, DType::Bool));
  CHECK(kept.to_vector<bool>() == std::vector<bool>{true, false});
  const Tensor x = ones({2});
  CHECK(clone(x).node() == x.node());
  CHECK_THROWS_AS(clone(Tensor()), ValueError);
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{clone(w) + in[0]}; });
  CHECK(CompiledFunction(f)({ones({3})})[0].to_vector<float>() == std::vector<float>{1, 1, 1});
}
