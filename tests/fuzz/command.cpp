// Fuzzes the command line parser: one word a line; the first word names the command. Nothing is
// run. A wrong word, or a setting out of range, is a UsageError.
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "args.h"
#include "commands.h"
#include "errors.h"
#include "fuzz/fuzz.h"
#include "parse.h"
#include "terminal.h"

#include <tenon/train.h>

namespace {

using tenon::cli::Command;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Created again each time, because a command stores the parsed values.
Command command_of(const std::string& name) {
  Command (*const makers[])() = {tenon::cli::train_command,   tenon::cli::eval_command,
                                 tenon::cli::predict_command, tenon::cli::bench_command,
                                 tenon::cli::inspect_command, tenon::cli::verify_command};
  const auto which = name.empty() ? 0u : static_cast<unsigned char>(name[0]) % std::size(makers);
  return makers[which]();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {  // help is printed if a line requests it
  return std::freopen("/dev/null", "w", stdout) == nullptr;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    std::vector<std::string> words = words_of(bytes);
    if (words.empty()) return;
    const Command command = command_of(words[0]);
    words.erase(words.begin());
    try {
      tenon::cli::parse(command, "tenon " + command.name, words);
    } catch (const tenon::cli::UsageError&) {
    }
    for (const std::string& word : words) {
      (void)tenon::cli::shell_word(word);
      (void)tenon::cli::printable(word);
      try {
        (void)tenon::cli::parse_bytes("--memory-limit", word);
      } catch (const tenon::cli::UsageError&) {
      }
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      try {
        tenon::train::Settings().set(word.substr(0, equals), word.substr(equals + 1));
      } catch (const tenon::ValueError&) {
      }
    }
  });
}
