// The record of training samples in a run, and the count of samples seen in training.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/text.h>

#include "train/runs/sample_record.h"

using namespace tenon;
using train::SampleRecord;
using train::SeenSamples;

namespace {

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("tenon_sample_record_" + name)).string();
}

// Rows (k, 2 k) for k from `first` on.
std::shared_ptr<data::Dataset> rows(std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t k = first; k < first + count; ++k) {
    values.push_back(static_cast<float>(k));
    values.push_back(static_cast<float>(2 * k));
  }
  return data::from_tensors(Tensor::from(values, {count, 2}), zeros({count}, DType::Int64).eval());
}

// Samples generated on demand, like drawn images.
class Made : public data::Dataset {
 public:
  explicit Made(std::int64_t size)
      : Dataset({.input_shape = {1}, .input_dtype = DType::Int64, .classes = 2}), size_(size) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    for (std::size_t k = 0; k < indices.size(); ++k) {
      static_cast<std::int64_t*>(inputs)[k] = indices[k] + 1;
      static_cast<std::int64_t*>(targets)[k] = 0;
    }
  }

 private:
  std::int64_t size_;
};

std::shared_ptr<data::Dataset> text(const std::string& words, const std::string& name,
                                    std::int64_t length) {
  const std::string file = scratch(name);
  io::write_file(file, words);
  data::TextOptions options{.length = length};
  options.unit = data::TextUnit::Bytes;
  return data::open_text(file, data::Split::All, options);
}

std::string words(std::uint64_t seed, int count) {
  std::string out;
  for (int k = 0; k < count; ++k) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    out += std::to_string(seed >> 44) + " ";
  }
  return out;
}

}  // namespace

TEST_CASE("sample record: counts samples seen in training, in any order and file") {
  const SampleRecord record = SampleRecord::of(*rows(0, 100));
  const std::string file = scratch("rows.safetensors");
  record.save(file);
  const SampleRecord read = SampleRecord::load(file);
  CHECK(read.is_of(*rows(0, 100)));
  CHECK_FALSE(read.is_of(*rows(0, 99)));
  CHECK_FALSE(read.is_of(*rows(1, 100)));
  const auto other = rows(60, 100);
  const SeenSamples seen = read.seen(*other, 0, 100).value();
  CHECK(seen.seen == 40);
  CHECK(seen.is_exact());
  CHECK(to_string(seen) == "40 of 100 samples");
  CHECK(read.seen(*other, 30, 50)->seen == 10);
  CHECK(read.seen(*rows(100, 10), 0, 10)->seen == 0);
  CHECK_FALSE(read.seen_image("bytes").has_value());
  SampleRecord both = read;
  both.add(SampleRecord::of(*rows(100, 50)));
  CHECK(both.seen(*other, 0, 100)->seen == 90);
  std::filesystem::remove(file);
}

TEST_CASE("sample record: counts different inputs that equal training samples") {
  const auto few = [](std::int64_t count, std::int64_t different) {
    std::vector<float> values;
    for (std::int64_t k = 0; k < count; ++k) values.push_back(static_cast<float>(k % different));
    return data::from_tensors(Tensor::from(values, {count, 1}),
                              zeros({count}, DType::Int64).eval());
  };
  const SampleRecord record = SampleRecord::of(*few(200, 9));
  CHECK(record.seen(*few(50, 10), 0, 50)->distinct == 9);
  CHECK(to_string(*record.seen(*few(50, 10), 0, 50)) ==
        "45 of 50 samples (9 different inputs, which can be equal by chance)");
  CHECK(to_string(*record.seen(*few(50, 1), 0, 50)) ==
        "50 of 50 samples (1 different input, which can be equal by chance)");
  CHECK(to_string(*record.seen(*few(18, 9), 0, 18)) == "18 of 18 samples");
}

TEST_CASE("sample record: tokens are compared without padding") {
  const auto of = [](std::vector<std::int64_t> tokens, std::int64_t width) {
    const std::int64_t count = std::ssize(tokens) / width;
    return data::from_tensors(Tensor::from(tokens, {count, width}),
                              zeros({count}, DType::Int64).eval());
  };
  const SampleRecord record = SampleRecord::of(*of({5, 6, 0, 7, 8, 9}, 3));
  CHECK(record.seen(*of({5, 6, 7, 8, 0, 0}, 2), 0, 3)->seen == 1);
  CHECK(record.seen(*of({5, 6, 0, 0, 0, 7, 8, 9, 0, 0}, 5), 0, 2)->seen == 2);
}

TEST_CASE("sample record: of many samples some checksums are kept, and the count is an estimate") {
  const Made many(1'000'000);
  const SampleRecord record = SampleRecord::of(many);
  const SeenSamples all = record.seen(many, 0, 50'000).value();
  CHECK(all.every == 31);
  CHECK_FALSE(all.is_exact());
  CHECK(all.seen < 2000);
  CHECK(all.about() > 49'900);
  CHECK(all.about() <= 50'000);
  CHECK(to_string(all).find("one of every 31 training samples") != std::string::npos);
}

TEST_CASE("sample record: windows of a text are recognised at any start") {
  const std::string learnt = words(1, 4000), strange = words(2, 4000);
  const auto training = text(learnt, "book.txt", 64);
  const SampleRecord record = SampleRecord::of(*training);
  CHECK(record.seen(*training, 0, training->size())->seen == training->size());
  for (const std::size_t shift : {1u, 17u, 40u})
    for (const std::int64_t length : {40, 64, 100}) {
      const auto part = text(learnt.substr(shift, 9000), "part.txt", length);
      const SeenSamples seen = record.seen(*part, 0, part->size()).value();
      CHECK(seen.compared == part->size());
      CHECK(seen.seen == part->size());
    }
  const auto other = text(strange, "other.txt", 64);
  CHECK(record.seen(*other, 0, other->size())->seen == 0);
  const auto half = text(strange.substr(0, 6400) + learnt.substr(100, 6400), "half.txt", 64);
  const std::int64_t found = record.seen(*half, 0, half->size())->seen;
  CHECK(found >= half->size() / 2 - 2);
  CHECK(found <= half->size() / 2 + 2);
  // Of a long text a subset of the sequences is kept, and the count is the same.
  const std::string book = words(3, 200'000);
  const auto thick = text(book, "thick.txt", 200);
  const SampleRecord sampled = SampleRecord::of(*thick);
  const std::string file = scratch("thick.safetensors");
  sampled.save(file);
  CHECK(std::filesystem::file_size(file) < 8u * SampleRecord::kMostTexts + 4096u);
  const auto page = text(book.substr(500'003, 50'000), "page.txt", 200);
  CHECK(SampleRecord::load(file).seen(*page, 0, page->size())->about() == page->size());
  CHECK(sampled.seen(*other, 0, other->size())->seen == 0);
  for (const char* name : {"book.txt", "part.txt", "other.txt", "half.txt", "thick.txt", "page.txt",
                           "thick.safetensors"})
    std::filesystem::remove(scratch(name));
}

TEST_CASE("sample record: a file that is not a record is refused") {
  const std::string file = scratch("bad.safetensors");
  const auto refused = [&](const io::TensorMap& tensors, const io::Metadata& metadata) {
    io::save_safetensors(file, tensors, metadata);
    CHECK_THROWS_AS(SampleRecord::load(file), FormatError);
  };
  const Tensor one = Tensor::from<std::int64_t>({1}, {1});
  const io::Metadata good{{"unit", "texts"}, {"every", "2"}, {"stretch", "32"}};
  io::save_safetensors(file, {{"checksums", one}}, good);
  CHECK_NOTHROW(SampleRecord::load(file));
  refused({}, good);
  refused({{"checksums", zeros({1}).eval()}}, good);
  refused({{"checksums", one}}, {});
  for (const char* wrong : {"", "0", "-1", "1e3", "99999999999999999999"})
    refused({{"checksums", one}}, {{"unit", "texts"}, {"every", wrong}, {"stretch", "32"}});
  refused({{"checksums", one}}, {{"unit", "texts"}, {"every", "1"}, {"stretch", "0"}});
  refused({{"checksums", one}}, {{"unit", "texts"}, {"every", "1"}, {"stretch", "99"}});
  refused({{"checksums", one}}, {{"unit", "words"}, {"every", "1"}, {"stretch", "0"}});
  std::filesystem::remove(file);
}
