// Parses paths inside data sources: KIND:PATH, csv:PATH,test=PATH, npy:PATH,PATH.
#include "train/runs/run_data.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/digest.h"
#include "base/str.h"
#include "base/system/folder_names.h"
#include "data/images/image_items.h"
#include "data/samples/source_parts.h"
#include "io/file.h"
#include "io/text/encoding.h"
#include "train/settings/resolved.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

std::string kind_of_source(const std::string& spec) { return spec.substr(0, spec.find(':')); }

// The source with `change` applied to each of its paths, which are looked for from `base` on.
template <class F>
std::string with_paths(const std::string& spec, const fs::path& base, const F& change) {
  const std::string kind = kind_of_source(spec);
  const std::string rest = spec.substr(kind.size() + 1);
  std::string out;
  std::size_t which = 0;
  for (const std::string& part : data::source_parts(rest, kind == "npy", base)) {
    const std::size_t path = data::path_in_part(kind, part, which);
    out += which++ == 0 ? kind + ":" : ",";
    out += path == std::string::npos ? part : part.substr(0, path) + change(part.substr(path));
  }
  return out;
}

// The first path that is not there when relative ones start at `base`.
std::optional<std::string> missing_from(const std::string& spec, const fs::path& base) {
  std::optional<std::string> missing;
  with_paths(spec, base, [&](const std::string& path) {
    // A pattern names files of one folder.
    const bool pattern = path.find_first_of("*{") != std::string::npos;
    const fs::path place = base / path;
    if (!missing && !io::is_there((pattern ? place.parent_path() / "." : place).string()))
      missing = path;
    return path;
  });
  return missing;
}

// Fewer where more commas belong to names.
std::size_t parts_from(const std::string& spec, const fs::path& base) {
  const std::string kind = kind_of_source(spec);
  return data::source_parts(spec.substr(kind.size() + 1), kind == "npy", base).size();
}

// The source with its paths from `base` on.
std::string from_base(const std::string& spec, const fs::path& base) {
  return with_paths(spec, base, [&](const std::string& path) { return (base / path).string(); });
}

// A run's folder and those above it, nearest first.
std::vector<fs::path> folders_from(const std::string& run_dir) {
  std::error_code ignored;
  std::vector<fs::path> out;
  for (fs::path base = fs::weakly_canonical(run_dir, ignored); base.has_relative_path();
       base = base.parent_path())
    out.push_back(base);
  return out;
}

// What a source names: its kind, the paths of its samples, its test file ("" without one), and the
// other options.
struct Named {
  std::string kind{}, test{};
  std::vector<std::string> paths{}, options{};
};

Named named(const std::string& spec) {
  Named out{.kind = kind_of_source(spec)};
  if (!has_path(spec)) return out;
  const std::string rest = spec.substr(out.kind.size() + 1);
  std::size_t which = 0;
  for (const std::string& part : data::source_parts(rest, out.kind == "npy")) {
    const std::size_t path = data::path_in_part(out.kind, part, which++);
    if (part.starts_with("test=") && path != std::string::npos)
      out.test = part.substr(path);
    else if (path != 0)
      out.options.push_back(part);
    else
      out.paths.push_back(part);
  }
  return out;
}

// Patterns of shards are compared by their folder and their text.
bool same_path(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path first = fs::weakly_canonical(a, ignored),
                 second = fs::weakly_canonical(b, ignored);
  return !first.empty() && first == second;
}

// The last name of a path, whether or not it ends with a slash.
std::string last_name(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}

template <class Same>
bool all_same(const std::vector<std::string>& a, const std::vector<std::string>& b, Same&& same) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

}  // namespace

void refuse_tested_training(const std::string& spec) {
  const Named source = named(spec);
  const std::size_t count = source.paths.size();
  const std::string test = !source.test.empty()                 ? source.test
                           : source.kind == "npy" && count == 4 ? source.paths[2]
                                                                : std::string();
  if (count > 0 && !test.empty() && same_path(source.paths[0], test))
    throw ValueError(cat("data '", spec, "': the test part ", test,
                         " is the training part: name another one, or leave it out and divide the "
                         "samples (split=SHARE)"));
}

bool read_alike(const std::string& a, const std::string& b) {
  if (!has_path(a) || !has_path(b)) return a == b;
  const Named first = named(a), second = named(b);
  return first.kind == second.kind && first.paths.size() == second.paths.size() &&
         first.test.empty() == second.test.empty() && first.options == second.options;
}

bool is_own_data(const std::string& data, const std::string& located) {
  if (located.empty() || kind_of_source(data) != kind_of_source(located)) return false;
  if (!has_path(data) && !has_path(located)) return true;
  const Named given = named(data), own = named(located);
  return all_same(given.paths, own.paths, same_path) &&
         (given.test.empty() || same_path(given.test, own.test));
}

std::optional<std::string> moved_data(const std::string& data, const std::string& run_data) {
  if (!has_path(data) || kind_of_source(data) != kind_of_source(run_data)) return std::nullopt;
  const Named given = named(data), own = named(run_data);
  const auto same = [](const std::string& a, const std::string& b) {
    return last_name(a) == last_name(b);
  };
  if (!all_same(given.paths, own.paths, same) ||
      (!given.test.empty() && !same(given.test, own.test)))
    return std::nullopt;
  std::string out = own.kind + ":";
  for (const std::string& path : given.paths) out += (out.ends_with(':') ? "" : ",") + path;
  for (const std::string& option : own.options) out += "," + option;
  const std::string& test = given.test.empty() ? own.test : given.test;
  return test.empty() ? out : out + ",test=" + test;
}

std::vector<std::string> data_near(const std::string& run_data, const std::string& run_dir) {
  std::vector<std::string> out;
  if (!has_path(run_data)) return out;
  for (const fs::path& base : folders_from(run_dir))
    if (!missing_from(run_data, base)) out.push_back(from_base(run_data, base));
  return out;
}

std::string read_as_run(const std::string& data, const std::string& run_data) {
  const std::string kind = kind_of_source(data);
  if (kind != kind_of_source(run_data) || !has_path(data)) return data;
  const auto key_of = [](const std::string& option) { return option.substr(0, option.find('=')); };
  const bool rows = kind == "csv" || kind == "list" || kind == "lines" || kind == "pairs";
  const auto is_reading = [&](const std::string& key) {
    if (rows && (key == "separator" || key == "comment" || key == "quotes" || key == "header"))
      return true;
    if (kind == "csv")
      return key == "decimal" || key == "thousands" || key == "shape" || key == "column";
    if (kind == "lines") return key == "class" || key == "length";
    return (kind == "folder" || kind == "list") && (key == "frames" || key == "every");
  };
  const Named given = named(data);
  if (given.paths.empty()) return data;
  std::string out = data;
  for (const std::string& option : named(run_data).options) {
    const std::string key = key_of(option);
    const bool told = std::any_of(given.options.begin(), given.options.end(),
                                  [&](const std::string& other) { return key_of(other) == key; });
    const bool encoding = key == "encoding" && rows && kind != "csv" && !told &&
                          io::is_there(given.paths[0]) &&
                          io::not_utf8(io::read_file(given.paths[0])) != std::string::npos;
    if (encoding || (!told && is_reading(key))) out += "," + option;
  }
  return out;
}

std::string as_long_as_seen(const std::string& data, const models::Info& model) {
  if (data.find(",length=") != std::string::npos) return data;
  const bool windows = model.tokens && data.starts_with("text:"),
             lines = data.starts_with("lines:") && model.takes_tokens() &&
                     model.input[0] < data::ClassLineOptions().length;
  return windows || lines ? cat(data, ",length=", model.input[0]) : data;
}

std::int64_t text_length(const ResolvedModel& model) {
  constexpr std::string_view kLength = "length=";
  const std::int64_t most = model.info().input[0];
  if (!model.settings.data.starts_with("lines:")) return most;
  std::int64_t length = data::ClassLineOptions().length;
  for (const std::string& option : named(model.settings.data).options)
    if (option.starts_with(kLength))
      length = data::spec_number(option.substr(kLength.size()), model.settings.data);
  return std::clamp<std::int64_t>(length, 1, most);
}

bool is_drawn_source(const std::string& spec) {
  const data::SourceKind* const kind = data::source_kind(spec);
  return kind != nullptr && kind->generated;
}

bool names_test_part(const std::string& spec) {
  const data::SourceKind* const kind = data::source_kind(spec);
  if (kind != nullptr && kind->published) return true;
  const Named source = named(spec);
  return !source.test.empty() || (source.kind == "npy" && source.paths.size() == 4);
}

bool has_test_files(const std::string& spec) {
  if (names_test_part(spec)) return true;
  const Named source = named(spec);
  const bool divided =
      std::find(source.options.begin(), source.options.end(), "parts=no") != source.options.end();
  return source.kind == "folder" && !source.paths.empty() && !divided &&
         data::has_test_folder(source.paths[0]);
}

bool has_path(const std::string& spec) {
  const data::SourceKind* const kind = data::source_kind(spec);
  const std::size_t colon = spec.find(':');
  return kind != nullptr && !kind->generated && colon == std::string_view(kind->name).size() &&
         colon + 1 < spec.size();
}

std::string locate_data(const std::string& spec, const std::string& run_dir) {
  if (!has_path(spec)) return spec;
  const std::optional<std::string> missing = missing_from(spec, "");
  if (!missing && spec.find(',') == std::string::npos) return spec;
  // A short name that is here by chance does not hide a longer one, with a comma, of the run.
  const std::size_t parts_here = parts_from(spec, "");
  for (const fs::path& base : folders_from(run_dir))
    if (!missing_from(spec, base) && (missing || parts_from(spec, base) < parts_here))
      return from_base(spec, base);
  if (!missing) return spec;
  throw IoError(cat("the data of ", run_dir, ", '", spec, "', is not here: there is no ", *missing,
                    fs::path(*missing).is_relative()
                        ? ", neither from this folder nor from the run's or one above it"
                        : "",
                    "; give its new path with --data"));
}

std::string locate_file(const std::string& path, const std::string& run_dir) {
  if (path.empty() || fs::path(path).is_absolute() || io::is_there(path)) return path;
  for (const fs::path& base : folders_from(run_dir))
    if (std::string there = (base / path).string(); io::is_there(there)) return there;
  return path;
}

std::string digest_of_path(const std::string& path) {
  if (path.empty() || !io::is_there(path)) return "";
  std::error_code ignored;
  std::vector<std::string> files;
  if (fs::is_directory(io::system_path(path), ignored)) {
    for (const std::string& name : names_in(path, ignored)) {
      const std::string kind = fs::path(name).extension().string();
      for (const char* known : {".safetensors", ".json", ".bin", ".pt", ".pth", ".txt", ".toml"})
        if (kind == known) files.push_back(name);
    }
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back();
  }
  Digester digester;
  for (const std::string& name : files) {
    digester.add(name);
    const io::MappedFile file(name.empty() ? path : cat(path, "/", name));
    digester.add(checksum(file.bytes()));
    file.require_whole();
  }
  return digester.result().hex();
}

}  // namespace tenon::train
