// PNG with libpng. Values are returned as stored: gAMA, cHRM, sRGB and iCCP are ignored, as in
// Pillow and OpenCV.
//
// libpng reports errors with longjmp, so functions that it may jump out of contain no object with a
// destructor; the typed error is thrown after the library has been cleaned up.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/images/image.h"
#include "io/images/image_exif.h"

namespace tenon::io {
namespace {

// The input, and what failed.
struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;
  char message[100] = "";
  bool no_memory = false;  // libpng may go on, or report a damaged image

  PngReader(std::string_view bytes, const std::string& name) : rest(bytes) {
    png = png_create_read_struct_2(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp p, png_const_charp text) {
          auto& self = *static_cast<PngReader*>(png_get_error_ptr(p));
          std::strncpy(self.message, text, sizeof self.message - 1);
          png_longjmp(p, 1);
        },
        [](png_structp /*png*/, png_const_charp /*text*/) {}, this, allocate_for_png,
        [](png_structp /*png*/, png_voidp block) { std::free(block); });
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw no_memory_to_decode(name);
    }
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

 private:
  static png_voidp allocate_for_png(png_structp png, png_alloc_size_t size) {
    void* const block = std::malloc(size);
    if (block == nullptr) static_cast<PngReader*>(png_get_mem_ptr(png))->no_memory = true;
    return block;
  }
};

void read_png_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (size > reader.rest.size()) png_error(png, "ends too early");
  std::memcpy(out, reader.rest.data(), size);
  reader.rest.remove_prefix(size);
}

// Reads the sizes and requests 8-bit grey or RGB pixels, with alpha if the file has it.
bool read_png_header(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_structp png = reader.png;
  png_set_read_fn(png, &reader, read_png_bytes);
  // Skips chunks that do not affect pixels; some of them would be decompressed.
  constexpr png_byte kIgnored[] =
      "iCCP\0sPLT\0hIST\0pCAL\0sCAL\0tEXt\0zTXt\0iTXt\0gAMA\0cHRM\0sRGB\0eXIf";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kIgnored, sizeof kIgnored / 5);
  png_set_benign_errors(png, 1);
  png_read_info(png, reader.info);
  png_set_expand(png);    // palettes and 1 to 4 bits to 8; a transparent colour to alpha
  png_set_strip_16(png);  // keeps the upper 8 bits
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  return true;
}

bool read_png_pixels(PngReader& reader, std::uint8_t* pixels) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  const std::size_t row = png_get_rowbytes(reader.png, reader.info);
  const png_uint_32 height = png_get_image_height(reader.png, reader.info);
  const int passes = png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y)
      png_read_row(reader.png, pixels + std::size_t{y} * row, nullptr);
  return true;
}

// Calls use(type, content) for each chunk. The caller has checked the signature.
template <class Use>
void each_png_chunk(std::string_view bytes, const Use& use) {
  constexpr std::size_t kSignature = 8, kFrame = 12;
  for (std::size_t at = kSignature; at < bytes.size() && bytes.size() - at >= kFrame;) {
    const std::size_t length = read_big<std::uint32_t>(bytes.data() + at);
    if (length > bytes.size() - at - kFrame) return;
    use(bytes.substr(at + 4, 4), bytes.substr(at + 8, length));
    at += kFrame + length;
  }
}

}  // namespace

std::string png_version() { return cat("libpng ", png_get_libpng_ver(nullptr)); }

StoredImage parse_png(std::string_view bytes, const std::string& name) {
  PngReader reader(bytes, name);
  const auto require = [&](bool is_read) {
    if (reader.no_memory) throw no_memory_to_decode(name);
    if (!is_read)
      throw make_error<FormatError>(FileName{name}, ": damaged PNG (", reader.message,
                                    "): save it again");
  };
  require(read_png_header(reader));
  const std::uint64_t width = png_get_image_width(reader.png, reader.info),
                      height = png_get_image_height(reader.png, reader.info);
  check_image_size(width, height, name);
  // A pixel takes at least one bit, so a small file cannot request much memory.
  if (width * height / 8 > most_unpacked(bytes.size()))
    throw make_error<FormatError>(FileName{name}, ": damaged PNG (ends too early): save it again");
  StoredImage out;
  out.image = make_image(width, height, png_get_channels(reader.png, reader.info), name);
  require(read_png_pixels(reader, out.image.pixels.data()));
  each_png_chunk(bytes, [&](std::string_view type, std::string_view content) {
    if (type == "eXIf") out.orientation = exif_block_orientation(content);
    // Of an animation only the default image is read.
    if (type == "acTL" && content.size() >= 4 && read_big<std::uint32_t>(content.data()) > 1)
      out.losses |= kFirstImageOnly;
    if (type == "IHDR" && content.size() > 8 && content[8] == 16) out.losses |= kLowBitsDropped;
  });
  return out;
}

std::string encode_png(const Image& image) {
  const bool sizes_fit = image.width > 0 && image.height > 0 &&
                         (image.channels == 1 || image.channels == 3) &&
                         image.pixels.size() == static_cast<std::size_t>(image.width) *
                                                    static_cast<std::size_t>(image.height) *
                                                    static_cast<std::size_t>(image.channels);
  if (!sizes_fit)
    throw ValueError(cat("save_png: ", image.pixels.size(), " bytes do not match an image of ",
                         image.width, " x ", image.height, " with ", image.channels,
                         " channels (1 or 3)"));
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  const int written =
      png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  const std::string problem = png.message;
  png_image_free(&png);
  // The messages are "Out of memory", "insufficient memory" and zlib's "mem error".
  if (written == 0 && (problem.find("memory") != std::string::npos ||
                       problem.find("mem error") != std::string::npos))
    throw MemoryError("save_png: no memory to encode the image");
  if (written == 0) throw IoError(cat("save_png: libpng failed: ", problem));
  bytes.resize(size);
  return bytes;
}

}  // namespace tenon::io
