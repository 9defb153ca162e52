// Properties of the parts of every kind of source with every option, as scikit-learn guarantees
// them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/tokenizer.h>

#include "io/folder.h"
#include "io/images/image.h"

using namespace tenon;
using data::Split;

namespace {

namespace fs = std::filesystem;

constexpr Split kParts[] = {Split::Train, Split::Validation, Split::Test};
constexpr int kSamples = 120;

// Class and group of sample i. The classes have 60, 40 and 20 samples, alternating; groups have one
// to six samples.
int class_of(int i) { return i % 6 < 3 ? 0 : i % 6 < 5 ? 1 : 2; }
int group_of(int i) { return i < 60 ? i / 6 : i < 100 ? 10 + i / 4 : 40 + i; }

std::string number(std::int64_t value) { return std::to_string(value); }

// A kind of source, and the options that it supports.
struct Kind {
  std::string spec{}, group{};  // the option that groups samples; "": none
  bool classes = true, seeds = true, folds = true, chronological = true;
  bool own_test = false;      // the test part has separate files
  std::string with_groups{};  // the same samples with another column, if `group` needs one

  const std::string& grouped() const { return with_groups.empty() ? spec : with_groups; }
};

using Names = std::vector<std::string>;

// The parts of a source, opened once.
struct Opened {
  explicit Opened(const std::string& spec) : source(spec, options(spec)) {
    for (const Split part : kParts) names[part] = names_of(source.open(part));
    whole = names_of(source.open(Split::All));
  }
  static data::SourceOptions options(const std::string& spec) {
    data::SourceOptions how;
    if (spec.starts_with("lines:") || spec.starts_with("spans:")) {
      static const auto tokenizer = std::make_shared<const data::Tokenizer>(data::Tokenizer::train(
          "the sea is wide and far 0 1 2 3 4 5 6 7 8 9 who what",
          {.kind = data::TokenizerKind::WordPiece, .tokens = 60, .least = 1}));
      how.tokenizer = tokenizer;
    }
    return how;
  }
  static Names names_of(const std::shared_ptr<data::Dataset>& set) {
    Names out;
    for (std::int64_t i = 0; set != nullptr && i < set->size(); ++i)
      out.push_back(set->sample_name(i));
    return out;
  }
  data::Source source;
  std::map<Split, Names> names;
  Names whole;
};

struct Sources {
  TestFolder dir;

  static std::string image(int i) {
    io::Image image{4, 4, 3, std::vector<std::uint8_t>(48, static_cast<std::uint8_t>(i))};
    return io::encode_ppm(image);
  }
  static std::string file_name(int i) {
    return "g" + number(group_of(i)) + "_" + number(1000 + i) + ".ppm";
  }
  std::string csv() {
    std::string text = "x,who,kind\n";
    for (int i = 0; i < kSamples; ++i)
      text += number(i) + "," + number(group_of(i)) + ",k" + number(class_of(i)) + "\n";
    io::write_file(dir / "t.csv", text);
    return "csv:" + (dir / "t.csv");
  }
  std::string lines() {
    std::string text;
    for (int i = 0; i < kSamples; ++i)
      text += "k" + number(class_of(i)) + "\tthe sea " + number(i) + "\n";
    io::write_file(dir / "t.txt", text);
    return "lines:" + (dir / "t.txt");
  }
  // `backward`: files are written from the last to the first.
  std::string folder(const std::string& name, bool backward) {
    for (int k = 0; k < kSamples; ++k) {
      const int i = backward ? kSamples - 1 - k : k;
      const std::string path = dir / (name + "/k" + number(class_of(i)) + "/" + file_name(i));
      fs::create_directories(fs::path(path).parent_path());
      io::write_file(path, image(i));
    }
    return "folder:" + (dir / name);
  }
  std::string list() {
    folder("listed", false);
    std::string text = "path,label,who\n";
    for (int i = 0; i < kSamples; ++i)
      text += "listed/k" + number(class_of(i)) + "/" + file_name(i) + ",k" + number(class_of(i)) +
              ",p" + number(group_of(i)) + "\n";
    io::write_file(dir / "list.csv", text);
    return "list:" + (dir / "list.csv");
  }
  static std::string member(const std::string& name, const std::string& bytes) {
    std::string header(512, '\0');
    std::memcpy(header.data(), name.data(), name.size());
    std::snprintf(header.data() + 124, 12, "%011zo", bytes.size());
    std::memset(header.data() + 148, ' ', 8);
    header[156] = '0';
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header.data() + 148, 8, "%06o", sum);
    return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
  }
  std::string shards() {
    for (int shard = 0; shard < 3; ++shard) {
      std::string tar;
      for (int i = shard * kSamples / 3; i < (shard + 1) * kSamples / 3; ++i)
        tar += member("k" + number(class_of(i)) + "/" + file_name(i), image(i));
      io::write_file(dir / ("s-" + number(shard) + ".tar"), tar + std::string(1024, '\0'));
    }
    return "shards:" + (dir / "s-{0..2}.tar");
  }
  std::string npy() {
    std::vector<float> x;
    std::vector<std::int64_t> y, g;
    for (int i = 0; i < kSamples; ++i)
      x.push_back(static_cast<float>(i)), y.push_back(10 * class_of(i)), g.push_back(group_of(i));
    io::save_npy(dir / "x.npy", Tensor::from(x, {kSamples, 1}));
    io::save_npy(dir / "y.npy", Tensor::from(y, {kSamples}));
    io::save_npy(dir / "g.npy", Tensor::from(g, {kSamples}));
    return "npy:" + (dir / "x.npy") + "," + (dir / "y.npy");
  }
  std::string pairs(bool groups) {
    std::string text;
    for (int i = 0; i < kSamples; ++i)
      text += "line " + number(i) + "\tZeile " + number(i) +
              (groups ? "\tp" + number(group_of(i)) : "") + "\n";
    const std::string file = dir / (groups ? "grouped.tsv" : "pairs.tsv");
    io::write_file(file, text);
    return "pairs:" + file + ",pieces=60";
  }
  std::string text() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "word " + number(i) + " ";
    io::write_file(dir / "book.txt", text);
    return "text:" + (dir / "book.txt") + ",length=8";
  }
  std::string idx() {
    const auto word = [](std::uint32_t v) {
      return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16),
                         static_cast<char>(v >> 8), static_cast<char>(v)};
    };
    fs::create_directories(dir / "idx");
    for (const char* stem : {"train", "t10k"}) {
      std::string images = word(0x803) + word(kSamples) + word(2) + word(2),
                  labels = word(0x801) + word(kSamples);
      for (int i = 0; i < kSamples; ++i) {
        images += std::string(4, static_cast<char>(i));
        labels += static_cast<char>(1 + class_of(i));
      }
      io::write_file(dir / (std::string("idx/") + stem + "-images-idx3-ubyte"), images);
      io::write_file(dir / (std::string("idx/") + stem + "-labels-idx1-ubyte"), labels);
    }
    return "idx:" + (dir / "idx");
  }
  std::string cifar() {
    fs::create_directories(dir / "cifar");
    const auto batch = [](int from, int to) {
      std::string out;
      for (int i = from; i < to; ++i)
        out.append(1, static_cast<char>(class_of(i))).append(3072, static_cast<char>(i));
      return out;
    };
    for (int k = 1; k <= 5; ++k)
      io::write_file(dir / ("cifar/data_batch_" + number(k) + ".bin"),
                     batch((k - 1) * kSamples / 5, k * kSamples / 5));
    io::write_file(dir / "cifar/test_batch.bin", batch(0, 30));
    return "cifar10:" + (dir / "cifar");
  }
  std::string videos() {
    for (int i = 0; i < 24; ++i) {
      const std::string path = dir / ("videos/k" + number(i % 2) + "/v" + number(i) + ".mp4");
      fs::create_directories(fs::path(path).parent_path());
      fs::copy_file("tests/io/videos/h264.mp4", path);
    }
    return "folder:" + (dir / "videos") + ",frames=3,size=8";
  }

  std::vector<Kind> kinds() {
    std::vector<Kind> out{{csv(), "who"},
                          {lines()},
                          {folder("pets", false), "prefix"},
                          {list(), "who"},
                          {shards(), "prefix"},
                          {npy(), dir / "g.npy"},
                          {pairs(false), "2", false, true, true, true, false, pairs(true)},
                          {text(), "", false, false},
                          {idx(), "", true, true, false, true, true},
                          {cifar(), "", true, true, false, true, true}};
    if (!io::video_format().library.empty()) out.push_back({videos()});
    return out;
  }
};

// No sample is lost or in two parts.
void check_disjoint_and_complete(const Opened& opened) {
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const auto& [part, names] : opened.names) {
    seen.insert(names.begin(), names.end());
    count += names.size();
  }
  CHECK(seen.size() == count);
  CHECK(seen == std::set<std::string>(opened.whole.begin(), opened.whole.end()));
}

std::vector<std::int64_t> counts_of(const data::Dataset& set) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(set.classes()));
  std::vector<char> input(static_cast<std::size_t>(set.input_shape().numel()) *
                          item_size(set.input_dtype()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    std::int64_t target = -1;
    set.get({&i, 1}, input.data(), &target);
    ++out.at(static_cast<std::size_t>(target));
  }
  return out;
}

// The frames of a video count as one sample.
void check_stratified(const Opened& opened, const std::vector<Split>& divided,
                      std::int64_t at_once) {
  std::vector<std::int64_t> whole;
  std::int64_t all = 0;
  std::map<Split, std::vector<std::int64_t>> counts;
  for (const Split part : divided) {
    const auto set = opened.source.open(part);
    if (set == nullptr) continue;
    counts[part] = counts_of(*set);
    whole.resize(counts[part].size());
    for (std::size_t c = 0; c < whole.size(); ++c) whole[c] += counts[part][c];
    all += set->size();
  }
  for (const auto& [part, own] : counts) {
    std::int64_t size = 0;
    for (const std::int64_t count : own) size += count;
    for (std::size_t c = 0; c < whole.size(); ++c) {
      const double due =
          static_cast<double>(whole[c]) * static_cast<double>(size) / static_cast<double>(all);
      CHECK(std::abs(static_cast<double>(own[c]) - due) <= 1.01 * static_cast<double>(at_once));
    }
  }
}

// The group in a sample's name: "g12" for "…/g12_1071.ppm".
std::string group_in(const Kind& kind, const std::string& name) {
  if (kind.group == "prefix") {
    const std::size_t from = name.rfind('/') + 1;
    return name.substr(from, name.rfind('_') - from);
  }
  const bool header = kind.spec.starts_with("csv:") || kind.spec.starts_with("list:");
  if (kind.spec.starts_with("list:")) {  // the names are paths
    const std::size_t from = name.rfind('/') + 1;
    return name.substr(from, name.rfind('_') - from);
  }
  return number(group_of(std::stoi(name.substr(name.rfind(' ') + 1)) - (header ? 2 : 1)));
}

}  // namespace

TEST_CASE("split properties: parts are disjoint, complete, and equal for equal seeds") {
  Sources sources;
  for (const Kind& kind : sources.kinds()) {
    CAPTURE(kind.spec);
    std::vector<std::string> hows{"", ",validation=0.2", ",validation=0"};
    if (!kind.own_test) hows.insert(hows.end(), {",split=0.3", ",split=0"});
    if (kind.chronological) hows.emplace_back(",chronological");
    if (kind.seeds) hows.emplace_back(",seed=7");
    for (const std::string& how : hows) {
      CAPTURE(how);
      const Opened opened(kind.spec + how);
      const bool text = kind.spec.starts_with("text:");
      // Tokens at the border of two sections are in no window.
      if (!text) check_disjoint_and_complete(opened);
      CHECK(!opened.names.at(Split::Train).empty());
      for (const Split part : kParts)
        CHECK(opened.names.at(part) == Opened::names_of(data::open_dataset(
                                           kind.spec + how, part, Opened::options(kind.spec))));
    }
    if (!kind.seeds) continue;
    const Opened one(kind.spec), other(kind.spec + ",seed=1");
    CHECK(one.names.at(Split::Train) != other.names.at(Split::Train));
    CHECK(one.names.at(Split::Train).size() == other.names.at(Split::Train).size());
  }
}

TEST_CASE("split properties: every part has each class in its share, within one sample") {
  Sources sources;
  for (const Kind& kind : sources.kinds()) {
    if (!kind.classes) continue;
    CAPTURE(kind.spec);
    const std::int64_t at_once = kind.spec.find("frames=3") != std::string::npos ? 3 : 1;
    std::vector<std::string> hows{"", ",validation=0.25", ",seed=3"};
    if (!kind.own_test) hows.insert(hows.end(), {",split=0.25,validation=0.2", ",fold=2/5"});
    for (const std::string& how : hows) {
      CAPTURE(how);
      const std::vector<Split> divided =
          kind.own_test ? std::vector<Split>{Split::Train, Split::Validation}
                        : std::vector<Split>{Split::Train, Split::Validation, Split::Test};
      check_stratified(Opened(kind.spec + how), divided, at_once);
    }
  }
}

TEST_CASE("split properties: no group is in two parts, by shares and by folds") {
  Sources sources;
  for (const Kind& kind : sources.kinds()) {
    if (kind.group.empty()) continue;
    CAPTURE(kind.spec);
    for (const char* how : {"", ",seed=5", ",split=0.3,validation=0.2", ",fold=1/3", ",fold=3/3"}) {
      CAPTURE(how);
      const Opened opened(kind.grouped() + ",group=" + kind.group + how);
      check_disjoint_and_complete(opened);
      std::map<std::string, std::set<Split>> where;
      for (const Split part : kParts)
        for (const std::string& name : opened.names.at(part))
          where[group_in(kind, name)].insert(part);
      CHECK(where.size() == 40);
      for (const auto& [group, parts] : where) {
        CAPTURE(group);
        CHECK(parts.size() == 1);
      }
      const Notes notes = opened.source.open(Split::Train)->notes();
      CHECK(std::any_of(notes.begin(), notes.end(), [](const Note& note) {
        return note.information && note.text.find("40 groups") != std::string::npos;
      }));
    }
  }
}

TEST_CASE("split properties: chronological parts follow each other") {
  Sources sources;
  for (const Kind& kind : sources.kinds()) {
    CAPTURE(kind.spec);
    if (kind.own_test || kind.spec.starts_with("text:")) continue;
    const Opened opened(kind.spec + ",chronological");
    Names joined;
    for (const Split part : kParts) {
      const Names& names = opened.names.at(part);
      CHECK(!names.empty());
      joined.insert(joined.end(), names.begin(), names.end());
    }
    CHECK(joined == opened.whole);
    // Fold I of K trains on no sample after its test samples.
    std::size_t tested = 0;
    for (int fold = 1; fold <= 3; ++fold) {
      const Opened folded(kind.spec + ",chronological,fold=" + number(fold) + "/3");
      Names seen;
      for (const Split part : kParts) {
        const Names& names = folded.names.at(part);
        seen.insert(seen.end(), names.begin(), names.end());
      }
      CHECK(std::equal(seen.begin(), seen.end(), opened.whole.begin()));
      tested += folded.names.at(Split::Test).size();
    }
    CHECK(tested == opened.whole.size() / 4 * 3);
  }
}

TEST_CASE("split properties: folds test each sample once") {
  Sources sources;
  for (const Kind& kind : sources.kinds()) {
    if (!kind.folds || kind.spec.starts_with("text:")) continue;
    CAPTURE(kind.spec);
    for (const std::string& group : {std::string(), kind.group}) {
      const std::string spec = group.empty() ? kind.spec : kind.grouped() + ",group=" + group;
      std::multiset<std::string> tested;
      std::size_t least = 1000, most = 0;
      for (int fold = 1; fold <= 4; ++fold) {
        const Opened opened(spec + ",fold=" + number(fold) + "/4");
        const Names& names = opened.names.at(Split::Test);
        tested.insert(names.begin(), names.end());
        least = std::min(least, names.size()), most = std::max(most, names.size());
        check_disjoint_and_complete(opened);
      }
      const Names whole = Opened(spec).whole;
      CHECK(tested == std::multiset<std::string>(whole.begin(), whole.end()));
      CHECK(most - least <= 6);
    }
  }
}

TEST_CASE("split properties: the order in which files were written does not matter") {
  Sources sources;
  const Opened one(sources.folder("there", false)), other(sources.folder("back", true));
  for (const Split part : kParts) {
    Names names = other.names.at(part);
    for (std::string& name : names) name.replace(name.find("/back/"), 6, "/there/");
    CHECK(one.names.at(part) == names);
  }
}

TEST_CASE("split properties: a source is read once for all its parts") {
  for (std::size_t which = 0; which < Sources().kinds().size(); ++which) {
    Sources sources;
    const Kind kind = sources.kinds()[which];
    CAPTURE(kind.spec);
    const Opened before(kind.spec);
    const data::Source source(kind.spec, Opened::options(kind.spec));
    CHECK(Opened::names_of(source.open(Split::Train)) == before.names.at(Split::Train));
    if (kind.own_test) CHECK(source.open(Split::Test) != nullptr);
    // Deleted files cannot be read again.
    for (const auto& entry : fs::directory_iterator(sources.dir.path())) fs::remove_all(entry);
    for (const Split part : kParts)
      CHECK(Opened::names_of(source.open(part)) == before.names.at(part));
  }
}
