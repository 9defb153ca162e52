// Checksums are computed in pieces, on all threads.
#include "train/runs/sample_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <string>

#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>

#include "base/digest.h"
#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "data/samples/sample_pieces.h"
#include "io/tensors/safetensors.h"
#include "train/runs/data_digest.h"

namespace tenon::train {
namespace {

using Unit = SampleRecord::Unit;
using Checksums = std::vector<std::uint64_t>;

constexpr char kChecksums[] = "checksums", kUnit[] = "unit", kEvery[] = "every",
               kStretchKey[] = "stretch", kValidationKey[] = "validation_digest",
               kTestKey[] = "test_digest";
constexpr const char* kUnits[] = {"images", "inputs", "texts"};
// The checksum of an unreadable image; never recorded.
constexpr std::uint64_t kUnread = 0;

Unit unit_of(const data::Dataset& set) {
  if (set.images() != nullptr) return Unit::Images;
  const bool windows = set.input_dtype() == DType::Int64 && set.input_shape().rank() == 1 &&
                       set.target_shape() == set.input_shape();
  return windows ? Unit::Texts : Unit::Inputs;
}

// Calls visit(k) for k in [0, count) on all threads.
template <class F>
void for_each_in_parallel(std::int64_t count, F&& visit) {
  constexpr std::int64_t kAtOnce = 16;
  parallel_for(divide_up(count, kAtOnce), [&](std::int64_t piece, int) {
    const std::int64_t end = std::min((piece + 1) * kAtOnce, count);
    for (std::int64_t k = piece * kAtOnce; k < end; ++k) visit(at(k));
  });
}

using Threads = std::function<int()>;

int threads_of(const Threads& threads) { return threads ? threads() : num_threads(); }

Checksums of_images(const data::ImageFiles& images, std::span<const std::int64_t> numbers,
                    const Threads& threads = {}) {
  constexpr std::size_t kAtOnce = 1024;  // images between changes of the number of threads
  Checksums out(numbers.size(), kUnread);
  for (std::size_t from = 0; from < numbers.size(); from += kAtOnce) {
    const ThreadCount count(threads_of(threads));
    for_each_in_parallel(static_cast<std::int64_t>(std::min(kAtOnce, numbers.size() - from)),
                         [&](std::size_t k) {
                           try {
                             out[from + k] = images.checksum(numbers[from + k]);
                           } catch (const Error&) {  // decoding reports that it is broken
                           }
                         });
  }
  return out;
}

// The checksum of rows of tokens, without their padding.
std::uint64_t of_tokens(std::string_view input, std::int64_t width) {
  std::vector<std::int64_t> tokens(input.size() / sizeof(std::int64_t));
  std::memcpy(tokens.data(), input.data(), input.size());
  Digester digester;
  for (std::size_t row = 0; row < tokens.size(); row += at(width)) {
    std::size_t end = row + at(width);
    while (end > row && tokens[end - 1] == 0) --end;
    digester.add(static_cast<std::uint64_t>(end - row));
    for (std::size_t k = row; k < end; ++k) digester.add(static_cast<std::uint64_t>(tokens[k]));
  }
  return digester.result().lo;
}

Checksums of_inputs(const data::Dataset& set, std::span<const std::int64_t> numbers,
                    const Threads& threads = {}) {
  const std::size_t bytes = data::input_bytes(set.info());
  const Shape& shape = set.input_shape();
  const bool tokens = set.input_dtype() == DType::Int64 && shape.rank() > 0 && shape.numel() > 0;
  Checksums out(numbers.size());
  std::size_t done = 0;
  for_each_piece(set, numbers, [&](std::string_view inputs, std::string_view, const auto& some) {
    const ThreadCount count(threads_of(threads));
    for_each_in_parallel(std::ssize(some), [&](std::size_t k) {
      const std::string_view input = inputs.substr(k * bytes, bytes);
      out[done + k] = tokens ? of_tokens(input, shape[shape.rank() - 1]) : checksum(input);
    });
    done += some.size();
  });
  return out;
}

// Calls visit(tokens) for each window. Masked tokens are taken from the targets, and [CLS] and
// [SEP] are left out.
template <class F>
void for_each_window(const data::Dataset& set, std::span<const std::int64_t> numbers, F&& visit) {
  const std::size_t length = at(set.input_shape()[0]);
  std::vector<std::int64_t> tokens(length), targets(length);
  for_each_piece(set, numbers, [&](std::string_view in, std::string_view out, const auto& some) {
    for (std::size_t k = 0; k < some.size(); ++k) {
      const std::size_t bytes = length * sizeof(std::int64_t);
      std::memcpy(tokens.data(), in.data() + k * bytes, bytes);
      std::memcpy(targets.data(), out.data() + k * bytes, bytes);
      bool hidden = false;
      for (const std::int64_t target : targets) hidden = hidden || target == data::kIgnoredTarget;
      if (!hidden) {
        visit(std::span<const std::int64_t>(tokens));
        continue;
      }
      for (std::size_t i = 0; i < length; ++i)
        if (targets[i] != data::kIgnoredTarget) tokens[i] = targets[i];
      visit(std::span<const std::int64_t>(tokens).subspan(1, length - 2));
    }
  });
}

// Checksums of every run of `length` consecutive tokens, by a rolling polynomial hash.
class Stretches {
 public:
  explicit Stretches(std::int64_t length) : length_(at(length)), last_(at(length)) {
    for (std::int64_t k = 0; k < length; ++k) power_ *= kBase;
  }
  void restart() { seen_ = 0, hash_ = 0, std::fill(last_.begin(), last_.end(), 0); }
  // The checksum of the run that ends with this token; nullopt while there are too few tokens.
  std::optional<std::uint64_t> add(std::int64_t token) {
    std::uint64_t& oldest = last_[seen_ % length_];
    const std::uint64_t number = static_cast<std::uint64_t>(token) * 2 + 1;
    hash_ = hash_ * kBase + number - power_ * oldest;
    oldest = number;
    if (++seen_ < length_) return std::nullopt;
    Digester digester;
    digester.add(hash_);
    return digester.result().lo;
  }

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ull;
  std::size_t length_, seen_ = 0;
  std::vector<std::uint64_t> last_;
  std::uint64_t hash_ = 0, power_ = 1;
};

void sort_out(Checksums& checksums) {
  std::sort(checksums.begin(), checksums.end());
  checksums.erase(std::unique(checksums.begin(), checksums.end()), checksums.end());
}

// Which checksums are kept does not depend on the position of a stretch.
bool is_kept(std::uint64_t checksum, std::int64_t every) {
  return checksum % static_cast<std::uint64_t>(every) == 0;
}

std::vector<std::int64_t> every_one(std::int64_t first, std::int64_t end, std::int64_t step) {
  std::vector<std::int64_t> out;
  for (std::int64_t k = first; k < end; k += step) out.push_back(k);
  return out;
}

std::int64_t number_in(const io::Metadata& metadata, const char* key, std::int64_t least,
                       std::int64_t most, const std::string& path) {
  const auto found = metadata.find(key);
  const std::string text = found == metadata.end() ? "" : found->second;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < least || value > most)
    throw make_error<FormatError>(FileName{path}, ": '", key, "' is '", text.substr(0, 60),
                                  "', must be a number from ", least, " to ", most);
  return value;
}

}  // namespace

HeldOutDigests held_out_digests(const data::Dataset* validation, const data::Dataset* test) {
  return {validation == nullptr ? "" : held_out_digest(*validation),
          test == nullptr ? "" : held_out_digest(*test)};
}

// The digest without the class names that follow it; those of the training part are compared
// elsewhere.
std::string held_out_digest(const data::Dataset& part) {
  const std::string digest = data_digest(part);
  return digest.substr(0, digest.find(' '));
}

SampleRecord SampleRecord::of(const data::Dataset& training, const Threads& threads) {
  SampleRecord out;
  out.unit_ = unit_of(training);
  const std::int64_t size = training.size();
  if (out.unit_ == Unit::Texts) {
    out.stretch_ = std::min(kStretch, std::max<std::int64_t>(training.input_shape()[0] - 2, 1));
    // Windows follow one another, so that stretches across their ends are recorded too.
    Stretches stretches(out.stretch_);
    for_each_window(training, every_one(0, size, 1), [&](std::span<const std::int64_t> tokens) {
      for (const std::int64_t token : tokens) {
        const std::optional<std::uint64_t> checksum = stretches.add(token);
        if (!checksum || !is_kept(*checksum, out.every_)) continue;
        out.checksums_.push_back(*checksum);
        if (std::ssize(out.checksums_) < 2 * kMostTexts) continue;
        sort_out(out.checksums_);
        while (std::ssize(out.checksums_) > kMostTexts) {
          out.every_ *= 2;
          std::erase_if(out.checksums_, [&](std::uint64_t c) { return !is_kept(c, out.every_); });
        }
      }
    });
    sort_out(out.checksums_);
    return out;
  }
  const bool drawn = training.made_on_demand(),
             read = out.unit_ == Unit::Images || !training.in_memory();
  const std::int64_t bytes =
      out.unit_ == Unit::Images ? 1 : static_cast<std::int64_t>(data::input_bytes(training.info()));
  const std::int64_t most = std::clamp<std::int64_t>(
      (drawn ? kMostDrawnBytes : kMostBytes) / std::max<std::int64_t>(bytes, 1), 1,
      drawn  ? kMostDrawn
      : read ? kMostRead
             : kMostInputs);
  out.every_ = std::max<std::int64_t>(divide_up(size, most), 1);
  const std::vector<std::int64_t> numbers = every_one(0, size, out.every_);
  const auto images = training.images();
  out.checksums_ = images != nullptr ? of_images(*images, numbers, threads)
                                     : of_inputs(training, numbers, threads);
  std::erase(out.checksums_, kUnread);
  sort_out(out.checksums_);
  return out;
}

void SampleRecord::add(const SampleRecord& earlier) {
  if (unit_ != earlier.unit_ || stretch_ != earlier.stretch_)
    throw ValueError("records of samples of two kinds cannot be joined");
  if (!earlier.held_out_.validation.empty()) held_out_.validation = earlier.held_out_.validation;
  if (!earlier.held_out_.test.empty()) held_out_.test = earlier.held_out_.test;
  every_ = std::max(every_, earlier.every_);
  checksums_.insert(checksums_.end(), earlier.checksums_.begin(), earlier.checksums_.end());
  if (unit_ == Unit::Texts)
    std::erase_if(checksums_, [&](std::uint64_t c) { return !is_kept(c, every_); });
  sort_out(checksums_);
}

bool SampleRecord::is_of(const data::Dataset& training) const {
  constexpr std::int64_t kLookedAt = 64;
  if (unit_ != unit_of(training)) return false;
  if (unit_ != Unit::Images) {
    const SampleRecord other = of(training);
    return every_ == other.every_ && stretch_ == other.stretch_ && checksums_ == other.checksums_;
  }
  const std::int64_t step = divide_up(divide_up(training.size(), every_), kLookedAt) * every_;
  const Checksums some = of_images(*training.images(), every_one(0, training.size(), step));
  return std::all_of(some.begin(), some.end(), [&](std::uint64_t checksum) {
    return checksum == kUnread || holds(checksum);
  });
}

void SampleRecord::save(const std::string& path) const {
  std::vector<std::int64_t> numbers(checksums_.size());
  std::memcpy(numbers.data(), checksums_.data(), numbers.size() * sizeof(std::int64_t));
  io::Metadata metadata{{kUnit, kUnits[static_cast<std::size_t>(unit_)]},
                        {kEvery, std::to_string(every_)},
                        {kStretchKey, std::to_string(stretch_)}};
  if (!held_out_.validation.empty()) metadata[kValidationKey] = held_out_.validation;
  if (!held_out_.test.empty()) metadata[kTestKey] = held_out_.test;
  io::save_checked_safetensors(path, {{kChecksums, Tensor::from(numbers, {std::ssize(numbers)})}},
                               metadata);
}

SampleRecord SampleRecord::load(const std::string& path) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const io::SafeTensors file = io::load_safetensors(path);
  const auto tensor = file.tensors.find(kChecksums);
  const auto unit = file.metadata.find(kUnit);
  const auto known = unit == file.metadata.end()
                         ? std::end(kUnits)
                         : std::find(std::begin(kUnits), std::end(kUnits), unit->second);
  if (tensor == file.tensors.end() || tensor->second.dtype() != DType::Int64 ||
      tensor->second.rank() != 1 || known == std::end(kUnits))
    throw make_error<FormatError>(FileName{path},
                                  ": is not a record of training samples: it must have '",
                                  kChecksums, "', int64 [N], and their unit");
  SampleRecord out;
  out.unit_ = static_cast<Unit>(known - std::begin(kUnits));
  out.every_ = number_in(file.metadata, kEvery, 1, kMost, path);
  out.stretch_ =
      number_in(file.metadata, kStretchKey, out.unit_ == Unit::Texts ? 1 : 0, kStretch, path);
  const std::vector<std::int64_t> numbers = tensor->second.to_vector<std::int64_t>();
  out.checksums_.resize(numbers.size());
  std::memcpy(out.checksums_.data(), numbers.data(), numbers.size() * sizeof(std::int64_t));
  sort_out(out.checksums_);
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  out.held_out_ = {text(kValidationKey), text(kTestKey)};
  return out;
}

bool SampleRecord::holds(std::uint64_t checksum) const {
  return std::binary_search(checksums_.begin(), checksums_.end(), checksum);
}

// A window counts as seen if at least half of its runs that would be recorded are in the record.
SeenSamples SampleRecord::seen_texts(const data::Dataset& set, std::int64_t first,
                                     std::int64_t end) const {
  SeenSamples out{.samples = end - first};
  Stretches stretches(stretch_);
  for_each_window(set, every_one(first, end, 1), [&](std::span<const std::int64_t> tokens) {
    stretches.restart();
    std::int64_t asked = 0, found = 0;
    for (const std::int64_t token : tokens) {
      const std::optional<std::uint64_t> checksum = stretches.add(token);
      if (!checksum || !is_kept(*checksum, every_)) continue;
      ++asked;
      found += holds(*checksum);
    }
    out.compared += asked > 0;
    out.seen += asked > 0 && 2 * found >= asked;
  });
  return out;
}

std::optional<SeenSamples> SampleRecord::seen(const data::Dataset& set, std::int64_t first,
                                              std::int64_t end) const {
  if (unit_ != unit_of(set)) return std::nullopt;
  if (unit_ == Unit::Texts) return seen_texts(set, first, end);
  SeenSamples out{.samples = end - first, .compared = end - first, .every = every_};
  constexpr std::int64_t kAtOnce = 65'536;
  const auto images = set.images();
  const std::vector<std::string> names =
      images == nullptr ? std::vector<std::string>() : set.broken();
  const std::set<std::string> broken(names.begin(), names.end());
  Checksums found;
  for (std::int64_t from = first; from < end; from += kAtOnce) {
    std::vector<std::int64_t> numbers = every_one(from, std::min(end, from + kAtOnce), 1);
    // Broken images are not compared.
    if (!broken.empty()) {
      const auto erased = static_cast<std::int64_t>(
          std::erase_if(numbers, [&](std::int64_t n) { return broken.contains(images->name(n)); }));
      out.samples -= erased, out.compared -= erased;
    }
    for (const std::uint64_t checksum :
         images != nullptr ? of_images(*images, numbers) : of_inputs(set, numbers))
      if (checksum != kUnread && holds(checksum)) found.push_back(checksum);
  }
  out.seen = std::ssize(found);
  if (unit_ == Unit::Inputs) sort_out(found), out.distinct = std::ssize(found);
  return out;
}

std::optional<SeenSamples> SampleRecord::seen_image(std::string_view file) const {
  if (unit_ != Unit::Images) return std::nullopt;
  return SeenSamples{.samples = 1, .seen = holds(checksum(file)), .compared = 1, .every = every_};
}

std::int64_t SeenSamples::about() const {
  if (compared == 0 || is_exact()) return seen;
  const double share =
      static_cast<double>(seen) * static_cast<double>(every) / static_cast<double>(compared);
  return std::min(samples,
                  static_cast<std::int64_t>(std::llround(share * static_cast<double>(samples))));
}

Note note_on_seen(const SeenSamples& seen, const std::string& of, bool allowed) {
  return {cat("training has seen ", to_string(seen), of.empty() ? "" : cat(" of ", of)),
          seen.about(),
          {},
          allowed,
          "seen"};
}

std::string to_string(const SeenSamples& seen) {
  const auto number = [](std::int64_t value) {
    std::string text = std::to_string(value);
    for (std::size_t from = text.size(); from > 3; from -= 3) text.insert(from - 3, ",");
    return text;
  };
  const std::string of =
      cat(" of ", number(seen.samples), seen.samples == 1 ? " sample" : " samples");
  const std::string compared =
      cat(", compared with one of every ", seen.every, " training samples");
  if (seen.seen == 0) {
    if (seen.every > 1) return cat("none", of, compared);
    return seen.is_exact()
               ? cat("none", of)
               : cat("none of the ", number(seen.compared), of, " that can be compared");
  }
  if (seen.is_exact()) {
    // Rows of few small integers can be equal by chance.
    const bool repeated = seen.distinct > 0 && 2 * seen.distinct < seen.seen;
    return cat(
        number(seen.seen), of,
        repeated ? cat(" (", number(seen.distinct),
                       seen.distinct == 1 ? " different input, which" : " different inputs, which",
                       " can be equal by chance)")
                 : "");
  }
  if (seen.every > 1)
    return cat("about ", number(seen.about()), of, " (", number(seen.seen), compared, ")");
  return cat("about ", number(seen.about()), of, " (", number(seen.seen), " of ",
             number(seen.compared), " that can be compared)");
}

}  // namespace tenon::train
