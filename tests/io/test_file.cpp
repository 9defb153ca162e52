// Whole files: atomic writing, refusals of the system, gzip.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/file.h"
#include "io/folder.h"

using namespace tenon;

namespace {

std::string gzip(const std::string& text) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  FAIL("nothing of the expected type was thrown");
  return "";
}

}  // namespace

TEST_CASE("a file is written and replaced atomically, without a leftover temporary file") {
  TestFolder dir;
  io::write_file(dir / "a", "first");
  io::write_file(dir / "a", std::string("sec\0nd", 6));
  CHECK(io::read_file(dir / "a") == std::string("sec\0nd", 6));
  io::write_file(dir / "empty", "");
  CHECK(io::read_file(dir / "empty").empty());
  CHECK(dir.count() == 2);
}

TEST_CASE("writing through a link keeps the link") {
  TestFolder dir;
  io::write_file(dir / "real", "old");
  REQUIRE(::symlink((dir / "real").c_str(), (dir / "link").c_str()) == 0);
  io::write_file(dir / "link", "new");
  CHECK(io::read_file(dir / "real") == "new");
  CHECK(std::filesystem::is_symlink(dir / "link"));
}

TEST_CASE("devices are written in place, folders are refused") {
  TestFolder dir;
  io::write_file("/dev/null", "gone");
  struct stat info {};
  REQUIRE(::stat("/dev/null", &info) == 0);
  CHECK(S_ISCHR(info.st_mode));
  CHECK(message_of<IoError>([&] { io::write_file(dir.path(), "x"); }).find(dir.path()) == 0);
  CHECK_THROWS_AS(io::read_file(dir.path()), IoError);
  CHECK(message_of<IoError>([&] { io::read_file(dir / "no"); }).find("check the path") !=
        std::string::npos);
  CHECK_THROWS_AS(io::write_file(dir / "no/such/folder/file", "x"), IoError);
}

TEST_CASE("a full disk is an IoError, and the old file stays") {
  if (::access("/dev/full", W_OK) == 0) {
    CHECK(message_of<IoError>([] { io::write_file("/dev/full", "x"); }).find("free some space") !=
          std::string::npos);
  }
  // A file size limit simulates a full disk: writing fails in the middle of the temporary file.
  TestFolder dir;
  io::write_file(dir / "kept", "old");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_THROWS_AS(io::write_file(dir / "kept", std::string(100'000, 'x')), IoError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(io::read_file(dir / "kept") == "old");
  CHECK(dir.count() == 1);
}

TEST_CASE("a read-only folder is refused by name") {
  TestFolder dir;
  REQUIRE(::chmod(dir.path().c_str(), 0555) == 0);
  if (::geteuid() == 0) {
    MESSAGE("skipped: the superuser may write anywhere");
  } else {
    CHECK(message_of<IoError>([&] { io::write_file(dir / "a", "x"); }).find("permissions") !=
          std::string::npos);
  }
  ::chmod(dir.path().c_str(), 0755);
}

TEST_CASE("the read limit also applies to files without a size") {
  TestFolder dir;
  io::write_file(dir / "a", std::string(1000, 'x'));
  CHECK(io::read_file(dir / "a", 1000).size() == 1000);
  CHECK_THROWS_AS(io::read_file(dir / "a", 999), FormatError);
}

TEST_CASE("files: pipes, devices, loops of links and zero bytes are refused, and nothing waits") {
  const TestFolder dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  REQUIRE(::symlink("loop", (dir / "loop").c_str()) == 0);
  CHECK(message_of<IoError>([&] {
          io::read_file(dir / "pipe");
        }).find("is a pipe, not a regular file") != std::string::npos);
  CHECK(message_of<IoError>([] { io::read_file("/dev/zero"); }).find("is a device") !=
        std::string::npos);
  CHECK(message_of<IoError>([&] { io::read_file(dir / "loop"); }).find("form a loop") !=
        std::string::npos);
  CHECK_THROWS_AS(io::write_file(dir / "pipe", "x"), IoError);  // the pipe has no reader
  CHECK_THROWS_AS(io::write_file(dir / "loop/x", "x"), IoError);
  io::write_file(dir / "short", "other");
  const std::string zero = dir / "short" + std::string("\0longer", 7);
  CHECK(message_of<IoError>([&] { io::read_file(zero); }).find("short\\0longer: a path cannot") !=
        std::string::npos);
  CHECK_THROWS_AS(io::write_file(zero, "x"), IoError);
  CHECK_FALSE(io::file_exists(zero));
  CHECK(io::read_file(dir / "short") == "other");
}

TEST_CASE("gzip: several members are read; truncation and trailing bytes are refused") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * i % 977);
  const std::string packed = gzip(text);
  CHECK(io::gunzip(packed, "f") == text);
  CHECK(io::gunzip(packed + gzip("more"), "f") == text + "more");
  CHECK(io::gunzip(gzip(""), "f").empty());
  for (std::size_t n = 2; n < packed.size(); n += packed.size() / 97 + 1)
    CHECK_THROWS_AS(io::gunzip(packed.substr(0, n), "f"), FormatError);
  CHECK_THROWS_AS(io::gunzip(packed.substr(0, packed.size() - 1), "f"), FormatError);
  CHECK(message_of<FormatError>([&] {
          io::gunzip(packed + "junk", "file.gz");
        }).find("file.gz: 4 bytes that are not gzip") == 0);
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(damaged[packed.size() - 6] ^ 1);
  CHECK_THROWS_AS(io::gunzip(damaged, "f"), FormatError);
}

TEST_CASE("gzip: a small file that unpacks to many bytes is stopped at the limit") {
  const std::string bomb = gzip(std::string(20'000'000, '\0'));
  CHECK(bomb.size() < 30'000);
  CHECK_THROWS_AS(io::gunzip(bomb, "bomb", 1'000'000), FormatError);
  CHECK(io::gunzip(bomb, "bomb", 20'000'000).size() == 20'000'000);
}
