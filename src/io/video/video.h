// Frames of videos with FFmpeg. The build needs its headers; its libraries are loaded when the
// first video is opened, because they load about a hundred other libraries.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tenon/io.h>

namespace tenon::io {

/// An open video, for one thread. A frame depends on the file and the time only.
class Video {
 public:
  /// Throws IoError, FormatError if the file is not a video or has no frames, and NotSupported if
  /// FFmpeg is missing in the build or on the machine.
  explicit Video(const std::string& path);
  /// The same for bytes, which must outlive it. `name` is for messages.
  Video(std::string_view bytes, const std::string& name);
  ~Video();
  Video(const Video&) = delete;
  Video& operator=(const Video&) = delete;

  /// Duration.
  double seconds() const;
  /// The RGB frame shown at this time (from 0), rotated upright. Throws FormatError if the video
  /// ends before, or the frame is damaged.
  Image frame_at(double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Version such as "FFmpeg 5.1.9"; "" if unavailable.
std::string ffmpeg_version();

}  // namespace tenon::io
