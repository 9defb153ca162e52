// The digest of a run's training samples distinguishes them from other samples.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "io/images/image.h"
#include "train/runs/data_digest.h"

using namespace tenon;
using data::Split;

namespace {

std::string digest_of(const std::string& spec) {
  return train::data_digest(*data::open_dataset(spec, Split::Train));
}

// All images have the same size in bytes.
void save(const std::string& path, int red) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const io::Image image{4, 4, 3, std::vector<std::uint8_t>(48, static_cast<std::uint8_t>(red))};
  io::write_file(path, io::encode_ppm(image));
}

std::string rows(int changed, const char* name) {
  std::string text = "x,kind\n";
  for (int i = 0; i < 2000; ++i)
    text += std::to_string(i == changed ? -1 : i) + "," + (i % 2 == 0 ? "cat" : name) + "\n";
  return text;
}

}  // namespace

TEST_CASE("data digest: any value, label, order or name of a class counts") {
  const TestFolder dir;
  const auto digest = [&](const std::string& text) {
    io::write_file(dir / "t.csv", text);
    return digest_of("csv:" + (dir / "t.csv") + ",split=0,validation=0");
  };
  const std::string first = digest(rows(-1, "dog"));
  CHECK(first == digest(rows(-1, "dog")));
  for (const int changed : {0, 777, 1999}) CHECK(first != digest(rows(changed, "dog")));
  CHECK(first != digest(rows(-1, "eel")));
  CHECK(digest_of("csv:" + (dir / "t.csv")) != digest_of("csv:" + (dir / "t.csv") + ",seed=1"));
  CHECK(digest_of("digits:20,10").empty());
}

TEST_CASE("data digest: images by name, class, size and bytes, in any folder") {
  const TestFolder dir;
  for (int k = 0; k < 20; ++k)
    save(dir / ("in/" + std::string(k % 2 == 0 ? "cat/" : "dog/") + std::to_string(k) + ".ppm"), k);
  const auto digest = [&](const std::string& name) {
    return digest_of("folder:" + (dir / name) + ",size=4,split=0,validation=0");
  };
  const std::string first = digest("in");
  std::filesystem::copy(dir / "in", dir / "moved", std::filesystem::copy_options::recursive);
  CHECK(digest("moved") == first);
  save(dir / "moved/cat/2.ppm", 3);
  CHECK(digest("moved") != first);
  std::filesystem::rename(dir / "in/cat", dir / "in/feline");
  const std::string renamed = digest("in");
  CHECK(renamed != first);
  CHECK(train::data_change(first, renamed) ==
        "its classes changed: the run learns 'cat', the data has 'feline' instead");
}

TEST_CASE("data digest: the message says what changed") {
  CHECK(train::data_change("ab", "cd") == "its files or their order changed");
  CHECK(train::data_change("ab [\"x\",\"y\"]", "cd [\"x\",\"y\"]") ==
        "its files or their order changed");
  CHECK(train::data_change("ab [\"x\",\"y\"]", "ab [\"y\",\"x\"]") ==
        "its classes are in another order");
  CHECK(train::data_change("ab [\"x\",\"y\"]", "ab [\"x\"]") ==
        "its classes changed: the run learns 'y', which the data no longer has");
  CHECK(train::data_change("ab [\"x\"]", "ab [\"x\",\"y\"]") ==
        "its classes changed: the data has 'y' too");
}
