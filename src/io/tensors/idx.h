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
  /// Limit of the decompressed size. Unset: 64 times the compressed size, at least 256 MiB, so that
  /// a small file cannot request much memory; MNIST's files grow five times.
  std::optional<std::uint64_t> limit{};
  bool channel_axis = false;  ///< Images [N, height, width] become [N, 1, height, width].
};

/// Parses the bytes of an IDX file, unpacking gzip first. `name` is for messages.
Tensor parse_idx(std::string_view bytes, const std::string& name, const IdxOptions& options = {});

/// Whether the bytes start like an IDX file (not compressed).
bool is_idx(std::string_view bytes) noexcept;

}  // namespace tenon::io
