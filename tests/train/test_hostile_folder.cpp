// A run folder in which another user has planted links.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "train/run_folder.h"

using namespace tenon;
namespace fs = std::filesystem;

TEST_CASE("hostile folder: links of another user are refused, before anything is written") {
  if (::geteuid() != 0) return;  // nobody else makes links of others
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
      CHECK(std::string(error.what()).find(link + ": is a link that user 65534 made") == 0);
    }
    CHECK(io::read_file(precious) == "mine");
    fs::remove_all(run);
  }
}

TEST_CASE("hostile folder: one's own links are followed") {
  const TestFolder folder;
  fs::create_directories(folder / "elsewhere");
  fs::create_directories(folder / "run");
  fs::create_symlink(folder / "elsewhere", folder / "run/checkpoints");
  const train::RunFolder made(folder / "run", false);
  CHECK(made.path() == folder / "run");
}
