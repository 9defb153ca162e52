// tenon new: creates a starting point that can be trained at once: a network file, or a CMake
// project that uses an installed Tenon.
#include <fmt/core.h>
#include <tenon/io.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "commands.h"
#include "errors.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

constexpr char kCMake[] = R"(cmake_minimum_required(VERSION 3.22)
project(@NAME@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Tenon REQUIRED)
add_executable(@NAME@ train.cpp)
target_link_libraries(@NAME@ PRIVATE Tenon::tenon)
)";

constexpr char kNet[] = R"(// The network: layers are members, forward() connects them.
#pragma once

#include <tenon/tenon.h>

namespace nn = tenon::nn;
using tenon::Tensor;

// Two convolutions, the second with a shortcut around it. The names given to child() are the
// names of the parameters in the saved file.
class Block : public nn::Module {
 public:
  Block(std::int64_t in, std::int64_t out)
      : first_(child("first", nn::Conv2d(in, out, 3, {.padding = 1}))),
        second_(child("second", nn::Conv2d(out, out, 3, {.padding = 1}))) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor y = relu(first_(x));
    return y + relu(second_(y));
  }

 private:
  nn::Conv2d first_, second_;
};

// Grey images of 28 x 28 pixels in, a score for each of ten classes out.
inline nn::Sequential make_net() {
  return nn::Sequential(Block(1, 8), nn::MaxPool2d(2), Block(8, 16), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(16 * 7 * 7, 10));
}
)";

constexpr char kTrain[] = R"(// Trains the network of net.h and saves it: ./@NAME@ [DATA [EPOCHS]]
// DATA as for the command: digits, digits:5000,1000, mnist:FOLDER, idx:FOLDER, npy:INPUTS,TARGETS.
#include <cstdio>
#include <cstdlib>
#include <string>

)"
                          "#include \"net.h\"\n"  // of the project, not of this folder
                          R"(
int main(int argc, char** argv) try {
  const std::string data = argc > 1 ? argv[1] : "digits:10000,2000";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 3;
  tenon::manual_seed(0);
  using tenon::data::Split;
  tenon::data::Loader train(tenon::data::open_dataset(data, Split::Train), {.batch = 64});
  tenon::data::Loader validation(tenon::data::open_dataset(data, Split::Validation),
                                 {.batch = 250, .shuffle = false});
  tenon::data::Loader test(tenon::data::open_dataset(data, Split::Test),
                           {.batch = 250, .shuffle = false});
  nn::Sequential net = make_net();
  std::printf("%s\n", net.summary({64, 1, 28, 28}).str().c_str());

  tenon::optim::AdamW optimizer(net, {.lr = 2e-3});
  tenon::train::Trainer trainer(net, nn::CrossEntropyLoss(), optimizer,
                                {.epochs = epochs, .schedule = "cosine"});
  const tenon::train::TrainResult result = trainer.fit(train, validation, test);
  for (const tenon::train::EpochReport& epoch : result.epochs)
    std::printf("epoch %d  loss %.4f  validation accuracy %.2f %%\n", epoch.epoch,
                epoch.train_loss, 100 * *epoch.validation_metrics["accuracy"]);
  std::printf("epoch %d was kept: test accuracy %.2f %%\n", result.kept_epoch,
              100 * *result.test->metrics["accuracy"]);
  tenon::io::save_safetensors("@NAME@.safetensors", net.state_dict());
  std::printf("weights in @NAME@.safetensors\n");
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
)";

constexpr char kToml[] =
    R"(# A network of your own. 'tenon summary @FILE@' shows its layers and sizes,
# 'tenon train @FILE@' trains it; docs/model_toml.md describes the format.
name = "@NAME@"
input = [1, 28, 28]   # one sample: a grey image of 28 x 28 pixels
classes = 10          # number of outputs; training sets it to the number of classes of the data

variables = { width = 16 }

# Layers in order. Input sizes are inferred; numbers may be expressions of variables.
layers = [
  { conv2d = "width", kernel = 3, padding = 1 }, "batch_norm2d", "relu",
  { max_pool2d = 2 },
  { block = "basic", channels = "2 * width" },
  { max_pool2d = 2 },
  { repeat = 2, layers = [ { block = "basic", channels = "4 * width" } ] },
  "global_avg_pool",
  { linear = "classes" },
]

# Default settings of training; options of the command override them.
[recipe]
data = "digits:10000,2000"
epochs = 3
batch = 64
lr = 0.05
weight_decay = 5e-4

# A residual block of two convolutions, used as { block = "basic", channels = 32 }.
[blocks.basic]
layers = [
  { residual = [
      { conv2d = "channels", kernel = 3, padding = 1, bias = false }, "batch_norm2d", "relu",
      { conv2d = "channels", kernel = 3, padding = 1, bias = false }, "batch_norm2d" ],
    shortcut = { conv2d = "channels", kernel = 1 },
    then = "relu" },
]
)";

std::string filled(std::string text, const std::string& name) {
  constexpr std::string_view kPlace = "@NAME@";
  for (std::size_t at = 0; (at = text.find(kPlace, at)) != std::string::npos; at += name.size())
    text.replace(at, kPlace.size(), name);
  return text;
}

// The name is a CMake target and a program; "test" and others are reserved by CMake.
void require_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool plain =
      !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
        return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
  if (!plain)
    throw UsageError(fmt::format("tenon new: '{}' is not a valid program name", name),
                     "begin with a letter; letters, digits, - and _ may follow");
  for (const char* taken : {"all", "clean", "help", "install", "package", "tenon", "test"})
    if (name == taken)
      throw UsageError(fmt::format("tenon new: '{}' is a name reserved by CMake", name),
                       "choose another name");
}

int write_toml(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(file, error))
    throw UsageError(fmt::format("tenon new: {} already exists", file), "choose another name");
  const std::string name = fs::path(file).stem().string();
  std::string text = kToml;
  constexpr std::string_view kFile = "@FILE@";
  for (std::size_t at = 0; (at = text.find(kFile, at)) != std::string::npos;)
    text.replace(at, kFile.size(), fs::path(file).filename().string());
  if (const fs::path folder = fs::path(file).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  io::write_file(file, filled(text, name));
  const std::string word = shell_word(file);
  fmt::print("{}  a network that reads digits\n\n  tenon summary {}\n  tenon train {}\n",
             stdout_terminal().paint(TextStyle::Bold, printable(file)), word, word);
  return kOk;
}

int run_new(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string name = fs::path(folder).filename().string();
  require_name(name);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    throw UsageError(fmt::format("tenon new: {} already exists", folder),
                     "choose another name, or empty it");
  fs::create_directories(folder, error);
  if (error)
    throw IoError(fmt::format("{}: cannot be created: {}", folder, error.message()),
                  {.file = folder});
  io::write_file(folder + "/CMakeLists.txt", filled(kCMake, name));
  io::write_file(folder + "/net.h", filled(kNet, name));
  io::write_file(folder + "/train.cpp", filled(kTrain, name));
  const std::string word = shell_word(folder);
  fmt::print(
      "{}  CMakeLists.txt, net.h (the network), train.cpp (trains and saves it)\n\n"
      "  cmake -S {} -B {} && cmake --build {}\n  {}\n",
      stdout_terminal().paint(TextStyle::Bold, printable(folder)), word,
      shell_word(folder + "/build"), shell_word(folder + "/build"),
      shell_word(folder + "/build/" + name));
  return kOk;
}

}  // namespace

Command new_command() {
  struct NewOptions {
    std::string name;
    bool toml = false;
  };
  auto options = std::make_shared<NewOptions>();
  Command command;
  command.name = "new";
  command.summary = "create a network file or a C++ project to start from";
  command.about =
      "With --toml, or if NAME ends in .toml, writes the file NAME.toml, a network that 'tenon "
      "train' can train. Otherwise creates the folder NAME with a CMake project that uses the "
      "installed library: net.h defines a module, train.cpp trains it on synthetic digits or given "
      "data and saves the weights. Existing files are not overwritten.";
  command.examples = {
      {"tenon new net.toml", "Then run: tenon train net.toml (no compiler needed)."},
      {"tenon new shapes", "Then run: cmake -S shapes -B shapes/build, and build it."}};
  command.positional(options->name, "NAME",
                     "file NAME.toml, or folder whose last component names the program");
  command.flag(options->toml, "--toml", "write a network file instead of a C++ project");
  command.run = [options] {
    if (options->name.ends_with(".toml")) return write_toml(options->name);
    return options->toml ? write_toml(options->name + ".toml") : run_new(options->name);
  };
  return command;
}

}  // namespace tenon::cli
