// Each part changes high bits of the seed, which a person's seed does not use.
#include "data/samples/drawn_parts.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "data/samples/split.h"

namespace tenon::data {
namespace {

constexpr std::uint64_t kTestSeeds = 0x7e57'0000'0000'0000ull;
constexpr std::uint64_t kValidationSeeds = 0x5a11'd000'0000'0000ull;

}  // namespace

std::uint64_t drawn_seed(std::uint64_t seed, Split part) {
  return part == Split::Test         ? seed ^ kTestSeeds
         : part == Split::Validation ? seed ^ kValidationSeeds
                                     : seed;
}

std::string drawn_seed_text(std::uint64_t drawn) {
  constexpr int kLowBits = 44;  // those of the seed; the part decides the others
  for (const Split part : {Split::Test, Split::Validation})
    if (const std::uint64_t seed = drawn_seed(drawn, part); seed >> kLowBits == 0)
      return cat("seed ", seed, ", ", name(part), " part");
  return cat("seed ", drawn);
}

std::int64_t drawn_validation(const SplitOptions& options, std::int64_t train,
                              const std::string& name) {
  const double share = checked_shares(options, name).second;
  return share == 0 ? 0
                    : std::max<std::int64_t>(1, std::llround(share * static_cast<double>(train)));
}

}  // namespace tenon::data
