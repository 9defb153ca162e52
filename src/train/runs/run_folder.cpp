// POSIX files and file locks of a run folder.
#include "train/runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <tenon/error.h>
#include <tenon/log.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/folder_names.h"
#include "base/system/log.h"
#include "io/file.h"
#include "io/tensors/safetensors.h"
#include "train/runs/epoch_table.h"
#include "train/runs/sample_record.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;
constexpr char kSettingsKey[] = "settings", kDescriptionKey[] = "model", kEpochsKey[] = "epochs";
constexpr char kFormat[] = "tenon.checkpoint.2", kOlderFormat[] = "tenon.checkpoint.1";

std::string reason() { return std::generic_category().message(errno); }

bool is_checkpoint(const std::string& name) {
  return name.rfind("step-", 0) == 0 && name.size() > 17 &&
         name.substr(name.size() - 12) == ".safetensors";
}

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, digits.size() < 8 ? 8 - digits.size() : 0, '0');  // so that names sort by step
  return cat("step-", digits, ".safetensors");
}

int open_for_append(const std::string& path) {
  const int fd = io::open_to_write(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) throw make_error<IoError>(FileName{path}, ": cannot open the log: ", reason());
  return fd;
}

// Oldest first.
std::vector<std::string> checkpoint_names(const std::string& run_dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::string& name : names_in(run_dir + "/checkpoints", error))
    if (is_checkpoint(name)) names.push_back(std::move(name));
  if (error)
    throw make_error<IoError>(FileName{run_dir}, "/checkpoints: cannot be read: ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

Checkpoint load(const std::string& path) {
  io::SafeTensors file = io::load_safetensors(path);
  const auto format = file.metadata.find("format"), state = file.metadata.find("state");
  if (format != file.metadata.end() && format->second == kOlderFormat)
    throw make_error<FormatError>(
        FileName{path},
        " was written by an older version of Tenon, which selected weights by "
        "the test part: start a new run");
  if (format == file.metadata.end() || format->second != kFormat || state == file.metadata.end())
    throw make_error<FormatError>(FileName{path}, " is a safetensors file, but not a checkpoint");
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  Progress progress = progress_from_json(state->second, path);
  if (const std::string columns = text(kEpochsKey); !columns.empty())
    progress.history = take_epochs(columns, file.tensors, path);
  return {path, std::move(file.tensors), std::move(progress), text(kSettingsKey),
          text(kDescriptionKey)};
}

}  // namespace

StateDict Checkpoint::part(const std::string& prefix) const {
  StateDict out;
  for (const auto& [name, tensor] : tensors)
    if (name.rfind(prefix, 0) == 0) out.emplace(name.substr(prefix.size()), tensor);
  return out;
}

StateDict Checkpoint::kept_state() const {
  StateDict average = part(cat(kAveragePrefix, "module."));
  return average.empty() ? model_state() : average;
}

Settings settings_of_run(const std::string& dir) {
  const std::string file = dir + "/settings.toml";
  std::error_code ignored;
  if (!fs::is_directory(io::system_path(dir), ignored))
    throw make_error<IoError>(FileName{dir}, ": there is no such run folder");
  if (const int folds = io::is_there(file) ? 0 : folds_in(dir); folds > 0)
    throw make_error<IoError>(FileName{dir}, " holds ", folds,
                              " folds, and each fold is a run: give one of them, as in ", dir,
                              "/fold-1");
  io::require_visible(file);
  if (!io::is_there(file))
    throw make_error<IoError>(
        FileName{dir},
        " holds no run: settings.toml is missing, which a run writes after its first "
        "checkpoint. If the run was stopped earlier, start it again");
  return Settings::of_run(dir);
}

namespace {

// The checkpoint to be tried first comes last.
std::vector<std::string> checkpoints_to_try(const std::string& run_dir) {
  const std::string latest = run_dir + "/checkpoints/latest";
  std::vector<std::string> candidates = checkpoint_names(run_dir);
  if (candidates.empty() || !fs::exists(latest)) return candidates;
  std::string name = io::read_file(latest, 4096);
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
  const auto it = std::find(candidates.begin(), candidates.end(), name);
  if (it != candidates.end()) std::rotate(it, it + 1, candidates.end());
  return candidates;
}

}  // namespace

std::string settings_of_latest_checkpoint(const std::string& run_dir) {
  const std::vector<std::string> candidates = checkpoints_to_try(run_dir);
  for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {
    try {
      const io::Metadata head = io::inspect_safetensors(run_dir + "/checkpoints/" + *it).metadata;
      const auto settings = head.find(kSettingsKey);
      return settings == head.end() ? "" : settings->second;
    } catch (const Error&) {
      continue;  // loading the checkpoint reports the error
    }
  }
  return "";
}

std::optional<Checkpoint> load_latest_checkpoint(
    const std::string& run_dir, const std::function<void(const Checkpoint&)>& check) {
  const std::string folder = run_dir + "/checkpoints/";
  const std::vector<std::string> candidates = checkpoints_to_try(run_dir);
  if (candidates.empty()) return std::nullopt;
  std::string first_problem;
  for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {
    try {
      Checkpoint found = load(folder + *it);
      if (check) check(found);
      return found;
    } catch (const Error& error) {
      log_message(LogLevel::Warning,
                  cat("a checkpoint cannot be read and is skipped: ", error.what()));
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  throw make_error<FormatError>(FileName{run_dir},
                                ": no checkpoint can be read; the newest: ", first_problem);
}

bool has_checkpoint(const std::string& run_dir) {
  std::error_code ignored;
  return fs::is_directory(run_dir + "/checkpoints", ignored) && !checkpoint_names(run_dir).empty();
}

TuneTable load_engines(const std::string& run_dir) {
  const std::string file = run_dir + "/engines.tune";
  if (!fs::exists(file)) return {};
  try {
    return TuneTable::parse(io::read_file(file, 16 << 20));
  } catch (const Error& error) {
    log_message(LogLevel::Warning,
                cat(file, " is not used, so other engines may be chosen: ", error.what()));
    return {};
  }
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string name = folder + "/lock";
  file_ = io::open_to_write(name, O_RDWR | O_CREAT);
  if (file_ < 0)
    throw make_error<IoError>(FileName{name}, ": cannot write into the run folder: ", reason(),
                              "; choose another folder or check its permissions");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    char owner[32] = {};
    const ssize_t got = ::pread(file_, owner, sizeof owner - 1, 0);
    ::close(file_);
    if (code == EWOULDBLOCK)
      throw make_error<IoError>(
          FileName{folder}, " is in use by another run",
          got > 0 ? cat(" (process ", static_cast<const char*>(owner), ")") : "",
          ": wait for it to end, or choose another folder");
    throw make_error<IoError>(
        FileName{name}, ": cannot lock the run folder: ", std::generic_category().message(code));
  }
  // The process number is only information for users. The lock itself excludes other processes, so
  // a failed write does no harm.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, pid.data(), pid.size(), 0) < 0)
    log_message(LogLevel::Debug, cat(name, ": cannot note the process number: ", reason()));
}

FolderLock::~FolderLock() { ::close(file_); }

RunFolder::RunFolder(const std::string& path, bool resume) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  std::error_code error;
  if (resume && !fs::is_directory(io::system_path(path_), error))
    throw make_error<IoError>(FileName{path_}, ": there is no such run folder");
  error.clear();
  fs::create_directories(io::system_path(path_) + std::string("/checkpoints"), error);
  if (error)
    throw make_error<IoError>(FileName{path_}, ": cannot create the run folder: ", error.message(),
                              "; choose another folder or check its permissions");
  refuse_foreign_links();
  lock_.emplace(path_);
  if (!resume && holds_run())
    throw ValueError(cat(
        path_, " already holds a run: resume it (TrainOptions::resume), or choose another folder"));
  remove_leftovers(resume);
}

RunFolder::~RunFolder() {
  for (const int fd : {csv_, json_})
    if (fd >= 0) ::close(fd);
}

// Refuses links to files of other users before the first file is written. Writers of single files
// check again.
void RunFolder::refuse_foreign_links() const {
  for (const std::string& folder : {path_, path_ + "/checkpoints"}) {
    io::refuse_foreign_link(folder);
    std::error_code ignored;
    for (const std::string& name : names_in(folder, ignored))
      io::refuse_foreign_link(cat(folder, "/", name));
  }
}

// Whether the folder contains anything that a new run must not overwrite: settings, models,
// checkpoints after a step, or reports of epochs.
bool RunFolder::holds_run() const {
  for (const char* name : {"settings.toml", "model.safetensors", "best.safetensors"})
    if (fs::exists(file(name))) return true;
  for (const std::string& name : checkpoint_names(path_))
    if (name != checkpoint_name(0)) return true;
  if (!fs::exists(file("log.csv"))) return false;
  const std::string text = io::read_file(file("log.csv"), 4096);
  return text.find('\n') + 1 != text.size() || !text.starts_with("epoch,");
}

// Removes temporary files of a writer that was killed. A new run also removes the files of a run
// that stopped before its first step.
void RunFolder::remove_leftovers(bool resume) const {
  std::error_code ignored;
  for (const std::string& folder : {path_, path_ + "/checkpoints"})
    for (const std::string& name : names_in(folder, ignored))
      if (name.find(".tmp-") != std::string::npos) fs::remove(cat(folder, "/", name), ignored);
  if (resume) return;
  const std::string first = "checkpoints/" + checkpoint_name(0);
  for (const std::string& name :
       {first, std::string("checkpoints/latest"), std::string("log.csv"), std::string("log.jsonl"),
        std::string("engines.tune"), std::string(kSampleRecordFile)})
    fs::remove(file(name), ignored);
}

std::string RunFolder::save(const Checkpoint& checkpoint, int keep) {
  const std::string name = checkpoint_name(checkpoint.progress.step);
  std::string path = file("checkpoints/" + name);
  io::Metadata head{{"format", kFormat}, {"state", to_json(checkpoint.progress)}};
  if (!checkpoint.settings.empty()) head.emplace(kSettingsKey, checkpoint.settings);
  if (!checkpoint.model.empty()) head.emplace(kDescriptionKey, checkpoint.model);
  if (!checkpoint.epochs.empty()) head.emplace(kEpochsKey, checkpoint.epochs);
  io::save_checked_safetensors(path, checkpoint.tensors, head);
  io::write_file(file("checkpoints/latest"), name + "\n");
  const std::vector<std::string> names = checkpoint_names(path_);
  const auto surplus = static_cast<std::int64_t>(names.size()) - std::max(keep, 1);
  std::error_code ignored;
  for (std::int64_t k = 0; k < surplus; ++k)
    if (names[static_cast<std::size_t>(k)] != name)
      fs::remove(file("checkpoints/" + names[static_cast<std::size_t>(k)]), ignored);
  return path;
}

void RunFolder::open_logs(const Progress& progress, std::vector<std::string> own) {
  own_metrics_ = std::move(own);
  const std::string lines = fs::exists(file("log.jsonl")) ? io::read_file(file("log.jsonl")) : "";
  io::write_file(file("log.jsonl"), json_log_until(lines, progress.step));
  json_ = open_for_append(file("log.jsonl"));
  rewrite_csv(progress.history);
}

void RunFolder::rewrite_csv(const std::vector<EpochReport>& history) {
  std::map<std::int64_t, TestReport> by_step;
  for (const TestReport& test : read_log(io::read_file(file("log.jsonl"))).tests)
    by_step[test.step] = test;
  std::string csv = csv_header(own_metrics_);
  for (const EpochReport& epoch : history) {
    const auto test = by_step.find(epoch.step);
    csv += csv_line(epoch, test == by_step.end() ? std::nullopt : std::optional(test->second),
                    own_metrics_);
  }
  io::write_file(file("log.csv"), csv);
  if (csv_ >= 0) ::close(csv_);  // the descriptor of the replaced file
  csv_ = -1;
  csv_ = open_for_append(file("log.csv"));
}

std::optional<TestReport> RunFolder::test_report(std::int64_t step) const {
  const RunLog log = read_log(io::read_file(file("log.jsonl")));
  const auto found = std::find_if(log.tests.rbegin(), log.tests.rend(),
                                  [&](const TestReport& test) { return test.step == step; });
  return found == log.tests.rend() ? std::nullopt : std::optional(*found);
}

void RunFolder::append(int fd, const char* name, const std::string& text) {
  if (fd < 0) return;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw make_error<IoError>(FileName{file(name)}, ": cannot write the log: ", reason(),
                                "; the run can be resumed from its latest checkpoint");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace tenon::train
