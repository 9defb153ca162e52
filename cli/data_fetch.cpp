// tenon data fetch: MNIST's four files from public mirrors, checked by what they hold.
#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/io.h>

#include <exception>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "data_paths.h"
#include "download.h"
#include "errors.h"
#include "interrupt.h"
#include "progress.h"
#include "sha256.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// The sums are of the values behind the headers, so that a file compressed by another gzip is as
// good.
struct KnownFile {
  const char* name;
  Shape shape;
  const char* sum;
};

const std::vector<KnownFile>& mnist_files() {
  static const std::vector<KnownFile> files = {
      {"train-images-idx3-ubyte.gz",
       {60000, 28, 28},
       "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"},
      {"train-labels-idx1-ubyte.gz",
       {60000},
       "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"},
      {"t10k-images-idx3-ubyte.gz",
       {10000, 28, 28},
       "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"},
      {"t10k-labels-idx1-ubyte.gz",
       {10000},
       "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5"},
  };
  return files;
}

const std::vector<std::string> kMirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                                           "https://storage.googleapis.com/cvdf-datasets/mnist"};

struct FetchOptions {
  std::string set, dir, from;
};

// "" when the file is the known one, else what is wrong with it.
std::string fault_of(const KnownFile& known, const std::string& path) {
  try {
    const Tensor values = io::load_idx(path);
    if (values.shape() != known.shape)
      return fmt::format("it holds {}, not {}", values.shape().str(), known.shape.str());
    const std::string sum =
        sha256(values.data(), static_cast<std::size_t>(values.numel()) * item_size(values.dtype()));
    return sum == known.sum ? ""
                            : fmt::format("its checksum is {}..., not {}...", sum.substr(0, 12),
                                          std::string(known.sum).substr(0, 12));
  } catch (const FormatError& error) {
    return error.what();
  }
}

void download_showing(const std::string& url, const std::string& part, const std::string& name) {
  download(url, part, [&](std::int64_t done, std::int64_t total) {
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    status_line(
        fmt::format("{} {} {}", pad_right(name, 27), bar_text(share, 30), bytes_text(done)));
    return !interrupted();
  });
  clear_status_line();
}

// Fetches and checks one file from one address. A part left from before is used, and thrown away
// when it turns out wrong.
void fetch_from(const std::string& base, const KnownFile& known, const std::string& target) {
  const std::string part = target + ".part", url = base + "/" + known.name;
  const bool resumed = fs::exists(part) && fs::file_size(part) > 0;
  download_showing(url, part, known.name);
  std::string fault = fault_of(known, part);
  if (!fault.empty() && resumed) {
    fs::remove(part);
    download_showing(url, part, known.name);
    fault = fault_of(known, part);
  }
  if (!fault.empty()) {
    fs::remove(part);
    throw FormatError(fmt::format("{}: this is not MNIST's {}: {}", url, known.name, fault));
  }
  fs::rename(part, target);
}

void fetch_file(const std::vector<std::string>& bases, const KnownFile& known,
                const std::string& target) {
  std::string failures;
  std::exception_ptr last;
  for (const std::string& base : bases) {
    try {
      fetch_from(base, known, target);
      return;
    } catch (const NotSupported&) {
      throw;
    } catch (const Error& error) {
      std::error_code ignored;  // an empty part is of no use to the next attempt
      const std::string part = target + ".part";
      if (fs::file_size(part, ignored) == 0) fs::remove(part, ignored);
      if (interrupted()) return;
      failures += fmt::format("\n  {}", error.what());
      last = std::current_exception();
    }
  }
  clear_status_line();
  if (bases.size() == 1) std::rethrow_exception(last);
  throw IoError(
      fmt::format("{} could not be fetched:{}\nwithout a network: put MNIST's four files into {} "
                  "by hand, name another "
                  "place with --from URL, or train on drawn digits (--data digits)",
                  known.name, failures, fs::path(target).parent_path().string()));
}

int fetch(const FetchOptions& options) {
  if (options.set != "mnist")
    throw UsageError(fmt::format("tenon data fetch: there is no set '{}'", options.set),
                     "the set is: mnist");
  catch_interrupts();
  const std::string folder = options.dir.empty() ? mnist_folder() : options.dir;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("{}: the folder cannot be made: {}", folder, failed.message()));
  const std::vector<std::string> bases =
      options.from.empty() ? kMirrors : std::vector<std::string>{options.from};
  for (const KnownFile& known : mnist_files()) {
    const std::string target = folder + "/" + known.name;
    if (fs::exists(target) && fault_of(known, target).empty()) {
      fmt::print("{} is there already\n", target);
      continue;
    }
    fetch_file(bases, known, target);
    if (interrupted()) {
      clear_status_line();
      fmt::print("stopped; the same command goes on where it was\n");
      return interrupt_code();
    }
    fmt::print("{}  {}, checked\n", target,
               bytes_text(static_cast<std::int64_t>(fs::file_size(target))));
  }
  const std::string spec = options.dir.empty() ? "mnist" : "mnist:" + options.dir;
  fmt::print(
      "\nNext\n  {}\n",
      stdout_terminal().paint(TextStyle::Green, fmt::format("tenon train lenet5 --data {}", spec)));
  return kOk;
}

}  // namespace

Command data_fetch_command() {
  auto options = std::make_shared<FetchOptions>();
  Command command;
  command.name = "fetch";
  command.summary = "fetch MNIST (12 MB) and check it";
  command.about =
      "Fetches MNIST's four files from its public mirrors, checks them and puts them where --data "
      "mnist finds them. An "
      "interrupted download goes on where it stopped; files that are there already are checked and "
      "kept.";
  command.examples = {{"tenon data fetch mnist", "From the first mirror that answers."},
                      {"tenon data fetch mnist --dir data/mnist",
                       "Into a folder of your own; then train with --data mnist:data/mnist."},
                      {"tenon data fetch mnist --from file:///media/stick/mnist",
                       "From another place that has the same files."}};
  command.positional(options->set, "SET", "mnist").suggestions = {"mnist"};
  command.option(options->dir, "--dir", "DIR", "where to put the files", mnist_folder()).completes =
      Completes::Folders;
  command.option(options->from, "--from", "URL",
                 "address of a folder that has the files (https://, http://, file://)",
                 "the public mirrors");
  command.run = [options] { return fetch(*options); };
  return command;
}

}  // namespace tenon::cli
