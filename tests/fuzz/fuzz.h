// Shared by all fuzzers. A reader may refuse its bytes with a typed error; anything else (a crash,
// a sanitizer report, another exception, a hang) is a finding.
#pragma once

#include <tenon/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon::fuzz {

/// Runs `read` on the bytes and lets typed refusals pass.
template <class Read>
int refuse_or_read(const std::uint8_t* data, std::size_t size, Read read) {
  try {
    read(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const FormatError&) {
  } catch (const NotSupported&) {
  }
  return 0;
}

}  // namespace tenon::fuzz
