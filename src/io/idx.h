// IDX, the format of the MNIST files: two zero bytes, a type, a rank, big-endian sizes, then the
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

/// Parses the bytes of an IDX file, unpacking gzip first. `name` is for messages; `limit` bounds
/// what is unpacked.
Tensor parse_idx(std::string_view bytes, const std::string& name, std::uint64_t limit = 1ull << 34);

/// True for what starts as an IDX file does (not compressed).
bool is_idx(std::string_view bytes) noexcept;

}  // namespace tenon::io
