// The setting `data`, such as "folder:photos,validation=0.1", parsed once.
//
// Options stay text: the reader of the kind, in `data`, parses and checks them. This type answers
// what a run needs to know about its source: the kind, the paths, and single options.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {
struct SourceKind;
}

namespace tenon::train {

struct DataSource {
  DataSource() = default;
  /// Parses a source. If the kind is unknown, text and kind are kept. A comma belongs to a path if
  /// such a file or folder exists; relative paths start at `base`.
  explicit DataSource(std::string source, const std::filesystem::path& base = {});

  /// A part between commas, and the position of the path in it; npos if it has none.
  struct Part {
    std::string text{};
    std::size_t path = std::string::npos;
  };

  std::string text{};                  ///< the source as it was given
  std::string kind{};                  ///< "folder"
  std::vector<std::string> paths{};    ///< paths of the samples; empty: generated, or "mnist"
  std::string test{};                  ///< path of the test part ("test=PATH"); "": none is named
  std::vector<std::string> options{};  ///< all other parts, in order: "validation=0.1"
  std::vector<Part> parts{};           ///< of a source with paths: all parts, in order
  const data::SourceKind* known = nullptr;  ///< facts about the kind; null if the kind is unknown

  /// Whether it contains paths ("csv:flowers.csv"), which depend on the current folder.
  bool has_path() const { return !paths.empty(); }
  /// Whether the samples are image files (data::is_image_source()).
  bool has_images() const;
  /// Whether it generates its samples from seeds; its test part then has a seed of its own.
  bool is_generated() const;
  /// Whether it always has a test part: published datasets, and sources that name a test file.
  bool names_test_part() const;
  /// The value of an option, "0.1" of "validation=0.1"; of a repeated option the last one, which is
  /// the one that counts.
  std::optional<std::string> option(std::string_view key) const;

  /// The source with an option more, "length=20", after all others.
  DataSource with_option(const std::string& option) const;
  /// The source with `change` applied to each path.
  DataSource with_paths(const std::function<std::string(const std::string&)>& change) const;

 private:
  void take(Part part);
};

}  // namespace tenon::train
