// Network files: what layers and structures build, equality with the built-in networks, and error
// messages.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/optim.h>

using namespace tenon;

namespace {

models::NetworkFile file_of(const std::string& layers, const std::string& rest = "") {
  return {"x.toml", "input = [1, 8, 8]\nclasses = 3\nlayers = [\n" + layers + "\n]\n" + rest};
}

std::string names_of(const nn::AnyModule& net) {
  std::string out;
  for (const nn::NamedTensor& p : net.named_parameters())
    out += p.name + " " + p.tensor.shape().str() + "\n";
  for (const nn::NamedTensor& p : net.named_buffers())
    out += p.name + " " + p.tensor.shape().str() + "\n";
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.compute(), y = b.compute();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.data(), y.data(),
                     static_cast<std::size_t>(x.numel()) * item_size(x.dtype())) == 0;
}

void check_same_state(const nn::AnyModule& a, const nn::AnyModule& b) {
  const StateDict x = a.state_dict(), y = b.state_dict();
  REQUIRE(x.size() == y.size());
  for (const auto& [name, value] : x) {
    CAPTURE(name);
    CHECK(same_bits(value, y.at(name)));
  }
}

// Two samples; for tokens some are padding.
Tensor examples(const models::Info& info, std::int64_t classes) {
  Shape shape{2};
  for (const std::int64_t size : info.input) shape.push_back(size);
  const std::int64_t tokens = info.vocabulary > 0 && !info.masked ? info.vocabulary : classes;
  return info.takes_tokens() ? randint(0, tokens, shape).compute() : randn(shape).compute();
}

// One SGD step on random samples; returns the loss.
double step(const nn::AnyModule& net, const models::Info& info, std::int64_t classes) {
  manual_seed(5);
  const Tensor x = examples(info, classes);
  const Tensor scores = net(x);
  const Tensor flat = info.tokens ? flatten(scores, 0, 1) : scores;
  const Tensor loss = cross_entropy(flat, randint(0, classes, {flat.size(0)}).compute());
  optim::Sgd sgd(net, {.lr = 0.05, .momentum = 0.9});
  return sgd.step(loss).item();
}

// Small networks of every kind, so that the test is fast.
const char* const kSaid[] = {
    "lenet5",
    "lenet5_1998",
    "keras_cnn",
    "mlp:12-5-3",
    "alexnet_r",
    "resnet20:width=4",
    "resnet110:width=4",
    "resnet18:width=4",
    "resnet50:width=4",
    "vgg16:width=2",
    "vgg16_bn:width=2",
    "vgg16_head:width=2",
    "alexnet:width=2",
    "alexnet_s:width=5",
    "alexnet_2012:width=5",
    "fcn_r",
    "lstm",
    "keras_rnn:units=8",
    "gpt2:layers=2,heads=4,width=32,context=16",
    "inception_resnet_v2:width=2",
    "bert:layers=2,heads=4,width=32,context=16",
    "bert_classifier:layers=1,heads=2,width=16,context=8,vocabulary=30",
    "bert_spans:layers=1,heads=2,width=16,context=8,vocabulary=30",
    "gpt2:layers=2,heads=2,width=16,context=8,hidden=20,activation=quick_gelu,"
    "eps=0.001,dropout=0.2,attention_dropout=0.1,embedding_dropout=0.3",
    "gpt2:layers=1,heads=2,width=16,context=8,activation=relu,dropout=0.5",
    "bert:layers=1,heads=2,width=16,context=8,activation=quick_gelu,"
    "eps=0.001,dropout=0.2,attention_dropout=0.3",
    "bert_classifier:layers=1,heads=2,width=16,context=8,vocabulary=30,"
    "activation=gelu_tanh,eps=1e-05,dropout=0.3,head_dropout=0.5",
    "transformer:layers=2,heads=4,width=16,hidden=24"};

}  // namespace

TEST_CASE("network file: a built-in network and its file have the same bits") {
  for (const char* name : kSaid) {
    CAPTURE(name);
    const models::Info info = models::info(name);
    const std::int64_t classes = std::string(name) == "mlp:12-5-3"    ? 3
                                 : std::string(name) == "lenet5_1998" ? 10
                                                                      : 7;
    const models::NetworkFile file{"f.toml", models::toml(name, {.classes = classes})};
    manual_seed(1);
    nn::AnyModule page = models::create(name, {.classes = classes});
    manual_seed(1);
    nn::AnyModule read = models::create(file);
    CHECK(names_of(read) == names_of(page));
    CHECK(read.trainable_parameters().size() == page.trainable_parameters().size());
    check_same_state(page, read);
    const models::Info said = models::info(file);
    CHECK(said.input == info.input);
    CHECK(said.tokens == info.tokens);
    CHECK(said.pairs == info.pairs);
    CHECK(said.masked == info.masked);
    CHECK((said.vocabulary > 0) == (info.vocabulary > 0));
    CHECK(said.about == info.about);
    CHECK(said.rubbish_score == info.rubbish_score);
    CHECK(said.recipe.lr == info.recipe.lr);
    CHECK(said.recipe.data == info.recipe.data);
    CHECK(said.recipe.milestones == info.recipe.milestones);
    CHECK(step(page, info, classes) == step(read, info, classes));
    check_same_state(page, read);  // after the step, running statistics too
    page.eval();
    read.eval();
    manual_seed(2);
    const Tensor x = examples(info, classes);
    CHECK(same_bits(page(x), read(x)));
  }
}

TEST_CASE("network file: every built-in network has a file") {
  for (const models::Info& info : models::list()) {
    CAPTURE(info.name);
    const models::NetworkFile file{info.name, models::toml(info.name)};
    CHECK(models::info(file).parameters == info.parameters);
  }
}

TEST_CASE("network file: a chosen head and activation are written to the file") {
  for (const char* name : {"resnet18:width=4", "resnet20:width=4", "vgg16_bn:width=2",
                           "alexnet:width=2", "inception_resnet_v2:width=3",
                           "bert_classifier:layers=1,heads=2,width=16,context=8,vocabulary=30"}) {
    CAPTURE(name);
    const models::Options options{.classes = 4, .head = "8,relu,dropout=0.5"};
    manual_seed(1);
    const nn::AnyModule page = models::create(name, options);
    manual_seed(1);
    const nn::AnyModule read =
        models::create(models::NetworkFile{"f.toml", models::toml(name, options)});
    CHECK(names_of(read) == names_of(page));
    check_same_state(page, read);
  }
  const nn::AnyModule net = models::create(
      models::NetworkFile{"f.toml", models::toml("mlp:4-3-2", {.activation = "tanh"})});
  const Tensor x = randn({2, 4}).compute();
  const auto w = net.parameters();
  CHECK(same_bits(net(x), linear(tanh(linear(x, w[0], w[1])), w[2], w[3])));
}

TEST_CASE("network file: unnamed layers are numbered, named structures are modules") {
  const nn::AnyModule net = models::create(file_of(R"t(
    { conv2d = "width", kernel = 3, padding = 1 }, "relu",
    { repeat = 2, index = "k", layers = [
      { conv2d = "width * (k + 2)", kernel = [1, 3], padding = [0, 1], name = "c{k + 1}" } ] },
    { branches = { left = [ { conv2d = 2, kernel = 1 } ], right = [ "tanh" ] } },
    { residual = [ { conv2d = 6, kernel = 1, name = "in" } ],
      shortcut = { conv2d = 6, kernel = 1, name = "around" }, then = "relu", scale = 0.5 },
    { block = "last", units = 5 })t",
                                                   R"t([variables]
width = 2
[blocks.last]
bias = 1
layers = [ "flatten", { linear = "units + bias" }, { linear = "classes", name = "out" } ]
)t"));
  CHECK(names_of(net) ==
        "0.weight [2, 1, 3, 3]\n0.bias [2]\n"
        "c1.weight [4, 2, 1, 3]\nc1.bias [4]\nc2.weight [6, 4, 1, 3]\nc2.bias [6]\n"
        "left.0.weight [2, 6, 1, 1]\nleft.0.bias [2]\n"
        "in.weight [6, 8, 1, 1]\nin.bias [6]\naround.weight [6, 8, 1, 1]\naround.bias [6]\n"
        "7.1.weight [6, 384]\n7.1.bias [6]\n7.out.weight [3, 6]\n7.out.bias [3]\n");
  CHECK(net(zeros({5, 1, 8, 8})).shape() == Shape{5, 3});
}

TEST_CASE("network file: variables may be lists, and inputs and recipes expressions") {
  const models::NetworkFile file{"x.toml", R"t(input = ["channels[0]", 8, "2 * half"]
classes = 3
layers = [
  { repeat = "length(channels) - 1", layers = [
    { conv2d = "channels[i + 1]", kernel = "kernels[ i ]", name = "c{channels[i]}" } ] },
  "flatten", { linear = "classes" },
]
[variables]
half = 4
channels = [2, 4, "half + channels_more[1]"]
channels_more = [7, 2]
kernels = [3, 1]
[recipe]
lr = "1 / (2 * half)"
batch = "channels[2]"
)t"};
  const auto reordered = [&file](const std::string& from, const std::string& to) {
    models::NetworkFile out = file;
    out.text.replace(out.text.find(from), from.size(), to);
    return out;
  };
  // A variable sees those before it only.
  CHECK_THROWS_WITH_AS(models::info(file), doctest::Contains("no variable 'channels_more'"),
                       FormatError);
  const models::NetworkFile right =
      reordered("channels_more[1]\"]\nchannels_more = [7, 2]", "2\"]");
  const models::Info info = models::info(right);
  CHECK(info.input == Shape{2, 8, 8});
  CHECK(info.recipe.lr == 0.125);
  CHECK(info.recipe.batch == 6);
  CHECK(names_of(models::create(right)) ==
        "c2.weight [4, 2, 3, 3]\nc2.bias [4]\nc4.weight [6, 4, 1, 1]\nc4.bias [6]\n"
        "3.weight [3, 216]\n3.bias [3]\n");
  const auto says = [&right](const std::string& from, const std::string& to, const char* what) {
    models::NetworkFile wrong = right;
    wrong.text.replace(wrong.text.find(from), from.size(), to);
    CHECK_THROWS_WITH_AS(models::create(wrong), doctest::Contains(what), FormatError);
  };
  says("channels[i + 1]", "channels[i + 2]",
       "'channels' has 3 numbers, and [3] is out of range: the first is [0]");
  says("channels[i + 1]", "channels[0.5]", "[0.5] is out of range");
  says("channels[i + 1]", "channels[-1]", "[-1] is out of range");
  says("channels[i + 1]", "channels[1", "is neither a number nor an expression");
  says("channels[i + 1]", "channels", "'channels' is a list; write channels[0]");
  says("channels[i + 1]", "half[0]", "'half' is a number, not a list");
  says("channels[i + 1]", "chanels[0]", "did you mean 'channels'?");
  says("length(channels)", "length(half)", "length takes the name of a list, not 'half'");
  says("length(channels)", "length(channels + 1)", "is neither a number nor an expression");
  says("kernels = [3, 1]", "kernels = [3, true]", "variable 'kernels' is a boolean");
  says("batch = \"channels[2]\"", "batch = \"half / 8\"", "recipe: batch is 0.5");
}

TEST_CASE("network file: the layer \"activation\" applies the file's activation") {
  const auto with = [](const std::string& line) {
    return models::NetworkFile{"x.toml", line +
                                             "input = [4]\nclasses = 4\nlayers = [\n"
                                             "\"activation\" ]\n"};
  };
  const Tensor x = randn({3, 4}).compute();
  CHECK(same_bits(models::create(with("activation = \"tanh\"\n"))(x), tanh(x)));
  CHECK(same_bits(models::create(with("activation = \"gelu_tanh\"\n"))(x), gelu(x, true)));
  CHECK(
      same_bits(models::create(with("activation = \"quick_gelu\"\n"))(x), x * sigmoid(x * 1.702)));
  CHECK_THROWS_WITH_AS(
      models::create(with("activation = \"gelo\"\n")),
      doctest::Contains("line 1: 'activation': 'gelo' is not an activation; did you"), FormatError);
  CHECK_THROWS_WITH_AS(models::create(with("activation = 3\n")),
                       doctest::Contains("'activation' is an integer"), FormatError);
  CHECK_THROWS_WITH_AS(models::create(with("")),
                       doctest::Contains("line 4, layer 0 (activation): the layer \"activation\""),
                       FormatError);
}

TEST_CASE("network file: a printed network is its own file with the values of its name") {
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string resnet = models::toml("resnet34:width=8", {.classes = 7});
  has(resnet,
      "# resnet34:width=8 as a file: change it, then tenon train FILE.toml\n#\n"
      "# Residual networks of basic blocks for ImageNet");
  has(resnet, "\nname = \"resnet34:width=8\"\nabout = \"residual network of 34 layers");
  has(resnet, "\nclasses = 7\nvariables = { width = 8, depths = [3, 4, 6, 3] }\nlayers = [\n");
  has(resnet, "  { linear = \"classes\", name = \"fc\" },\n]\n\n[blocks.basic]\n");
  has(resnet, "lr = 0.0125                          # the paper's 0.1");
  for (const char* key : {"takes =", "parameters =", "[variants", "[with_head"})
    CHECK(resnet.find(key) == std::string::npos);
  has(models::toml("resnet20", {.head = "9,relu,dropout=0.5"}),
      "  \"global_avg_pool\",\n  { sequence = [\n    { linear = 9 },\n    \"relu\",\n"
      "    { dropout = 0.5 },\n    { linear = \"classes\" },\n  ], name = \"linear\" },\n]\n");
  const std::string head = models::toml("vgg16_head");
  has(head, "\nfreeze = [\"features\"]\nlayers = [\n");
  has(head, "    { linear = 256 },\n    \"relu\",\n    { linear = \"classes\" },\n");
  has(head, "epochs = 10\n");
  CHECK(head.find("init = [ { parameters") == std::string::npos);
  has(models::toml("vgg16"), "\ninit = [ { parameters = \"*.bias\", values = 0 } ]\nlayers");
  has(models::toml("vgg16_bn"),
      "width = 64\nnorm = 1                             # 1: batch normalization after "
      "every convolution\nconvolutions = [2, 2, 3, 3, 3]\n");
  has(models::toml("vgg16"), "norm = 0                             # 1: batch normalization");
  has(models::toml("mlp:9-4-3", {.activation = "tanh"}),
      "input = [9]\nclasses = 3\nactivation = \"tanh\"\nvariables = { hidden = [4] }\n");
  CHECK_THROWS_AS(models::toml("lenet5_1998", {.classes = 7}), ValueError);
  CHECK_THROWS_AS(models::toml("resnet18", {.head = "relo"}), ValueError);
  CHECK_THROWS_WITH_AS(models::create("resnet18", {.head = "8,dropout=2"}),
                       doctest::Contains("'dropout=2' is not a layer"), ValueError);
  CHECK_THROWS_AS(models::create("vgg16_head:width=1", {.head = "8"}), ValueError);
}

TEST_CASE("network file: structures compute the described result") {
  const nn::AnyModule net = models::create(models::NetworkFile{"x.toml", R"t(input = [6]
classes = 6
layers = [
  { residual = [ { scale = 3 } ], scale = 0.5, then = { scale = 2 } },
  { branches = [ [ { scale = 2 } ], [ "identity" ] ], join = "add" },
  { branches = [ [ { scale = 2 } ], [ "identity" ] ], join = "multiply" },
])t"});
  const Tensor x = randn({2, 6}).compute(), y = x * 1.5 + x, z = y * 2, w = z * 2 + z;
  CHECK(allclose(net(x), w * 2 * w));
  CHECK(net(reshape(x, {2, 2, 3})).shape() == Shape{2, 6});  // flattened, as for perceptrons
}

TEST_CASE("network file: linear acts on the last axis, also of [N, H, W, C]") {
  const nn::AnyModule net = models::create(
      models::NetworkFile{"x.toml",
                          "input = [8, 8, 3]\nclasses = 2\n"
                          "layers = [ { linear = 4 }, \"flatten\", { linear = \"classes\" } ]\n"});
  CHECK(names_of(net) == "0.weight [4, 3]\n0.bias [4]\n2.weight [2, 256]\n2.bias [2]\n");
  const StateDict state = net.state_dict();
  const Tensor x = randn({5, 8, 8, 3}).compute();
  const Tensor hidden = matmul(x, transpose(state.at("0.weight"), 0, 1)) + state.at("0.bias");
  CHECK(allclose(net(x), matmul(flatten(hidden, 1), transpose(state.at("2.weight"), 0, 1)) +
                             state.at("2.bias")));
}

TEST_CASE("network file: every kind of layer") {
  const auto gives = [](const std::string& input, const std::string& layers, bool tokens = false) {
    const models::NetworkFile file{"x.toml", "input = " + input + "\nclasses = 5\n" +
                                                 (tokens ? "tokens = true\n" : "") +
                                                 "layers = [\n" + layers + "\n]\n"};
    CAPTURE(layers);
    const models::Info info = models::info(file);
    Shape shape{3};
    for (const std::int64_t size : info.input) shape.push_back(size);
    const nn::AnyModule net = models::create(file);
    const Tensor y = net(tokens ? zeros(shape, DType::Int64) : randn(shape)).compute();
    CHECK(y.shape()[0] == 3);
    CHECK(y.size(-1) == 5);
    CHECK(net.parameter_count() == info.parameters);
  };
  gives("[2, 9]",
        R"t({ conv1d = 4, kernel = 3, stride = 2 }, "batch_norm1d", { conv1d = 4, kernel = 2,
    groups = 2, bias = false }, "flatten", { linear = 5, init = "xavier_uniform", bias_init = 0.5 })t");
  gives("[2, 5, 6, 7]", R"t({ conv3d = 4, kernel = 3, padding = [1, 0, 1], bias_init = 0 },
    "batch_norm3d", "global_avg_pool", { linear = 5 })t");
  gives("[4, 12, 12]",
        R"t({ group_norm = 2 }, { local_response_norm = 3 }, { max_pool2d = 3, stride = 2,
    padding = 1, ceil_mode = true }, { avg_pool2d = 2 }, { upsample2d = 2, mode = "linear" }, { pad2d = 1 },
    { adaptive_max_pool2d = 3 }, { adaptive_avg_pool2d = [2, 1] }, { dropout = 0.2 }, { reshape = [8] },
    "layer_norm", { rms_norm = 8 }, { linear = 5 }, "log_softmax")t");
  gives("[2, 9]", R"t({ conv_transpose1d = 4, kernel = 3, stride = 2, output_padding = 1 },
    { glu = 1 }, "hardswish", "flatten", { linear = 5 })t");
  gives("[4, 5, 6]", R"t({ conv_transpose2d = 6, kernel = [2, 3], stride = 2, groups = 2,
    bias = false, init = "xavier_normal" }, "selu", { celu = 0.5 }, "global_avg_pool", { linear = 5 })t");
  gives("[2, 3, 4, 5]",
        R"t({ conv_transpose3d = 3, kernel = 2, padding = [1, 0, 1], bias_init = 0 },
    "logsigmoid", "global_avg_pool", { linear = 5 })t");
  gives("[2, 29]", R"t({ max_pool1d = 3, stride = 2, padding = 1, dilation = 2, ceil_mode = true },
    { avg_pool1d = 2, count_include_pad = false, divisor = 3 }, { adaptive_max_pool1d = 4 },
    { adaptive_avg_pool1d = 1 }, "flatten", { linear = 5 })t");
  gives("[2, 9, 8, 7]", R"t({ max_pool3d = [1, 2, 3], stride = 1, padding = [0, 1, 1] },
    { avg_pool3d = 2, padding = 1, divisor = 5 }, { adaptive_max_pool3d = [3, 2, 2] },
    { adaptive_avg_pool3d = 1 }, "flatten", { linear = 5 })t");
  for (const char* name :
       {"relu", "relu6", "tanh", "scaled_tanh", "sigmoid", "gelu", "silu", "mish", "elu",
        "leaky_relu", "softplus", "softsign", "hardtanh", "hardsigmoid", "identity", "softmax"})
    gives("[5]", "\"" + std::string(name) + "\"");
  gives("[7]", R"t({ embedding = 8 }, "sinusoid_positions", { self_attention = 2, causal = true },
    { transformer_encoder_layer = 2, hidden = 16, norm_first = true, causal = true },
    { rnn = 6, nonlinearity = "relu" }, { gru = 6, bidirectional = true }, { lstm = 6, proj_size = 4 },
    { linear = "classes" })t",
        true);
  gives("[6, 4]", R"t({ positions = 9 }, { transpose = [1, 2] }, { mean = 2 }, { linear = 5 })t");
  gives("[6, 4]", R"t({ lstm = 3 }, "last", { linear = 5 })t");
}

TEST_CASE("network file: a transposed convolution has PyTorch's names, shapes and values") {
  const nn::AnyModule net =
      models::create(models::NetworkFile{"x.toml",
                                         "input = [4, 5, 6]\nclasses = 6\nlayers = [ { "
                                         "conv_transpose2d = 6, kernel = [2, 3], stride = [2, "
                                         "1], padding = 1, output_padding = [1, 0], groups = 2, "
                                         "name = \"up\" }, \"global_avg_pool\" ]\n"});
  CHECK(names_of(net) == "up.weight [4, 3, 2, 3]\nup.bias [6]\n");
  const std::vector<Tensor> p = net.parameters();
  const double limit =
      1 / std::sqrt(3.0 * 2 * 3);  // PyTorch's bound: its fan-in uses the second axis
  for (const Tensor& t : p) CHECK(amax(abs(t)).item() <= limit);
  CHECK(amax(abs(p[0])).item() > 0.8 * limit);
  const Tensor x = randn({2, 4, 5, 6}).compute();
  CHECK(same_bits(
      net(x), mean(conv_transpose2d(x, p[0], p[1], {{2, 1}, {1, 1}, {1, 0}, {1, 1}, 2}), {2, 3})));
}

TEST_CASE("network file: errors name line, layer and shape") {
  const auto says = [](const models::NetworkFile& file, const std::vector<const char*>& words) {
    CAPTURE(file.text);
    std::string message;
    try {
      models::create(file);
    } catch (const FormatError& error) {
      message = error.what();
    }
    for (const char* word : words) {
      CAPTURE(word);
      CAPTURE(message);
      CHECK(message.find(word) != std::string::npos);
    }
  };
  says(file_of("\"flatten\",\n{ liner = 3 }"),
       {"x.toml, line 5, layer 1 (liner): there is no layer 'liner'; did you mean 'linear'?"});
  says(file_of("{ conv2d = 4 }"), {"line 4", "layer 0 (conv2d)", "needs a kernel"});
  says(file_of("{ conv2d = 4, kernal = 3 }"),
       {"line 4", "layer 0 (conv2d)", "has no setting 'kernal'; did you mean 'kernel'?"});
  says(file_of("{ conv1d = 4, krenel = 3 }"), {"takes signals"});
  says(file_of("{ conv_transpose2d = 4, kernel_size = 3 }"), {"needs a kernel"});
  says(file_of("{ conv_transpose2d = 4, Kernel = 3 }"), {"did you mean 'kernel'?"});
  says(file_of("{ repeat = 2, layres = [ \"relu\" ] }"), {"line 4", "did you mean 'layers'?"});
  says(file_of("{ block = \"a\" }", "[blocks.a]\nlayer = [ \"relu\" ]\n"),
       {"block 'a' has no setting 'layer'; did you mean 'layers'?"});
  says(file_of("{ conv2d = 4, kernel = 3, stide = 2 }"),
       {"has no setting 'stide'; did you mean 'stride'?"});
  says(file_of("{ conv2d = 4, kernel = 9 }"), {"line 4, layer 0 (conv2d)", "[N, 1, 8, 8]"});
  says(file_of("{ conv2d = 2.5, kernel = 3 }"), {"channels is 2.5, must be a whole number"});
  says(file_of("{ conv2d = true, kernel = 3 }"), {"conv2d needs channels, as in { conv2d = 16"});
  says(file_of("{ conv2d = 4, kernel = \"size\" }"),
       {"kernel: there is no variable 'size'", "classes"});
  says(file_of("{ conv2d = 4, kernel = [3, 3, 3] }"), {"kernel has 3 numbers"});
  says(file_of("{ conv2d = 4, kernel = 3, bias = 1 }"), {"bias is an integer, must be true or"});
  says(file_of("{ linear = 3 }"),
       {"the last layer gives [N, 1, 8, 3], must be [N, outputs], as \"flatten\" and"});
  says(file_of("\"flatten\", { linear = 3 }, { max_pool2d = 2 }"),
       {"layer 2 (max_pool2d)", "takes images", "not [N, 3]"});
  says(file_of("{ max_pool3d = 2 }"), {"layer 0 (max_pool3d)", "takes volumes", "[N, 1, 8, 8]"});
  says(file_of("{ max_pool2d = 2, divisor = 3 }"), {"has no setting 'divisor'"});
  says(file_of("{ avg_pool2d = 2, dilation = 3 }"), {"has no setting 'dilation'"});
  says(file_of("{ batch_norm2d = 4 }"), {"is for 4 channels, and the input is [N, 1, 8, 8]"});
  says(file_of("{ repeat = 3, layers = [\n{ conv2d = 4, kernel = 4 },\n{ max_pool2d = 2 } ] }"),
       {"line 5, layer 2 (conv2d)", "[N, 4, 2, 2]", "in pass 2 of 3 of the repeat on line 4"});
  says(file_of("{ residual = [ { conv2d = 4, kernel = 3 } ] }"),
       {"its layers give [N, 4, 6, 6], and their input is [N, 1, 8, 8]: add shortcut"});
  says(file_of("{ branches = [ [ { max_pool2d = 2 } ], [ \"relu\" ] ] }"),
       {"branches give [N, 1, 4, 4], [N, 1, 8, 8], which do not fit together along axis 1"});
  says(file_of("{ block = \"a\" }",
               "[blocks.a]\nlayers = [ { block = \"b\" } ]\n"
               "[blocks.b]\nlayers = [ { block = \"a\" } ]\n"),
       {"line 9", "block 'a' contains itself: a -> b -> a", "in block 'b' on line 7"});
  says(file_of("{ block = \"aa\" }", "[blocks.a]\nlayers = [ \"relu\" ]\n"), {"did you mean 'a'?"});
  says(file_of("{ block = \"a\", strid = 2 }",
               "[blocks.a]\nlayers = [ { max_pool2d = 2, stride = \"stride\" } ]\n"),
       {"no variable"});
  says(file_of("{ block = \"a\", widht = 2 }", "[blocks.a]\nlayers = [ \"relu\" ]\n"),
       {"block 'a' uses no variable 'widht'"});
  says(file_of("{ repeat = 1000000, layers = [ \"relu\" ] }"), {"more than 20000 layers"});
  says(file_of("\"flatten\", { linear = 16777216 }, { linear = 16777216 }"), {"parameters"});
  says(file_of("\"flatten\", { linear = 16777217 }"), {"from 1 to 16777216"});
  says(file_of("\"flatten\", { linear = 3, name = \"a\" }, { linear = 3, name = \"a\" }"),
       {"layer a (linear)", "two children named 'a'"});
  says(file_of("\"flatten\", { linear = 3, tie = \"0.weight\" }"),
       {"no parameter before this layer"});
  says(file_of("\"relu\""), {"line 3: the last layer gives [N, 1, 8, 8], must be [N, outputs]"});
  says(file_of(""), {"a list of layers is empty"});
  says({"x.toml",
        "input = [16777216, 16777214]\nclasses = 2\nlayers = [ \"sinusoid_positions\" ]\n"},
       {"a table for [N, 16777216, 16777214] has more"});
  says({"x.toml",
        "input = [1, 16777216, 9]\nclasses = 2\nlayers = [ { adaptive_avg_pool2d = 9 } ]\n"},
       {"takes and gives up to 8192"});
  says({"x.toml",
        "input = [7, 4]\nclasses = 2\nlayers = [ { repeat = 99, layers = [ { lstm = 4, "
        "layers = 1000 } ] } ]\n"},
       {"more than 50000 weights and biases", "pass 13 of 99"});
  says(file_of("3"), {"a layer is an integer"});
  says(file_of("{}"), {"a layer is an empty table"});
  says(file_of("[ \"relu\" ]"), {"a layer is a list", "{ sequence = [ ... ] }"});
  says(file_of("relu"), {"x.toml, line 4", "put text in double quotes"});
  says(file_of("{ name = \"a\", linear = 3 }"),
       {"a layer begins with its kind: put linear before 'name'"});
  says(file_of("\"flatten\", { linear = 3, init = \"kaiming_norml\" }"),
       {"did you mean 'kaiming_normal'?"});
  says({"x.toml", "input = [4]\nclasses = 2\n[recipe]\nlayers = [\"relu\"]\n"},
       {"line 4: a recipe has no 'layers': write it above the line [recipe]"});
  says(file_of("\"flatten\", { linear = 3 }", "[recipe]\nepoch = 3\n"),
       {"line 7: a recipe has no 'epoch'; did you mean 'epochs'?"});
  says(file_of("\"flatten\", { linear = 3 }", "init = [ { parameters = \"x.*\", values = 0 } ]\n"),
       {"no parameter is named 'x.*'"});
  says({"x.toml", "input = [4]\nclasses = 2\n"}, {"x.toml: 'layers' is missing"});
  says({"x.toml", "input = [4]\nlayer = []\n"},
       {"line 2: a network has no 'layer'; did you mean 'layers'"});
  says({"x.toml", "classes = 2\nlayers = []\n"}, {"'input' is missing"});
  says({"x.toml", "input = 4\n"}, {"line 1: 'input' is an integer; write input = [1, 28, 28]"});
  std::string deep = "\"relu\"";
  for (int k = 0; k < 70; ++k) deep.insert(0, "{ sequence = [ ").append(" ] }");
  says(file_of(deep), {"nested structures"});
  says(file_of("{ linear = \"" + std::string(80, '(') + "1\" }"),
       {"is neither a number nor an expression"});
}

TEST_CASE("network file: a layer refuses an input of the wrong shape") {
  const auto says = [](const std::string& head, const std::string& layers,
                       const std::vector<const char*>& words) {
    const models::NetworkFile file{"x.toml", head + "layers = [\n" + layers + "\n]\n"};
    CAPTURE(file.text);
    std::string message;
    try {
      models::create(file);
    } catch (const FormatError& error) {
      message = error.what();
    }
    CAPTURE(message);
    for (const char* word : words) CHECK(message.find(word) != std::string::npos);
  };
  const std::string tokens = "input = [5]\nclasses = 9\ntokens = true\n",
                    texts = "input = [5]\nclasses = 3\nvocabulary = 9\n",
                    pairs =
                        "input = [2, 5]\nclasses = 9\npairs = true\n"
                        "encoder = [ { embedding = 8 } ]\n";
  says(tokens, "\"relu\"",
       {"x.toml, line 5, layer 0 (relu): relu takes features", "tokens [N, 5]"});
  says(tokens, "{ lstm = 4 }", {"layer 0 (lstm)", "put { embedding = 64 } before it"});
  says("input = [5]\nclasses = 9\n", "{ embedding = 4 }",
       {"layer 0 (embedding)", "takes token numbers"});
  says("input = [5, 2]\nclasses = 9\ntokens = true\n", "{ embedding = 4 }",
       {"line 1", "it is the sequence length"});
  says("input = [5]\nclasses = 9\npairs = true\n", "{ embedding = 4 }",
       {"line 1", "2 and the sequence length"});
  says("input = [2, 5]\nclasses = 9\npairs = true\n", "{ embedding = 4 }",
       {"line 3", "encoder = [ ... ]"});
  says(tokens + "encoder = [ \"relu\" ]\n", "{ embedding = 4 }", {"line 4", "pairs = true"});
  says(tokens + "vocabulary = 9\n", "{ embedding = 4 }, { linear = 3 }",
       {"line 5: the last layer gives [N, 5, 3], must be [N, 2, 5]", "transpose"});
  says("input = [5]\nclasses = 9\nmasked = true\nvocabulary = 4\n", "{ embedding = 4 }",
       {"line 4", "leave it out"});
  says("input = [5]\nclasses = 9\ntokens = false\nmasked = true\n", "{ embedding = 4 }",
       {"line 3", "'tokens' is false"});
  says(texts, "{ embedding = 4 }, { linear = 3 }", {"must be [N, outputs]"});
  says(tokens, "{ embedding = 4 }, { add = \"before\" }, { linear = 9 }",
       {"layer 1 (add)", "no value is kept as 'before'"});
  says(tokens, "{ embedding = 4 }, { keep = \"before\" }, { linear = 9 }, { add = \"befor\" }",
       {"layer 3 (add)", "did you mean 'before'?"});
  says(tokens, "{ embedding = 4 }, { keep = \"before\" }, { linear = 9 }, { add = \"before\" }",
       {"layer 3 (add)", "[N, 5, 9]"});
  says(tokens, "{ embedding = 4 }, { keep = \"memory\" }", {"is reserved for the encoder"});
  says(tokens, "{ embedding = 4 }, { transformer_decoder_layer = 2 }", {"pairs = true"});
  says(tokens, "{ embedding = 4 }, { attention = 2 }", {"needs queries and keys"});
  says(tokens,
       "{ embedding = 4 }, { keep = \"q\" }, { linear = 6 }, { attention = 2, queries = \"q\", "
       "keys = \"q\" }",
       {"layer 3 (attention)", "'q' is [N, 5, 4] and values are [N, 5, 6]"});
  says(pairs, "{ embedding = 4 }, { transformer_decoder_layer = 2 }",
       {"line 6, layer 2 (transformer_decoder_layer)",
        "the encoder gives [N, 5, 8], and the input is [N, 5, 4]"});
  says(pairs, "{ embedding = 8 }, { self_attention = 2 }, { linear = 9 }",
       {"layer 2 (self_attention)", "generated position by position", "causal = true"});
  says(pairs, "{ embedding = 8 }, { add = \"memory\" }", {"layer 2 (add)", "position by position"});
  says(pairs, "{ embedding = 7, tie = \"0.weight\" }",
       {"layer 1 (embedding)", "'0.weight' is [9, 8]"});
}

TEST_CASE("network file: a wrong file, and reading a file's facts, draw no initial values") {
  manual_seed(4);
  const Tensor first = rand({3}).compute();
  manual_seed(4);
  const models::NetworkFile wrong =
      file_of("{ conv2d = 4, kernel = 3 }, { conv2d = 4, kernel = 7 }");
  CHECK_THROWS_AS(models::create(wrong), FormatError);
  models::info(file_of("\"flatten\", { linear = \"classes\", init = \"kaiming_normal\" }"));
  CHECK(same_bits(rand({3}), first));
}
