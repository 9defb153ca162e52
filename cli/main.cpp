// The `tenon` command: finds the subcommand, parses its options, runs it, and maps failures to
// messages and exit codes.
//
// Each subcommand has its own file. Errors are reported in errors.cpp.
#include <fcntl.h>
#include <fmt/core.h>
#include <tenon/device.h>
#include <tenon/plugin.h>
#include <tenon/system.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "commands.h"
#include "errors.h"
#include "help.h"
#include "interrupt.h"
#include "parse.h"
#include "terminal.h"

namespace tenon::cli {

std::vector<Command> all_commands() {
  return {train_command(),     eval_command(),    predict_command(), generate_command(),
          models_command(),    summary_command(), inspect_command(), verify_command(),
          export_command(),    bench_command(),   data_command(),    weights_command(),
          tokenizer_command(), new_command(),     doctor_command(),  completion_command()};
}

namespace {

const Command& find(const std::vector<Command>& commands, const std::string& path,
                    const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string near = nearest(name, names);
  if (name.starts_with("-")) {
    const std::string flag = nearest(name, {"--help", "--version", "--plugin"});
    throw UsageError(fmt::format("{}: there is no option {}", path, name),
                     flag.empty() ? fmt::format("'{} --help' lists the commands", path)
                                  : fmt::format("did you mean {}?", flag));
  }
  throw UsageError(fmt::format("{}: there is no command '{}'", path, name),
                   near.empty() ? fmt::format("one of: {}", join(names, ", "))
                                : fmt::format("did you mean '{}'?", near));
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

// Finds the command named by the first words; the remaining words are its arguments.
int run_command(const Command& command, const std::string& path, std::vector<std::string> words) {
  if (!command.children.empty()) {
    if (words.empty() || is_help(words[0])) {
      print_help(command, path);
      return words.empty() ? kUsage : kOk;
    }
    const Command& child = find(command.children, path, words[0]);
    words.erase(words.begin());
    return run_command(child, path + " " + child.name, std::move(words));
  }
  return parse(command, path, words) ? command.run() : kOk;
}

// Settings, logs and JSON are UTF-8, so a run with another file name could be trained but not
// recorded.
void refuse_foreign_bytes(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (!is_utf8(word))
      throw UsageError(fmt::format("'{}' is not UTF-8", printable(word)),
                       "rename the file or folder, or give it by a link with another name");
}

// Options before the command: `--plugin FILE` or `--plugin=FILE`, any number of times.
void load_plugins(std::vector<std::string>& words) {
  const std::string flag = "--plugin";
  while (!words.empty() && (words[0] == flag || words[0].starts_with(flag + "="))) {
    const bool apart = words[0] == flag;
    if (apart && words.size() == 1)
      throw UsageError("--plugin needs a value, FILE", "a shared object: libmine.so");
    load_plugin(apart ? words[1] : words[0].substr(flag.size() + 1));
    words.erase(words.begin(), words.begin() + (apart ? 2 : 1));
  }
}

int run(std::vector<std::string> words) {
  refuse_foreign_bytes(words);
  load_plugins(words);  // before the tables of the commands, which list what plugins add
  const std::vector<Command> commands = all_commands();
  if (!words.empty() && words[0] == "--version") {
    fmt::print("tenon {}\n", version());
    return kOk;
  }
  if (words.empty() || (is_help(words[0]) && words.size() == 1)) {
    print_overview(commands);
    return kOk;
  }
  if (words[0] == "help") {  // `tenon help train` means `tenon train --help`
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const std::string parent = "tenon";
  const Command& command = find(commands, parent, words[0]);
  words.erase(words.begin());
  return run_command(command, "tenon " + command.name, std::move(words));
}

// A newly opened file gets the lowest free descriptor. If stdout is closed, that would be a file of
// the run, and printed text would go into it.
void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) < 0)
      ::open("/", O_RDONLY |
                      O_DIRECTORY);  // without /dev: an object that can neither be read nor written
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  using namespace tenon::cli;
  note_start();
  fill_standard_descriptors();
  show_notes();
  report_what_cannot_be_thrown();
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is reported like a full disk
  int code = kFailed;
  try {
    tenon::compile_in_processes(argc, argv);
    code = run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    // Other threads may still be compiling kernels of the failed program: do not wait for them.
    std::_Exit(report(error));
  }
  return finish_output(code);
}
