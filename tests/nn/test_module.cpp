// Modules: names, sharing, modes, loading by name, summaries, observers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/layers.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/shapes_only.h>

using namespace tenon;

namespace {

std::vector<std::string> names(const std::vector<nn::NamedTensor>& list) {
  std::vector<std::string> out;
  for (const auto& item : list) out.push_back(item.name);
  return out;
}

struct Looking : nn::Module {
  Tensor forward(const Tensor& x) const override {
    return scaled_dot_product_attention(x, ones({2, 4, 7, 8}), ones({2, 4, 7, 6}));
  }
};

// A user's own network, as in the documentation.
class Residual : public nn::Module {
 public:
  explicit Residual(std::int64_t width)
      : inner_(child("inner", nn::Linear(width, width))),
        scale_(parameter("scale", ones({1}))),
        seen_(buffer("seen", zeros({2}))) {}
  Tensor forward(const Tensor& x) const override { return x + scale_ * relu(inner_(x)); }
  std::string describe() const override { return "Residual"; }

 private:
  nn::Linear inner_;
  Tensor scale_, seen_;
};

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("nn: parameters have PyTorch's names, shapes and order") {
  const auto net = nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Tanh(),
                                  nn::Sequential(nn::Linear(4, 3, {.bias = false}), nn::ReLU()));
  CHECK(names(net.named_parameters()) ==
        std::vector<std::string>{"0.weight", "0.bias", "2.0.weight"});
  CHECK(net.parameters()[0].shape() == Shape{6, 1, 5, 5});
  CHECK(net.parameters()[2].shape() == Shape{3, 4});
  CHECK(net.parameter_count() == 156 + 12);
  CHECK(net.children().size() == 3);
  CHECK(net[0].as<nn::Conv2d>() != nullptr);
  CHECK(net[0].as<nn::Linear>() == nullptr);
  CHECK_THROWS_AS(net[3], ValueError);
}

TEST_CASE("nn: a moved-from module is still the same module") {
  nn::Sequential net(nn::Linear(3, 2));
  nn::ModuleList list({nn::Linear(3, 2)});
  nn::AnyModule any = nn::ReLU();
  const nn::Sequential other_net = std::move(net);
  const nn::ModuleList other_list = std::move(list);
  const nn::AnyModule other = std::move(any);
  // NOLINTBEGIN(bugprone-use-after-move): what is tested
  CHECK(net.size() == 1);
  CHECK(net(ones({1, 3})).shape() == Shape{1, 2});
  CHECK(list[0](ones({1, 3})).shape() == Shape{1, 2});
  CHECK(any(full({1}, -1)).item() == 0);
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("nn: a module that calls itself is refused") {
  struct Endless : nn::Module {
    Tensor forward(const Tensor& x) const override { return (*this)(x); }
  };
  const Endless endless;
  CHECK_THROWS_WITH_AS(endless(ones({2})), doctest::Contains("call itself"), ValueError);
  CHECK(nn::Identity()(ones({2})).numel() == 2);
}

namespace {

// A network whose second layer may be registered, or not.
struct TwoLayers : nn::Module {
  enum class Second { Forgotten, Registered, Tied };
  explicit TwoLayers(Second second) : a(child("a", nn::Linear(2, 2))) {
    if (second == Second::Registered) child("b", b);
    if (second != Second::Tied) return;
    tie("weight", b.weight());
    tie("bias", b.bias());
  }
  Tensor forward(const Tensor& x) const override { return b(a(x)); }
  nn::Linear a, b{2, 1};
};

struct ListOfLayers : nn::Module {
  explicit ListOfLayers(bool registers) {
    layers.append(nn::Linear(2, 2));
    if (registers) child("layers", layers);
  }
  Tensor forward(const Tensor& x) const override { return layers.size() == 0 ? x : layers[0](x); }
  nn::ModuleList layers;
};

}  // namespace

TEST_CASE("nn: a layer that learns and is not registered is refused at the first call") {
  const Tensor x = ones({1, 2});
  TwoLayers forgotten(TwoLayers::Second::Forgotten);
  CHECK_THROWS_WITH_AS(forgotten(x), doctest::Contains("Linear(2, 1), which is not registered"),
                       ValueError);
  forgotten.eval();  // does not reach the layer
  CHECK_THROWS_AS(forgotten(x), ValueError);
  CHECK_THROWS_AS(nn::Sequential(TwoLayers(TwoLayers::Second::Forgotten))(x), ValueError);
  CHECK(TwoLayers(TwoLayers::Second::Registered)(x).shape() == Shape{1, 1});
  CHECK(TwoLayers(TwoLayers::Second::Tied)(x).shape() == Shape{1, 1});
  CHECK_THROWS_AS(ListOfLayers(false)(x), ValueError);
  CHECK(ListOfLayers(true)(x).shape() == Shape{1, 2});
  // A network that must not learn, such as a teacher, need not be registered.
  forgotten.b.freeze();
  CHECK(forgotten(x).shape() == Shape{1, 1});
  forgotten.b.unfreeze();
  CHECK_THROWS_AS(forgotten(x), ValueError);
  forgotten.b.eval();
  CHECK(forgotten(x).shape() == Shape{1, 1});
  // Nor a layer without parameters, or a layer that another module has registered.
  struct Other : nn::Module {
    explicit Other(const nn::Linear& l) : layer(l) {}
    Tensor forward(const Tensor& y) const override { return nn::ReLU()(layer(y)); }
    nn::Linear layer;
  };
  const TwoLayers owner(TwoLayers::Second::Registered);
  CHECK(Other(owner.b)(x).shape() == Shape{1, 1});
}

TEST_CASE("nn: null pointers, empty functions and cycles are refused") {
  CHECK_THROWS_AS(nn::AnyModule(std::shared_ptr<const nn::Module>()), ValueError);
  CHECK_THROWS_AS(nn::CallObserver(nn::CallObserver::Callback()), ValueError);
  nn::Sequential a, b;
  CHECK_THROWS_AS(a.append(a), ValueError);
  b.append(a);
  CHECK_THROWS_AS(a.append(b), ValueError);
  CHECK(a.size() == 0);
  CHECK(b(ones({1})).item() == 1);
}

TEST_CASE("nn: a copy is a handle to the same layer") {
  const nn::Linear layer(3, 2);
  nn::Linear same = layer;
  set_value(layer.weight(), full({2, 3}, 0.5));
  CHECK(same.weight().to_vector<float>() == std::vector<float>(6, 0.5f));
  same.eval();
  CHECK_FALSE(layer.is_training());
}

template <class M>
constexpr bool changes_a_constant_module() {
  return requires(const M& m, const StateDict& state) { m.train(); }
  || requires(const M& m) { m.eval(); }
  || requires(const M& m) { m.freeze(); }
  || requires(const M& m) { m.unfreeze(); }
  || requires(const M& m) { m.set_precision(Precision::Bf16); }
  || requires(const M& m, const StateDict& state) { m.load_state_dict(state); };
}
TEST_CASE("nn: a constant module keeps its mode, its weights and what is frozen") {
  static_assert(!changes_a_constant_module<nn::Linear>());
  static_assert(!changes_a_constant_module<nn::AnyModule>());
  const nn::Linear layer(3, 2);
  nn::Linear same = layer;  // another handle to the layer may change it
  same.train(false);
  CHECK_FALSE(layer.is_training());
}

TEST_CASE("nn: a user's module registers parameters, buffers and children") {
  const auto net = nn::Sequential(Residual(4), Residual(4));
  CHECK(names(net.named_parameters()) ==
        std::vector<std::string>{"0.scale", "0.inner.weight", "0.inner.bias", "1.scale",
                                 "1.inner.weight", "1.inner.bias"});
  CHECK(names(net.named_buffers()) == std::vector<std::string>{"0.seen", "1.seen"});
  CHECK(net(zeros({2, 4})).shape() == Shape{2, 4});
  CHECK(holds(message_of<ShapeError>([&] { net(zeros({2, 5})); }), "0.inner"));
}

TEST_CASE("nn: tied weights count once") {
  const nn::Linear layer(4, 4);
  const auto net = nn::Sequential(layer, layer);
  CHECK(net.named_parameters().size() == 2);
  CHECK(net.parameter_count() == 20);
}

TEST_CASE("nn: modes and freezing apply to all descendants") {
  auto net = nn::Sequential(nn::Linear(4, 4), nn::Dropout(0.5), nn::Linear(4, 2));
  net.eval();
  CHECK_FALSE(net[1].is_training());
  const Tensor x = rand({8, 4});
  CHECK(net(x).to_vector<float>() == net(x).to_vector<float>());
  net.train();
  CHECK(net[1].is_training());
  net.freeze("0");
  CHECK(names(net.named_trainable_parameters()) == std::vector<std::string>{"2.weight", "2.bias"});
  net.unfreeze("0.bias");
  CHECK(net.trainable_parameters().size() == 3);
  net.freeze();
  CHECK(net.trainable_parameters().empty());
  CHECK(holds(message_of<ValueError>([&] { net.freeze("2.wieght"); }), "did you mean '2.weight'"));
}

TEST_CASE(
    "nn: load_state_dict names missing, unexpected and misshapen tensors, and then writes "
    "nothing") {
  auto net = nn::Sequential(nn::Linear(3, 2));
  const std::vector<float> before = net.parameters()[0].to_vector<float>();
  StateDict good{{"0.weight", full({2, 3}, 1)}, {"0.bias", full({2}, 2, DType::Float64)}};
  StateDict misspelt = good;
  misspelt["0.wieght"] = misspelt["0.weight"];
  misspelt.erase("0.weight");
  const std::string text = message_of<ValueError>([&] { net.load_state_dict(misspelt); });
  CHECK(holds(text, "missing '0.weight' (near '0.wieght')"));
  CHECK(holds(text, "not in the model: '0.wieght'"));
  StateDict misshapen = good;
  misshapen["0.bias"] = zeros({5});
  CHECK(holds(message_of<ShapeError>([&] { net.load_state_dict(misshapen, false); }),
              "'0.bias' is [5] where the model has [2]"));
  CHECK(net.parameters()[0].to_vector<float>() == before);
  CHECK(net.load_state_dict(misspelt, false) == 1);
  CHECK(net.load_state_dict(good) == 2);
  CHECK(net.parameters()[1].to_vector<float>() == std::vector<float>{2, 2});
}

TEST_CASE("nn: names with dots and repeated names are refused") {
  struct Bad : nn::Module {
    explicit Bad(const std::string& name) {
      parameter("a", zeros({1})), parameter(name, zeros({1}));
    }
    Tensor forward(const Tensor& x) const override { return x; }
  };
  CHECK_THROWS_AS(Bad("a"), ValueError);
  CHECK_THROWS_AS(Bad("b.c"), ValueError);
  CHECK_THROWS_AS(Bad(""), ValueError);
  CHECK_THROWS_AS(nn::AnyModule(nn::ModuleList({nn::ReLU()}))(zeros({1})), NotSupported);
  CHECK_THROWS_AS(nn::Conv2d(3, 4, 3, {.groups = 2}), ValueError);
  CHECK_THROWS_AS(nn::Linear(0, 4), ValueError);
  CHECK_THROWS_AS(nn::Dropout(1.5), ValueError);
  CHECK(holds(message_of<ValueError>([] { nn::activation("rely"); }), "did you mean 'relu'"));
}

TEST_CASE("nn: a network without memory has a summary, also for tokens") {
  const ShapesOnly shapes;
  const nn::AnyModule vgg = models::create("vgg16");
  CHECK(vgg.parameters()[0].numel() == 64 * 3 * 9);
  const nn::ModuleSummary s = vgg.summary({2, 3, 224, 224});
  CHECK(s.parameters == 138357544);
  CHECK(s.multiply_adds == 2 * std::int64_t{15470264320});
  const nn::ModuleSummary t = models::create("gpt2:layers=2,heads=2,width=32,context=16")
                                  .summary(zeros({3, 16}, DType::Int64));
  CHECK(t.outputs == std::vector<Shape>{{3, 16, 50257}});
  CHECK(t.multiply_adds > 3 * 16 * 32 * 50257);
}

TEST_CASE("nn: a summary counts the products of attention and of transposed convolutions") {
  const ShapesOnly shapes;
  // For GPT-2's 1,024 tokens: linear layers and logits, then two attention products per layer.
  const nn::ModuleSummary gpt2 = models::create("gpt2").summary(zeros({1, 1024}, DType::Int64));
  CHECK(gpt2.multiply_adds ==
        std::int64_t{126496800768} + std::int64_t{12} * 2 * 1024 * 1024 * 768);
  CHECK(nn::ConvTranspose1d(2, 3, 3).summary({1, 2, 6}).multiply_adds == 2 * 6 * 3 * 3);
  CHECK(nn::ConvTranspose2d(2, 3, 3).summary({1, 2, 6, 6}).multiply_adds == 1944);
  CHECK(nn::ConvTranspose3d(2, 3, 3).summary({1, 2, 6, 6, 6}).multiply_adds == 2 * 216 * 3 * 27);
  // 5 queries attend to 7 keys.
  CHECK(Looking().summary({2, 4, 5, 8}).multiply_adds == 2 * 4 * 5 * 7 * (8 + 6));
}

TEST_CASE("nn: layers of a list have the same names in a summary and in files") {
  for (const char* name :
       {"gpt2:layers=2,heads=1,width=8,context=4", "bert:layers=2,heads=1,width=8,context=4"}) {
    const nn::AnyModule made = models::create(name);
    const nn::Module& net = *made.as<nn::Module>();
    std::vector<std::string> files = names(net.named_parameters());
    std::int64_t found = 0;
    for (const auto& row : net.summary(zeros({1, 4}, DType::Int64)).rows) {
      if (row.parameters == 0) continue;
      CAPTURE(row.path);
      CHECK(std::any_of(files.begin(), files.end(),
                        [&](const std::string& file) { return file.starts_with(row.path + "."); }));
      ++found;
    }
    CHECK(found > 8);
  }
  struct Nested : nn::Module {
    nn::ModuleList outer = nn::ModuleList();
    Nested() {
      nn::ModuleList inner;
      inner.append(nn::Linear(2, 2));
      outer = child("outer", nn::ModuleList());
      outer.append(inner);
      inner.append(nn::Linear(2, 2));
    }
    Tensor forward(const Tensor& x) const override {
      const auto& inner = *outer[0].as<nn::ModuleList>();
      return inner[1](inner[0](x));
    }
    std::string describe() const override { return "Nested"; }
  };
  const nn::ModuleSummary nested = Nested().summary({1, 2});
  REQUIRE(nested.rows.size() == 2);
  CHECK(nested.rows[0].path == "outer.0.0");
  CHECK(nested.rows[1].path == "outer.0.1");
}

TEST_CASE("nn: a summary counts parameters and multiply-adds, and has no side effects") {
  nn::AnyModule net = models::create("lenet5");
  net.train();
  const std::uint64_t counter = Generator::current().counter();
  const nn::ModuleSummary s = net.summary({1, 1, 28, 28});
  CHECK(s.parameters == 61706);
  CHECK(s.trainable == 61706);
  CHECK(s.multiply_adds == 416520);
  CHECK(s.rows.size() == 12);
  CHECK(s.rows[0].outputs == std::vector<Shape>{{1, 6, 28, 28}});
  CHECK(s.rows[0].multiply_adds == 117600);
  CHECK(s.rows[0].kind == "Conv2d(1, 6, kernel_size=(5, 5), padding=(2, 2))");
  CHECK(s.outputs == std::vector<Shape>{{1, 10}});
  CHECK(holds(s.str(), "61,706"));
  CHECK(net.is_training());
  CHECK(Generator::current().counter() == counter);
  CHECK(models::create("keras_cnn").summary({1, 1, 28, 28}).multiply_adds == 2794240);
}

TEST_CASE("nn: an observer sees every call with its path") {
  const auto net = nn::Sequential(nn::Linear(3, 3), nn::Sequential(nn::ReLU()));
  std::vector<std::string> paths;
  {
    nn::CallObserver watch([&](const std::string& path, const nn::ModuleBase&,
                               std::span<const Tensor>,
                               std::span<const Tensor>) { paths.push_back(path); });
    net(zeros({1, 3}));
  }
  net(zeros({1, 3}));
  CHECK(paths == std::vector<std::string>{"0", "1.0", "1", ""});
}

TEST_CASE("nn: initial values have the standard deviations of their formulas") {
  Generator g(7);
  auto spread = [](const Tensor& t) {
    double sum = 0, squares = 0, largest = 0;
    for (const float v : t.to_vector<float>())
      sum += v, squares += double(v) * v, largest = std::max(largest, std::abs(double(v)));
    const double n = static_cast<double>(t.numel());
    return std::array<double, 3>{sum / n, std::sqrt(squares / n - sum * sum / n / n), largest};
  };
  const Shape shape{64, 32, 3, 3};
  CHECK(nn::init::fans(shape) == std::pair<std::int64_t, std::int64_t>{288, 576});
  const auto torch_default =
      spread(nn::init::kaiming_uniform(shape, std::sqrt(5.0), nn::init::FanMode::In, g));
  CHECK(torch_default[2] <= 1 / std::sqrt(288.0));
  CHECK(torch_default[2] > 0.99 / std::sqrt(288.0));
  CHECK(spread(nn::init::kaiming_normal(shape, 0, nn::init::FanMode::In, g))[1] ==
        doctest::Approx(std::sqrt(2.0 / 288)).epsilon(0.02));
  CHECK(spread(nn::init::xavier_normal(shape, 2, g))[1] ==
        doctest::Approx(2 * std::sqrt(2.0 / 864)).epsilon(0.02));
  CHECK(spread(nn::init::xavier_uniform(shape, 1, g))[1] ==
        doctest::Approx(std::sqrt(2.0 / 864)).epsilon(0.02));
  CHECK(spread(nn::init::lecun_normal(shape, g))[1] ==
        doctest::Approx(std::sqrt(1.0 / 288)).epsilon(0.02));
  CHECK(std::abs(spread(nn::init::lecun_uniform(shape, g))[0]) < 1e-3);
  CHECK_THROWS_AS(nn::init::fans({3}), ShapeError);
  CHECK(holds(message_of<ValueError>([] {
                nn::init::by_name("kaiming_norml", {2, 2});
              }),
              "did you mean 'kaiming_normal'"));
  Generator a(5), b(5);
  CHECK(nn::Linear(4, 4, {.generator = a}).weight().to_vector<float>() ==
        nn::Linear(4, 4, {.generator = b}).weight().to_vector<float>());
}

TEST_CASE("models: parameter counts, sizes in the name, suggestions for misspelt names") {
  constexpr std::int64_t most = 30'000'000;  // larger networks take gigabytes
  for (const models::Info& info : models::list()) {
    if (info.parameters > most) continue;
    CAPTURE(info.name);
    CHECK(models::create(info.name).parameter_count() == info.parameters);
  }
  CHECK(models::info("lenet5").parameters == 61706);
  CHECK(models::info("keras_cnn").parameters == 93322);
  CHECK(models::info("fcn_r").parameters == 14205962);
  CHECK(models::info("mlp:784-300-10").parameters == 238510);
  CHECK(models::create("mlp:4-3-2").parameter_count() == 23);
  CHECK(models::create("mlp:4-3-2")(zeros({5, 1, 2, 2})).shape() == Shape{5, 2});
  CHECK(holds(message_of<ValueError>([] { models::create("lenet"); }), "did you mean 'lenet5'"));
  for (const char* bad : {"mlp:", "mlp:5", "mlp:5-", "mlp:-5", "mlp:5-x", "mlp:0-5", "mlp:5--5",
                          "mlp:99999999999999999999-5", "lenet5:3"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(models::create(bad), ValueError);
    CHECK_THROWS_AS(models::info(bad), ValueError);
  }
  CHECK_THROWS_AS(models::create("lenet5", {.activation = "relu"}), ValueError);
  CHECK_THROWS_AS(models::create("mlp", {.activation = "nonsense"}), ValueError);
}
