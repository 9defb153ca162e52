// Paths inside data sources: KIND:PATH, csv:PATH,test=PATH, npy:PATH,PATH.
#include "train/run_data.h"

#include <filesystem>
#include <optional>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "data/source_parts.h"
#include "io/file.h"

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
    // A pattern stands for files of one folder.
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

}  // namespace

bool has_path(const std::string& spec) {
  const std::string kind = kind_of_source(spec);
  return spec.size() > kind.size() + 1 &&
         (kind == "idx" || kind == "mnist" || kind == "cifar10" || kind == "cifar100" ||
          kind == "csv" || kind == "npy" || kind == "text" || kind == "lines" || kind == "pairs" ||
          kind == "spans" || kind == "folder" || kind == "list" || kind == "shards");
}

std::string locate_data(const std::string& spec, const std::string& run_dir) {
  if (!has_path(spec)) return spec;
  const std::optional<std::string> missing = missing_from(spec, "");
  if (!missing && spec.find(',') == std::string::npos) return spec;
  // A short name that is here by chance does not hide a longer one, with a comma, of the run.
  const std::size_t parts_here = parts_from(spec, "");
  std::error_code ignored;
  const fs::path dir = fs::weakly_canonical(run_dir, ignored);
  for (fs::path base = dir; base.has_relative_path(); base = base.parent_path())
    if (!missing_from(spec, base) && (missing || parts_from(spec, base) < parts_here))
      return with_paths(spec, base,
                        [&](const std::string& path) { return (base / path).string(); });
  if (!missing) return spec;
  throw IoError(cat("the data of ", run_dir, ", '", spec, "', is not here: there is no ", *missing,
                    fs::path(*missing).is_relative()
                        ? ", neither from this folder nor from the run's or one above it"
                        : "",
                    "; say with --data where it lies now"));
}

}  // namespace tenon::train
