// Videos, opened from memory or from our own file handle, so that no other file is read. The frame
// at a given time is decoded from the preceding key frame.
#include "io/video/video.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/images/image.h"
#include "io/images/image_exif.h"
#include "io/lfs.h"

#ifdef TENON_WITH_FFMPEG
#include "io/video/video_library.h"
#endif

namespace tenon::io {

bool looks_like_video(const std::string& path) {
  static const std::set<std::string> kEndings = {".avi", ".flv", ".m2ts", ".m4v", ".mkv",
                                                 ".mov", ".mp4", ".mpeg", ".mpg", ".mts",
                                                 ".ogv", ".ts",  ".webm", ".wmv", ".y4m"};
  const std::size_t dot = path.find_last_of("./");
  std::string ending = dot == std::string::npos ? "" : path.substr(dot);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kEndings.contains(ending);
}

#ifdef TENON_WITH_FFMPEG

namespace {

// Containers that contain their images. Playlists, which name other files, are excluded.
constexpr char kContainers[] =
    "avi,asf,flv,matroska,mov,mpeg,mpegts,mpegvideo,ogg,webm,yuv4mpegpipe";
constexpr std::int64_t kMostPackets = 4'000'000;
constexpr double kMostSeconds = 1e7;

const Ffmpeg& ffmpeg(const std::string& name) {
  const Ffmpeg& table = loaded_ffmpeg();
  if (!table.problem.empty())
    throw make_error<NotSupported>(FileName{name}, ": FFmpeg reads videos, but ", table.problem,
                                   ": install it (Debian: libavformat, libswscale)");
  return table;
}

}  // namespace

struct Video::Impl {
  Impl(std::unique_ptr<InputFile> from, std::string_view held, std::string what)
      : name(std::move(what)), f(ffmpeg(name)), file(std::move(from)), bytes(held) {
    size = file ? file->size() : bytes.size();
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(size, 128)), '\0');
    if (file)
      file->read_at(0, start.data(), start.size());
    else
      start = bytes.substr(0, start.size());
    refuse_lfs_pointer(start, name);
    try {
      open();
      length = known_length();
    } catch (...) {
      close();
      throw;
    }
  }
  ~Impl() { close(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  FormatError damaged(const std::string& what) const {
    return make_error<FormatError>(FileName{name}, ": ", what, ": save the video again");
  }

  // ---- Bytes. A damaged file may make FFmpeg seek in circles, so the number of bytes it gets is
  // limited.
  static int read(void* opaque, std::uint8_t* out, int room) {
    auto& self = *static_cast<Impl*>(opaque);
    if (self.position >= self.size || self.given > 16 * self.size + (std::uint64_t{64} << 20))
      return AVERROR_EOF;
    const std::uint64_t count =
        std::min<std::uint64_t>(self.size - self.position, at_least_0(room));
    try {
      if (self.file)
        self.file->read_at(self.position, out, count);
      else
        std::copy_n(self.bytes.data() + self.position, count, out);
    } catch (const Error&) {
      return AVERROR(EIO);
    }
    self.position += count;
    self.given += count;
    return static_cast<int>(count);
  }
  static std::uint64_t at_least_0(int room) {
    return static_cast<std::uint64_t>(std::max(room, 0));
  }
  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& self = *static_cast<Impl*>(opaque);
    const auto size = static_cast<std::int64_t>(self.size),
               now = static_cast<std::int64_t>(self.position);
    if ((whence & AVSEEK_SIZE) != 0) return size;
    const int from = whence & ~AVSEEK_FORCE;
    const std::int64_t base = from == SEEK_CUR ? now : from == SEEK_END ? size : 0;
    if (offset < -base || offset > size - base) return AVERROR(EINVAL);
    self.position = static_cast<std::uint64_t>(base + offset);
    return base + offset;
  }

  // ---- Opening
  void open() {
    constexpr int kBuffer = 1 << 16;
    auto* buffer = static_cast<unsigned char*>(f.av_malloc(kBuffer));
    if (buffer != nullptr)
      io = f.avio_alloc_context(buffer, kBuffer, 0, this, &Impl::read, nullptr, &Impl::seek);
    if (io == nullptr) {
      f.av_freep(static_cast<void*>(&buffer));
      throw MemoryError(cat(name, ": no memory to open it"));
    }
    format = f.avformat_alloc_context();
    if (format == nullptr) throw MemoryError(cat(name, ": no memory to open it"));
    format->pb = io;
    format->flags |= AVFMT_FLAG_CUSTOM_IO;
    AVDictionary* options = nullptr;
    f.av_dict_set(&options, "format_whitelist", kContainers, 0);
    f.av_dict_set(&options, "protocol_whitelist", "none", 0);
    // On failure avformat_open_input() frees the context.
    const int opened = f.avformat_open_input(&format, "", nullptr, &options);
    f.av_dict_free(&options);
    if (opened < 0) throw damaged("not a supported video, or damaged");
    if (f.avformat_find_stream_info(format, nullptr) < 0)
      throw damaged("damaged or truncated video");
    const AVCodec* decoder = nullptr;
    const int found = f.av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    if (found == AVERROR_DECODER_NOT_FOUND)
      throw make_error<NotSupported>(
          FileName{name}, ": this FFmpeg has no decoder for its images: convert the video");
    if (found < 0 || decoder == nullptr) throw damaged("has no images");
    stream = format->streams[found];
    for (unsigned k = 0; k < format->nb_streams; ++k)
      if (format->streams[k] != stream) format->streams[k]->discard = AVDISCARD_ALL;
    codec = f.avcodec_alloc_context3(decoder);
    packet = f.av_packet_alloc();
    frame = f.av_frame_alloc();
    kept = f.av_frame_alloc();
    if (codec == nullptr || packet == nullptr || frame == nullptr || kept == nullptr)
      throw MemoryError(cat(name, ": no memory to open it"));
    codec->thread_count = 1;  // the data loader runs several decoders in parallel
    codec->max_pixels = static_cast<std::int64_t>(kMaxPixels);
    codec->flags |= AV_CODEC_FLAG_BITEXACT;
    if (f.avcodec_parameters_to_context(codec, stream->codecpar) < 0 ||
        f.avcodec_open2(codec, decoder, nullptr) < 0)
      throw damaged("its images cannot be decoded");
  }
  // Returns to the start by opening again, because not every container can seek.
  void open_anew() {
    close();
    position = 0;
    open();
  }
  void close() noexcept {
    f.sws_freeContext(scaler);
    f.av_frame_free(&kept);
    f.av_frame_free(&frame);
    f.av_packet_free(&packet);
    f.avcodec_free_context(&codec);
    if (format != nullptr) f.avformat_close_input(&format);
    if (io != nullptr) f.av_freep(static_cast<void*>(&io->buffer));
    f.avio_context_free(&io);
    scaler = nullptr;
    stream = nullptr;
  }

  double tick() const { return av_q2d(stream->time_base); }
  double start() const {
    return stream->start_time == AV_NOPTS_VALUE ? 0
                                                : static_cast<double>(stream->start_time) * tick();
  }
  // The duration that the file states, else the end of its last packet.
  double known_length() {
    double out = stream->duration > 0   ? static_cast<double>(stream->duration) * tick()
                 : format->duration > 0 ? static_cast<double>(format->duration) / AV_TIME_BASE
                                        : 0;
    if (out <= 0) {
      for (std::int64_t n = 0; n < kMostPackets && f.av_read_frame(format, packet) >= 0; ++n) {
        if (packet->stream_index == stream->index && packet->pts != AV_NOPTS_VALUE)
          out = std::max(
              out, static_cast<double>(packet->pts + std::max<std::int64_t>(packet->duration, 0)) *
                           tick() -
                       start());
        f.av_packet_unref(packet);
      }
      open_anew();
    }
    if (!(out > 0 && out <= kMostSeconds)) throw damaged("does not say how long it is");
    return out;
  }

  // ---- Frames
  double time_of(const AVFrame& image) {
    const std::int64_t stamp = image.best_effort_timestamp;
    if (stamp != AV_NOPTS_VALUE) return static_cast<double>(stamp) * tick() - start();
    return last_time + usual_gap();  // frames without a time are assumed to be in order
  }
  double usual_gap() const {
    const double rate = av_q2d(stream->avg_frame_rate);
    return std::isfinite(rate) && rate > 0 ? 1 / rate : 0.04;
  }
  // Receives decoded frames. True if `kept` is the frame at the wanted time.
  bool take_frames(double wanted) {
    while (f.avcodec_receive_frame(codec, frame) >= 0) {
      const double time = time_of(*frame);
      const bool first = kept->width == 0;
      if (!first && time > wanted) return f.av_frame_unref(frame), true;
      if (first && time > wanted) late = true;
      last_time = time;
      f.av_frame_unref(kept);
      f.av_frame_move_ref(kept, frame);
      if (time > wanted) return true;
    }
    return false;
  }
  // Decodes from the current position up to the frame at that time, or the end. True if a frame was
  // found and the first frame was not after that time.
  bool decode_until(double wanted) {
    f.avcodec_flush_buffers(codec);
    f.av_frame_unref(kept);
    late = false;
    last_time = -usual_gap();
    end = lost = -1;
    bool key = false;
    for (std::int64_t n = 0; n < kMostPackets && f.av_read_frame(format, packet) >= 0; ++n) {
      key = key || (packet->flags & AV_PKT_FLAG_KEY) != 0;
      const bool ours = packet->stream_index == stream->index && key;
      if (ours) {
        const std::int64_t stamp = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
        const double time =
            stamp == AV_NOPTS_VALUE ? last_time : static_cast<double>(stamp) * tick() - start();
        end = std::max(end, time + static_cast<double>(packet->duration) * tick());
        if (f.avcodec_send_packet(codec, packet) < 0 && time <= wanted) lost = std::max(lost, time);
      }
      f.av_packet_unref(packet);
      if (ours && take_frames(wanted)) return !late;
    }
    f.avcodec_send_packet(codec, nullptr);
    take_frames(wanted);
    end = std::max(end, last_time + usual_gap());
    return kept->width > 0 && !late;
  }
  Image frame_at(double seconds) {
    // The offset keeps rounding from missing a frame whose time is exactly the wanted one.
    const double wanted = std::max(seconds, 0.0) + 1e-9;
    const auto stamp = static_cast<std::int64_t>((wanted + start()) / tick());
    given = 0;
    if (f.av_seek_frame(format, stream->index, stamp, AVSEEK_FLAG_BACKWARD) < 0) open_anew();
    // Without an index a seek may end after the wanted frame.
    if (!decode_until(wanted)) {
      open_anew();
      decode_until(wanted);
    }
    if (kept->width == 0 || lost > last_time || (last_time <= wanted && wanted > end))
      throw damaged(cat("no image at ", seconds, " s of ", length, " can be decoded"));
    if ((kept->flags & AV_FRAME_FLAG_CORRUPT) != 0 || kept->decode_error_flags != 0)
      throw damaged(cat("the image at ", seconds, " s is damaged"));
    return oriented(as_rgb(), orientation());
  }
  Image as_rgb() {
    Image out = make_image(static_cast<std::uint64_t>(std::max(kept->width, 0)),
                           static_cast<std::uint64_t>(std::max(kept->height, 0)), 3, name);
    f.sws_freeContext(scaler);
    const auto kind = static_cast<AVPixelFormat>(kept->format);
    // Bit-exact on every machine, colours at full resolution.
    constexpr int kHow = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT;
    scaler = f.sws_getContext(out.width, out.height, kind, out.width, out.height, AV_PIX_FMT_RGB24,
                              kHow, nullptr, nullptr, nullptr);
    if (scaler == nullptr) throw damaged("its pixel format is unknown");
    const int* const colours = f.sws_getCoefficients(kept->colorspace);
    f.sws_setColorspaceDetails(scaler, colours, kept->color_range == AVCOL_RANGE_JPEG ? 1 : 0,
                               f.sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    // FFmpeg writes rows in whole vectors.
    const std::size_t row = at(out.width) * 3, stride = (row + 127) / 64 * 64;
    std::vector<std::uint8_t> rows(stride * at(out.height));
    std::uint8_t* const to[] = {rows.data(), nullptr, nullptr, nullptr};
    const int strides[] = {static_cast<int>(stride), 0, 0, 0};
    if (f.sws_scale(scaler, kept->data, kept->linesize, 0, out.height, to, strides) != out.height)
      throw damaged("its pixels cannot be converted to RGB");
    for (std::size_t y = 0; y < at(out.height); ++y)
      std::copy_n(rows.data() + y * stride, row, out.pixels.data() + y * row);
    return out;
  }
  // The rotation as an EXIF orientation, in quarter turns.
  int orientation() const {
    const std::int32_t* matrix = nullptr;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100)
    for (int k = 0; k < stream->codecpar->nb_coded_side_data; ++k) {
      const AVPacketSideData& data = stream->codecpar->coded_side_data[k];
#else
    for (int k = 0; k < stream->nb_side_data; ++k) {
      const AVPacketSideData& data = stream->side_data[k];
#endif
      if (data.type == AV_PKT_DATA_DISPLAYMATRIX && data.size >= 9 * sizeof(std::int32_t))
        matrix = reinterpret_cast<const std::int32_t*>(data.data);
    }
    if (matrix == nullptr) return 1;
    const auto across = static_cast<double>(matrix[0]), down = static_cast<double>(matrix[1]);
    if (std::abs(across) >= std::abs(down)) return across < 0 ? 3 : 1;
    return down > 0 ? 6 : 8;
  }

  std::string name;
  const Ffmpeg& f;
  std::unique_ptr<InputFile> file;  // null: the video is in `bytes`
  std::string_view bytes;
  std::uint64_t size = 0, position = 0, given = 0;
  AVIOContext* io = nullptr;
  AVFormatContext* format = nullptr;
  AVStream* stream = nullptr;
  AVCodecContext* codec = nullptr;
  AVPacket* packet = nullptr;
  AVFrame *frame = nullptr, *kept = nullptr;
  SwsContext* scaler = nullptr;
  double length = 0;
  // Of the last search: time of `kept`, end of its packets, time of an earlier packet that could
  // not be decoded.
  double last_time = 0, end = 0, lost = 0;
  bool late = false;  // the first frame was after the wanted time
};

Video::Video(const std::string& path)
    : impl_(std::make_unique<Impl>(std::make_unique<InputFile>(path), std::string_view(), path)) {}
Video::Video(std::string_view bytes, const std::string& name)
    : impl_(std::make_unique<Impl>(nullptr, bytes, name)) {}
Video::~Video() = default;
double Video::seconds() const { return impl_->length; }
Image Video::frame_at(double seconds) { return impl_->frame_at(seconds); }

std::string ffmpeg_version() {
  const Ffmpeg& table = loaded_ffmpeg();
  return table.problem.empty() ? cat("FFmpeg ", table.av_version_info()) : "";
}

#else

struct Video::Impl {};
Video::Video(const std::string& path) : Video(std::string_view(), path) {}
Video::Video(std::string_view, const std::string& name) {
  throw make_error<NotSupported>(
      FileName{name},
      ": this build cannot read videos: install FFmpeg's headers (Debian: "
      "libavformat-dev, libswscale-dev) and build again");
}
Video::~Video() = default;
double Video::seconds() const { return 0; }
Image Video::frame_at(double) { return {}; }
std::string ffmpeg_version() { return ""; }

#endif

ImageFormat video_format() { return {"video", ffmpeg_version()}; }

}  // namespace tenon::io
