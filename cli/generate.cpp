// tenon generate: text from a trained model of language, shown as it is written.
#include <fmt/core.h>
#include <tenon/device.h>
#include <tenon/train.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "errors.h"
#include "interrupt.h"
#include "trained.h"

namespace tenon::cli {
namespace {

struct GenerateOptions {
  TrainedOptions trained;
  std::string prompt, device = "cpu", precision;
  std::int64_t tokens = 200, top_k = 0;
  std::uint64_t seed = 0;
  double temperature = 1, top_p = 1;
  train::TranslateOptions search;
};

int run_generate(const GenerateOptions& options) {
  catch_interrupts();
  set_device(options.device);
  train::TrainedModel model = open_trained(options.trained);
  if (!options.precision.empty()) model.set_precision(precision_from_name(options.precision));
  if (model.is_translator()) {
    if (options.prompt.empty())
      throw UsageError("--prompt is missing", "give the text that is to be translated");
    fmt::print("{}\n", model.translate({options.prompt}, options.search)[0]);
    return kOk;
  }
  train::GenerateOptions how;
  how.tokens = options.tokens;
  how.temperature = options.temperature;
  how.top_k = options.top_k;
  how.top_p = options.top_p;
  how.seed = options.seed;
  bool begun = false;  // what is refused comes before the first piece, and nothing before it
  const auto begin = [&] {
    if (!begun) fmt::print("{}", options.prompt);
    begun = true;
  };
  how.on_text = [&](const std::string& piece) {
    begin();
    fmt::print("{}", piece);
    std::fflush(stdout);
    return !interrupted();
  };
  model.generate(options.prompt, how);
  begin();
  fmt::print("\n");
  return interrupted() ? interrupt_code() : kOk;
}

}  // namespace

Command generate_command() {
  auto options = std::make_shared<GenerateOptions>();
  Command command;
  command.name = "generate";
  command.summary = "write or translate text with a trained model";
  command.about =
      "Goes on from a prompt, token by token, and shows the text as it is written. Each token is "
      "drawn from the model's probabilities: --temperature below 1 makes likely tokens likelier (0 "
      "always takes the likeliest), --top-k and --top-p leave unlikely ones out. The same seed "
      "gives the same text. A model that translates writes the likeliest translation of the "
      "prompt, "
      "by beam search.";
  command.examples = {
      {"tenon generate runs/gpt2 --prompt 'ROMEO:'", "200 tokens."},
      {"tenon generate runs/gpt2 --tokens 500 --temperature 0.8 --top-k 40", "Fewer surprises."},
      {"tenon generate gpt2 --weights gpt2.safetensors --tokenizer gpt2/ --prompt 'The sea'",
       "Hugging Face's."},
      {"tenon generate runs/transformer --prompt 'German: twenty-one'", "A translation."}};
  add_trained(command, options->trained);
  command.option(options->prompt, "--prompt", "TEXT", "what the text begins with", "none");
  command.option(options->tokens, "--tokens", "N", "tokens to write", "200");
  command.option(options->temperature, "--temperature", "T",
                 "how freely it draws; 0: the likeliest", "1");
  command.option(options->top_k, "--top-k", "K", "draw among the K likeliest only", "all");
  command.option(options->top_p, "--top-p", "P",
                 "draw among the likeliest that together reach this probability", "1");
  command.option(options->seed, "--seed", "N", "of the draws", "0");
  command.option(options->search.beam, "--beam", "K", "translations looked at side by side", "4");
  command.option(options->search.length_penalty, "--length-penalty", "A",
                 "above 0: long translations are not held back so much", "0.6");
  command.option(options->device, "--device", "NAME", "cpu or cuda", "cpu").suggestions = {"cpu",
                                                                                           "cuda"};
  command.option(options->precision, "--precision", "NAME", "how products compute", "the run's")
      .choices = {"fp32", "tf32", "bf16", "fp16"};
  command.run = [options] { return run_generate(*options); };
  return command;
}

}  // namespace tenon::cli
