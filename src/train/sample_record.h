// Record of the training samples: a checksum of each sample, in a file of the run folder. An
// evaluation uses it to count the samples that training has seen, whatever their path, name or
// source.
//
// Memory and time are bounded: of very large datasets only every second, third, ... sample is
// recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>
#include <tenon/train.h>

namespace tenon::train {

/// Its name in the run's folder.
inline constexpr char kSampleRecordFile[] = "training_samples.safetensors";

class SampleRecord {
 public:
  /// What a checksum is of.
  enum class Unit {
    Images,  ///< an image's file, or the video that a frame is from
    Inputs,  ///< a sample's numbers, of tokens without the zeros that fill a row up
    Texts    ///< every so many tokens of a text in windows, wherever they begin
  };

  static constexpr std::int64_t kMostInputs = std::int64_t{1} << 20,  ///< kept of sets in memory
      kMostRead = std::int64_t{1} << 15,                              ///< of files
      kMostDrawn = std::int64_t{1} << 11,       ///< of what is drawn, which takes longest
      kMostTexts = std::int64_t{1} << 18,       ///< of stretches of tokens
      kMostBytes = std::int64_t{1} << 32,       ///< of inputs that are read
      kMostDrawnBytes = std::int64_t{1} << 26;  ///< of inputs that are drawn
  static constexpr std::int64_t kStretch = 32;  ///< tokens, or as many as a window has

  /// Of the training part. Images that cannot be read are passed over.
  static SampleRecord of(const data::Dataset& training);
  /// Takes those of another one in. Throws ValueError where it is of another unit.
  void add(const SampleRecord& other);
  /// Whether it is of these training samples. Of images some are looked at.
  bool is_of(const data::Dataset& training) const;

  void save(const std::string& path) const;
  /// Throws IoError, and FormatError for what save() does not write.
  static SampleRecord load(const std::string& path);

  /// How many of the samples [first, end) are in it; nothing where the set is of another unit.
  std::optional<SeenSamples> seen(const data::Dataset& set, std::int64_t first,
                                  std::int64_t end) const;
  /// The same of images by their files' bytes.
  std::optional<SeenSamples> seen_image(std::string_view file) const;

 private:
  bool holds(std::uint64_t checksum) const;
  SeenSamples seen_texts(const data::Dataset& set, std::int64_t first, std::int64_t end) const;
  Unit unit_ = Unit::Inputs;
  std::int64_t every_ = 1;    // training samples, of which one is kept; of Texts a power of two
  std::int64_t stretch_ = 0;  // tokens, of Texts
  std::vector<std::uint64_t> checksums_;  // ascending, without repeats
};

}  // namespace tenon::train
