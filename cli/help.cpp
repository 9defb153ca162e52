// Layout of the help pages: usage, description, options by group with their defaults, examples.
#include "help.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon::cli {
namespace {

constexpr int kMostLeft = 26, kLeastRight = 24;

int page_width() { return std::min(stdout_terminal().width, 100); }

void heading(const std::string& text) {
  fmt::print("\n{}\n", stdout_terminal().paint(TextStyle::Bold, text));
}

// Two columns: syntax and explanation.
void row(const std::string& left, const std::string& right, int left_width) {
  const Terminal& terminal = stdout_terminal();
  // On a narrow terminal the explanation is on the next line.
  const bool beside = left_width + 4 + kLeastRight <= page_width();
  const std::string body = wrap(right, page_width(), beside ? left_width + 4 : 6);
  if (!beside || columns(left) > left_width || body.empty()) {
    fmt::print("  {}\n{}", terminal.paint(TextStyle::Cyan, left), body);
  } else {
    const std::string gap(static_cast<std::size_t>(left_width - columns(left) + 2), ' ');
    fmt::print("  {}{}{}", terminal.paint(TextStyle::Cyan, left), gap,
               body.substr(static_cast<std::size_t>(left_width) + 4));
  }
}

std::string typed(const Option& option) {
  return option.value.empty() ? option.name : fmt::format("{} {}", option.name, option.value);
}

std::string explained(const Option& option) {
  std::string text = option.help;
  if (!option.choices.empty()) text += fmt::format(": {}", join(option.choices, ", "));
  if (!option.fallback.empty()) text += fmt::format(" (default: {})", option.fallback);
  return text;
}

void print_options(const Command& command) {
  int left = 14;
  for (const Option& option : command.options)
    if (columns(typed(option)) <= kMostLeft) left = std::max(left, columns(typed(option)));
  std::vector<std::string> groups;
  for (const Option& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  for (const std::string& group : groups) {
    heading(group);
    for (const Option& option : command.options)
      if (option.group == group) row(typed(option), explained(option), left);
  }
}

void print_names(const std::vector<Command>& commands) {
  int left = 0;
  for (const Command& command : commands) left = std::max(left, columns(command.name));
  for (const Command& command : commands) row(command.name, command.summary, left);
}

}  // namespace

std::string usage_line(const Command& command, const std::string& path) {
  std::string line = path;
  if (!command.children.empty()) line += " COMMAND";
  for (const Positional& place : command.positionals) {
    const std::string name = place.name + (place.many ? "..." : "");
    line += place.required ? " " + name : " [" + name + "]";
  }
  if (!command.options.empty() || !command.children.empty()) line += " [options]";
  return line;
}

void print_help(const Command& command, const std::string& path) {
  const Terminal& terminal = stdout_terminal();
  fmt::print("{}: {}\n", terminal.paint(TextStyle::Bold, path), command.summary);
  heading("Usage");
  fmt::print("  {}\n\n{}", usage_line(command, path), wrap(command.about, page_width(), 0));
  if (!command.children.empty()) {
    heading("Commands");
    print_names(command.children);
  }
  if (!command.positionals.empty()) {
    heading("Arguments");
    int left = 14;
    for (const Positional& place : command.positionals) left = std::max(left, columns(place.name));
    for (const Positional& place : command.positionals) row(place.name, place.help, left);
  }
  print_options(command);
  if (!command.examples.empty()) heading("Examples");
  for (const Example& example : command.examples)
    fmt::print("  {}\n{}", terminal.paint(TextStyle::Green, example.line),
               wrap(example.what, page_width(), 6));
}

void print_overview(const std::vector<Command>& commands) {
  const Terminal& terminal = stdout_terminal();
  fmt::print("{}: trains and runs deep networks on CPUs and NVIDIA GPUs\n",
             terminal.paint(TextStyle::Bold, "tenon"));
  heading("Usage");
  fmt::print("  tenon [--plugin FILE]... COMMAND [options]\n");
  heading("Commands");
  print_names(commands);
  heading("Start here");
  row("tenon train lenet5", "train a network that reads handwritten digits, in under a minute", 26);
  row("tenon COMMAND --help", "show what a command does, its options and examples", 26);
  row("tenon --version", "show the version", 26);
  heading("Before the command");
  row("--plugin FILE", "load a shared object that adds datasets, networks and more by name", 26);
}

}  // namespace tenon::cli
