// Splits the text after the kind of a data source, "FILE,length=20", into path and options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::data {

/// Splits at commas. The first part, parts that begin with "test=", and with `only_paths` all parts
/// are paths: a path continues after a comma as long as such a file or folder exists relative to
/// `base`. After "decimal=", "thousands=", "separator=" and "comment=" a comma is the value:
/// "decimal=,,label=y" and "decimal=,label=y" are equal.
std::vector<std::string> source_parts(const std::string& rest, bool only_paths = false,
                                      const std::filesystem::path& base = {});

/// Position of the path in part `which` of a source of this kind; npos if it has none.
std::size_t path_in_part(const std::string& kind, const std::string& part, std::size_t which);

/// Whether two paths name the same file or folder. Patterns of shards are compared by their folder
/// and their text.
bool same_path(const std::string& a, const std::string& b);

/// Throws ValueError for an option that is given twice with different values. Options of which a
/// source takes several (drop, category, date) may be repeated.
void refuse_repeated_options(const std::string& spec, const std::string& kind,
                             const std::vector<std::string>& parts);

/// Throws ValueError for a part that is not in `options`.
[[noreturn]] void refuse_part(const std::string& spec, const std::vector<std::string>& parts,
                              std::size_t which, const std::string& options);

/// Parses an integer option. Throws ValueError.
std::int64_t spec_number(const std::string& text, const std::string& spec);
/// Parses a share such as 0.2, or 20%. Throws ValueError.
double spec_share(const std::string& text, const std::string& spec);

}  // namespace tenon::data
