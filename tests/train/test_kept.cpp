// Outputs of frozen parts on disk: reuse between runs, variants of augmentation, and cuts through
// several tensors.
#include <doctest/doctest.h>
#include <algorithm>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "base/variable.h"
#include "data/large_samples.h"
#include "io/folder.h"
#include "train/adapting/frozen.h"
#include "train/adapting/kept.h"
#include "train/adapting/kept_file.h"
#include "train/toy.h"

using namespace tenon;
using train::Settings;

namespace {

namespace fs = std::filesystem;

class Watch : public train::Callback {
 public:
  void on_note(const std::string& note) override { notes += note + "; "; }
  void on_frozen(std::int64_t done, std::int64_t examples) override {
    CHECK((done > computed || done == 0));
    CHECK(done <= examples);
    computed = done;
  }
  bool says(const std::string& words) const { return notes.find(words) != std::string::npos; }
  std::string notes;
  std::int64_t computed = 0;
};

Settings head_on(const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::vector<std::pair<std::string, std::string>> all{
      {"data", "scenes:40,10"}, {"freeze", "conv1,bn1,layer1,layer2,layer3"},
      {"head", "8,tanh"},       {"augment", "none"},
      {"batch", "10"},          {"epochs", "2"},
      {"warmup", "0"},          {"keep_best", "false"},
      {"keep_frozen", "disk"}};
  all.insert(all.end(), more.begin(), more.end());
  return Settings::resolve("resnet20:width=4", "", all);
}

struct Run {
  StateDict weights;
  Watch watch;
  train::TrainResult result;
};

Run run(const Settings& settings, const std::string& folder) {
  const auto watch = std::make_shared<Watch>();
  Run out;
  out.result = train::start_run(settings, folder, {.callbacks = {watch}});
  out.weights = io::load_safetensors(folder + "/model.safetensors").tensors;
  out.watch.notes = watch->notes;
  out.watch.computed = watch->computed;
  return out;
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> out;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
  return out;
}

}  // namespace

TEST_CASE("kept: a later run reads what an earlier one computed, by key") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  const Run first = run(head_on(), folder / "first");
  CHECK(first.watch.says("computed once: of 54 samples"));
  CHECK(first.watch.computed == 54);
  CHECK(files_in(folder / "cache/frozen").size() == 3);
  const Run second = run(head_on(), folder / "second");
  CHECK(second.watch.says("computed by an earlier run: of 54 samples"));
  CHECK(second.watch.computed == 0);
  CHECK(toy::difference(second.weights, first.weights) == "");
  const Run memory = run(head_on({{"keep_frozen", "memory"}}), folder / "memory");
  CHECK(memory.watch.says("are kept in memory"));
  CHECK(memory.watch.computed == 54);
  CHECK(toy::difference(memory.weights, first.weights) == "");
  const Run off = run(head_on({{"keep_frozen", "off"}}), folder / "off");
  CHECK(off.watch.says("in every step: keep_frozen is off"));
  CHECK(off.result.epochs[1].train_loss ==
        doctest::Approx(first.result.epochs[1].train_loss).epsilon(1e-4));
  // A trainable batch norm reads the frozen output twice.
  const Run norm = run(head_on({{"freeze", "conv1,layer1"}}), folder / "norm");
  CHECK(
      norm.watch.says("in every step: the layer that reads it reads another value in evaluation"));
  CHECK(norm.watch.says("a trainable batch norm"));
  // Settings that do not affect the frozen part reuse the file; others have another key.
  CHECK(run(head_on({{"head", "4,tanh"}, {"batch", "7"}}), folder / "a").watch.computed == 0);
  CHECK(run(head_on({{"seed", "1"}}), folder / "b").watch.computed == 54);  // other weights
  CHECK(run(head_on({{"data", "scenes:40,10,5"}}), folder / "c").watch.computed == 54);
  CHECK(run(head_on({{"input_mean", "0.5"}}), folder / "d").watch.computed == 54);
  CHECK(run(head_on({{"data", "scenes:40,12"}}), folder / "e").watch.computed == 12);
  CHECK(run(head_on(), folder / "f").watch.computed == 0);
}

TEST_CASE("kept: a damaged, truncated or wrong file is computed again, with a message") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  const std::string frozen = folder / "cache/frozen";
  const Run whole = run(head_on(), folder / "whole");
  int number = 0;
  const auto again = [&](const char* why) {
    const Run now = run(head_on(), folder / std::to_string(number++));
    CAPTURE(now.watch.notes);
    CHECK(now.watch.says("recomputed"));
    CHECK(now.watch.says(why));
    CHECK(now.watch.computed > 0);
    CHECK(toy::difference(now.weights, whole.weights) == "");
    CHECK(run(head_on(), folder / std::to_string(number++)).watch.computed == 0);
  };
  // The names are digests, in any order. Only the file of the training samples surely has a byte
  // 500.
  auto files = files_in(frozen);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return fs::file_size(a) > fs::file_size(b); });
  const fs::path file = files[0], other = files[1];
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(500);
    const char permuted = static_cast<char>(bytes.get() ^ 1);
    bytes.seekp(500);
    bytes.put(permuted);
  }
  again("checksum");
  fs::resize_file(file, fs::file_size(file) - 3);
  again("truncated");
  fs::resize_file(file, 7);
  again("truncated");
  fs::copy_file(other, file, fs::copy_options::overwrite_existing);
  again("other data or weights");
}

TEST_CASE("kept: the folder has a limit, and a run works without the folder") {
  const TestFolder folder;
  const std::vector<std::byte> record(1000);
  const train::KeptFolder kept(folder / "frozen", 3000);
  std::string why;
  for (std::uint64_t k = 1; k <= 4; ++k) {
    const Digest key{k, k};
    kept.make_room(1000);
    train::KeptWriter file(kept, key, 1, record.size());
    file.add(record);
    file.commit();
    fs::last_write_time(kept.file_of(key),
                        fs::file_time_type::clock::now() - std::chrono::hours(100 - 10 * k));
  }
  CHECK(kept.read({1, 1}, 1, record.size(), why) == nullptr);  // the least recently used
  CHECK(why == "");
  CHECK(kept.read({4, 4}, 1, record.size(), why) != nullptr);
  CHECK(kept.read({4, 4}, 1, record.size() / 2, why) == nullptr);
  CHECK(why.find("other data or weights") != std::string::npos);
  CHECK_THROWS_WITH_AS(kept.make_room(4000), doctest::Contains("frozen_cache"), IoError);
  // An abandoned writer leaves no file; files of killed processes are removed after a day.
  { const train::KeptWriter given_up(kept, {9, 9}, 1, record.size()); }
  const std::string left = folder / "frozen/1234.kept.77.tmp";
  std::ofstream(left) << "x";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(30));
  kept.make_room(1);
  for (const fs::path& file : files_in(folder / "frozen")) CHECK(file.extension() == ".kept");

  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  std::ofstream(folder / "cache") << "a file where a folder should be";
  const Run without = run(head_on(), folder / "without");
  CHECK(without.watch.says("in every step"));
  CHECK(run(head_on({{"keep_frozen", "auto"}}), folder / "auto").watch.says("kept in memory"));
  CHECK(run(head_on({{"frozen_cache", "0.00000001"}}), folder / "tiny")
            .watch.says("('frozen_cache')"));
  CHECK_THROWS_WITH_AS(head_on({{"keep_frozen", "dsk"}}), doctest::Contains("did you mean 'disk'"),
                       ValueError);
}

TEST_CASE("kept: variants of augmentation are computed once and reused") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  const auto with = [&](const std::string& name, const char* augment, const char* variants) {
    return run(head_on({{"augment", augment}, {"frozen_variants", variants}, {"epochs", "4"}}),
               folder / name);
  };
  for (const std::string augment : {"crop=4,flip", "rotate=10,flip"}) {
    CAPTURE(augment);
    const std::string name = augment.substr(0, 3);
    const Run every = with(name + "every", augment.c_str(), "0"),
              four = with(name + "four", augment.c_str(), "4"),
              two = with(name + "two", augment.c_str(), "2"),
              one = with(name + "one", augment.c_str(), "1");
    CAPTURE(two.watch.notes);
    CHECK(every.watch.says("--frozen-variants"));
    CHECK(every.watch.computed == 0);
    CHECK(four.watch.says("of 4 variants of 40 samples, and of 14 to be measured"));
    CHECK(four.watch.computed >= 160);  // and the validation and test samples, the first time
    CHECK(two.watch.computed == 0);     // the first two of the four
    CHECK(one.watch.says("of one variant of 54 samples"));
    // With as many variants as epochs, the result equals computing in every step.
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(four.result.epochs[k].train_loss ==
            doctest::Approx(every.result.epochs[k].train_loss).epsilon(1e-4));
    CHECK(two.result.epochs[1].train_loss == four.result.epochs[1].train_loss);
    CHECK(two.result.epochs[2].train_loss != four.result.epochs[2].train_loss);
  }
  // Without augmentation all variants are equal.
  CHECK(with("none", "none", "3").watch.says("computed once: of 54 samples"));
}

TEST_CASE("kept: frozen parts with several outputs") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  // The second half of a residual block reads the first half's output and the block's input.
  const auto with = [&](const char* keep) {
    return run(head_on({{"freeze", "conv1,bn1,layer1.0.conv1,layer1.0.bn1"},
                        {"keep_frozen", keep},
                        {"lr", "0.01"}}),
               folder / keep);
  };
  const Run kept = with("memory"), every = with("off");
  CAPTURE(kept.watch.notes);
  CHECK(kept.watch.says("computed once"));
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(kept.result.epochs[k].train_loss ==
          doctest::Approx(every.result.epochs[k].train_loss).epsilon(1e-3));
    CHECK(*kept.result.epochs[k].validation_loss ==
          doctest::Approx(*every.result.epochs[k].validation_loss).epsilon(1e-3));
  }
}

TEST_CASE("kept: a whole trunk of BERT, and all but its last layer") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  std::string lines, all;
  for (int k = 0; k < 60; ++k) {
    const std::string text = std::string(k % 2 == 0 ? "water is the " : "desert is the ") +
                             (k % 3 == 0 ? "sea" : "long sand and stone");
    lines += (k % 2 == 0 ? "wet\t" : "dry\t") + text + "\n";
    all += text + "\n";
  }
  std::ofstream(folder / "lines.txt") << lines;
  data::Tokenizer::train(all, {.kind = data::TokenizerKind::WordPiece, .tokens = 60})
      .save(folder / "tokens.json");
  for (const std::string freeze : {"bert", "bert.embeddings,bert.encoder.layer.0"}) {
    CAPTURE(freeze);
    const auto with = [&](const std::string& keep) {
      return run(Settings::resolve(
                     "bert_classifier:layers=2,heads=2,width=16,context=16,vocabulary=60", "",
                     {{"data", "lines:" + (folder / "lines.txt")},
                      {"tokenizer", folder / "tokens.json"},
                      {"freeze", freeze},
                      {"keep_frozen", keep},
                      {"epochs", "2"},
                      {"batch", "8"},
                      {"warmup", "0"},
                      {"keep_best", "false"}}),
                 folder / (keep + std::to_string(freeze.size())));
    };
    const Run kept = with("memory"), every = with("off");
    CAPTURE(kept.watch.notes);
    CHECK(kept.watch.says("computed once"));
    for (std::size_t k = 0; k < 2; ++k)
      CHECK(*kept.result.epochs[k].validation_loss ==
            doctest::Approx(*every.result.epochs[k].validation_loss).epsilon(1e-3));
    CHECK(train::TrainedModel::open(folder / ("memory" + std::to_string(freeze.size())))
              .evaluate()
              .items == 6);
  }
}

TEST_CASE("kept: a run stopped while frozen parts are computed starts again") {
  const TestFolder folder;
  const Variable cache("TENON_CACHE", (folder / "cache").c_str());
  const auto watch = std::make_shared<Watch>();
  const train::TrainResult stopped =
      train::start_run(head_on(), folder / "parts",
                       {.callbacks = {watch}, .stop = [&] { return watch->computed > 0; }});
  CHECK(stopped.reason == train::StopReason::Interrupted);
  CHECK(stopped.steps == 0);
  CHECK(watch->computed < 40);
  CHECK(files_in(folder / "cache/frozen").empty());
  CHECK(train::resume_run(folder / "parts").steps == 8);
  const Run whole = run(head_on(), folder / "whole");
  CHECK(toy::difference(io::load_safetensors(folder / "parts/model.safetensors").tensors,
                        whole.weights) == "");
}

TEST_CASE("kept: large samples are read a batch at a time") {
  const TestFolder folder;
  const auto set = std::make_shared<LargeSamples>(large_samples_of_two_classes());
  const nn::Sequential net(nn::Linear(1 << 20, 1), nn::Linear(1, 2));
  const train::FrozenNet frozen(net, {"0"});
  const train::KeepOptions options{
      .place = train::KeepPlace::Disk, .folder = folder / "cache", .limit = 1 << 20};
  const train::KeptPart kept = train::keep_frozen_part(frozen, {{set, {}, ""}}, options);
  REQUIRE(kept.sets.size() == 1);
  CHECK(kept.sets[0]->size() == 50);
  CHECK(set->most() <= std::size_t{16} << 22);
}
