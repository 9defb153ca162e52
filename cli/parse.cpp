// Parsing of a command line against the table of a command.
#include "parse.h"

#include <fmt/core.h>

#include <algorithm>

#include "errors.h"
#include "help.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

const Option& find_option(const Command& command, const std::string& path,
                          const std::string& name) {
  std::vector<std::string> names;
  for (const Option& option : command.options) {
    if (option.name == name) return option;
    names.push_back(option.name);
  }
  names.emplace_back("--help");
  std::string hint = did_you_mean(nearest(name, names));
  if (hint.empty()) hint = fmt::format("'{} --help' lists the options", path);
  throw UsageError(fmt::format("{}: there is no option {}", path, name), hint);
}

void take_value(const Option& option, const std::string& text) {
  if (!option.choices.empty() &&
      std::find(option.choices.begin(), option.choices.end(), text) == option.choices.end()) {
    std::string hint = did_you_mean(nearest(text, option.choices));
    throw UsageError(
        fmt::format("{}: '{}' is not one of {}", option.name, text, join(option.choices, ", ")),
        hint);
  }
  option.take(text);
}

// Parses the words of a command in one pass.
class Parser {
 public:
  Parser(const Command& command, const std::string& path, const std::vector<std::string>& words)
      : command_(command), path_(path), words_(words) {}

  bool run() {
    bool options = true;
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (options && word == "--") {
        options = false;
      } else if (options && (word == "--help" || word == "-h")) {
        print_help(command_, path_);
        return false;
      } else if (options && word.size() > 1 && word[0] == '-') {
        take_option(word);
      } else {
        take_positional(word);
      }
    }
    if (place_ < command_.positionals.size() && command_.positionals[place_].required && !filled_)
      throw UsageError(fmt::format("{}: {} is missing", path_, command_.positionals[place_].name),
                       fmt::format("usage: {}", usage_line(command_, path_)));
    return true;
  }

 private:
  void take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const Option& option = find_option(command_, path_, flag);
    if (option.value.empty()) {
      if (equals != std::string::npos)
        throw UsageError(fmt::format("{} takes no value", option.name));
      option.take("");
    } else if (equals != std::string::npos) {
      take_value(option, word.substr(equals + 1));
    } else if (next_ == words_.size() || words_[next_].starts_with("--")) {
      throw UsageError(fmt::format("{} needs a value, {}", option.name, option.value), option.help);
    } else {
      take_value(option, words_[next_++]);
    }
  }

  void take_positional(const std::string& word) {
    if (place_ == command_.positionals.size())
      throw UsageError(fmt::format("{}: '{}' is one word too many", path_, word),
                       fmt::format("usage: {}", usage_line(command_, path_)));
    const Positional& place = command_.positionals[place_];
    place.take(word);
    filled_ = place.many;
    if (!place.many) ++place_;
  }

  const Command& command_;
  const std::string& path_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0, place_ = 0;
  bool filled_ = false;
};

}  // namespace

bool parse(const Command& command, const std::string& path, const std::vector<std::string>& words) {
  return Parser(command, path, words).run();
}

}  // namespace tenon::cli
