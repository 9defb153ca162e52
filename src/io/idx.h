// IDX, the format of the MNIST files: two zero bytes, a type, a rank, big-endian sizes, then the
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

struct IdxOptions {
  /// Of the bytes unpacked from gzip. Unset: 64 times the packed ones, but at least 256 MiB, so
  /// that a small file does not take much memory; MNIST's files unpack to five times.
  std::optional<std::uint64_t> limit{};
  bool channel_axis = false;  ///< ImageFiles [N, height, width] become [N, 1, height, width].
};

/// Parses the bytes of an IDX file, unpacking gzip first. `name` is for messages.
Tensor parse_idx(std::string_view bytes, const std::string& name, const IdxOptions& options = {});

/// True for what starts as an IDX file does (not compressed).
bool is_idx(std::string_view bytes) noexcept;

}  // namespace tenon::io
