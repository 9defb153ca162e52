// Fuzzes our code around FFmpeg: opening a video, its length, and frames.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "io/video/video.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    tenon::io::Video video(bytes, "input");
    for (const double share : {0.1, 0.9}) {
      const tenon::io::Image image = video.frame_at(std::min(share * video.seconds(), 1e3));
      if (image.width < 1 || image.height < 1 || image.channels != 3) __builtin_trap();
    }
  });
}
