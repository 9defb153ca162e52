// tenon generate: generates text with a language model, or translates, and prints it as it is
// generated.
#include <fmt/core.h>
#include <tenon/device.h>
#include <tenon/train.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "commands.h"
#include "errors.h"
#include "interrupt.h"
#include "output.h"
#include "trained.h"

namespace tenon::cli {
namespace {

struct GenerateOptions {
  TrainedOptions trained;
  std::string prompt, device = "cpu", precision;
  // For text generation, and for translation.
  std::optional<std::int64_t> tokens, top_k, beam;
  std::optional<std::uint64_t> seed;
  std::optional<double> temperature, top_p, length_penalty;
};

// Refuses options that have no effect for this kind of model.
void refuse_others(const GenerateOptions& o, bool by_search) {
  const std::pair<const char*, bool> of_text[] = {{"--tokens", o.tokens.has_value()},
                                                  {"--temperature", o.temperature.has_value()},
                                                  {"--top-k", o.top_k.has_value()},
                                                  {"--top-p", o.top_p.has_value()},
                                                  {"--seed", o.seed.has_value()}},
                                     of_search[] = {
                                         {"--beam", o.beam.has_value()},
                                         {"--length-penalty", o.length_penalty.has_value()}};
  const auto refuse = [](std::span<const std::pair<const char*, bool>> options, const char* hint) {
    for (const auto& [name, given] : options)
      if (given) throw UsageError(fmt::format("{} has no effect for this model", name), hint);
  };
  if (by_search)
    refuse(of_text, "it translates with beam search: use --beam and --length-penalty");
  else
    refuse(of_search,
           "it continues a prompt: --beam and --length-penalty are for translation models");
}

int run_generate(const GenerateOptions& options) {
  catch_interrupts();
  set_device(options.device);
  train::TrainedModel model = open_trained(options.trained);
  if (!options.precision.empty()) model.set_precision(precision_from_name(options.precision));
  if (const train::OutputForm form = model.task().output_form();
      form != train::OutputForm::Translation && form != train::OutputForm::NextToken)
    throw UsageError(
        fmt::format("{}: {} does not generate text", options.trained.run, model.info().name),
        use_of(model, options.trained));
  refuse_others(options, translates(model));
  if (translates(model)) {
    train::TranslateOptions search;
    search.beam = options.beam.value_or(search.beam);
    search.length_penalty = options.length_penalty.value_or(search.length_penalty);
    if (options.prompt.empty())
      throw UsageError("--prompt is missing", "give the text to translate");
    fmt::print("{}\n", model.translate({options.prompt}, search)[0]);
    return kOk;
  }
  train::GenerateOptions how;
  how.tokens = options.tokens.value_or(how.tokens);
  how.temperature = options.temperature.value_or(how.temperature);
  how.top_k = options.top_k.value_or(how.top_k);
  how.top_p = options.top_p.value_or(how.top_p);
  how.seed = options.seed.value_or(how.seed);
  bool begun = false;  // errors come before the first output
  const auto begin = [&] {
    if (!begun) fmt::print("{}", options.prompt);
    begun = true;
  };
  how.on_text = [&](const std::string& piece) {
    begin();
    fmt::print("{}", piece);
    return flush_output() && !interrupted();  // stop if the output cannot be written
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
  command.summary = "generate or translate text with a trained model";
  command.about =
      "Continues a prompt token by token and prints the text as it is generated. Each token is "
      "sampled from the model's probabilities: --temperature below 1 makes likely tokens more "
      "likely (0: greedy decoding), --top-k and --top-p exclude unlikely tokens. The same seed "
      "gives the same text. A translation model prints the most likely translation of the prompt, "
      "found by beam search.";
  command.examples = {
      {"tenon generate runs/gpt2 --prompt 'ROMEO:'", "200 tokens."},
      {"tenon generate runs/gpt2 --tokens 500 --temperature 0.8 --top-k 40",
       "More predictable text."},
      {"tenon generate gpt2 --weights hub/gpt2 --prompt 'The sea'",
       "A folder of Hugging Face, with weights, config.json and tokenizer."},
      {"tenon generate runs/transformer --prompt 'German: twenty-one'", "A translation."}};
  add_trained(command, options->trained);
  command.option(options->prompt, "--prompt", "TEXT", "text to continue or to translate", "none");
  command.option(options->tokens, "--tokens", "N", "number of tokens to generate", "200");
  command.option(options->temperature, "--temperature", "T",
                 "sampling temperature; 0: greedy decoding", "1");
  command.option(options->top_k, "--top-k", "K", "sample from the K most likely tokens", "all");
  command.option(options->top_p, "--top-p", "P",
                 "sample from the most likely tokens that together reach this probability", "1");
  command.option(options->seed, "--seed", "N", "random seed of sampling", "0");
  command.option(options->beam, "--beam", "K", "beam width of translation", "4");
  command.option(options->length_penalty, "--length-penalty", "A",
                 "translation: values above 0 favour longer translations", "0.6");
  command.option(options->device, "--device", "NAME", "device: cpu, cuda or cuda:N", "cpu")
      .suggestions = {"cpu", "cuda"};
  command
      .option(options->precision, "--precision", "NAME",
              "precision of matrix products and convolutions", "the run's")
      .choices = {"fp32", "tf32", "bf16", "fp16"};
  command.run = [options] { return run_generate(*options); };
  return command;
}

}  // namespace tenon::cli
