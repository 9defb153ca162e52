// Parameters of the built-in networks: names, shapes, initial values and what learns, compared bit
// for bit with a committed table. Random numbers are the same on every machine, so digests suffice.
//
// When initial values are meant to change, run this test with TENON_REPLAY=write and commit the
// difference.
#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/models.h>

#include "base/digest.h"
#include "base/str.h"

using namespace tenon;

namespace {

struct Case {
  const char* name;
  std::int64_t classes = 0;
  const char* head = "";
  const char* activation = "";
};

// Every network, as published where it is small enough for a test, otherwise narrow.
const Case kCases[] = {{"lenet5"},
                       {"lenet5", 7},
                       {"keras_cnn"},
                       {"lenet5_1998"},
                       {"mlp"},
                       {"mlp", 26},
                       {"mlp:784-300-10"},
                       {"mlp:12-5-3", 0, "", "tanh"},
                       {"mlp:12-5"},
                       {"fcn_r"},
                       {"fcn_s", 3},
                       {"alexnet:width=2"},
                       {"alexnet:width=2", 4, "8,relu,dropout=0.5"},
                       {"alexnet_2012:width=12"},
                       {"alexnet_2012:width=5", 3},
                       {"alexnet_s:width=12"},
                       {"alexnet_s:width=5", 3},
                       {"alexnet_r"},
                       {"alexnet_r", 100},
                       {"vgg16:width=2"},
                       {"vgg16:width=3", 4, "8,relu"},
                       {"vgg16_bn:width=2"},
                       {"vgg16_bn:width=2", 4, "8,tanh,dropout=0.5,5"},
                       {"vgg16_head:width=2"},
                       {"vgg16_head:width=1", 3},
                       {"resnet18"},
                       {"resnet34:width=5"},
                       {"resnet50:width=4"},
                       {"resnet50:width=4", 4, "8,relu"},
                       {"resnet101:width=2"},
                       {"resnet152:width=2"},
                       {"resnet20"},
                       {"resnet20", 4, "8,relu,dropout=0.5"},
                       {"resnet32"},
                       {"resnet44"},
                       {"resnet56"},
                       {"resnet110"},
                       {"resnet110:width=6", 100},
                       {"inception_resnet_v2:width=3"},
                       {"inception_resnet_v2:width=2", 4, "8,relu"},
                       {"lstm"},
                       {"lstm", 40},
                       {"keras_rnn"},
                       {"keras_rnn:units=8", 40}};

void add_tensors(Digester& digester, const std::vector<nn::NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const Tensor value = tensor.eval();
    digester.add(name);
    digester.add(cat(value.shape(), " ", value.dtype()));
    digester.add(
        std::string_view(static_cast<const char*>(value.data()),
                         static_cast<std::size_t>(value.numel()) * item_size(value.dtype())));
  }
}

std::string line_of(const Case& c) {
  manual_seed(1);
  const nn::AnyModule net =
      models::create(c.name, {.classes = c.classes, .activation = c.activation, .head = c.head});
  Digester digester;
  add_tensors(digester, net.named_parameters());
  add_tensors(digester, net.named_buffers());
  for (const nn::NamedTensor& p : net.named_trainable_parameters()) digester.add(p.name);
  std::string options;
  if (c.classes > 0) options += cat(" classes=", c.classes);
  if (*c.head != '\0') options += cat(" head=", c.head);
  if (*c.activation != '\0') options += cat(" activation=", c.activation);
  return cat(c.name, options, " ", net.parameter_count(), " ", digester.result().hex());
}

}  // namespace

TEST_CASE("models: names, shapes and initial values of all networks are as recorded") {
  const std::string path = "tests/nn/network_values.txt";
  const char* mode = std::getenv("TENON_REPLAY");
  if (mode != nullptr && std::string(mode) == "write") {
    std::string all;
    for (const Case& c : kCases) all += line_of(c) + "\n";
    io::write_file(path, all);
    return;
  }
  std::istringstream recorded(io::read_file(path));
  std::string line;
  for (const Case& c : kCases) {
    REQUIRE(std::getline(recorded, line));
    CHECK(line_of(c) == line);
  }
  CHECK_FALSE(std::getline(recorded, line));
}
