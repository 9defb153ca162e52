// tenon data fetch: downloads MNIST, CIFAR or pretrained weights from known URLs and verifies their
// content.
#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/task.h>
#include <tenon/train.h>
#include <tenon/weights.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "download.h"
#include "errors.h"
#include "interrupt.h"
#include "known_files.h"
#include "progress.h"
#include "sha256.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kWeights[] = "weights";

struct FetchOptions {
  std::string set, network, dir, from;
};

// "" if the checksum is the known one, else a description of the difference.
std::string sum_fault(const KnownFile& known, const std::string& sum) {
  return sum == known.sum ? ""
                          : fmt::format("its checksum is {}..., not {}...", sum.substr(0, 12),
                                        std::string(known.sum).substr(0, 12));
}

// "" if the file is the known one, else a description of the difference.
std::string fault_of(const KnownFile& known, const std::string& path) {
  try {
    if (known.shape.rank() == 0) return sum_fault(known, sha256_of_file(path));
    const Tensor values = io::load_idx(path);
    if (values.shape() != known.shape)
      return fmt::format("it contains {}, not {}", values.shape().str(), known.shape.str());
    return sum_fault(known, sha256(values.data(), static_cast<std::size_t>(values.numel()) *
                                                      item_size(values.dtype())));
  } catch (const FormatError& error) {
    return error.what();
  }
}

void download_showing(const std::string& url, PartFile& part, const std::string& name) {
  download(url, part, [&](std::int64_t done, std::int64_t total) {
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    status_line(
        fmt::format("{} {} {}", pad_right(name, 27), bar_text(share, 30), bytes_text(done)));
    return !interrupted();
  });
  clear_status_line();
}

// Downloads and verifies one file from one URL. An existing partial download is resumed, and
// deleted if the result is wrong.
void fetch_from(const KnownSet& set, const std::string& base, const KnownFile& known,
                const std::string& target) {
  const std::string url = base + "/" + known.name;
  PartFile part(target + ".part");
  const bool resumed = part.size() > 0;
  download_showing(url, part, known.name);
  std::string fault = fault_of(known, part.path());
  if (!fault.empty() && resumed) {
    part.clear();
    download_showing(url, part, known.name);
    fault = fault_of(known, part.path());
  }
  if (!fault.empty()) {
    part.clear();
    throw FormatError(
        fmt::format("{}: this is not {}'s {}: {}", url, set.title, known.name, fault));
  }
  part.rename_to(target);
}

void fetch_file(const KnownSet& set, const std::vector<std::string>& bases, const KnownFile& known,
                const std::string& target) {
  std::string failures;
  std::exception_ptr last;
  for (const std::string& base : bases) {
    try {
      fetch_from(set, base, known, target);
      return;
    } catch (const NotSupported&) {
      throw;
    } catch (const Error& error) {
      if (interrupted()) return;
      failures += fmt::format("{}{}", failures.empty() ? "" : "; ", error.what());
      last = std::current_exception();
    }
  }
  clear_status_line();
  if (bases.size() == 1) std::rethrow_exception(last);
  throw IoError(fmt::format(
      "{} could not be fetched: {}: without a network connection, copy {}'s files to {}, give "
      "another location with --from URL, or train on synthetic data (--data digits, --data scenes)",
      known.name, failures, set.title, fs::path(target).parent_path().string()));
}

bool is_unpacked(const KnownSet& set, const std::string& folder) {
  return std::all_of(set.unpacked.begin(), set.unpacked.end(), [&](const Unpacked& file) {
    std::error_code failed;
    const std::uint64_t bytes = fs::file_size(fs::path(folder) / file.name, failed);
    return !failed && (file.bytes == 0 || bytes == file.bytes);
  });
}

// Unpacks an archive in its folder and deletes it.
void unpack(const KnownSet& set, const std::string& folder, const std::string& archive) {
  std::vector<std::string> names;
  for (const Unpacked& file : set.unpacked) names.emplace_back(file.name);
  io::unpack_tar(archive, folder, names);
  fs::remove(archive);
  for (const std::string& name : names) fmt::print("{}/{}\n", folder, name);
}

std::vector<std::string> names_of(const std::vector<KnownSet>& sets) {
  std::vector<std::string> names;
  names.reserve(sets.size());
  for (const KnownSet& set : sets) names.emplace_back(set.name);
  return names;
}

const KnownSet& set_of(const FetchOptions& options) {
  const bool weights = options.set == kWeights;
  const std::vector<KnownSet>& sets = weights ? known_weights() : known_sets();
  const std::string& name = weights ? options.network : options.set;
  for (const KnownSet& set : sets)
    if (set.name == name && (weights || options.network.empty())) return set;
  if (weights)
    throw UsageError(name.empty()
                         ? "tenon data fetch weights: the network's name is missing"
                         : fmt::format("tenon data fetch weights: none are known of '{}'", name),
                     fmt::format("the networks are: {}", join(names_of(sets), ", ")));
  if (!options.network.empty())
    throw UsageError(fmt::format("tenon data fetch: '{}' is one word too many", options.network),
                     "only 'weights' is followed by a network's name");
  throw UsageError(fmt::format("tenon data fetch: there is no dataset '{}'", name),
                   fmt::format("the datasets are: {}; 'weights NAME' fetches a network's weights",
                               join(names_of(sets), ", ")));
}

// An example command that uses the weights.
std::string next_with_weights(const KnownSet& set, const std::string& folder) {
  const models::Info info = models::info(set.model);
  const std::string weights =
      fmt::format("{} --weights {}/{}", set.model, shell_word(folder), set.files[0].name);
  train::Settings settings;
  settings.model = set.model;
  const train::TaskWords words = train::task_of(settings)->words(info);
  if (!info.takes_tokens()) return fmt::format("tenon {} {} photo.jpg", words.command, weights);
  return fmt::format("tenon {} {} --tokenizer {} {}", words.command, weights, shell_word(folder),
                     words.first.empty() ? words.arguments : words.first);
}

// Where --data SET finds a dataset, or where weights are kept.
std::string usual_folder(const KnownSet& set, bool weights) {
  const std::string all = data::default_data_dir();
  if (all.empty())
    throw UsageError(
        "tenon data fetch: there is no folder for datasets, because neither HOME nor "
        "TENON_DATA_DIR names one",
        "name a folder with --dir DIR");
  return fmt::format("{}/{}{}", all, weights ? "weights/" : "", set.name);
}

int fetch(const FetchOptions& options) {
  const KnownSet set = set_of(options);
  const bool weights = options.set == kWeights;
  catch_interrupts();
  const std::string folder = options.dir.empty() ? usual_folder(set, weights) : options.dir;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("{}: the folder cannot be created: {}", folder, failed.message()),
                  {.file = folder});
  const std::vector<std::string> bases =
      options.from.empty() ? set.mirrors : std::vector<std::string>{options.from};
  const bool archive = !set.unpacked.empty();
  for (const KnownFile& known : set.files) {
    const std::string target = folder + "/" + known.name;
    if (archive && is_unpacked(set, folder)) {
      fmt::print("{} already contains {}\n", folder, set.title);
      continue;
    }
    if (fs::exists(target) && fault_of(known, target).empty()) {
      fmt::print("{} already exists\n", target);
    } else {
      fetch_file(set, bases, known, target);
      if (interrupted()) {
        clear_status_line();
        fmt::print("stopped; run the same command to resume\n");
        return interrupt_code();
      }
      fmt::print("{}  {}, checked\n", target,
                 bytes_text(static_cast<std::int64_t>(fs::file_size(target))));
    }
    if (archive) unpack(set, folder, target);
  }
  const std::string spec = options.dir.empty() ? set.name : fmt::format("{}:{}", set.name, folder);
  fmt::print(
      "\nNext\n  {}\n",
      stdout_terminal().paint(TextStyle::Green,
                              weights ? next_with_weights(set, folder)
                                      : fmt::format("tenon train {} --data {}", set.model, spec)));
  return kOk;
}

}  // namespace

Command data_fetch_command() {
  auto options = std::make_shared<FetchOptions>();
  Command command;
  command.name = "fetch";
  const std::string all = data::default_data_dir();
  std::vector<std::string> names = names_of(known_sets()), sizes, weights;
  names.emplace_back(kWeights);
  for (const KnownSet& set : known_sets())
    sizes.push_back(fmt::format("{} ({})", set.title, set.size));
  for (const KnownSet& set : known_weights())
    weights.push_back(fmt::format("{} ({})", set.title, set.size));
  command.summary = "download MNIST, CIFAR or pretrained weights and verify them";
  command.about = fmt::format(
      "Downloads {} from public mirrors, verifies the files and stores them where --data SET finds "
      "them. An interrupted download is resumed; existing files are kept.\n\n'weights NAME' "
      "downloads the pretrained weights of network NAME by torchvision, timm or Hugging Face, and "
      "its tokenizer: {}. Files are verified by SHA-256. Redirects are followed to https:// only.",
      join(sizes, ", "), join(weights, ", "));
  command.examples = {
      {"tenon data fetch mnist", "From the first mirror that answers."},
      {"tenon data fetch mnist --dir data/mnist",
       "To a folder of your choice; then train with --data mnist:data/mnist."},
      {"tenon data fetch cifar10", "The binary version, unpacked."},
      {"tenon data fetch weights resnet50", "The weights published by torchvision."},
      {"tenon data fetch mnist --from file:///media/stick/mnist",
       "From another location with the same files."}};
  command.positional(options->set, "SET", join(names, ", ")).suggestions = names;
  command.positional(options->network, "NAME", "network, after 'weights'", false).suggestions =
      names_of(known_weights());
  command
      .option(options->dir, "--dir", "DIR", "folder for the files",
              all.empty() ? "none: neither HOME nor TENON_DATA_DIR names a folder"
                          : all + "/SET, or weights/NAME there")
      .completes = Completes::Folders;
  command.option(options->from, "--from", "URL",
                 "URL of a folder with the files (https://, http://, file://)", "public mirrors");
  command.run = [options] { return fetch(*options); };
  return command;
}

}  // namespace tenon::cli
