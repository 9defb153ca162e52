// Caches among hostile users: anything that another user may have written is neither read nor
// written through. As root, the tests create files of other users; other users test only modes and
// links.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/system/cache_file.h"
#include "base/system/env.h"
#include "base/variable.h"
#include "io/file.h"
#include "io/folder.h"

using namespace tenon;
namespace fs = std::filesystem;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

constexpr uid_t kNobody = 65534;

}  // namespace

TEST_CASE("cache files: folders and files are for their owner alone") {
  const TestFolder folder;
  const mode_t before = ::umask(0);
  const std::string path = folder / "a/b/file";
  CHECK(write_cache_file(path, {"one ", "two"}));
  ::umask(before);
  CHECK(read_cache_file(path, 100) == "one two");
  CHECK_FALSE(read_cache_file(path, 6).has_value());
  CHECK_FALSE(read_cache_file(folder / "a/b/none", 6).has_value());
  CHECK(mode_of(folder / "a") == 0700);
  CHECK(mode_of(folder / "a/b") == 0700);
  CHECK(mode_of(path) == 0600);
  CHECK(std::distance(fs::directory_iterator(folder / "a/b"), {}) == 1);
}

TEST_CASE("cache files: a folder or file that other users can write is not used") {
  const TestFolder folder;
  const std::string path = folder / "cache/file";
  REQUIRE(write_cache_file(path, {"text"}));
  for (const mode_t mode : {0620, 0602, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK_FALSE(read_cache_file(path, 100).has_value());
  }
  CHECK(write_cache_file(path, {"new"}));  // replaces the file
  CHECK(read_cache_file(path, 100) == "new");
  REQUIRE(::chmod((folder / "cache").c_str(), 0777) == 0);
  CHECK(read_cache_file(path, 100) == "new");
  CHECK(mode_of(folder / "cache") == 0700);  // is closed
}

TEST_CASE("cache files: links are not followed") {
  const TestFolder folder;
  const std::string path = folder / "cache/file", precious = folder / "precious";
  io::write_file(precious, "mine");
  REQUIRE(::chmod(precious.c_str(), 0600) == 0);
  fs::create_directories(folder / "cache");
  fs::create_symlink(precious, path);
  CHECK_FALSE(read_cache_file(path, 100).has_value());
  CHECK(write_cache_file(path, {"cached"}));
  CHECK(io::read_file(precious) == "mine");
  CHECK(read_cache_file(path, 100) == "cached");
}

TEST_CASE("cache files: temporary names are unpredictable") {
  CHECK(unguessable() != unguessable());
  CHECK(unguessable().size() == 16);
  const TestFolder folder;
  const auto name = [&] {
    const CacheFileWriter file(folder / "cache/file");
    CHECK(file.problem().empty());
    return fs::directory_iterator(folder / "cache")->path().string();
  };
  const std::string one = name();
  CHECK(one != name());
  CHECK_FALSE(fs::exists(one));  // not committed
}

TEST_CASE("cache files: a file is written to the folder that was checked") {
  const TestFolder folder;
  fs::create_directory(folder / "victim");
  CacheFileWriter file(folder / "cache/file");
  file.write("text", 4);
  fs::rename(folder / "cache", folder / "moved");
  fs::create_symlink(folder / "victim", folder / "cache");
  file.commit();
  CHECK(file.problem().empty());
  CHECK(fs::is_empty(folder / "victim"));
  CHECK(read_cache_file(folder / "moved/file", 100) == "text");
  const CacheFolder open(folder / "moved");
  fs::rename(folder / "moved", folder / "again");
  CHECK(open.fd() >= 0);
  CHECK(::faccessat(open.fd(), "file", R_OK, 0) == 0);
  const CacheFolder none(folder / "nothing");
  CHECK(none.fd() < 0);
  CHECK(none.refusal().empty());
}

TEST_CASE("cache files: folders, files and links of other users") {
  if (::geteuid() != 0) return;
  const TestFolder folder;
  const std::string path = folder / "cache/file";
  REQUIRE(write_cache_file(path, {"text"}));
  REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
  CHECK_FALSE(read_cache_file(path, 100).has_value());
  CHECK(write_cache_file(path, {"text"}));
  CHECK(read_cache_file(path, 100).has_value());
  REQUIRE(::chown((folder / "cache").c_str(), kNobody, kNobody) == 0);
  CHECK_FALSE(read_cache_file(path, 100).has_value());
  CHECK_FALSE(write_cache_file(path, {"text"}));
  // Another user's link to a folder of this user.
  fs::create_directory(folder / "own");
  fs::create_symlink(folder / "own", folder / "link");
  REQUIRE(::lchown((folder / "link").c_str(), kNobody, kNobody) == 0);
  CHECK_FALSE(write_cache_file(folder / "link/file", {"text"}));
  CHECK(fs::is_empty(folder / "own"));
}

TEST_CASE("cache files: the folder of all caches is checked before anything is created in it") {
  const TestFolder folder;
  const std::string root = folder / "tenon", own = folder / "own";
  for (const bool slash : {false, true}) {
    const Variable given("TENON_CACHE", (slash ? root + "/" : root).c_str());
    const std::string path = cache_folder_of("tune") + "/file";
    CAPTURE(path);
    CHECK(write_cache_file(path, {"text"}));
    REQUIRE(::chmod(root.c_str(), 0775) == 0);
    CHECK(read_cache_file(path, 100) == "text");
    CHECK(mode_of(root) == 0755);  // is closed for writing
    // A folder that is meant to be shared stays unchanged.
    REQUIRE(::chmod(root.c_str(), 01777) == 0);
    CHECK_FALSE(read_cache_file(path, 100).has_value());
    CHECK_FALSE(write_cache_file(cache_folder_of("gpus") + "/file", {"text"}));
    CHECK(mode_of(root) == 01777);
    CHECK_FALSE(fs::exists(root + "/gpus"));
    REQUIRE(::chmod(root.c_str(), 0700) == 0);
    CHECK(read_cache_file(path, 100) == "text");
    if (::geteuid() == 0) {
      REQUIRE(::chown(root.c_str(), kNobody, kNobody) == 0);
      CHECK_FALSE(read_cache_file(path, 100).has_value());
      CHECK_FALSE(write_cache_file(cache_folder_of("gpus") + "/file", {"text"}));
      CHECK_FALSE(fs::exists(root + "/gpus"));
      REQUIRE(::chown(root.c_str(), 0, 0) == 0);
    }
    // This user's link is followed, another user's link is not.
    fs::rename(root, own);
    fs::create_symlink(own, root);
    CHECK(read_cache_file(path, 100) == "text");
    if (::geteuid() == 0) {
      REQUIRE(::lchown(root.c_str(), kNobody, kNobody) == 0);
      CHECK_FALSE(read_cache_file(path, 100).has_value());
      CHECK_FALSE(write_cache_file(cache_folder_of("gpus") + "/file", {"text"}));
      CHECK(CacheFolder(cache_folder_of("gpus")).refusal() ==
            root + ": it belongs to user 65534, not to this one (0)");
      CHECK_FALSE(fs::exists(own + "/gpus"));
    }
    fs::remove(root);
    fs::remove_all(own);
  }
}

TEST_CASE("cache files: without a home there is no cache") {
  const Variable home("HOME", nullptr), base("XDG_CACHE_HOME", nullptr),
      own("TENON_CACHE", nullptr);
  CHECK(user_cache_folder().empty());
  CHECK(cache_folder_of("kernels").empty());
  {
    const Variable relative("HOME", "somewhere");
    CHECK(user_cache_folder().empty());
  }
  const Variable given("TENON_CACHE", "/own");
  CHECK(cache_folder_of("kernels") == "/own/kernels");
}

TEST_CASE("files: a link of another user is not written through") {
  const TestFolder folder;
  const std::string precious = folder / "precious", link = folder / "link";
  io::write_file(precious, "mine");
  fs::create_symlink(precious, link);
  io::write_file(link, "through");  // this user's own link
  CHECK(io::read_file(precious) == "through");
  CHECK(fs::is_symlink(link));
  const int fd = io::open_to_write(link, O_WRONLY | O_APPEND);
  CHECK(fd >= 0);
  ::close(fd);
  if (::geteuid() != 0) return;
  REQUIRE(::lchown(link.c_str(), kNobody, kNobody) == 0);
  CHECK_THROWS_AS(io::write_file(link, "planted"), IoError);
  CHECK_THROWS_AS(io::open_to_write(link, O_WRONLY | O_APPEND), IoError);
  CHECK(io::read_file(precious) == "through");
}

TEST_CASE("cache files: work in an open folder stays in it, whatever its path leads to meanwhile") {
  const TestFolder folder;
  const std::string path = folder / "cache", moved = folder / "moved";
  fs::create_directory(path);
  const auto write = [](const std::string& file, const char* bytes, int age) {
    io::write_file(file, bytes);
    const timespec used{::time(nullptr) - age, 0}, both[2] = {used, used};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), both, 0) == 0);
  };
  for (int k = 0; k < 4; ++k)
    write(path + "/" + std::to_string(k) + ".kept", "12345678", 100 * (4 - k));
  write(path + "/killed.tmp", "1", 100);
  write(path + "/young.tmp", "1", 0);
  write(path + "/ahead.tmp", "1", -100);  // the clock has been set back
  write(path + "/other", "1", 1000);
  io::write_file(folder / "precious", "mine");
  fs::create_symlink(folder / "precious", path + "/link.kept");
  const CacheFolder open(path);
  REQUIRE(open.fd() >= 0);
  fs::rename(path, moved);
  fs::create_directory(path);
  io::write_file(path + "/0.kept", "of another folder");
  CHECK(open.holds("3.kept"));
  CHECK(open.holds("link.kept"));
  CHECK(!open.holds("4.kept"));
  open.touch("0.kept");
  open.shrink(".kept", 32, 16, 50);  // not more than 32 bytes: only old temporary files go
  CHECK(!fs::exists(moved + "/killed.tmp"));
  CHECK(fs::exists(moved + "/young.tmp"));
  CHECK(!fs::exists(moved + "/ahead.tmp"));
  CHECK(fs::exists(moved + "/1.kept"));
  open.shrink(".kept", 31, 16, 50);
  CHECK(fs::exists(moved + "/0.kept"));  // used last
  CHECK(!fs::exists(moved + "/1.kept"));
  CHECK(!fs::exists(moved + "/2.kept"));
  CHECK(fs::exists(moved + "/3.kept"));
  CHECK(fs::exists(moved + "/other"));
  open.remove("0.kept");
  CHECK(!fs::exists(moved + "/0.kept"));
  CHECK(fs::exists(path + "/0.kept"));
  CHECK(fs::is_symlink(moved + "/link.kept"));
  CHECK(io::read_file(folder / "precious") == "mine");
  CHECK(open.free_bytes().value_or(0) > 0);
}

TEST_CASE("cache files: a mark of a clock that was set back is renewed") {
  const TestFolder folder;
  const CacheFolder open(folder.path());
  REQUIRE(open.fd() >= 0);
  const auto marked = [&](const std::string& name, int age) {
    io::write_file(folder / name, "12345678");
    const timespec used{::time(nullptr) - age, 0}, both[2] = {used, used};
    REQUIRE(::utimensat(AT_FDCWD, (folder / name).c_str(), both, 0) == 0);
    open.touch(name, 60);
    struct stat info {};
    REQUIRE(::stat((folder / name).c_str(), &info) == 0);
    return ::time(nullptr) - info.st_mtime;
  };
  CHECK(marked("recent", 30) >= 30);
  CHECK(marked("old", 100) < 30);
  CHECK(marked("future", -5000) >= 0);
}
