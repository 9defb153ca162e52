// Frames of videos with FFmpeg. The build needs its headers; its libraries are loaded when the
// first video is opened, because they load about a hundred other libraries.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tenon/io.h>

namespace tenon::io {

/// An open video. One thread uses it; what a frame looks like depends on the file and its time
/// alone.
class Video {
 public:
  /// Throws IoError, FormatError for what is no video or has no images, and NotSupported in a
  /// build without FFmpeg or where it is not installed.
  explicit Video(const std::string& path);
  /// The same of bytes, which outlive it. `name` is for messages.
  Video(std::string_view bytes, const std::string& name);
  ~Video();
  Video(const Video&) = delete;
  Video& operator=(const Video&) = delete;

  /// How long it is.
  double seconds() const;
  /// The RGB image that is shown at this time, from 0, rotated upright. Throws FormatError where
  /// the video ends before, or the image is damaged.
  Image frame_at(double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "FFmpeg 5.1.9"; "" where this build or machine has none.
std::string ffmpeg_version();

}  // namespace tenon::io
