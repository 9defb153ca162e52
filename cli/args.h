// A subcommand as data: options, positional arguments, help text and the function that it runs.
//
// One table serves parsing, help and shell completion, so they always agree. Options write into
// variables of the command. The parser checks the syntax of a value, the library its meaning.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// Kind of completion for a value.
enum class Completes { Nothing, Files, Folders };

struct Option {
  std::string name;   ///< "--epochs"
  std::string value;  ///< "N" in the help; empty for a switch
  std::string help;
  std::string fallback;              ///< shown as the default
  std::string group;                 ///< heading in the help
  std::vector<std::string> choices;  ///< the only words allowed, when not empty
  std::vector<std::string>
      suggestions;  ///< suggestions for completion; the library checks the value
  Completes completes = Completes::Nothing;
  std::function<void(const std::string&)> take;
};

struct Positional {
  std::string name;  ///< "RUN"
  std::string help;
  bool required = true;
  bool many = false;                     ///< takes all remaining words
  std::vector<std::string> suggestions;  ///< for completion; other words are allowed
  Completes completes = Completes::Nothing;
  std::function<void(const std::string&)> take;
};

struct Example {
  std::string line, what;
};

struct Command {
  std::string name;     ///< "train"; children: "fetch"
  std::string summary;  ///< one line, no full stop
  std::string about;    ///< a paragraph or more
  std::vector<Example> examples;
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::vector<Command> children;
  std::function<int()> run;

  /// Heading of the options that follow.
  Command& group(std::string heading);
  /// Adds an option with a value, converted to the type of `target`.
  template <class T>
  Option& option(T& target, std::string option_name, std::string value, std::string help,
                 std::string fallback = "");
  /// An option without a value.
  Option& flag(bool& target, std::string option_name, std::string help);
  Positional& positional(std::string& target, std::string place, std::string help,
                         bool required = true);
  Positional& positional(std::vector<std::string>& target, std::string place, std::string help,
                         bool required = true);

 private:
  Option& add(Option option);
  std::string heading_ = "Options";
};

/// Converts text to a value; throws UsageError naming the option if it is invalid.
void read_value(const std::string& option, const std::string& text, int& out);
void read_value(const std::string& option, const std::string& text, std::int64_t& out);
void read_value(const std::string& option, const std::string& text, std::uint64_t& out);
void read_value(const std::string& option, const std::string& text, double& out);
void read_value(const std::string& option, const std::string& text, std::string& out);
/// Repeated options append.
void read_value(const std::string& option, const std::string& text, std::vector<std::string>& out);
template <class T>
void read_value(const std::string& option, const std::string& text, std::optional<T>& out) {
  T value{};
  read_value(option, text, value);
  out = value;
}

template <class T>
Option& Command::option(T& target, std::string option_name, std::string value, std::string help,
                        std::string fallback) {
  Option made;
  made.name = option_name;
  made.value = std::move(value);
  made.help = std::move(help);
  made.fallback = std::move(fallback);
  made.take = [&target, option_name](const std::string& text) {
    read_value(option_name, text, target);
  };
  return add(std::move(made));
}

/// Converts "512", "512MB", "1.5GiB" to bytes; throws UsageError.
std::int64_t parse_bytes(const std::string& option, const std::string& text);
/// Splits "a,b,c"; each part must be in `allowed`. Throws UsageError that suggests a similar word.
std::vector<std::string> parse_list(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& allowed);

/// The candidate most similar to `word`, ignoring case, or "" if none is similar.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "did you mean --epochs?", or "" if nothing is near.
std::string did_you_mean(const std::string& near);

}  // namespace tenon::cli
