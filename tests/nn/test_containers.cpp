// ModuleList, ModuleDict, ParameterList, ParameterDict, named Sequential, and modules as text.
#include <doctest/doctest.h>

#include <sstream>

#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/nn.h>
#include <tenon/transformer.h>

using namespace tenon;

namespace {

template <class T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// Chooses a branch by name and mixes parameters of a list and a dictionary.
class Branches : public nn::ModuleOf<Branches> {
 public:
  Branches()
      : branches_(child("branches",
                        nn::ModuleDict({{"conv", nn::Linear(3, 3)},
                                        {"pool", nn::Sequential(nn::Linear(3, 3), nn::ReLU())}}))),
        scales_(child("scales", nn::ParameterList({ones({1}), full({1}, 2)}))),
        named_(child("named", nn::ParameterDict({{"shift", zeros({3})}}))) {}
  Tensor forward(const Tensor& x, const std::string& branch) const {
    return branches_[branch](x) * scales_[0] * scales_[1] + named_["shift"];
  }
  const nn::ModuleDict& branches() const { return branches_; }

 private:
  nn::ModuleDict branches_;
  nn::ParameterList scales_;
  nn::ParameterDict named_;
};

}  // namespace

TEST_CASE("containers: ModuleDict and parameter containers give PyTorch's names and learn") {
  const Branches net;
  std::vector<std::string> names;
  for (const auto& p : net.named_parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"branches.conv.weight", "branches.conv.bias",
                                          "branches.pool.0.weight", "branches.pool.0.bias",
                                          "scales.0", "scales.1", "named.shift"});
  const Tensor x = randn({2, 3}).compute();
  const Tensor y = net(x, "conv");
  const auto gradients = grad(sum(y), net.parameters());
  CHECK(any(gradients[0] != 0).item() != 0);
  CHECK(any(gradients[2] != 0).item() == 0);  // the other branch
  CHECK(gradients[6].to_vector<float>() == std::vector<float>{2, 2, 2});
  CHECK_THROWS_WITH_AS(net(randn({2, 4}), "pool"), doctest::Contains("branches.pool.0"),
                       ShapeError);
}

TEST_CASE("containers: look-up, order, and what is refused") {
  nn::ModuleDict dict;
  CHECK(dict.size() == 0);
  dict.insert("b", nn::ReLU());
  dict.insert("a", nn::Linear(2, 2));
  CHECK(dict.size() == 2);
  CHECK(dict.contains("a"));
  CHECK(!dict.contains("c"));
  CHECK(dict.children()[0].first == "b");
  CHECK(dict["a"].as<nn::Linear>() != nullptr);
  CHECK_THROWS_AS(dict.insert("a", nn::ReLU()), ValueError);
  CHECK_THROWS_AS(dict.insert("x.y", nn::ReLU()), ValueError);
  CHECK_THROWS_AS(dict.insert("", nn::ReLU()), ValueError);
  nn::ModuleDict near({{"encoder", nn::ReLU()}});
  CHECK_THROWS_WITH_AS(near["encoders"], doctest::Contains("did you mean 'encoder'?"), ValueError);

  nn::ParameterList list;
  const Tensor first = list.append(zeros({2}));
  CHECK(is_variable(first));
  CHECK(list[0].node() == first.node());
  CHECK_THROWS_AS(list[1], ValueError);
  CHECK_THROWS_AS(list[-1], ValueError);
  nn::ParameterDict values;
  const Tensor w = values.insert("w", ones({2}));
  CHECK(w.node() == values["w"].node());
  CHECK(values.contains("w"));
  CHECK(values.size() == 1);
  CHECK_THROWS_AS(values["v"], ValueError);
  CHECK_THROWS_AS(values.insert("w", ones({2})), ValueError);

  nn::Sequential named;
  named.append("conv1", nn::Linear(2, 3));
  named.append(nn::ReLU());
  CHECK(named.named_parameters()[0].name == "conv1.weight");
  CHECK(named.children()[1].first == "1");
  CHECK_THROWS_AS(named.append("conv1", nn::ReLU()), ValueError);
  // Handles share what is added.
  const nn::Sequential handle = named;
  named.append(nn::Tanh());
  CHECK(handle.size() == 3);
}

TEST_CASE("printing: a module tree without an input") {
  nn::Sequential net(nn::Conv2d(3, 8, 3, {.padding = 1}), nn::ReLU(),
                     nn::Sequential(nn::Flatten(), nn::Linear(32, 10)));
  CHECK(text_of(net) ==
        "Sequential(\n"
        "  (0): Conv2d(3, 8, kernel_size=(3, 3), padding=(1, 1))\n"
        "  (1): ReLU()\n"
        "  (2): Sequential(\n"
        "    (0): Flatten()\n"
        "    (1): Linear(32, 10)\n"
        "  )\n"
        ")\n"
        "parameters 554");
  net.freeze("0");
  CHECK(net.str().ends_with("parameters 554 (330 trainable)"));
  CHECK(nn::Linear(4, 2).str() == "Linear(4, 2)\nparameters 10");
  CHECK(text_of(nn::Sequential()) == "Sequential()\nparameters 0");
  const Branches branches;
  CHECK(branches.str() ==
        "Branches(\n"
        "  (branches): ModuleDict(\n"
        "    (conv): Linear(3, 3)\n"
        "    (pool): Sequential(\n"
        "      (0): Linear(3, 3)\n"
        "      (1): ReLU()\n"
        "    )\n"
        "  )\n"
        "  (scales): ParameterList(\n"
        "    (0): parameter float32[1]\n"
        "    (1): parameter float32[1]\n"
        "  )\n"
        "  (named): ParameterDict(\n"
        "    (shift): parameter float32[3]\n"
        "  )\n"
        ")\n"
        "parameters 29");
  const nn::ModuleList list({nn::Linear(2, 2), nn::Linear(2, 2), nn::ReLU()});
  CHECK(list.str() ==
        "ModuleList(\n"
        "  (0-1): 2 x Linear(2, 2)\n"
        "  (2): ReLU()\n"
        ")\n"
        "parameters 12");
  // Options and children of one module.
  const std::string attention = nn::MultiheadAttention(8, 2).str();
  CAPTURE(attention);
  CHECK(attention.starts_with("MultiheadAttention(8, "));
  CHECK(attention.find("\n  (out_proj): Linear(8, 8)\n") != std::string::npos);
}

TEST_CASE("printing: tensors, shapes, dtypes and devices") {
  const Tensor x = Tensor::from({1.f, 2.f}, {2});
  CHECK(text_of(x) == x.str());
  CHECK(text_of(Tensor()) == "[undefined tensor]");
  CHECK(text_of(Shape{2, 3}) == "[2, 3]");
  CHECK(text_of(Shape{}) == "[]");
  CHECK(text_of(DType::BFloat16) == "bfloat16");
  CHECK(text_of(Device{Device::Kind::Cuda, 1}) == "cuda:1");
}
