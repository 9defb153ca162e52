// tenon data fetch: MNIST's four files, or an archive of CIFAR's, from public mirrors, checked by
// what they hold.
#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/io.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "download.h"
#include "errors.h"
#include "interrupt.h"
#include "progress.h"
#include "sha256.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// What a set is made of, and where it lies.
struct KnownFile {
  const char* name;
  const char* sum;
  Shape shape{};  ///< of the values that the sum is of; [] for a sum of the file's bytes
};

struct Unpacked {
  const char* name;
  std::uint64_t bytes;
};

struct KnownSet {
  const char *name, *title, *size;
  const char* model;  ///< that learns it
  std::vector<std::string> mirrors;
  std::vector<KnownFile> files;
  std::vector<Unpacked> unpacked;  ///< out of an archive, which is then removed
};

// MNIST's sums are of the values behind the headers, so that a file compressed by another gzip is
// as good.
const std::vector<KnownSet>& known_sets() {
  constexpr std::uint64_t kBatch = 30'730'000, kRecord = 2 + 3 * 32 * 32;
  static const std::string toronto = "https://www.cs.toronto.edu/~kriz";
  static const std::vector<KnownSet> sets = {
      {"mnist",
       "MNIST",
       "12 MB",
       "lenet5",
       {"https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist"},
       {{"train-images-idx3-ubyte.gz",
         "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
         {60000, 28, 28}},
        {"train-labels-idx1-ubyte.gz",
         "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
         {60000}},
        {"t10k-images-idx3-ubyte.gz",
         "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
         {10000, 28, 28}},
        {"t10k-labels-idx1-ubyte.gz",
         "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
         {10000}}},
       {}},
      {"cifar10",
       "CIFAR-10",
       "170 MB",
       "resnet20",
       {toronto},
       {{"cifar-10-binary.tar.gz",
         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
       {{"data_batch_1.bin", kBatch},
        {"data_batch_2.bin", kBatch},
        {"data_batch_3.bin", kBatch},
        {"data_batch_4.bin", kBatch},
        {"data_batch_5.bin", kBatch},
        {"test_batch.bin", kBatch},
        {"batches.meta.txt", 0}}},
      {"cifar100",
       "CIFAR-100",
       "169 MB",
       "resnet20",
       {toronto},
       {{"cifar-100-binary.tar.gz",
         "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
       {{"train.bin", 50'000 * kRecord},
        {"test.bin", 10'000 * kRecord},
        {"fine_label_names.txt", 0}}}};
  return sets;
}

struct FetchOptions {
  std::string set, dir, from;
};

// "" when the sum is the known one, else what is wrong with it.
std::string sum_fault(const KnownFile& known, const void* data, std::size_t size) {
  const std::string sum = sha256(data, size);
  return sum == known.sum ? ""
                          : fmt::format("its checksum is {}..., not {}...", sum.substr(0, 12),
                                        std::string(known.sum).substr(0, 12));
}

// "" when the file is the known one, else what is wrong with it.
std::string fault_of(const KnownFile& known, const std::string& path) {
  try {
    if (known.shape.rank() == 0) {
      const std::string bytes = io::read_file(path);
      return sum_fault(known, bytes.data(), bytes.size());
    }
    const Tensor values = io::load_idx(path);
    if (values.shape() != known.shape)
      return fmt::format("it holds {}, not {}", values.shape().str(), known.shape.str());
    return sum_fault(known, values.data(),
                     static_cast<std::size_t>(values.numel()) * item_size(values.dtype()));
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
void fetch_from(const KnownSet& set, const std::string& base, const KnownFile& known,
                const std::string& target) {
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
    throw FormatError(
        fmt::format("{}: this is not {}'s {}: {}", url, set.title, known.name, fault));
  }
  fs::rename(part, target);
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
      fmt::format("{} could not be fetched:{}\nwithout a network: put {}'s files into {} by hand, "
                  "name another place with --from URL, or train on what is drawn (--data digits, "
                  "--data scenes)",
                  known.name, failures, set.title, fs::path(target).parent_path().string()));
}

bool is_unpacked(const KnownSet& set, const std::string& folder) {
  return std::all_of(set.unpacked.begin(), set.unpacked.end(), [&](const Unpacked& file) {
    std::error_code failed;
    const std::uint64_t bytes = fs::file_size(fs::path(folder) / file.name, failed);
    return !failed && (file.bytes == 0 || bytes == file.bytes);
  });
}

// Puts an archive's files where it lies, and removes it.
void unpack(const KnownSet& set, const std::string& folder, const std::string& archive) {
  std::vector<std::string> names;
  for (const Unpacked& file : set.unpacked) names.emplace_back(file.name);
  io::unpack_tar(archive, folder, names);
  fs::remove(archive);
  for (const std::string& name : names) fmt::print("{}/{}\n", folder, name);
}

const KnownSet& set_of(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownSet& set : known_sets()) {
    if (set.name == name) return set;
    names.emplace_back(set.name);
  }
  throw UsageError(fmt::format("tenon data fetch: there is no set '{}'", name),
                   fmt::format("the sets are: {}", join(names, ", ")));
}

int fetch(const FetchOptions& options) {
  const KnownSet& set = set_of(options.set);
  catch_interrupts();
  const std::string folder =
      options.dir.empty() ? fmt::format("{}/{}", data::default_data_dir(), set.name) : options.dir;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("{}: the folder cannot be made: {}", folder, failed.message()));
  const std::vector<std::string> bases =
      options.from.empty() ? set.mirrors : std::vector<std::string>{options.from};
  const bool archive = !set.unpacked.empty();
  for (const KnownFile& known : set.files) {
    const std::string target = folder + "/" + known.name;
    if (archive && is_unpacked(set, folder)) {
      fmt::print("{} holds {} already\n", folder, set.title);
      continue;
    }
    if (fs::exists(target) && fault_of(known, target).empty()) {
      fmt::print("{} is there already\n", target);
    } else {
      fetch_file(set, bases, known, target);
      if (interrupted()) {
        clear_status_line();
        fmt::print("stopped; the same command goes on where it was\n");
        return interrupt_code();
      }
      fmt::print("{}  {}, checked\n", target,
                 bytes_text(static_cast<std::int64_t>(fs::file_size(target))));
    }
    if (archive) unpack(set, folder, target);
  }
  const std::string spec = options.dir.empty() ? set.name : fmt::format("{}:{}", set.name, folder);
  fmt::print("\nNext\n  {}\n",
             stdout_terminal().paint(TextStyle::Green,
                                     fmt::format("tenon train {} --data {}", set.model, spec)));
  return kOk;
}

}  // namespace

Command data_fetch_command() {
  auto options = std::make_shared<FetchOptions>();
  Command command;
  command.name = "fetch";
  std::vector<std::string> names, sizes;
  for (const KnownSet& set : known_sets()) {
    names.emplace_back(set.name);
    sizes.push_back(fmt::format("{} ({})", set.title, set.size));
  }
  command.summary = "fetch MNIST, CIFAR-10 or CIFAR-100 and check it";
  command.about = fmt::format(
      "Fetches {} from public mirrors, checks the files and puts them where --data SET finds them. "
      "An interrupted download goes on where it stopped; files that are there already are kept.",
      join(sizes, ", "));
  command.examples = {{"tenon data fetch mnist", "From the first mirror that answers."},
                      {"tenon data fetch mnist --dir data/mnist",
                       "Into a folder of your own; then train with --data mnist:data/mnist."},
                      {"tenon data fetch cifar10", "Its binary version, unpacked."},
                      {"tenon data fetch mnist --from file:///media/stick/mnist",
                       "From another place that has the same files."}};
  command.positional(options->set, "SET", join(names, ", ")).suggestions = names;
  command
      .option(options->dir, "--dir", "DIR", "where to put the files",
              data::default_data_dir() + "/SET")
      .completes = Completes::Folders;
  command.option(options->from, "--from", "URL",
                 "address of a folder that has the files (https://, http://, file://)",
                 "the public mirrors");
  command.run = [options] { return fetch(*options); };
  return command;
}

}  // namespace tenon::cli
