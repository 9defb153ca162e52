// Files: safetensors and .npy (read and write), images and IDX (read), and atomic writing of text
// and bytes.
//
// Every reader accepts untrusted bytes. It checks sizes against the file's length before it
// allocates memory. A malformed file is a FormatError that names the file, the position and the
// reason. IoError is an error of the operating system. A writer writes a temporary file beside the
// target, flushes it to disk and renames it: a reader sees the old file or the new one, whatever
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

/// Reading and writing files.
namespace tenon::io {

using TensorMap = std::map<std::string, Tensor>;      ///< tensors by name
using Metadata = std::map<std::string, std::string>;  ///< key-value pairs of a file

/// The contents of a .safetensors file.
struct SafeTensors {
  TensorMap tensors;  ///< tensors by name
  Metadata metadata;  ///< the file's metadata
};

/// Reads a .safetensors file with any of Tenon's nine data types. Throws IoError, FormatError, or
/// NotSupported for other data types.
TENON_API SafeTensors load_safetensors(const std::string& path);
/// Data type and shape of a tensor in a file.
struct TensorInfo {
  DType dtype = DType::Float32;  ///< data type
  Shape shape;                   ///< shape
};
/// The header of a .safetensors file.
struct SafeTensorsInfo {
  std::map<std::string, TensorInfo> tensors;  ///< data types and shapes by name
  Metadata metadata;                          ///< the file's metadata
};
/// Reads only the header of a .safetensors file: names, shapes, data types and metadata. Throws as
/// load_safetensors().
TENON_API SafeTensorsInfo inspect_safetensors(const std::string& path);
/// Writes a .safetensors file atomically. The same tensors and metadata give the same bytes.
/// Evaluates pending tensors. Throws IoError.
TENON_API void save_safetensors(const std::string& path, const TensorMap& tensors,
                                const Metadata& metadata = {});

/// Reads a NumPy array (.npy, versions 1 to 3, C or Fortran order, either byte order). Throws
/// IoError, FormatError, or NotSupported that names a data type that Tenon lacks.
TENON_API Tensor load_npy(const std::string& path);
/// Writes a NumPy array atomically, in C order. Throws DTypeError for bfloat16, which NumPy lacks:
/// convert to float32 first.
TENON_API void save_npy(const std::string& path, const Tensor& tensor);

/// Reads an IDX file (MNIST's format), with or without gzip compression: uint8, int8, int32,
/// float32 or float64; int16 becomes int32. Throws IoError or FormatError.
TENON_API Tensor load_idx(const std::string& path);

/// A decoded image.
struct Image {
  int width = 0;     ///< width in pixels
  int height = 0;    ///< height in pixels
  int channels = 0;  ///< 1: grey, 3: RGB
  /// height · width · channels bytes: rows from the top, channels interleaved.
  std::vector<std::uint8_t> pixels;
};
/// An RGB colour with 8 bits a channel.
using Colour = std::array<std::uint8_t, 3>;
/// How an image is converted to grey or RGB.
struct ImageReading {
  int channels = 0;  ///< 1: grey, 3: RGB, 0: as in the file
  /// Background of transparent images: alpha · colour + (1 - alpha) · background, computed on the
  /// stored values. Unset: alpha is dropped and the colour kept, as Pillow's convert("RGB") and
  /// torchvision's loader do.
  std::optional<Colour> background{};
};
/// Decodes a PNG, JPEG, GIF, WebP, TIFF, BMP, PBM, PGM or PPM image. The format is detected from
/// the contents, not the name. The image is rotated upright by its EXIF orientation. Of animations
/// and files with several pages the first image is read. Colour profiles and gamma are ignored. Of
/// 16 bits the upper 8 are kept. Floating-point values are scaled from 0 to 1, or from 0 to 255 if
/// one is above 1. Throws IoError, FormatError for a damaged file, NotSupported for another format.
///
/// @param path      the file
/// @param channels  1: grey, 3: RGB, 0: as in the file
TENON_API Image load_image(const std::string& path, int channels = 0);
/// The same with a background. Adds to `notes`, unless it is null, what decoding lost of the image.
TENON_API Image load_image(const std::string& path, const ImageReading& how,
                           Notes* notes = nullptr);
/// Parses a colour: "white", "black", "grey" or "#rrggbb". Throws ValueError.
TENON_API Colour parse_colour(const std::string& text);
/// An image or video format and the library that reads it.
struct ImageFormat {
  std::string name;     ///< name of the format
  std::string library;  ///< the library; "": this build cannot read the format
};
/// All image formats that Tenon knows.
TENON_API std::vector<ImageFormat> image_formats();
/// FFmpeg, which reads videos if the build and the machine have it (<tenon/images.h>).
TENON_API ImageFormat video_format();
/// Whether a path has the extension of a video, for instance ".mp4".
TENON_API bool looks_like_video(const std::string& path);
/// Writes an 8-bit grey or RGB image as PNG, atomically.
TENON_API void save_png(const std::string& path, const Image& image);

/// Writes a file atomically: writes a temporary file in the same folder, flushes it to disk,
/// renames it and flushes the folder. Throws IoError.
TENON_API void write_file(const std::string& path, std::string_view bytes);
/// A field as CSV files hold it. It is put in double quotes, and quotes in it are doubled, if it
/// contains the separator, a quote or a line break, or begins with '#' or a byte order mark, which
/// a reader would take for a comment or leave out.
TENON_API std::string csv_field(std::string_view field, char separator = ',');
/// Reads a whole file. Throws IoError, or FormatError if it is larger than `limit` bytes (default:
/// 16 GiB).
TENON_API std::string read_file(const std::string& path, std::uint64_t limit = 1ull << 34);
/// Extracts files from a .tar or .tar.gz archive into an existing folder, each atomically. Throws
/// FormatError if the file is not such an archive, is damaged or truncated, or lacks one of
/// `names`.
///
/// @param archive  the archive
/// @param folder   the folder to write to
/// @param names    ends of paths in the archive; only matching files are extracted
TENON_API void unpack_tar(const std::string& archive, const std::string& folder,
                          const std::vector<std::string>& names);

}  // namespace tenon::io
