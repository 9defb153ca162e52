// Splits the text after the kind of a data source, "FILE,length=20", into path and options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::data {

/// Split at commas. The first part, one that begins with "test=", and of `only_paths` all are
/// paths: those go on behind a comma as far as there is such a file or folder, which is looked for
/// from `base` on. Behind "decimal=", "thousands=", "separator=" and "comment=" a comma is the
/// value: "decimal=,,label=y" and "decimal=,label=y" are the same.
std::vector<std::string> source_parts(const std::string& rest, bool only_paths = false,
                                      const std::filesystem::path& base = {});

/// Where a path begins in part `which` of a source of this kind; npos where it holds none.
std::size_t path_in_part(const std::string& kind, const std::string& part, std::size_t which);

/// Throws the ValueError for a part that is none of `options`.
[[noreturn]] void refuse_part(const std::string& spec, const std::vector<std::string>& parts,
                              std::size_t which, const std::string& options);

/// A whole number of a source's name. Throws ValueError.
std::int64_t spec_number(const std::string& text, const std::string& spec);
/// A share such as 0.2, or 20%. Throws ValueError.
double spec_share(const std::string& text, const std::string& spec);

}  // namespace tenon::data
