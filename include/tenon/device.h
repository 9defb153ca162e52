// Where a tensor lives.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// A processor with its own memory: "cpu", "cuda:0", "cuda:1", …
struct Device {
  enum class Kind : std::uint8_t { Cpu, Cuda };
  Kind kind = Kind::Cpu;
  std::int16_t index = 0;
  bool operator==(const Device&) const = default;
  /// "cpu" or "cuda:0"
  TENON_API std::string str() const;
};

/// Parses "cpu", "cuda" or "cuda:N". Throws ValueError for another text, DeviceError when this
/// build cannot serve the device.
TENON_API Device device(const std::string& text);

}  // namespace tenon
