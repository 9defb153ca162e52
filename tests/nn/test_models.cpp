// Networks by name: each network agrees with its row of the table.
#include <cmath>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/shapes_only.h>

using namespace tenon;

TEST_CASE("models: numbers of parameters, and scores for every class") {
  for (const char* name : {"lenet5",
                           "lenet5_1998",
                           "keras_cnn",
                           "mlp",
                           "alexnet_r",
                           "resnet20",
                           "resnet32",
                           "resnet44",
                           "resnet56",
                           "resnet110",
                           "resnet18",
                           "lstm",
                           "keras_rnn",
                           "keras_rnn:units=64",
                           "resnet20:width=4",
                           "resnet50:width=4",
                           "vgg16:width=2",
                           "vgg16_bn:width=2",
                           "vgg16_head:width=2",
                           "inception_resnet_v2:width=2",
                           "alexnet:width=2",
                           "alexnet_s:width=5",
                           "alexnet_2012:width=5",
                           "gpt2:layers=2,heads=4,width=32,context=16",
                           "bert:layers=2,heads=2,width=16,context=16",
                           "bert_classifier:layers=2,heads=2,width=16,context=16,vocabulary=50",
                           "transformer:layers=2,heads=2,width=8"}) {
    CAPTURE(name);
    const models::Info info = models::info(name);
    const nn::AnyModule net = models::create(name);
    CHECK(net.parameter_count() == info.parameters);
    Shape batch{2};
    for (const std::int64_t size : info.input) batch.push_back(size);
    const Tensor y = net(zeros(batch, info.takes_tokens() ? DType::Int64 : DType::Float32));
    CHECK(y.shape() == (info.tokens ? Shape{2, info.input[info.input.rank() - 1], info.classes}
                                    : Shape{2, info.classes}));
  }
}

TEST_CASE("models: parameters and multiply-adds of all networks as published") {
  struct Published {
    const char* name;
    std::int64_t parameters, multiply_adds;  // of one sample; 0: not published
    std::int64_t classes = 0;
  };
  const Published published[] = {{"fcn_s", 117'997'696, 117'964'800},
                                 {"fcn_r", 14'205'962, 14'198'784},
                                 {"alexnet_s", 62'378'344, 1'135'256'096},
                                 {"alexnet_r", 85'098, 10'732'160},
                                 {"alexnet_2012", 60'965'224, 724'406'816},
                                 {"alexnet", 61'100'840, 714'188'480},
                                 {"vgg16", 138'357'544, 15'470'264'320},
                                 {"vgg16_bn", 138'365'992, 15'470'264'320},
                                 {"resnet18", 11'689'512, 0},
                                 {"resnet34", 21'797'672, 0},
                                 {"resnet50", 25'557'032, 4'089'184'256},
                                 {"resnet101", 44'549'160, 0},
                                 {"resnet152", 60'192'808, 0},
                                 {"resnet20", 269'722, 0},
                                 {"resnet32", 464'154, 0},
                                 {"resnet44", 658'586, 0},
                                 {"resnet56", 853'018, 125'485'696},
                                 {"resnet110", 1'727'962, 0},
                                 {"lstm", 6'182'672, 32 * std::int64_t{3'608'576}},
                                 {"lenet5", 61'706, 416'520},
                                 {"lenet5_1998", 60'000, 0},
                                 {"keras_cnn", 93'322, 2'794'240},
                                 {"inception_resnet_v2", 55'843'464, 0},
                                 {"gpt2", 124'439'808, 0},
                                 {"gpt2", 124'475'904, 0, 50'304},
                                 {"gpt2_medium", 354'823'168, 0},
                                 {"gpt2_large", 774'030'080, 0},
                                 {"gpt2_xl", 1'557'611'200, 0},
                                 {"transformer", 63'082'496, 0},
                                 {"transformer", 60'915'712, 0, 32'768}};
  const ShapesOnly shapes;
  for (const auto& [name, parameters, multiply_adds, classes] : published) {
    CAPTURE(name);
    const models::Info info = models::info(name);
    const nn::AnyModule net = models::create(name, {.classes = classes});
    CHECK(net.parameter_count() == parameters);
    if (classes == 0) CHECK(info.parameters == parameters);
    if (multiply_adds == 0) continue;
    Shape batch{1};
    for (const std::int64_t size : info.input) batch.push_back(size);
    const Tensor input = zeros(batch, info.takes_tokens() ? DType::Int64 : DType::Float32);
    CHECK(net.summary(input).multiply_adds == multiply_adds);
  }
}

TEST_CASE("models: names are those of the list") {
  std::vector<std::string> names;
  for (const models::Info& info : models::list()) names.push_back(info.name);
  CHECK(models::names() == names);
  CHECK(names.size() >= 35);
  CHECK(names.front() == "lenet5");
}

TEST_CASE("models: the number of classes can be set") {
  CHECK(models::create("resnet20", {.classes = 7})(zeros({1, 3, 32, 32})).shape() == Shape{1, 7});
  CHECK_THROWS_AS(models::create("resnet20", {.classes = -1}), ValueError);
}

TEST_CASE("models: sizes in names, and names that are invalid") {
  CHECK(models::info("gpt2:layers=2,heads=4,width=32,context=16").input == Shape{16});
  for (const char* wrong :
       {"gpt2:layer=2", "gpt2:layers=0", "gpt2:layers", "gpt2:layers=2x", "gpt2:heads=5",
        "gpt2:", "resnet20:layers=2", "resnet50:width=0", "lenet5:width=2", "resnet21"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(models::info(wrong), ValueError);
  }
  try {
    models::info("gpt2:layer=2");
  } catch (const ValueError& error) {
    CHECK(std::string(error.what()).find("'layers'") != std::string::npos);
  }
}

TEST_CASE("models: parameters of a network of given width are counted without initial values") {
  manual_seed(3);
  const std::vector<float> first = rand({4}).to_vector<float>();
  manual_seed(3);
  CHECK(models::info("vgg16:width=128").parameters > 500'000'000);
  CHECK(rand({4}).to_vector<float>() == first);
  CHECK(models::info("resnet50:width=64").parameters == models::info("resnet50").parameters);
}

TEST_CASE("models: the head on VGG16 is trained, its convolutions are frozen") {
  CHECK(models::info("vgg16_head").parameters == 14'714'688 + 6'425'354);
  const nn::AnyModule net = models::create("vgg16_head:width=2");
  for (const auto& [name, p] : net.named_trainable_parameters())
    CHECK(name.starts_with("classifier."));
  CHECK(net.trainable_parameters().size() == 4);
}

TEST_CASE("models: the Keras network has as many trainable values as Keras's") {
  for (const auto& [name, count] :
       {std::pair("keras_rnn:units=64", 242'408), std::pair("keras_rnn", 388'584),
        std::pair("keras_rnn:units=256", 779'240)}) {
    std::int64_t trainable = 0;
    for (const Tensor& p : models::create(name).trainable_parameters()) trainable += p.numel();
    CHECK(trainable == count);
  }
}

TEST_CASE("models: LeNet-5 of 1998 has the connections and bitmaps of its paper") {
  const nn::AnyModule net = models::create("lenet5_1998");
  std::int64_t of_layer = 0;
  for (const nn::NamedTensor& p : net.named_parameters())
    if (p.name.starts_with("c3.")) of_layer += p.tensor.numel();
  CHECK(of_layer == 1516);
  // The bitmaps differ in many pixels, and scores are the distances to them.
  const Tensor drawings = net.state_dict().at("rbf.weight");
  CHECK(sum(square(drawings)).item() == 840);
  const Tensor apart = sum(square(unsqueeze(drawings, 0) - unsqueeze(drawings, 1)), {2}) +
                       where(eq(unsqueeze(arange(0, 10), 0), unsqueeze(arange(0, 10), 1)),
                             full({10, 10}, 1e3), zeros({10, 10}));
  CHECK(amin(apart).item() >= 40);
  CHECK(amax(net(zeros({3, 1, 28, 28}))).item() <= 0);
  CHECK_THROWS_AS(models::create("lenet5_1998", {.classes = 7}), ValueError);
}

TEST_CASE("models: the Transformer is the paper's: PyTorch's without the final norms") {
  CHECK(models::info("transformer").parameters == 63'082'496);
  const nn::AnyModule net = models::create("transformer:layers=1,heads=2,width=4", {.classes = 7});
  CHECK(net.parameter_count() ==
        models::info("transformer:layers=1,heads=2,width=4").parameters - (37'000 - 7) * 4);
  std::string names;
  for (const nn::NamedTensor& p : net.named_parameters())
    if (p.name.ends_with("weight")) names += p.name + " " + p.tensor.shape().str() + "\n";
  CHECK(names ==
        "embedding.weight [7, 4]\n"
        "encoder.layers.0.self_attn.in_proj_weight [12, 4]\n"
        "encoder.layers.0.self_attn.out_proj.weight [4, 4]\n"
        "encoder.layers.0.linear1.weight [16, 4]\nencoder.layers.0.linear2.weight [4, 16]\n"
        "encoder.layers.0.norm1.weight [4]\nencoder.layers.0.norm2.weight [4]\n"
        "decoder.layers.0.self_attn.in_proj_weight [12, 4]\n"
        "decoder.layers.0.self_attn.out_proj.weight [4, 4]\n"
        "decoder.layers.0.multihead_attn.in_proj_weight [12, 4]\n"
        "decoder.layers.0.multihead_attn.out_proj.weight [4, 4]\n"
        "decoder.layers.0.linear1.weight [16, 4]\ndecoder.layers.0.linear2.weight [4, 16]\n"
        "decoder.layers.0.norm1.weight [4]\ndecoder.layers.0.norm2.weight [4]\n"
        "decoder.layers.0.norm3.weight [4]\n");
  CHECK_THROWS_AS(models::info("transformer:width=6,heads=4"), ValueError);
  CHECK_THROWS_AS(net(zeros({1, 5}, DType::Int64)), ShapeError);
}

TEST_CASE("models: BERT has Hugging Face's parameter counts, and ignores padding") {
  CHECK(models::info("bert").parameters == 109'514'298);
  CHECK(models::info("bert_classifier").parameters == 109'482'240 + 2 * 769);
  CHECK(models::info("bert_spans").parameters == 108'891'648 + 2 * 769);
  CHECK(models::info("bert_large").parameters == 335'174'458);
  const std::string sizes = ":layers=1,heads=2,width=8,context=6,vocabulary=9";
  const nn::AnyModule net = models::create("bert_classifier" + sizes, {.classes = 3});
  net.eval();
  const auto scores = [&](const std::vector<std::int64_t>& tokens, const Shape& shape) {
    return net(Tensor::from(tokens, shape)).to_vector<float>();
  };
  const std::vector<float> alone = scores({4, 5, 6}, {1, 3});
  const std::vector<float> filled = scores({4, 5, 6, 0, 0}, {1, 5});
  for (std::size_t k = 0; k < 3; ++k) CHECK(filled[k] == doctest::Approx(alone[k]).epsilon(1e-5));
  CHECK(scores({4, 5, 6, 0, 0, 0}, {1, 2, 3}) == alone);  // token types of the first text
  CHECK(scores({4, 5, 6, 0, 1, 1}, {1, 2, 3}) != alone);
  for (const float score : scores({0, 0, 0}, {1, 3})) CHECK(std::isfinite(score));
  CHECK(models::create("bert_spans" + sizes)(zeros({2, 2, 5}, DType::Int64)).shape() ==
        Shape{2, 2, 5});
  CHECK(models::create("bert_classifier" + sizes, {.classes = 3, .head = "7,relu"})
            .state_dict()
            .contains("classifier.2.bias"));
  CHECK_THROWS_AS(net(zeros({1, 7}, DType::Int64)), ShapeError);
  CHECK_THROWS_AS(models::info("bert:vocabulary=9"), ValueError);
  CHECK_THROWS_AS(models::info("bert:width=9,heads=2"), ValueError);
}

TEST_CASE("models: GPT-2 has Hugging Face's names") {
  const nn::AnyModule net =
      models::create("gpt2:layers=1,heads=2,width=8,context=4", {.classes = 11});
  std::string names;
  for (const nn::NamedTensor& p : net.named_parameters())
    names += p.name + " " + p.tensor.shape().str() + "\n";
  CHECK(names ==
        "transformer.wte.weight [11, 8]\ntransformer.wpe.weight [4, 8]\n"
        "transformer.h.0.ln_1.weight [8]\ntransformer.h.0.ln_1.bias [8]\n"
        "transformer.h.0.attn.c_attn.weight [8, 24]\ntransformer.h.0.attn.c_attn.bias [24]\n"
        "transformer.h.0.attn.c_proj.weight [8, 8]\ntransformer.h.0.attn.c_proj.bias [8]\n"
        "transformer.h.0.ln_2.weight [8]\ntransformer.h.0.ln_2.bias [8]\n"
        "transformer.h.0.mlp.c_fc.weight [8, 32]\ntransformer.h.0.mlp.c_fc.bias [32]\n"
        "transformer.h.0.mlp.c_proj.weight [32, 8]\ntransformer.h.0.mlp.c_proj.bias [8]\n"
        "transformer.ln_f.weight [8]\ntransformer.ln_f.bias [8]\n");
  // Files that store the tied weight under the head's name load, too.
  StateDict state = net.state_dict();
  auto entry = state.extract("transformer.wte.weight");
  entry.key() = "lm_head.weight";
  entry.mapped() = full({11, 8}, 3.0);
  state.insert(std::move(entry));
  net.load_state_dict(state);
  CHECK(amin(net.state_dict().at("transformer.wte.weight")).item() == 3);
  CHECK_THROWS_AS(net(zeros({1, 5}, DType::Int64)), ShapeError);
}
