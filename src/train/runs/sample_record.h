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

/// File name in the run folder.
inline constexpr char kSampleRecordFile[] = "training_samples.safetensors";

class SampleRecord {
 public:
  /// What a checksum covers.
  enum class Unit {
    Images,  ///< an image file, or the video that a frame is from
    Inputs,  ///< the values of a sample; for tokens without padding
    Texts    ///< fixed-length stretches of tokens, independent of where windows begin
  };

  static constexpr std::int64_t kMostInputs =
                                    std::int64_t{1}
                                    << 20,      ///< most checksums kept, for datasets in memory
      kMostRead = std::int64_t{1} << 15,        ///< for files
      kMostDrawn = std::int64_t{1} << 11,       ///< for generated samples, which take longest
      kMostTexts = std::int64_t{1} << 18,       ///< for stretches of tokens
      kMostBytes = std::int64_t{1} << 32,       ///< bytes of inputs read
      kMostDrawnBytes = std::int64_t{1} << 26;  ///< bytes of inputs generated
  static constexpr std::int64_t kStretch =
      32;  ///< tokens per stretch, or the window length if that is smaller

  /// Records the training part. Unreadable images are skipped.
  static SampleRecord of(const data::Dataset& training);
  /// Adds the checksums of another record. Throws ValueError if its unit differs.
  void add(const SampleRecord& other);
  /// Whether the record is of these training samples; a subset of images is compared.
  bool is_of(const data::Dataset& training) const;

  void save(const std::string& path) const;
  /// Throws IoError, and FormatError if save() did not write the file.
  static SampleRecord load(const std::string& path);

  /// Number of the samples [first, end) that are in the record; nullopt if the dataset has another
  /// unit.
  std::optional<SeenSamples> seen(const data::Dataset& set, std::int64_t first,
                                  std::int64_t end) const;
  /// The same for an image, given the bytes of its file.
  std::optional<SeenSamples> seen_image(std::string_view file) const;

 private:
  bool holds(std::uint64_t checksum) const;
  SeenSamples seen_texts(const data::Dataset& set, std::int64_t first, std::int64_t end) const;
  Unit unit_ = Unit::Inputs;
  std::int64_t every_ = 1;  // one of every_ training samples is recorded; a power of two for Texts
  std::int64_t stretch_ = 0;              // length in tokens, for Texts
  std::vector<std::uint64_t> checksums_;  // sorted, unique
};

}  // namespace tenon::train
