// IDX, the format of the MNIST files: two zero bytes, a type, a rank, big-endian sizes, then the
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

struct IdxOptions {
  std::uint64_t limit = 1ull << 34;  ///< Of the bytes unpacked from gzip.
  bool channel_axis = false;         ///< Pictures [N, height, width] become [N, 1, height, width].
};

/// Parses the bytes of an IDX file, unpacking gzip first. `name` is for messages.
Tensor parse_idx(std::string_view bytes, const std::string& name, const IdxOptions& options = {});

/// True for what starts as an IDX file does (not compressed).
bool is_idx(std::string_view bytes) noexcept;

}  // namespace tenon::io
