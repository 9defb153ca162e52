// tenon completion: completion scripts for bash, zsh and fish, generated from the command tables
// that the help uses.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "commands.h"
#include "errors.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

// Calls `visit` for every leaf command with its words: "train", "data fetch".
void each_leaf(const std::vector<Command>& commands, const std::string& path,
               const std::function<void(const std::string&, const Command&)>& visit) {
  for (const Command& command : commands) {
    const std::string own = path.empty() ? command.name : path + " " + command.name;
    if (command.children.empty())
      visit(own, command);
    else
      each_leaf(command.children, own, visit);
  }
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : command.options) names.push_back(option.name);
  names.emplace_back("--help");
  return names;
}

std::vector<std::string> places(const Command& command) {
  std::vector<std::string> words;
  for (const Positional& place : command.positionals)
    words.insert(words.end(), place.suggestions.begin(), place.suggestions.end());
  return words;
}

bool wants_files(const Command& command) {
  return std::any_of(command.positionals.begin(), command.positionals.end(),
                     [](const Positional& p) { return p.completes != Completes::Nothing; });
}

const std::vector<std::string>& words_for(const Option& option) {
  return option.choices.empty() ? option.suggestions : option.choices;
}

// ---- bash

std::string bash_value(const Option& option) {
  if (const auto& words = words_for(option); !words.empty())
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", join(words, " "));
  if (option.completes == Completes::Folders) return "COMPREPLY=($(compgen -d -- \"$word\"))";
  if (option.completes == Completes::Files) return "COMPREPLY=($(compgen -f -- \"$word\"))";
  return "COMPREPLY=()";
}

void bash(const std::vector<Command>& commands) {
  fmt::print(
      "# bash completion for tenon. Use: source <(tenon completion bash), or put this into\n"
      "# ~/.local/share/bash-completion/completions/tenon\n"
      "_tenon() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" "
      "path=\"${{COMP_WORDS[1]}}\"\n"
      "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '{} --help --version' -- "
      "\"$word\")); return; fi\n",
      join(names_of(commands), " "));
  for (const Command& command : commands)
    if (!command.children.empty())
      fmt::print(
          "  if [[ $path == {} ]]; then\n"
          "    if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W '{}' -- \"$word\")); return; "
          "fi\n"
          "    path=\"{} ${{COMP_WORDS[2]}}\"\n  fi\n",
          command.name, join(names_of(command.children), " "), command.name);
  // bash splits "--name=value" into three words.
  fmt::print(
      "  if [[ $word == '=' ]]; then word=''; elif [[ $before == '=' ]]; then "
      "before=\"${{COMP_WORDS[COMP_CWORD-2]}}\"; fi\n");
  fmt::print("  case \"$path $before\" in\n");
  each_leaf(commands, "", [](const std::string& path, const Command& command) {
    for (const Option& option : command.options)
      if (!option.value.empty())
        fmt::print("    '{} {}') {}; return ;;\n", path, option.name, bash_value(option));
  });
  fmt::print("  esac\n  case \"$path\" in\n");
  each_leaf(commands, "", [](const std::string& path, const Command& command) {
    fmt::print("    '{}') COMPREPLY=($(compgen -W '{} {}' -- \"$word\"){}) ;;\n", path,
               join(places(command), " "), join(option_names(command), " "),
               wants_files(command) ? " $(compgen -f -- \"$word\")" : "");
  });
  fmt::print("  esac\n}}\ncomplete -o filenames -F _tenon tenon\n");
}

// ---- zsh

std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const std::vector<std::string>& words, Completes completes) {
  if (!words.empty()) return fmt::format("({})", zsh_quoted(join(words, " ")));
  if (completes == Completes::Folders || completes == Completes::Files) return "_files";
  return " ";
}

void zsh_leaf(const Command& command, const std::string& indent) {
  fmt::print("{}_arguments -s \\\n", indent);
  for (const Option& option : command.options) {
    const std::string value = option.value.empty()
                                  ? ""
                                  : fmt::format(":{}:{}", zsh_quoted(option.value),
                                                zsh_action(words_for(option), option.completes));
    fmt::print("{}  '*{}[{}]{}' \\\n", indent, option.name, zsh_quoted(option.help), value);
  }
  for (const Positional& place : command.positionals)
    fmt::print("{}  '{}:{}:{}' \\\n", indent, place.many ? "*" : "", zsh_quoted(place.name),
               zsh_action(place.suggestions, place.completes));
  fmt::print("{}  '(-h --help){{-h,--help}}[show help]' ;;\n", indent);
}

void zsh(const std::vector<Command>& commands) {
  fmt::print(
      "#compdef tenon\n# zsh completion for tenon. Put this into a file _tenon in a folder of "
      "$fpath, or: source <(tenon completion zsh)\n");
  fmt::print("_tenon() {{\n  local -a names\n  names=(\n");
  for (const Command& command : commands)
    fmt::print("    '{}:{}'\n", command.name, zsh_quoted(command.summary));
  fmt::print(
      "  )\n  if ((CURRENT == 2)); then _describe command names; return; fi\n  local "
      "name=$words[2]\n  shift words; ((CURRENT--))\n");
  for (const Command& command : commands) {
    if (command.children.empty()) continue;
    fmt::print("  if [[ $name == {} ]]; then\n    names=(\n", command.name);
    for (const Command& child : command.children)
      fmt::print("      '{}:{}'\n", child.name, zsh_quoted(child.summary));
    fmt::print(
        "    )\n    if ((CURRENT == 2)); then _describe command names; return; fi\n    name=\"{} "
        "$words[2]\"\n    shift words; ((CURRENT--))\n  fi\n",
        command.name);
  }
  fmt::print("  case $name in\n");
  each_leaf(commands, "", [](const std::string& path, const Command& command) {
    fmt::print("    '{}')\n", path);
    zsh_leaf(command, "      ");
  });
  fmt::print("  esac\n}}\ncompdef _tenon tenon\n");
}

// ---- fish

std::string fish_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "\\'" : std::string(1, c);
  return out;
}

void fish(const std::vector<Command>& commands) {
  fmt::print(
      "# fish completion for tenon. Put this into ~/.config/fish/completions/tenon.fish\ncomplete "
      "-c tenon -f\n");
  for (const Command& command : commands) {
    fmt::print("complete -c tenon -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
               fish_quoted(command.summary));
    for (const Command& child : command.children)
      fmt::print(
          "complete -c tenon -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -a {} -d '{}'\n",
          command.name, join(names_of(command.children), " "), child.name,
          fish_quoted(child.summary));
  }
  each_leaf(commands, "", [](const std::string& path, const Command& command) {
    std::string seen;
    for (std::size_t start = 0; start < path.size();) {
      const std::size_t end = std::min(path.find(' ', start), path.size());
      seen += (seen.empty() ? "" : "; and ") +
              ("__fish_seen_subcommand_from " + path.substr(start, end - start));
      start = end + 1;
    }
    for (const Option& option : command.options) {
      std::string value;
      if (const auto& words = words_for(option); !words.empty())
        value = fmt::format(" -x -a '{}'", join(words, " "));
      else if (option.completes != Completes::Nothing)
        value = " -r -F";
      else if (!option.value.empty())
        value = " -x";
      fmt::print("complete -c tenon -n '{}' -l {} -d '{}'{}\n", seen, option.name.substr(2),
                 fish_quoted(option.help), value);
    }
    if (const auto words = places(command); !words.empty())
      fmt::print("complete -c tenon -n '{}' -a '{}'\n", seen, join(words, " "));
    if (wants_files(command)) fmt::print("complete -c tenon -n '{}' -F\n", seen);
  });
}

int run_completion(const std::string& shell) {
  const std::vector<Command> commands = all_commands();
  if (shell == "bash")
    bash(commands);
  else if (shell == "zsh")
    zsh(commands);
  else if (shell == "fish")
    fish(commands);
  else
    throw UsageError(fmt::format("tenon completion: '{}' is not a known shell", shell),
                     "one of: bash, zsh, fish");
  return kOk;
}

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "print a completion script for bash, zsh or fish";
  command.about =
      "Prints a script that lets the shell complete commands, options, their values and files.";
  command.examples = {
      {"source <(tenon completion bash)",
       "For the current shell; add the line to ~/.bashrc to keep it."},
      {"tenon completion zsh > ~/.zfunc/_tenon", "For zsh, with ~/.zfunc in $fpath."},
      {"tenon completion fish > ~/.config/fish/completions/tenon.fish", "For fish."}};
  command.positional(*shell, "SHELL", "bash, zsh or fish").suggestions = {"bash", "zsh", "fish"};
  command.run = [shell] { return run_completion(*shell); };
  return command;
}

}  // namespace tenon::cli
