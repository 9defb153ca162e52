// Record of the training samples: a checksum of each sample, in a file of the run folder. An
// evaluation uses it to count the samples that training has seen, whatever their path, name or
// source.
//
// Memory and time are bounded: of very large datasets only every second, third, ... sample is
// recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/train.h>

namespace tenon::train {

/// File name in the run folder.
inline constexpr char kSampleRecordFile[] = "training_samples.safetensors";

/// Digests of the samples of the held-out parts; "" without a part, and for samples that settings
/// determine.
struct HeldOutDigests {
  std::string validation{}, test{};
};
HeldOutDigests held_out_digests(const data::Dataset* validation, const data::Dataset* test);
/// The digest of one part.
std::string held_out_digest(const data::Dataset& part);

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
      kMostRead = std::int64_t{1} << 15,        ///< limit for files
      kMostDrawn = std::int64_t{1} << 11,       ///< limit for generated samples, which take longest
      kMostTexts = std::int64_t{1} << 18,       ///< limit for stretches of tokens
      kMostBytes = std::int64_t{1} << 32,       ///< bytes of inputs read
      kMostDrawnBytes = std::int64_t{1} << 26;  ///< bytes of inputs generated
  static constexpr std::int64_t kStretch =
      32;  ///< tokens per stretch, or the window length if that is smaller

  /// Records the training part. Unreadable images are skipped. `threads` returns how many threads
  /// may be used; it is called repeatedly. Empty: as many as the calling thread uses.
  static SampleRecord of(const data::Dataset& training, const std::function<int()>& threads = {});
  /// Adds the checksums of an earlier record, whose digests of held-out parts stay. Throws
  /// ValueError if its unit differs.
  void add(const SampleRecord& earlier);
  /// Whether the record is of these training samples; a subset of images is compared.
  bool is_of(const data::Dataset& training) const;

  const HeldOutDigests& held_out() const { return held_out_; }
  void set_held_out(HeldOutDigests digests) { held_out_ = std::move(digests); }

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
  HeldOutDigests held_out_;
};

}  // namespace tenon::train
