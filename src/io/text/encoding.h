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

/// Converts text to UTF-8 without a byte order mark. `encoding` is "utf-8", "latin1" (ISO 8859-1),
/// "cp1252" (Windows), "utf-16" (byte order from its mark, else from the position of zero bytes),
/// "utf-16-le", "utf-16-be", or "": UTF-16 if it has a mark, else UTF-8, else `fallback` (which may
/// be ""). Throws FormatError that begins with `name` and gives the line of the first invalid byte,
/// ValueError for an unknown encoding.
std::string to_utf8(std::string bytes, const std::string& encoding, const std::string& name,
                    const std::string& fallback = {});

/// Reads a whole file and converts it with to_utf8().
std::string read_text(const std::string& file, const std::string& encoding = {},
                      const std::string& fallback = {});

/// Text with arbitrary bytes: removes a UTF-8 byte order mark, and converts UTF-16 that has a mark
/// to UTF-8.
std::string as_text(std::string bytes, const std::string& name);

/// The text without a UTF-8 byte order mark.
std::string_view without_mark(std::string_view text) noexcept;

/// Position of the first byte that is not valid UTF-8; npos if there is none.
std::size_t not_utf8(std::string_view text) noexcept;

}  // namespace tenon::io
