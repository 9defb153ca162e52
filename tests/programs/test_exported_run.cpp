// `tenon export`: the program of a run predicts what the run predicts. ctest names the command in
// TENON_COMMAND.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <tenon/saved_program.h>
#include <tenon/tenon.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

void check_exported(const train::Settings& settings, const Tensor& x) {
  const char* const command = std::getenv("TENON_COMMAND");
  if (command == nullptr) {
    MESSAGE("TENON_COMMAND names no command");
    return;
  }
  const TestFolder folder;
  const std::string run = folder / "run", file = folder / "run.tenon";
  train::start_run(settings, run);
  const std::string line = "\"" + std::string(command) + "\" export \"" + run + "\" \"" + file +
                           "\" > \"" + std::string(folder / "out") + "\"";
  REQUIRE(std::system(line.c_str()) == 0);
  const train::TrainedModel model = train::TrainedModel::open(run);
  const SavedProgram program = load_program(file);
  CHECK(allclose(program({x})[0], model.predict(x), 1e-6, 1e-7));
  CHECK(program({slice(x, 0, 0, 1).compute()})[0].size(0) == 1);
  CHECK(program.metadata().at("model") == settings.model);
  CHECK(program.metadata().at("task") == model.task().name());
}

train::Settings settings_of(const std::string& model, const std::string& precision) {
  return train::Settings::resolve(
      model, "",
      {{"data", "digits:40,20"}, {"epochs", "1"}, {"batch", "8"}, {"precision", precision}});
}

}  // namespace

TEST_CASE("programs: a run that the command exports predicts as the run") {
  check_exported(settings_of("mlp:784-8-10", "fp32"), rand({5, 784}).compute());
  check_exported(settings_of("mlp:784-8-10", "bf16"), rand({5, 784}).compute());
  check_exported(settings_of("lenet5", "fp32"), rand({3, 1, 28, 28}).compute());
}
