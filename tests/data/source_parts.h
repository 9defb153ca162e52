// For tests of the parts of sources: files of every kind of source, and checks that the parts of a
// source are disjoint, together complete and equal for equal seeds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "io/folder.h"

namespace source_parts {

using namespace tenon;
using data::Split;
using Set = std::shared_ptr<data::Dataset>;

constexpr Split kParts[] = {Split::Train, Split::Validation, Split::Test};

inline std::string number(std::int64_t value) { return std::to_string(value); }

inline void save_image(const std::string& path, int red) {
  io::Image image{4, 4, 3, std::vector<std::uint8_t>(48, static_cast<std::uint8_t>(red))};
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  io::save_png(path, image);
}

inline std::shared_ptr<const data::Tokenizer> word_pieces() {
  static const auto tokenizer = std::make_shared<const data::Tokenizer>(data::Tokenizer::train(
      "the sea is wide and the land is far away 0 1 2 3 4 5 6 7 8 9 who what",
      {.kind = data::TokenizerKind::WordPiece, .tokens = 90, .least = 1}));
  return tokenizer;
}

inline Set open(const std::string& spec, Split part, bool strict = false) {
  data::SourceOptions how;
  how.strict = strict;
  if (spec.starts_with("lines:") || spec.starts_with("spans:")) how.tokenizer = word_pieces();
  return data::open_dataset(spec, part, how);
}

inline std::vector<std::string> names_of(const Set& set) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; set != nullptr && i < set->size(); ++i)
    names.push_back(set->sample_name(i));
  return names;
}

inline std::vector<std::int64_t> classes_of(const data::Dataset& set) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(set.classes()));
  std::vector<char> input(static_cast<std::size_t>(set.input_shape().numel()) *
                          item_size(set.input_dtype()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    std::int64_t target = -1;
    set.get({&i, 1}, input.data(), &target);
    ++counts.at(static_cast<std::size_t>(target));
  }
  return counts;
}

// No sample is lost or in two parts, and the same seed gives the same parts.
inline void check_parts(const std::string& spec) {
  CAPTURE(spec);
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const Split part : kParts) {
    const std::vector<std::string> names = names_of(open(spec, part));
    CHECK(names == names_of(open(spec, part)));
    count += names.size();
    seen.insert(names.begin(), names.end());
  }
  CHECK(seen.size() == count);
  const std::vector<std::string> all = names_of(open(spec, Split::All));
  CHECK(std::set<std::string>(all.begin(), all.end()) == seen);
  CHECK(all.size() == count);
}

// Every part has every class in the whole's proportions, within one sample.
inline void check_shares(const std::string& spec) {
  CAPTURE(spec);
  const Set all = open(spec, Split::All);
  const std::vector<std::int64_t> whole = classes_of(*all);
  for (const Split part : kParts) {
    const Set set = open(spec, part);
    if (set == nullptr) continue;
    CHECK(set->notes().empty());
    const std::vector<std::int64_t> own = classes_of(*set);
    for (std::size_t c = 0; c < whole.size(); ++c) {
      const double due = static_cast<double>(whole[c]) * static_cast<double>(set->size()) /
                         static_cast<double>(all->size());
      CHECK(std::abs(static_cast<double>(own[c]) - due) <= 1.01);
    }
  }
}

struct Files {
  TestFolder dir;

  std::string csv(int rows, int classes) {
    std::string text = "x,who,label\n";
    for (int i = 0; i < rows; ++i)
      text += number(i) + ",p" + number(i / 5) + "," + number(i % classes) + "\n";
    io::write_file(dir / "turn.csv", text);
    return dir / "turn.csv";
  }
  std::string images(const std::string& folder, int count) {
    for (int k = 0; k < count; ++k)
      for (const char* pet : {"cat", "dog"})
        save_image(dir / (folder + "/" + pet + "/p" + number(k / 3) + "_" + number(k) + ".png"), k);
    return dir / folder;
  }
  std::string list(int count) {
    images("listed", count);
    std::string text;
    for (int k = 0; k < count; ++k)
      for (const char* pet : {"cat", "dog"})
        text += std::string("listed/") + pet + "/p" + number(k / 3) + "_" + number(k) + ".png," +
                pet + ",g" + number(k / 4) + "\n";
    io::write_file(dir / "list.csv", text);
    std::string plain;
    for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
      const std::string line = text.substr(from, text.find('\n', from) - from);
      plain += line.substr(0, line.rfind(',')) + "\n";
    }
    io::write_file(dir / "plain.csv", plain);
    return dir / "list.csv";
  }
  std::string lines(int count, const char* file = "lines.txt") {
    std::string text;
    for (int k = 0; k < count; ++k) text += k % 2 == 0 ? "water\tthe sea\n" : "earth\tthe land\n";
    io::write_file(dir / file, text);
    return dir / file;
  }
  std::string pairs(int count, const char* file = "pairs.tsv") {
    std::string text;
    for (int k = 0; k < count; ++k)
      text += "line " + number(k) + "\tZeile " + number(k) + "\td" + number(k / 5) + "\n";
    io::write_file(dir / file, text);
    return dir / file;
  }
  std::string spans(int count) {
    std::string text;
    for (int k = 0; k < count; ++k)
      text += "what is wide\tthe sea " + number(k / 3) + " is wide\tthe sea\n";
    io::write_file(dir / "spans.tsv", text);
    return dir / "spans.tsv";
  }
  std::string npy(int count) {
    std::vector<float> x(static_cast<std::size_t>(count) * 2);
    std::vector<std::int64_t> y, g;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    for (int i = 0; i < count; ++i) y.push_back(i % 10), g.push_back(1000 + i / 5);
    io::save_npy(dir / "x.npy", Tensor::from(x, {count, 2}));
    io::save_npy(dir / "y.npy", Tensor::from(y, {count}));
    io::save_npy(dir / "g.npy", Tensor::from(g, {count}));
    return (dir / "x.npy") + "," + (dir / "y.npy");
  }
};

inline std::string refusal(const std::string& spec, Split part = Split::Train,
                           bool strict = false) {
  try {
    (void)open(spec, part, strict);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace source_parts
