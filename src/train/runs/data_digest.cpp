// Digests of data, computed in pieces by several threads, so that a large dataset needs no second
// copy and little time.
#include "train/runs/data_digest.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <vector>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/digest.h"
#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "data/samples/sample_pieces.h"
#include "io/text/json.h"
#include "train/runs/class_names.h"

namespace tenon::train {
namespace {

// Four independent lanes hide the latency of each step, so the speed is that of memory. Protects
// against chance, not against forgery.
std::uint64_t fast_checksum(std::string_view bytes) {
  constexpr std::size_t kLanes = 4, kWord = sizeof(std::uint64_t), kStride = kLanes * kWord;
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ull;
  std::uint64_t lanes[kLanes] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + kStride <= bytes.size(); at += kStride)
    for (std::size_t k = 0; k < kLanes; ++k) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + k * kWord, kWord);
      lanes[k] = (lanes[k] ^ word) * kOdd;
      lanes[k] ^= lanes[k] >> 29;
    }
  Digester digester;
  for (const std::uint64_t lane : lanes) digester.add(lane);
  digester.add(bytes.substr(at));
  return digester.result().lo;
}

void add_samples(Digester& digester, const data::Dataset& set) {
  constexpr std::int64_t kBytesAtOnce = 1 << 18;
  const std::size_t input = data::input_bytes(set.info()), target = data::target_bytes(set.info());
  const std::int64_t each = std::max<std::int64_t>(
                         1, kBytesAtOnce /
                                std::max<std::int64_t>(1, static_cast<std::int64_t>(input))),
                     pieces = (set.size() + each - 1) / each;
  std::vector<std::uint64_t> sums(at(2 * pieces));
  parallel_for(pieces, [&](std::int64_t piece, int) {
    std::vector<std::int64_t> indices(at(std::min(each, set.size() - piece * each)));
    std::iota(indices.begin(), indices.end(), piece * each);
    std::string inputs(indices.size() * input, '\0'), targets(indices.size() * target, '\0');
    set.get(indices, inputs.data(), targets.data());
    sums[at(2 * piece)] = fast_checksum(inputs);
    sums[at(2 * piece) + 1] = fast_checksum(targets);
  });
  for (const std::uint64_t sum : sums) digester.add(sum);
}

// The digest of files covers names, sizes and, if all files can be read before the first step,
// bytes. Nothing is decoded.
void add_files(Digester& digester, const data::ImageFiles& images) {
  constexpr std::uint64_t kMostRead = std::uint64_t{64} << 20;
  std::vector<std::uint64_t> sizes(at(images.size())), sums(sizes.size());
  // An unreadable file counts as 0; reading the samples reports the error.
  const auto of_each = [&](std::vector<std::uint64_t>& out, const auto& of) {
    parallel_for(images.size(), [&](std::int64_t k, int) {
      try {
        out[at(k)] = of(k);
      } catch (const Error&) {
        out[at(k)] = 0;
      }
    });
  };
  of_each(sizes, [&](std::int64_t k) { return images.stored_size(k); });
  if (std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) <= kMostRead)
    of_each(sums, [&](std::int64_t k) { return images.checksum(k); });
  for (std::int64_t k = 0; k < images.size(); ++k) {
    // A folder may have moved.
    digester.add(std::filesystem::path(images.name(k)).filename().string());
    digester.add(static_cast<std::uint64_t>(images.label(k)));
    digester.add(sizes[at(k)]);
    digester.add(sums[at(k)]);
  }
}

constexpr std::size_t kMostNames = 1000;

// The names of the classes follow the digest of the samples, as JSON.
std::vector<std::string> names_within(const std::string& digest) {
  const std::size_t from = digest.find(' ');
  if (from == std::string::npos) return {};
  const io::Json json = io::parse_json_or_discard(std::string_view(digest).substr(from + 1));
  std::vector<std::string> out;
  if (!json.is_array()) return out;
  for (const io::Json& name : json)
    if (name.is_string()) out.push_back(name.get<std::string>());
  return out;
}

// The names that `others` lack, "'cat', 'dog'"; at most ten.
std::string names_without(const std::vector<std::string>& names,
                          const std::vector<std::string>& others) {
  constexpr int kShown = 10;
  const std::set<std::string> known(others.begin(), others.end());
  std::string out;
  int count = 0;
  for (const std::string& name : names) {
    if (known.contains(name) || ++count > kShown) continue;
    out += cat(out.empty() ? "" : ", ", "'", name, "'");
  }
  return count > kShown ? out + ", …" : out;
}

}  // namespace

std::string data_digest(const data::Dataset& set) {
  Digester digester;
  if (const auto images = set.images(); images != nullptr)
    add_files(digester, *images);
  else if (set.in_memory() && !set.made_on_demand())
    add_samples(digester, set);
  else
    return "";
  const std::vector<std::string> names = set.class_names();
  // The classes of text are its tokens, which the samples already contain.
  if (!set.text_unit().empty() || class_words(names).empty()) return digester.result().hex();
  if (names.size() > kMostNames) {
    for (const std::string& name : names) digester.add(name);
    return digester.result().hex();
  }
  return cat(digester.result().hex(), " ", io::json_text(io::Json(names)));
}

std::string data_change(const std::string& before, const std::string& now) {
  const std::vector<std::string> old_names = names_within(before), names = names_within(now);
  if (old_names == names) return "its files or their order changed";
  const std::string gone = names_without(old_names, names), added = names_without(names, old_names);
  if (gone.empty() && added.empty()) return "its classes are in another order";
  return cat("its classes changed: ", gone.empty() ? "" : cat("the run learns ", gone),
             gone.empty() || added.empty() ? "" : ", ",
             added.empty() ? ", which the data no longer has"
                           : cat("the data has ", added, gone.empty() ? " too" : " instead"));
}

}  // namespace tenon::train
