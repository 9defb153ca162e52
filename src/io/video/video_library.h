// FFmpeg's functions, loaded at run time. Included only if the build has FFmpeg's headers.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

namespace tenon::io {

// The types of FFmpeg's functions, from its headers.
#define TENON_FFMPEG_FUNCTIONS(X)         \
  X(util, av_version_info)                \
  X(util, av_log_set_level)               \
  X(util, av_max_alloc)                   \
  X(util, av_malloc)                      \
  X(util, av_freep)                       \
  X(util, av_dict_set)                    \
  X(util, av_dict_free)                   \
  X(util, av_frame_alloc)                 \
  X(util, av_frame_free)                  \
  X(util, av_frame_unref)                 \
  X(util, av_frame_move_ref)              \
  X(codec, av_packet_alloc)               \
  X(codec, av_packet_free)                \
  X(codec, av_packet_unref)               \
  X(codec, avcodec_alloc_context3)        \
  X(codec, avcodec_free_context)          \
  X(codec, avcodec_parameters_to_context) \
  X(codec, avcodec_open2)                 \
  X(codec, avcodec_flush_buffers)         \
  X(codec, avcodec_send_packet)           \
  X(codec, avcodec_receive_frame)         \
  X(format, avio_alloc_context)           \
  X(format, avio_context_free)            \
  X(format, avformat_alloc_context)       \
  X(format, avformat_open_input)          \
  X(format, avformat_close_input)         \
  X(format, avformat_find_stream_info)    \
  X(format, av_find_best_stream)          \
  X(format, av_read_frame)                \
  X(format, av_seek_frame)                \
  X(scale, sws_getContext)                \
  X(scale, sws_freeContext)               \
  X(scale, sws_getCoefficients)           \
  X(scale, sws_setColorspaceDetails)      \
  X(scale, sws_scale)

struct Ffmpeg {
#define TENON_FFMPEG_MEMBER(library, name) decltype(&::name) name = nullptr;
  TENON_FFMPEG_FUNCTIONS(TENON_FFMPEG_MEMBER)
#undef TENON_FFMPEG_MEMBER
  std::string problem;  // why FFmpeg cannot be used; "": usable
};
/// Loads FFmpeg at the first call.
const Ffmpeg& loaded_ffmpeg();

}  // namespace tenon::io
