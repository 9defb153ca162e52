// Files: tensors as safetensors and .npy, both ways; images and IDX in; text and bytes written
// whole or not at all.
//
// Every reader takes untrusted bytes: sizes are checked against the file's length before memory is
// asked for, and a file that is not what it says is refused with FormatError naming the file, the
// place and the reason. IoError is the system's refusal. Writers put a temporary file beside the
// target, flush it to the disk and rename it: a reader sees the old file or the new one, whatever
// happens in between.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/notes.h>
#include <tenon/tensor.h>

namespace tenon::io {

using TensorMap = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

/// What a .safetensors file holds.
struct SafeTensors {
  TensorMap tensors;
  Metadata metadata;
};

/// Reads a whole .safetensors file, all nine element types.
TENON_API SafeTensors load_safetensors(const std::string& path);
/// Only the names, shapes, types and metadata: no values are read.
struct TensorInfo {
  DType dtype = DType::Float32;
  Shape shape;
};
struct SafeTensorsInfo {
  std::map<std::string, TensorInfo> tensors;
  Metadata metadata;
};
TENON_API SafeTensorsInfo inspect_safetensors(const std::string& path);
/// Writes atomically; the same tensors and metadata give the same bytes. Evaluates pending tensors.
TENON_API void save_safetensors(const std::string& path, const TensorMap& tensors,
                                const Metadata& metadata = {});

/// Reads a NumPy array (.npy, versions 1 to 3, C or Fortran order, either byte order). Element
/// types that Tenon lacks are refused with NotSupported naming them.
TENON_API Tensor load_npy(const std::string& path);
/// Writes atomically, C order. bfloat16, which NumPy lacks, is refused with DTypeError: convert to
/// float32 first.
TENON_API void save_npy(const std::string& path, const Tensor& tensor);

/// Reads an IDX file (MNIST's format), gzip-compressed or not: uint8, int8, int32, float32,
/// float64; int16 becomes int32.
TENON_API Tensor load_idx(const std::string& path);

/// An image: rows from the top, channels interleaved.
struct Image {
  int width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};
/// A colour of 8 bits a channel.
using Colour = std::array<std::uint8_t, 3>;
/// How an image becomes grey or RGB bytes.
struct ImageReading {
  int channels = 0;  ///< 1 grey, 3 RGB, 0 as in the file
  /// What transparent parts are composed over: alpha * colour + (1 - alpha) * background, of the
  /// stored values. Unset: alpha is dropped and the colour under it kept, as Pillow's
  /// convert("RGB") and so torchvision's loader do.
  std::optional<Colour> background{};
};
/// Decodes PNG, JPEG, GIF, WebP, TIFF, BMP, PBM, PGM or PPM (told by content, not by name),
/// transposed upright as EXIF's orientation says in whichever format it stands. Of animations and
/// files with several pages the first image. Colour profiles and gamma are ignored. Of 16 bits the
/// upper 8 are kept; floating-point levels are 0 to 1 (0 to 255 where one is above 1). Throws
/// IoError, FormatError for a damaged file, NotSupported for a kind that is not read.
TENON_API Image load_image(const std::string& path, int channels = 0);
/// The same; what was lost of the image is added to `notes`, where they are given.
TENON_API Image load_image(const std::string& path, const ImageReading& how,
                           Notes* notes = nullptr);
/// "white", "black", "grey" or "#rrggbb" as a colour; ValueError for anything else.
TENON_API Colour parse_colour(const std::string& text);
/// A kind of image and the library that reads it; "" where this build has none.
struct ImageFormat {
  std::string name, library;
};
TENON_API std::vector<ImageFormat> image_formats();
/// FFmpeg, which reads videos where the build and the machine have it (<tenon/images.h>).
TENON_API ImageFormat video_format();
/// Whether a path ends as those of videos do, as ".mp4".
TENON_API bool looks_like_video(const std::string& path);
/// Writes an 8-bit grey or RGB PNG atomically.
TENON_API void save_png(const std::string& path, const Image& image);

/// Writes a file whole or not at all: temporary file in the same folder, flushed to the disk,
/// renamed, folder flushed.
TENON_API void write_file(const std::string& path, std::string_view bytes);
/// Reads a file whole. Throws IoError; FormatError when it is larger than `limit` bytes.
TENON_API std::string read_file(const std::string& path, std::uint64_t limit = 1ull << 34);
/// Writes files of a .tar or .tar.gz archive into a folder that is there, each whole or not at all:
/// those whose path ends in one of `names`; all others are left alone. Throws FormatError for what
/// is no such archive, is damaged or cut short, and for a name that it does not hold.
TENON_API void unpack_tar(const std::string& archive, const std::string& folder,
                          const std::vector<std::string>& names);

}  // namespace tenon::io
