// Run folders and caches in which another user has planted links.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "train/adapting/kept_file.h"
#include "train/runs/run_folder.h"

using namespace tenon;
namespace fs = std::filesystem;

TEST_CASE("hostile folder: links of another user are refused, before anything is written") {
  if (::geteuid() != 0) return;  // only root can create links of other users
  const TestFolder folder;
  const std::string precious = folder / "precious";
  for (const char* name : {"lock", "log.csv", "log.jsonl", "model.safetensors", "settings.toml",
                           "checkpoints/latest", "checkpoints/step-00000001.safetensors"}) {
    const std::string run = folder / "run";
    fs::create_directories(run + "/checkpoints");
    io::write_file(precious, "mine");
    const std::string link = run + "/" + name;
    fs::create_symlink(precious, link);
    REQUIRE(::lchown(link.c_str(), 65534, 65534) == 0);
    CAPTURE(name);
    try {
      const train::RunFolder made(run, false);
      FAIL("was taken");
    } catch (const IoError& error) {
      CHECK(std::string(error.what()).find(link + ": is a symbolic link of user 65534") == 0);
    }
    CHECK(io::read_file(precious) == "mine");
    fs::remove_all(run);
  }
}

TEST_CASE("hostile folder: the user's own links are followed") {
  const TestFolder folder;
  fs::create_directories(folder / "elsewhere");
  fs::create_directories(folder / "run");
  fs::create_symlink(folder / "elsewhere", folder / "run/checkpoints");
  const train::RunFolder made(folder / "run", false);
  CHECK(made.path() == folder / "run");
}

TEST_CASE("hostile folder: nothing is removed in a cache that is refused") {
  const TestFolder folder;
  const std::string victim = folder / "victim", frozen = folder / "frozen";
  const Digest key{1, 2};
  const std::string file = "/" + key.hex() + ".kept", left = "/left.kept.77.tmp";
  const auto fill = [&](const std::string& in) {
    fs::create_directories(in);
    for (const std::string& name : {file, left}) {
      io::write_file(in + name, std::string(3000, 'x'));
      fs::last_write_time(in + name, fs::file_time_type::clock::now() - std::chrono::hours(100));
    }
  };
  const train::KeptFolder kept(frozen, 2000);
  const auto touches_nothing = [&] {
    CHECK_THROWS_WITH_AS(kept.make_room(1000), doctest::Contains((frozen + ": ").c_str()),
                         train::KeptError);
    kept.remove(key);
    CHECK(fs::exists(frozen + file));
    CHECK(fs::exists(frozen + left));
  };
  fill(frozen);
  REQUIRE(::chmod(frozen.c_str(), 01777) == 0);
  touches_nothing();
  REQUIRE(::chmod(frozen.c_str(), 0700) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(frozen.c_str(), 65534, 65534) == 0);
    touches_nothing();
    REQUIRE(::chown(frozen.c_str(), 0, 0) == 0);
  }
  kept.make_room(1000);  // in the user's own cache
  CHECK(fs::is_empty(frozen));
  fs::remove(frozen);
  if (::geteuid() != 0) return;
  fill(victim);
  fs::create_symlink(victim, frozen);
  REQUIRE(::lchown(frozen.c_str(), 65534, 65534) == 0);
  touches_nothing();
}
