// Loads FFmpeg: only the versions that match the build's headers, because struct layouts differ
// between versions.
#ifdef TENON_WITH_FFMPEG

#include <cstddef>
#include <string>

#include <dlfcn.h>

#include "base/str.h"
#include "io/video/video_library.h"

namespace tenon::io {
namespace {

void* open_library(const char* name, unsigned major, std::string& problem) {
  const std::string file = cat("lib", name, ".so.", major);
  void* handle = problem.empty() ? dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr && problem.empty()) problem = file + " is not installed";
  return handle;
}

Ffmpeg load() {
  Ffmpeg out;
  void* const util = open_library("avutil", LIBAVUTIL_VERSION_MAJOR, out.problem);
  void* const codec = open_library("avcodec", LIBAVCODEC_VERSION_MAJOR, out.problem);
  void* const format = open_library("avformat", LIBAVFORMAT_VERSION_MAJOR, out.problem);
  void* const scale = open_library("swscale", LIBSWSCALE_VERSION_MAJOR, out.problem);
  if (!out.problem.empty()) return out;
#define TENON_FFMPEG_FIND(library, name)                                  \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(library, #name)); \
  if (out.name == nullptr && out.problem.empty()) out.problem = "FFmpeg has no " #name;
  TENON_FFMPEG_FUNCTIONS(TENON_FFMPEG_FIND)
#undef TENON_FFMPEG_FIND
  // Errors are reported by video.cpp; FFmpeg's own log would print many lines a file.
  if (!out.problem.empty()) return out;
  out.av_log_set_level(AV_LOG_QUIET);
  // A file of a few kilobytes may ask for gigabytes. The largest frame, 16 bits of 8K, has 0.2 GB.
  constexpr std::size_t kLargestBlock = std::size_t{512} << 20;
  out.av_max_alloc(kLargestBlock);
  return out;
}

}  // namespace

const Ffmpeg& loaded_ffmpeg() {
  static const Ffmpeg* const table = new Ffmpeg(load());
  return *table;
}

}  // namespace tenon::io

#endif
