// Every kind of network, with few channels: equal bits in repeated runs, with any number of
// threads, and after an interrupted and resumed run.
//
// Names not listed build the same code with other sizes. tests/train/test_runs.cpp kills real
// processes.
#include <doctest/doctest.h>

#include <string>

#include <tenon/io.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

constexpr char kDigits[] = "digits:24,6", kSmall[] = "scenes:24,6",
               kLarge[] = "scenes:12,4,size=224";

struct Network {
  const char *name, *data;  // data source; "": the text that the test writes
};
constexpr Network kNetworks[] = {
    {"lenet5", kDigits},
    {"lenet5_1998", kDigits},
    {"keras_cnn", kDigits},
    {"mlp:784-24-10", kDigits},
    {"alexnet_r", kSmall},
    {"alexnet_s:width=4", kLarge},
    {"alexnet_2012:width=4", "scenes:12,4,size=227"},
    {"alexnet:width=4", kLarge},
    {"vgg16:width=2", kLarge},
    {"vgg16_bn:width=2", kLarge},
    {"vgg16_head:width=2", kLarge},
    {"resnet20:width=4", kSmall},
    {"resnet56:width=4", kSmall},
    {"resnet18:width=4", kLarge},
    {"resnet50:width=4", kLarge},
    {"lstm", ""},
    {"keras_rnn:units=16", ""},
    {"gpt2:layers=2,heads=2,width=16,context=16", ""},
    {"transformer:layers=2,heads=2,width=16,hidden=32", "numbers:60,10,0,below=1000"}};

}  // namespace

TEST_CASE("same bits: every kind of network, repeated, by threads and resumed") {
  const TestFolder folder;
  const std::string text = folder / "text.txt";
  std::string words;
  for (int k = 0; k < 400; ++k)
    words += "a bit of text, number " + std::to_string(k * k % 97) + ". ";
  io::write_file(text, words);
  int number = 0;
  for (const Network& network : kNetworks) {
    CAPTURE(network.name);
    const std::string dir = folder / ("run" + std::to_string(number++));
    const std::string source = *network.data == 0 ? "text:" + text + ",length=16" : network.data;
    const train::Settings settings = train::Settings::resolve(
        network.name, "", {{"data", source}, {"batch", "4"}, {"max_steps", "4"}, {"threads", "2"}});
    train::start_run(settings, dir);
    for (const train::VerifyCheck& check : train::verify_run(dir, 4).checks) {
      CAPTURE(check.name);
      CAPTURE(check.detail);
      CHECK(check.passed);
    }
  }
}
