// Tar archives: requested files are unpacked and no others; damage and truncation are refused.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>

#include "io/archives/tar.h"
#include "io/file.h"
#include "io/folder.h"

using namespace tenon;

namespace {

// A member as `tar --format=ustar` writes it.
std::string member(const std::string& path, const std::string& content, char type = '0') {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  char octal[24];
  put(0, path);
  std::snprintf(octal, sizeof octal, "%011zo", content.size());
  put(124, octal);
  put(156, std::string(1, type));
  put(257, std::string("ustar\00000", 8));
  put(148, std::string(8, ' '));
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  std::snprintf(octal, sizeof octal, "%06o", sum);
  put(148, std::string(octal) + '\0' + ' ');
  return block + content + std::string((512 - content.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

// POSIX records for values that do not fit a header.
std::string records(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  for (const auto& [key, value] : entries) {
    const std::string rest = " " + key + "=" + value + "\n";
    std::size_t length = rest.size();
    while (std::to_string(length).size() + rest.size() != length)
      length = std::to_string(length).size() + rest.size();
    out += std::to_string(length) + rest;
  }
  return out;
}

// The paths and contents of all files.
std::vector<std::pair<std::string, std::string>> files_of(io::TarReader& reader) {
  std::vector<std::pair<std::string, std::string>> out;
  while (reader.next()) {
    const std::string path = reader.path();
    out.emplace_back(path, reader.read(1 << 20));
  }
  return out;
}

std::string archive() {
  return member("set/", "", '5') + member("set/b.bin", std::string(700, 'b')) +
         member("../../escape", "no") + member("set/link", "", '2') +
         member("set/a.bin", std::string(512, 'a')) + kEnd;
}

}  // namespace

TEST_CASE("tar: requested files are unpacked, whatever their folders, and no others") {
  const TestFolder dir;
  io::write_file(dir / "set.tar", archive());
  std::filesystem::create_directory(dir / "out");
  io::unpack_tar(dir / "set.tar", dir / "out", {"a.bin", "b.bin"});
  CHECK(io::read_file(dir / "out/a.bin") == std::string(512, 'a'));
  CHECK(io::read_file(dir / "out/b.bin") == std::string(700, 'b'));
  CHECK(dir.count() == 2);
  io::unpack_tar(dir / "set.tar", dir / "out", {"escape"});
  CHECK(io::read_file(dir / "out/escape") == "no");
  CHECK_THROWS_WITH_AS(io::unpack_tar(dir / "set.tar", dir / "out", {"a.bin", "c.bin"}),
                       doctest::Contains("does not contain 'c.bin'"), FormatError);
  CHECK_THROWS_AS(io::unpack_tar(dir / "set.tar", dir / "out", {"link"}), FormatError);
}

TEST_CASE("tar: truncated files, changed headers and files that are not archives are refused") {
  const TestFolder dir;
  const std::string whole = archive();
  const auto refused = [&](const std::string& bytes) {
    const std::string name = "set.tar";
    CHECK_THROWS_AS(
        [&] {
          for (io::TarReader reader(bytes, name); reader.next();) reader.read(1000);
        }(),
        FormatError);
  };
  for (std::size_t n = 0; n < whole.size() - 1024; n += 37) refused(whole.substr(0, n));
  std::string changed = whole;
  changed[512 + 3] ^= 1;
  refused(changed);
  refused(std::string(2048, 'x'));
  refused("\x1f\x8b");
  refused(member("large", std::string(1001, 'x')) + kEnd);
}

TEST_CASE("tar: a size larger than the archive allocates no memory") {
  std::string header = member("large", "");
  header.replace(124, 11, "77777777777");
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char octal[16];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  header.replace(148, 7, std::string(octal) + '\0');
  const std::string bytes = header + kEnd, name = "set.tar";
  io::TarReader reader(bytes, name);
  REQUIRE(reader.next());
  CHECK(reader.size() == 8'589'934'591);
  CHECK_THROWS_WITH_AS(reader.read(1ull << 40), doctest::Contains("truncated"), FormatError);
}

TEST_CASE("tar: names of over 100 bytes are read from POSIX's and GNU's headers") {
  const TestFolder dir;
  const std::string long_name = "photos/" + std::string(300, 'n') + ".png", name = "set.tar";
  const std::string bytes =
      member("global", records({{"comment", "of all"}}), 'g') +
      member("pax", records({{"mtime", "1.5"}, {"path", long_name}}), 'x') +
      member(long_name.substr(0, 99), "one") + member("plain", "two") +
      member("././@LongLink", long_name + "2" + std::string(1, '\0'), 'L') +
      member(long_name.substr(0, 99), "three") +
      member("././@LongLink", std::string(200, 'k') + std::string(1, '\0'), 'K') +
      member("a link", "", '2') + member("pax", records({{"size", "4"}}), 'x') +
      member("size", "four") + member("pax", records({{"GNU.sparse.major", "1"}}), 'x') +
      member("sparse", "holes") + kEnd;
  const std::vector<std::pair<std::string, std::string>> expected = {
      {long_name, "one"}, {"plain", "two"}, {long_name + "2", "three"}, {"size", "four"}};
  io::TarReader reader(bytes, name);
  CHECK(files_of(reader) == expected);
  CHECK(reader.passed_over() == 2);
  // The same from a file, read by offset.
  io::write_file(dir / name, bytes);
  const io::InputFile file(dir / name);
  io::TarReader by_offset(file);
  CHECK(files_of(by_offset) == expected);
  for (std::size_t n = 0; n < bytes.size() - 1024; n += 101) {
    const std::string cut = bytes.substr(0, n);
    io::TarReader short_one(cut, name);
    CHECK_THROWS_AS(files_of(short_one), FormatError);
  }
  for (const char* bad : {"99 path=x\n", "x path=y\n", "12 path=long", "8 size=a\n", "9", "3 \n"}) {
    CAPTURE(bad);
    const std::string damaged = member("pax", bad, 'x') + member("a", "b") + kEnd;
    io::TarReader refused(damaged, name);
    CHECK_THROWS_AS(refused.next(), FormatError);
  }
}

TEST_CASE("tar: a file that is truncated while it is read is an error") {
  const TestFolder dir;
  const std::string path = dir / "set.tar";
  io::write_file(path, member("a", std::string(100'000, 'a')) + member("b", "b") + kEnd);
  const io::InputFile file(path);
  io::TarReader reader(file);
  REQUIRE(reader.next());
  std::filesystem::resize_file(path, 5000);
  CHECK_THROWS_AS(reader.read(1 << 20), FormatError);
}

TEST_CASE("tar: GNU's binary sizes are read") {
  std::string header = member("big", "");
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char octal[16];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  header.replace(148, 7, std::string(octal) + '\0');
  const std::string bytes = header + "abc" + std::string(509, '\0') + kEnd, name = "set.tar";
  io::TarReader reader(bytes, name);
  REQUIRE(reader.next());
  CHECK(reader.read(10) == "abc");
}
