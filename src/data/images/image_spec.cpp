// Parses the options of folder:, list: and shards:.
#include "data/images/image_spec.h"

#include <charconv>
#include <memory>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/str.h"
#include "data/images/image_parts.h"
#include "data/samples/source_parts.h"
#include "data/samples/split_spec.h"
#include "data/tables/row_options.h"

namespace tenon::data {
namespace {

struct ImageSource {
  std::string kind, path;
  SplitSpec divided{};
  ImageSplit split;
  VideoFrames frames{};
  RowFormat rows{};
  ImageOptions options;
};

double number_in(const std::string& word, const std::string& spec) {
  const bool percent = word.ends_with('%');
  const char *first = word.data(), *last = first + word.size() - (percent ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last || !(value >= 0 && value <= 9e15))
    throw ValueError(cat("data '", spec, "': '", word, "' is not a number"));
  return percent ? value / 100 : value;
}

void set_option(ImageSource& source, const std::vector<std::string>& parts, std::size_t which,
                const std::string& spec) {
  const std::string& part = parts[which];
  const std::size_t equals = part.find('=');
  const std::string key = part.substr(0, equals),
                    value = equals == std::string::npos ? "" : part.substr(equals + 1);
  if (key == "size" && !value.empty()) {
    const auto side = static_cast<std::int64_t>(number_in(value, spec));
    source.options.input = {source.options.input[0], side, side};
  } else if (key == "frames" && !value.empty()) {
    source.frames.count = static_cast<int>(std::min(number_in(value, spec), 1e9));
  } else if (key == "every" && !value.empty()) {
    source.frames.every = number_in(value, spec);
  } else if (part == "grey") {
    source.options.input[0] = 1;
  } else if (key == "background" && !value.empty()) {
    source.options.background = io::parse_colour(value);
  } else if (part == "order=natural" || part == "order=plain") {
    source.split.order = value == "natural" ? ClassOrder::Natural : ClassOrder::Plain;
  } else if (part == "broken=error" || part == "broken=skip") {
    source.options.broken_is_error = value == "error";
  } else if (source.kind == "folder" && (part == "parts=no" || part == "parts=yes")) {
    source.split.part_folders = value == "yes";
  } else if (!(source.kind == "list" && set_row_option(source.rows, part)) &&
             !read_split_option(part, spec, source.divided)) {
    refuse_part(spec, parts, which,
                cat("size=SIDE, grey, background=COLOUR, order=natural|plain, broken=skip|error, "
                    "frames=N, every=SECONDS, ",
                    source.kind == "folder" ? "parts=no, " : "",
                    source.kind == "list" ? cat(kRowOptions, ", ") : "", kSplitOptions));
  }
}

ImageSource parse_image_spec(const std::string& spec) {
  ImageSource source;
  const std::size_t colon = spec.find(':');
  source.kind = spec.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  const std::vector<std::string> parts = source_parts(rest);
  source.path = parts[0];
  if (source.path.empty())
    throw ValueError(cat("data '", spec, "': name what to read: ", source.kind,
                         source.kind == "folder" ? ":DIR"
                         : source.kind == "list" ? ":FILE"
                                                 : ":PATTERN"));
  for (std::size_t which = 1; which < parts.size(); ++which) set_option(source, parts, which, spec);
  check_split_spec(source.divided, spec, source.path);
  source.split.split = source.divided.options;
  source.split.test_path = source.divided.test;
  return source;
}

ImagePartReader read_images(const ImageSource& source) {
  if (source.kind == "folder") return read_image_folder(source.path, source.split, source.frames);
  if (source.kind == "list")
    return read_image_list(source.path, source.split, source.frames, source.rows);
  return read_image_shards(source.path, source.split);
}

}  // namespace

bool is_image_source(const std::string& spec) {
  return spec.starts_with("folder:") || spec.starts_with("list:") || spec.starts_with("shards:");
}

PartReader read_image_source(const std::string& spec, const std::vector<std::string>& class_names,
                             bool strict) {
  ImageSource source = parse_image_spec(spec);
  source.options.strict = strict;
  source.split.class_names = class_names;
  return [images = read_images(source), options = source.options](Split part) {
    std::shared_ptr<ImageFiles> own = images(part);
    return own == nullptr ? nullptr : image_dataset(std::move(own), options);
  };
}

}  // namespace tenon::data
