// Text files as UTF-8, whatever their encoding.
//
// Every reader of text uses read_text() or to_utf8(), so a byte order mark is never part of a first
// field, and equal words of differently encoded files have equal bytes. All of them refuse Git LFS
// pointers (io/lfs.h), which would otherwise pass as a table of two rows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::io {

/// The text as UTF-8 without a byte order mark. `encoding` is "utf-8", "latin1" (ISO 8859-1),
/// "cp1252" (Windows), "utf-16" (its byte order mark decides, without one its zeros), "utf-16-le",
/// "utf-16-be", or "": UTF-16 where there is its byte order mark, else UTF-8, and where the bytes
/// are no UTF-8 `fallback`, which may be "" too. Throws FormatError that begins with `name` and
/// names the line of the first byte that does not fit, ValueError for another encoding.
std::string to_utf8(std::string bytes, const std::string& encoding, const std::string& name,
                    const std::string& fallback = {});

/// Reads a file whole, as to_utf8() does.
std::string read_text(const std::string& file, const std::string& encoding = {},
                      const std::string& fallback = {});

/// Text of which any bytes are taken: without the byte order mark of UTF-8, and from UTF-16 with
/// its mark as UTF-8.
std::string as_text(std::string bytes, const std::string& name);

/// The text without the byte order mark of UTF-8.
std::string_view without_mark(std::string_view text) noexcept;

/// Where the first byte stands that is no part of a UTF-8 character; npos in UTF-8.
std::size_t not_utf8(std::string_view text) noexcept;

}  // namespace tenon::io
