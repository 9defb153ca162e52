// Images of different sizes: where they are found, which are test images, what replaces broken
// ones, and equal batches for any number of workers.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/tensor.h>

#include "io/folder.h"
#include "io/images/image.h"
#include "io/jpeg.h"

using namespace tenon;
using data::Split;

namespace {

// An image of one colour; the red value identifies it.
io::Image plain(int width, int height, std::uint8_t red) {
  io::Image image{width, height, 3, {}};
  for (int i = 0; i < width * height; ++i) image.pixels.insert(image.pixels.end(), {red, 90, 200});
  return image;
}

// An image with gradients, edges and grain, like a photograph.
io::Image scene(int width, int height) {
  io::Image image{width, height, 3, {}};
  std::uint32_t grain = 3;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const int level : {x / 3, y / 2, (x / 40 + y / 30) % 2 * 150}) {
        grain = grain * 1664525u + 1013904223u;
        image.pixels.push_back(static_cast<std::uint8_t>(level + static_cast<int>(grain >> 27)));
      }
  return image;
}

void save(const std::string& path, std::uint8_t red, int width = 20, int height = 14) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  io::save_png(path, plain(width, height, red));
}

// Writes cat/0.png to cat/9.png and dog/0.png to dog/9.png: red is 10 * number, plus 1 for dogs.
void make_pets(const TestFolder& dir, const std::string& root = "pets") {
  for (int k = 0; k < 10; ++k) {
    save(dir / (root + "/dog/" + std::to_string(k) + ".png"), static_cast<std::uint8_t>(10 * k + 1),
         20 + k, 30 - k);
    save(dir / (root + "/cat/" + std::to_string(k) + ".png"), static_cast<std::uint8_t>(10 * k));
  }
}

struct Found {
  std::vector<int> reds;
  std::vector<std::int64_t> labels;
};

Found all(const data::Dataset& set) {
  Found out;
  std::vector<std::uint8_t> input(static_cast<std::size_t>(set.input_shape().numel()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    std::int64_t label = -1;
    set.get({&i, 1}, input.data(), &label);
    out.reds.push_back(input[0]);
    out.labels.push_back(label);
  }
  return out;
}

template <class E>
std::string refusal(const std::string& spec, Split split = Split::Train) {
  try {
    data::open_dataset(spec, split);
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

// A tar archive of these files.
std::string tar(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out;
  for (const auto& [name, bytes] : files) {
    std::string header(512, '\0');
    std::memcpy(header.data(), name.data(), name.size());
    std::snprintf(header.data() + 124, 12, "%011zo", bytes.size());
    std::memset(header.data() + 148, ' ', 8);
    header[156] = '0';
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header.data() + 148, 8, "%06o", sum);
    out += header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
  }
  return out + std::string(1024, '\0');
}

std::string png(std::uint8_t red) { return io::encode_png(plain(9, 7, red)); }

}  // namespace

TEST_CASE("folder: classes by name, parts of all classes, samples of the requested size") {
  const TestFolder dir;
  make_pets(dir);
  io::write_file(dir / "pets/cat/notes.txt", "no image");
  const std::string spec = "folder:" + (dir / "pets") + ",size=8";
  const auto train = data::open_dataset(spec, Split::Train),
             test = data::open_dataset(spec, Split::Test);
  CHECK(train->class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(train->input_shape() == Shape{3, 8, 8});
  CHECK(train->size() == 16);
  CHECK(data::open_dataset(spec, Split::Validation)->size() == 2);
  CHECK(all(*test).labels == std::vector<std::int64_t>{0, 1});
  const Found trained = all(*train);
  for (std::size_t i = 0; i < 16; ++i) CHECK(trained.reds[i] % 10 == trained.labels[i]);
  CHECK(train->sample_name(0).starts_with(dir / "pets/cat"));
  CHECK(data::open_dataset(spec + ",grey", Split::Train)->input_shape() == Shape{1, 8, 8});
}

TEST_CASE("folder: parts by share and seed are disjoint; train/ and val/ are used unchanged") {
  const TestFolder dir;
  make_pets(dir);
  const std::string spec = "folder:" + (dir / "pets") + ",size=4,split=0.25,seed=";
  const auto reds = [&](const std::string& seed, Split part) {
    return all(*data::open_dataset(spec + seed, part)).reds;
  };
  const std::vector<int> one = reds("1", Split::Test), train = reds("1", Split::Train);
  CHECK(one.size() == 5);
  CHECK(train.size() == 13);
  for (const int red : one) CHECK(std::find(train.begin(), train.end(), red) == train.end());
  CHECK(one == reds("1", Split::Test));
  CHECK(one != reds("2", Split::Test));

  make_pets(dir, "parted/train");
  save(dir / "parted/val/dog/x.png", 77);
  const std::string parted = "folder:" + (dir / "parted") + ",size=4";
  CHECK(data::open_dataset(parted, Split::Train)->size() == 20);
  const auto held = data::open_dataset(parted, Split::Validation);
  CHECK(all(*held).reds == std::vector<int>{77});
  CHECK(all(*held).labels ==
        std::vector<std::int64_t>{1});  // dog keeps its number, although there is no cat
  REQUIRE(held->notes().size() == 1);
  CHECK(held->notes()[0].text ==
        "the validation part has no sample of 1 class that another part has: 'cat'");
  CHECK(data::open_dataset(parted, Split::Test) == nullptr);
  CHECK(data::open_dataset(parted, Split::All)->size() == 21);
  CHECK(data::open_dataset(parted + ",split=0.5", Split::Test)->size() == 10);
  CHECK(refusal<ValueError>(parted + ",validation=0.5").find("leave out its share") !=
        std::string::npos);
  const std::string elsewhere = spec.substr(0, spec.find(',')) + ",size=4,test=";
  CHECK(data::open_dataset(elsewhere + (dir / "parted/val"), Split::Train)->size() == 18);
  CHECK(all(*data::open_dataset(elsewhere + (dir / "parted/val"), Split::Test)).labels ==
        std::vector<std::int64_t>{1});
  save(dir / "parted/val/owl/x.png", 5);
  CHECK(refusal<FormatError>(parted).find("'owl'") != std::string::npos);
}

TEST_CASE("list: paths with spaces; numeric classes in numerical order") {
  const TestFolder dir;
  for (int k = 0; k < 4; ++k)
    save(dir / ("a b" + std::to_string(k) + ".png"), static_cast<std::uint8_t>(k));
  io::write_file(dir / "list.txt",
                 "# images\na b0.png\t10\na b1.png\t9\r\na b2.png\t9\n\na b3.png\t2\n");
  const auto set = data::open_dataset(
      "list:" + (dir / "list.txt") + ",size=4,split=0.25,validation=0", Split::Train);
  CHECK(set->class_names() == std::vector<std::string>{"2", "9", "10"});
  const Found found = all(*set);
  CHECK(found.reds.size() == 3);
  const std::vector<std::int64_t> labels{2, 1, 1, 0};
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(found.labels[i] == labels[static_cast<std::size_t>(found.reds[i])]);
  io::write_file(dir / "bad.txt", "onlyapath.png\n");
  CHECK(refusal<FormatError>("list:" + (dir / "bad.txt")).find("line 1") != std::string::npos);
  io::write_file(dir / "bad.txt", "a.png,1\nb.png\t2\nc.png 3\n");  // no separator fits all lines
  CHECK(refusal<FormatError>("list:" + (dir / "bad.txt")).find("separator=") != std::string::npos);
}

TEST_CASE("classes: folders have torchvision's order, numeric labels numerical order") {
  const TestFolder dir;
  for (const char* name : {"1", "2", "10", "11"})
    save(dir / ("num/" + std::string(name) + "/a.png"), 7);
  using Names = std::vector<std::string>;
  const auto names = [](const std::string& spec) {
    return data::open_dataset(spec, Split::All)->class_names();
  };
  const std::string spec = "folder:" + (dir / "num");
  CHECK(names(spec) == Names{"1", "10", "11", "2"});
  CHECK(names(spec + ",order=plain") == Names{"1", "10", "11", "2"});
  CHECK(names(spec + ",order=natural") == Names{"1", "2", "10", "11"});
  CHECK(refusal<ValueError>(spec + ",order=random") != "");
  for (const char* name : {"Class 2", "class 10", "class 2", "class 02b"})
    save(dir / ("text/" + std::string(name) + "/a.png"), 7);
  CHECK(names("folder:" + (dir / "text")) == Names{"Class 2", "class 02b", "class 10", "class 2"});
  CHECK(names("folder:" + (dir / "text") + ",order=natural") ==
        Names{"Class 2", "class 2", "class 02b", "class 10"});
  io::write_file(dir / "list.txt", "num/1/a.png 10\nnum/2/a.png 9\nnum/2/a.png 100\n");
  CHECK(names("list:" + (dir / "list.txt")) == Names{"9", "10", "100"});
  CHECK(names("list:" + (dir / "list.txt") + ",order=plain") == Names{"10", "100", "9"});
  io::write_file(dir / "cls.tar",
                 tar({{"1.png", png(1)}, {"1.cls", "10"}, {"2.png", png(2)}, {"2.cls", "9"}}));
  io::write_file(dir / "dirs.tar", tar({{"10/1.png", png(1)}, {"9/2.png", png(2)}}));
  CHECK(names("shards:" + (dir / "cls.tar")) == Names{"9", "10"});
  CHECK(names("shards:" + (dir / "dirs.tar")) == Names{"10", "9"});
  CHECK(names("shards:" + (dir / "dirs.tar") + ",order=natural") == Names{"9", "10"});
}

TEST_CASE("folder: notes count skipped files and classes without images") {
  const TestFolder dir;
  make_pets(dir);
  std::filesystem::create_directories(dir / "pets/emu");
  std::filesystem::create_directories(dir / "pets/yak/deeper");
  std::filesystem::rename(dir / "pets/cat/0.png", dir / "pets/cat/0");
  io::write_file(dir / "pets/dog/notes.txt", "");
  io::write_file(dir / "pets/dog/.hidden", "");
  save(dir / "pets/beside.png", 3);
  save(dir / "pets/dog/1/2/3/4/5/6/7/8/9/deep.png", 3);
  const Notes notes = data::open_dataset("folder:" + (dir / "pets"), Split::Train)->notes();
  const auto has = [&](const std::string& text, std::int64_t count, const std::string& first) {
    return std::any_of(notes.begin(), notes.end(), [&](const Note& note) {
      return note.text == text && note.count == count && note.first == first;
    });
  };
  CHECK(has("2 folders contain no images and are not classes: emu, yak", 2, dir / "pets"));
  CHECK(has("2 files are not images by their extensions and were left out", 2, dir / "pets/cat/0"));
  CHECK(has("1 image is in no class folder and was left out", 1, dir / "pets/beside.png"));
  CHECK(has("1 folder is nested too deeply below its class and was left out", 1,
            dir / "pets/dog/1/2/3/4/5/6/7/8/9"));
}

TEST_CASE("shards: long names are read, and notes count skipped entries") {
  const TestFolder dir;
  // A member name of 150 bytes in GNU tar's form.
  const std::string name = "owl/" + std::string(150, 'n') + ".png";
  const std::string link = tar({{"././@LongLink", name}});
  std::string long_link = link.substr(0, 1024);
  long_link[156] = 'L';
  unsigned sum = 0;
  std::memset(long_link.data() + 148, ' ', 8);
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(long_link[i]);
  std::snprintf(long_link.data() + 148, 8, "%06o", sum);
  io::write_file(dir / "a.tar", long_link + tar({{name.substr(0, 99), png(1)},
                                                 {"ape/1.png", png(2)},
                                                 {"ape/1.seg.png", png(3)},
                                                 {"ape/2.json", "{}"}}));
  const auto set = data::open_dataset("shards:" + (dir / "a.tar") + ",size=4", Split::All);
  CHECK(set->class_names() == std::vector<std::string>{"ape", "owl"});
  const Found found = all(*set);
  CHECK(found.reds == std::vector<int>{1, 2});
  CHECK(found.labels == std::vector<std::int64_t>{1, 0});
  REQUIRE(set->notes().size() == 2);
  CHECK(to_string(set->notes()[0]) ==
        (dir / "a.tar") + ":ape/1.png: 1 key has several images; the first one was taken");
  CHECK(to_string(set->notes()[1]) ==
        (dir / "a.tar") + ":ape/2: 1 key has no image and was left out");
}

TEST_CASE("notes: a loss of decoding is counted once per image, and is an error on request") {
  const TestFolder dir;
  for (const char* file : {"rgba.png", "la.png", "rgba16.png", "rgb.png"}) {
    std::filesystem::create_directories(dir / "in/a");
    std::filesystem::copy(std::string("tests/io/images/") + file,
                          dir / ("in/a/" + std::string(file)));
  }
  const auto images = data::open_image_folder(dir / "in", Split::Train, {.whole = true});
  data::ImageOptions how;
  how.input = {3, 4, 4};
  const auto set = data::image_dataset(images, how);
  CHECK(set->notes().empty());
  data::Loader loader(set, {.batch = 1, .workers = 3});
  for (int k = 0; k < 9; ++k) {
    data::Batch batch;
    loader.next(batch);
  }
  all(*set);
  const Notes notes = set->notes();
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].count == 3);
  CHECK(notes[0].text.find("transparency was dropped from 3 images") == 0);
  CHECK(notes[1].text == "1 image of 16 bits a channel was reduced to 8");
  CHECK(notes[1].first == dir / "in/a/rgba16.png");
  how.strict = true;
  CHECK_THROWS_WITH_AS(all(*data::image_dataset(images, how)),
                       doctest::Contains("transparency was dropped"), FormatError);
  how.background = io::parse_colour("white");
  how.strict = false;
  const auto white = data::image_dataset(images, how);
  all(*white);
  CHECK(white->notes().size() == 1);
  // Also with an option in the source's name.
  CHECK(all(*data::open_dataset("folder:" + (dir / "in") + ",size=4,background=white", Split::All))
            .reds != all(*set).reds);
  CHECK(refusal<ValueError>("folder:" + (dir / "in") + ",background=nothing") != "");
}

TEST_CASE("shards: samples by .cls files or folders, in several archives, in any order") {
  const TestFolder dir;
  io::write_file(dir / "a-00.tar", tar({{"0001.png", png(1)},
                                        {"0001.cls", "dog\n"},
                                        {"0002.cls", "cat"},
                                        {"0002.json", "{}"},
                                        {"0002.png", png(2)}}));
  io::write_file(dir / "a-01.tar", tar({{"0003.png", png(3)}, {"0003.cls", "dog"}}));
  for (const char* pattern : {"a-{00..01}.tar", "a-*.tar"}) {
    const auto set = data::open_dataset(
        "shards:" + (dir / pattern) + ",size=4,validation=0,test=" + (dir / "a-01.tar"),
        Split::Train);
    const Found found = all(*set);
    CHECK(found.reds == std::vector<int>{1, 2, 3});
    CHECK(found.labels == std::vector<std::int64_t>{1, 0, 1});
    CHECK(set->class_names() == std::vector<std::string>{"cat", "dog"});
  }
  io::write_file(dir / "f.tar", tar({{"x/owl/1.png", png(4)}, {"x/ape/1.png", png(5)}}));
  const auto folders = data::open_dataset(
      "shards:" + (dir / "f.tar") + ",size=4,split=0,validation=0", Split::Train);
  CHECK(all(*folders).labels == std::vector<std::int64_t>{1, 0});
  io::write_file(dir / "none.tar", tar({{"1.png", png(4)}}));
  CHECK(refusal<FormatError>("shards:" + (dir / "none.tar")).find("no class") != std::string::npos);
  const std::string whole = tar({{"x/owl/1.png", png(4)}});
  for (const std::size_t size : {std::size_t{100}, std::size_t{600}, whole.size() - 1024}) {
    io::write_file(dir / "cut.tar", whole.substr(0, size));
    CHECK(refusal<FormatError>("shards:" + (dir / "cut.tar")) != "");
  }
  CHECK(refusal<IoError>("shards:" + (dir / "b-*.tar")) != "");
  CHECK(refusal<ValueError>("shards:" + (dir / "b-{x..y}.tar")) != "");
}

TEST_CASE(
    "broken images: replaced by the next image and named, or an error; all broken is an error") {
  const TestFolder dir;
  make_pets(dir);
  const std::string whole = io::read_file(dir / "pets/cat/3.png");
  io::write_file(dir / "pets/cat/3.png", whole.substr(0, whole.size() / 2));
  io::write_file(dir / "pets/dog/5.png", "");
  const std::string spec = "folder:" + (dir / "pets") + ",size=4,split=0,validation=0";
  const auto set = data::open_dataset(spec, Split::Train);
  CHECK(data::open_dataset(spec, Split::Test) == nullptr);
  CHECK(set->broken().empty());
  const Found found = all(*set);
  CHECK(found.reds[3] == 40);
  CHECK(found.labels[3] == 0);
  CHECK(set->broken() == std::vector<std::string>{dir / "pets/cat/3.png", dir / "pets/dog/5.png"});
  const auto strict = data::open_dataset(spec + ",broken=error", Split::Train);
  CHECK_THROWS_AS(all(*strict), FormatError);
  for (int k = 0; k < 10; ++k)
    for (const char* pet : {"cat", "dog"})
      io::write_file(dir / ("pets/" + std::string(pet) + "/" + std::to_string(k) + ".png"), "x");
  CHECK_THROWS_AS(all(*data::open_dataset(spec, Split::Train)), FormatError);
}

TEST_CASE("broken images: left out where each image counts once") {
  const TestFolder dir;
  make_pets(dir);
  io::write_file(dir / "pets/cat/3.png", "");
  data::ImageOptions how;
  how.input = {3, 4, 4};
  how.broken_left_out = true;
  const auto set = data::image_dataset(
      data::open_image_folder(dir / "pets", Split::Train, {.whole = true}), how);
  const Found found = all(*set);
  CHECK(found.reds[2] == 20);
  CHECK(found.reds[3] == 0);
  CHECK(found.labels[3] == data::kIgnoredTarget);
  CHECK(found.reds[4] == 40);
  CHECK(set->broken() == std::vector<std::string>{dir / "pets/cat/3.png"});
  how.broken_is_error = true;
  CHECK_THROWS_AS(all(*data::image_dataset(set->images(), how)), FormatError);
}

TEST_CASE("ten crops: a sample has ten views, normalized by channel; training uses the centre") {
  const TestFolder dir;
  make_pets(dir);
  const auto images = data::open_image_folder(dir / "pets", Split::Train);
  data::ImageOptions how;
  how.input = {3, 8, 6};
  how.resize = data::Transforms::parse("resize=14,ten_crop");
  const auto set = data::image_dataset(images, how);
  CHECK(set->views() == 10);
  CHECK(set->input_shape() == Shape{10, 3, 8, 6});
  std::vector<std::uint8_t> input(10 * 3 * 8 * 6);
  std::int64_t number = 4, label = -1;
  set->get({&number, 1}, input.data(), &label);
  const io::Image image = io::load_image(images->name(number), 3);
  CHECK(data::preprocess_image(image, how).to_vector<std::uint8_t>() == input);
  data::Loader loader(set, {.batch = 5,
                            .shuffle = false,
                            .workers = 2,
                            .channel_mean = {0.5, 0.4, 0.3},
                            .channel_std = {0.2, 0.3, 0.4}});
  data::Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.input.shape() == Shape{5, 10, 3, 8, 6});
  const std::vector<float> numbers = batch.input.to_vector<float>();
  const float mean[] = {0.5f, 0.4f, 0.3f}, deviation[] = {0.2f, 0.3f, 0.4f};
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t channel = i / 48 % 3;
    CHECK(numbers[4 * input.size() + i] ==
          doctest::Approx((input[i] / 255.0f - mean[channel]) / deviation[channel]).epsilon(1e-5));
  }
  how.augment = data::Transforms::parse("flip");
  const auto training = data::image_dataset(images, how);
  CHECK(training->views() == 1);
  CHECK(training->input_shape() == Shape{3, 8, 6});
  std::vector<std::uint8_t> one(3 * 8 * 6);
  training->get({&number, 1}, one.data(), &label);
  CHECK(std::equal(one.begin(), one.end(), input.begin() + 4 * 3 * 8 * 6));
  how.augment = data::Transforms::parse("ten_crop");
  CHECK_THROWS_AS(data::image_dataset(images, how), ValueError);
}

TEST_CASE("loader: equal augmented images for any number of workers and after a resume") {
  const TestFolder dir;
  make_pets(dir);
  const auto images = data::open_image_folder(dir / "pets", Split::Train);
  data::ImageOptions how;
  how.input = {3, 12, 10};
  how.augment = data::Transforms::parse("resized_crop,flip,jitter,erase");
  const auto set = data::image_dataset(images, how);
  CHECK(set->is_augmented());
  const auto epochs = [&](int workers, std::int64_t from) {
    data::LoaderOptions options;
    options.batch = 4;
    options.workers = workers;
    options.channel_mean = {0.5, 0.4, 0.3};
    options.channel_std = {0.2, 0.3, 0.4};
    data::Loader loader(set, options);
    loader.set_state({0, 0, from});
    std::vector<float> out;
    for (int epoch = 0; epoch < 2; ++epoch) {
      data::Batch batch;
      while (loader.next(batch)) {
        const std::vector<float> numbers = batch.input.to_vector<float>();
        out.insert(out.end(), numbers.begin(), numbers.end());
      }
    }
    return out;
  };
  const std::vector<float> one = epochs(0, 0);
  CHECK(one == epochs(1, 0));
  CHECK(one == epochs(3, 0));
  const std::vector<float> later = epochs(2, 8);
  const auto skipped = static_cast<std::ptrdiff_t>(8 * 3 * 12 * 10);
  CHECK(std::vector<float>(one.begin() + skipped, one.end()) == later);
  const auto half = static_cast<std::ptrdiff_t>(one.size() / 2);
  CHECK(std::vector<float>(one.begin(), one.begin() + half) !=
        std::vector<float>(one.begin() + half, one.end()));
}

TEST_CASE("images: options that contradict each other are refused") {
  const TestFolder dir;
  make_pets(dir);
  const auto images = data::open_image_folder(dir / "pets", Split::Train);
  const auto with = [&](const std::string& resize, const std::string& augment, const Shape& input) {
    data::ImageOptions how;
    how.input = input;
    how.resize = data::Transforms::parse(resize);
    how.augment = data::Transforms::parse(augment);
    return data::image_dataset(images, how);
  };
  CHECK_THROWS_AS(with("resize,center_crop=9", "none", {3, 8, 8}), ValueError);
  CHECK_THROWS_AS(with("resize,center_crop", "resized_crop=9", {3, 8, 8}), ValueError);
  CHECK_THROWS_AS(with("resize,center_crop", "resized_crop,resize=20", {3, 8, 8}), ValueError);
  CHECK_THROWS_AS(with("resize,center_crop", "none", {2, 8, 8}), ValueError);
  CHECK_THROWS_AS(with("resize,center_crop", "none", {8, 8}), ValueError);
  CHECK_NOTHROW(with("resize=9,center_crop=8", "resized_crop=8,flip", {3, 8, 8}));
  CHECK_THROWS_AS(data::Loader(with("resize,center_crop", "none", {1, 8, 8}),
                               {.channel_mean = {0, 0, 0}, .channel_std = {1, 1, 1}}),
                  ValueError);
  const std::string folder = "folder:" + (dir / "pets");
  CHECK(refusal<IoError>("folder:" + (dir / "nowhere")) != "");
  CHECK(refusal<FormatError>(folder + "/cat").find("sub-folders are the classes") !=
        std::string::npos);
  for (const char* more : {",size=x", ",size=0", ",split=2", ",what=1", ",", ",broken=maybe"})
    CHECK(refusal<ValueError>(folder + more) != "");
  CHECK(refusal<ValueError>("folder:") != "");
}

TEST_CASE("JPEG: a part has the pixels of the whole, and large parts are reduced") {
  const std::string photo = "photo.jpg", bytes = test::jpeg_of(scene(640, 427), {.quality = 90});
  const io::Image whole = io::parse_image(bytes, photo, 3);
  for (const auto& box : {io::ImageBox{0, 0, 50, 40}, io::ImageBox{101, 77, 260, 199},
                          io::ImageBox{400, 300, 640, 427}}) {
    const io::DecodedPart part = io::parse_image_part(bytes, photo, {3, {}}, [&](int, int) {
      return io::ImagePart{box, 1000, 1000};
    });
    CHECK(part.image.pixels.size() < whole.pixels.size());
    int worst = 0;
    for (int y = 0; y < static_cast<int>(box.bottom - box.top); ++y)
      for (int x = 0; x < static_cast<int>(box.right - box.left) * 3; ++x) {
        const auto at = [&](const io::Image& image, double left, double top) {
          const std::ptrdiff_t row = y + static_cast<std::ptrdiff_t>(top),
                               place =
                                   row * image.width * 3 + static_cast<std::ptrdiff_t>(left) * 3;
          return int{image.pixels[static_cast<std::size_t>(place + x)]};
        };
        worst = std::max(worst, std::abs(at(part.image, part.box.left, part.box.top) -
                                         at(whole, box.left, box.top)));
      }
    CHECK(worst == 0);
  }
  const io::DecodedPart small =
      io::parse_image_part(bytes, photo, {3, {}}, [&](int width, int height) {
        return io::ImagePart{
            {0, 0, static_cast<double>(width), static_cast<double>(height)}, 70, 50};
      });
  CHECK(small.image.width == whole.width / 8);
}
