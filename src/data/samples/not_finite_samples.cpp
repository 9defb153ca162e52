// A value is NaN or infinite if all bits of its exponent are set.
#include "data/samples/not_finite_samples.h"

#include <cstring>
#include <string_view>

#include <tenon/error.h>

#include "base/str.h"
#include "data/samples/sample_pieces.h"

namespace tenon::data {
namespace {

template <class Bits>
bool has_exponent(std::string_view bytes, Bits exponent) {
  bool found = false;  // no early return: the loop stays vectorized, and most data is finite
  for (std::size_t k = 0; k + sizeof(Bits) <= bytes.size(); k += sizeof(Bits)) {
    Bits value = 0;
    std::memcpy(&value, bytes.data() + k, sizeof value);
    found |= (value & exponent) == exponent;
  }
  return found;
}

bool is_not_finite(std::string_view bytes, DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return has_exponent<std::uint64_t>(bytes, 0x7ff0'0000'0000'0000ull);
    case DType::Float32:
      return has_exponent<std::uint32_t>(bytes, 0x7f80'0000u);
    case DType::Float16:
      return has_exponent<std::uint16_t>(bytes, 0x7c00);
    case DType::BFloat16:
      return has_exponent<std::uint16_t>(bytes, 0x7f80);
    default:
      return false;
  }
}

// "the inputs of 3 samples (the first: x.npy, row 7)"
std::string part_text(std::int64_t count, const std::string& what, const std::string& first) {
  if (count == 0) return "";
  return count == 1 ? cat("the ", what, " of ", first)
                    : cat("the ", what, "s of ", count, " samples (the first: ", first, ")");
}

}  // namespace

std::string NotFiniteSamples::text() const {
  return cat(part_text(inputs, "input", first_input), inputs > 0 && targets > 0 ? " and " : "",
             part_text(targets, "target", first_target), inputs + targets == 1 ? " is" : " are",
             " NaN or infinite");
}

NotFiniteSamples not_finite_samples(const Dataset& set) {
  NotFiniteSamples out;
  const DatasetInfo& info = set.info();
  if (!is_floating(info.input_dtype) && !is_floating(info.target_dtype)) return out;
  const std::size_t input = input_bytes(info), target = target_bytes(info);
  for_each_piece(set, [&](std::string_view inputs, std::string_view targets, const auto& numbers) {
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const auto note = [&](std::string_view values, DType dtype, std::int64_t& count,
                            std::string& first) {
        if (is_not_finite(values, dtype) && ++count == 1) first = set.sample_name(numbers[k]);
      };
      note(inputs.substr(k * input, input), info.input_dtype, out.inputs, out.first_input);
      note(targets.substr(k * target, target), info.target_dtype, out.targets, out.first_target);
    }
  });
  return out;
}

void refuse_not_finite(const NotFiniteSamples& found, Split part, const std::string& data) {
  throw FormatError(cat("data '", data, "': in the ", name(part), " part, ", found.text(),
                        ": remove these samples, or replace the values"));
}

}  // namespace tenon::data
