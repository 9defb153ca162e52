// Transfer learning on photographs. The pretrained base of a network is frozen while new last
// layers learn the classes of a folder. Then the base is fine-tuned with a lower learning rate.
//
//     example_transfer_learning [PHOTOS [NETWORK WEIGHTS]]
//
// PHOTOS has a folder for each class. NETWORK and WEIGHTS may be vgg16 and torchvision's file of
// its weights. Without arguments the images are generated digits, and the base is a small network
// that was trained on other digits.
#include <tenon/tenon.h>

#include <filesystem>
#include <memory>
#include <string>

#include "check.h"

using namespace tenon;

// Generated digits instead of photographs: the base learns 0 to 4, the new classes are 5 to 9.
struct Digits {
  std::vector<std::vector<std::uint8_t>> pixels;  // 28 x 28 each
  std::vector<std::int64_t> labels;
};
Digits digits(std::int64_t count, bool low) {
  const auto drawn = data::drawn_digits(7, count);
  Digits out;
  std::vector<std::uint8_t> pixels(28 * 28);
  for (std::int64_t k = 0; k < drawn->size(); ++k) {
    std::int64_t label = 0;
    drawn->get(std::span(&k, 1), pixels.data(), &label);
    if ((label < 5) != low) continue;
    out.pixels.push_back(pixels);
    out.labels.push_back(label);
  }
  return out;
}

std::string drawn_photos() {
  const Digits high = digits(800, false);
  for (std::size_t k = 0; k < high.labels.size(); ++k) {
    const std::string folder = "photos/" + std::to_string(high.labels[k]);
    std::filesystem::create_directories(folder);
    io::save_png(folder + "/" + std::to_string(k) + ".png", {28, 28, 1, high.pixels[k]});
  }
  return "photos";
}

// Instead of published weights: a network that classifies 0 to 4, with pixels scaled as for
// torchvision's networks.
std::string trained_base(const std::string& network) {
  const Digits low = digits(4000, true);
  const auto count = static_cast<std::int64_t>(low.labels.size());
  std::vector<std::uint8_t> all;
  for (const auto& pixels : low.pixels) all.insert(all.end(), pixels.begin(), pixels.end());
  const Tensor grey = pad(Tensor::from(all, {count, 1, 28, 28}), {2, 2, 2, 2});
  data::Loader loader(
      data::from_tensors(concat({grey, grey, grey}, 1).eval(), Tensor::from(low.labels, {count})),
      {.batch = 32, .channel_mean = {0.485, 0.456, 0.406}, .channel_std = {0.229, 0.224, 0.225}});
  manual_seed(1);
  const nn::AnyModule net = models::create(network, {.classes = 5});
  optim::Sgd sgd(net, {.lr = 0.05, .momentum = 0.9});
  const train::TrainResult result =
      train::Trainer(net, nn::CrossEntropyLoss(), sgd, {.epochs = 2}).fit(loader);
  std::printf("the base classifies 0 to 4: accuracy %.1f %% in its last epoch\n",
              100 * *result.epochs.back().train_accuracy);
  io::save_safetensors("base.safetensors", net.state_dict());
  return "base.safetensors";
}

// The names of all parts with weights except the last: "features" for VGG, "conv1,bn1,layer1,…" for
// residual networks.
std::string all_but_the_last(const std::string& network) {
  std::string parts, last;
  for (const auto& [name, part] : models::create(network).children()) {
    if (part.parameter_count() == 0) continue;
    if (!last.empty()) parts += (parts.empty() ? "" : ",") + last;
    last = name;
  }
  return parts;
}

// Prints the decisions and the results of the run.
class Printer : public train::Callback {
 public:
  void on_note(const std::string& note) override { std::printf("%s\n", note.c_str()); }
  void on_epoch(const train::EpochReport& epoch) override {
    std::printf("epoch %d  loss %.4f  validation accuracy %.1f %%\n", epoch.epoch, epoch.train_loss,
                100 * epoch.validation_metrics["accuracy"].value_or(0));
  }
};

int main(int argc, char** argv) {
  std::filesystem::remove_all("learnt");
  const std::string network = argc > 3 ? argv[2] : "resnet20:width=8",
                    weights = argc > 3 ? argv[3] : trained_base(network),
                    photos = argc > 1 ? argv[1] : drawn_photos(),
                    frozen = all_but_the_last(network);

  // The same with the command: tenon train NETWORK --weights FILE --freeze PARTS --head 32,relu
  // --data folder:PHOTOS,split=0.2 --epochs 10 --unfreeze-after 7 … --out learnt
  std::string base_rates;  // the base's learning rate is a fifth of the head's
  for (std::size_t at = 0; at < frozen.size();) {
    const std::size_t end = std::min(frozen.find(',', at), frozen.size());
    base_rates += (base_rates.empty() ? "" : ",") + frozen.substr(at, end - at) + "=0.2";
    at = end + 1;
  }
  const train::Settings settings = train::Settings::resolve(
      network, "",
      {{"weights", weights},
       {"freeze", frozen},
       {"head", "32,relu"},
       {"data", "folder:" + photos + ",split=0.2"},  // a fifth is for testing
       {"epochs", "10"},
       {"unfreeze_after", "7"},
       {"rate_of", base_rates},
       {"batch", "16"},
       {"optimizer", "sgd"},
       {"lr", "0.02"}});
  const train::TrainResult result =
      train::start_run(settings, "learnt", {.callbacks = {std::make_shared<Printer>()}});

  // The model file is complete: it has the classes and how images are resized for the network.
  const train::TrainedModel model = train::TrainedModel::open("learnt/model.safetensors");
  std::printf("classes:");
  for (const std::string& name : model.class_names()) std::printf(" %s", name.c_str());
  std::printf("; best %s %.1f %%, test accuracy %.1f %%\n", result.best_figure.c_str(),
              100 * *result.best, 100 * *result.test->metrics["accuracy"]);
  if (argc > 1) return 0;  // the accuracy on your own images is not checked
  const std::string seven = std::filesystem::directory_iterator("photos/7")->path().string();
  const Tensor probabilities = model.predict(model.fit(io::load_image(seven, 3)));
  std::printf("%s is a 7 with probability %.2f\n", seven.c_str(), probabilities[0][2].item());
  check(model.class_names() == std::vector<std::string>{"5", "6", "7", "8", "9"},
        "classes are the folders' names");
  check(*result.best > 0.6,
        "a new head on the base classifies 5 to 9 better than chance, which is 20 %");
}
