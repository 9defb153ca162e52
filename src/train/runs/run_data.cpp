// Compares data sources, and looks for their paths.
#include "train/runs/run_data.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/digest.h"
#include "base/make_error.h"
#include "base/str.h"
#include "base/system/folder_names.h"
#include "data/images/image_items.h"
#include "data/samples/published_sets.h"
#include "data/samples/source_parts.h"
#include "io/file.h"
#include "io/text/encoding.h"
#include "train/settings/data_source.h"
#include "train/settings/resolved.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

// The first path that does not exist. Relative paths start at `base`.
std::optional<std::string> missing_from(const DataSource& source, const fs::path& base) {
  for (const DataSource::Part& part : source.parts) {
    if (part.path == std::string::npos) continue;
    std::string path = part.text.substr(part.path);
    // A pattern such as "*.csv" names files of one folder, so only the folder is checked.
    const bool pattern = path.find_first_of("*{") != std::string::npos;
    const fs::path place = base / path;
    if (!io::is_there((pattern ? place.parent_path() / "." : place).string())) return path;
  }
  return std::nullopt;
}

// The source with relative paths resolved from `base`.
DataSource from_base(const DataSource& source, const fs::path& base) {
  return source.with_paths([&](const std::string& path) { return (base / path).string(); });
}

// The run's folder and its parent folders, nearest first.
std::vector<fs::path> folders_from(const std::string& run_dir) {
  std::error_code ignored;
  std::vector<fs::path> out;
  for (fs::path base = fs::weakly_canonical(run_dir, ignored); base.has_relative_path();
       base = base.parent_path())
    out.push_back(base);
  return out;
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

// MNIST has the files of "idx:FOLDER".
std::string format_of(const DataSource& source) {
  return source.kind == "mnist" ? "idx" : source.kind;
}

// The paths of the source. A published dataset without a path has its default folder.
std::vector<std::string> places_of(const DataSource& source) {
  if (source.has_path() || source.known == nullptr || !source.known->published) return source.paths;
  return {data::published_folder(source.kind)};
}

}  // namespace

bool have_same_reading(const DataSource& a, const DataSource& b) {
  if (!a.has_path() || !b.has_path()) return a.text == b.text;
  return a.kind == b.kind && a.paths.size() == b.paths.size() && a.test.empty() == b.test.empty() &&
         a.options == b.options;
}

bool is_own_data(const DataSource& given, const DataSource& own) {
  if (own.text.empty() || format_of(given) != format_of(own)) return false;
  if (!given.has_path() && !own.has_path()) return true;
  return all_same(places_of(given), places_of(own), data::same_path) &&
         (given.test.empty() || data::same_path(given.test, own.test));
}

std::optional<DataSource> moved_data(const DataSource& given, const DataSource& own) {
  if (!given.has_path() || given.kind != own.kind) return std::nullopt;
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
  return DataSource(test.empty() ? out : out + ",test=" + test);
}

std::vector<DataSource> data_near(const DataSource& own, const std::string& run_dir) {
  std::vector<DataSource> out;
  if (!own.has_path()) return out;
  for (const fs::path& base : folders_from(run_dir))
    if (const DataSource there(own.text, base); !missing_from(there, base))
      out.push_back(from_base(there, base));
  return out;
}

DataSource read_as_run(const DataSource& given, const DataSource& own) {
  const std::string& kind = given.kind;
  if (kind != own.kind || !given.has_path()) return given;
  const bool rows = kind == "csv" || kind == "list" || kind == "lines" || kind == "pairs";
  const auto is_reading = [&](const std::string& key) {
    if (rows && (key == "separator" || key == "comment" || key == "quotes" || key == "header"))
      return true;
    if (kind == "csv")
      return key == "decimal" || key == "thousands" || key == "shape" || key == "column";
    if (kind == "lines") return key == "class" || key == "length";
    return (kind == "folder" || kind == "list") && (key == "frames" || key == "every");
  };
  DataSource out = given;
  for (const std::string& option : own.options) {
    const std::string key = option.substr(0, option.find('='));
    const bool told = given.option(key).has_value();
    const bool encoding = key == "encoding" && rows && kind != "csv" && !told &&
                          io::is_there(given.paths[0]) &&
                          io::not_utf8(io::read_file(given.paths[0])) != std::string::npos;
    if (encoding || (!told && is_reading(key))) out = out.with_option(option);
  }
  return out;
}

DataSource with_context_length(const DataSource& source, const models::Info& model) {
  if (source.option("length")) return source;
  const bool windows = model.tokens && source.kind == "text",
             lines = source.kind == "lines" && model.takes_tokens() &&
                     model.input[0] < data::ClassLineOptions().length;
  return windows || lines ? source.with_option(cat("length=", model.input[0])) : source;
}

std::int64_t text_length(const ResolvedModel& model) {
  const std::int64_t most = model.info().input[0];
  const DataSource& source = model.data;
  if (source.kind != "lines") return most;
  const std::optional<std::string> told = source.option("length");
  const std::int64_t length =
      told ? data::spec_number(*told, source.text) : data::ClassLineOptions().length;
  return std::clamp<std::int64_t>(length, 1, most);
}

bool has_test_files(const DataSource& source) {
  if (source.names_test_part()) return true;
  return source.kind == "folder" && source.has_path() && source.option("parts") != "no" &&
         data::has_test_folder(source.paths[0]);
}

DataSource locate_data(const DataSource& source, const std::string& run_dir) {
  if (!source.has_path()) return source;
  const std::optional<std::string> missing = missing_from(source, "");
  if (!missing && source.text.find(',') == std::string::npos) return source;
  // The run's file may have a comma in its name, and then has fewer parts. An existing file whose
  // name is only the part before the comma is not taken for it.
  for (const fs::path& base : folders_from(run_dir)) {
    const DataSource there(source.text, base);
    if (!missing_from(there, base) && (missing || there.parts.size() < source.parts.size()))
      return from_base(there, base);
  }
  if (!missing) return source;
  throw make_error<IoError>("the data of ", run_dir, ", '", source.text,
                            "', is not here: there is no ", FileName{*missing},
                            fs::path(*missing).is_relative()
                                ? ", neither from this folder nor from the run's or one above it"
                                : "",
                            "; give its new path with --data");
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
