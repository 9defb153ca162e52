// Unpacks embedded files with zlib.
#include "base/system/packed_files.h"

#include <zlib.h>

#include <new>

#include <tenon/error.h>

namespace tenon {

std::vector<UnpackedFile> unpack(const PackedFiles& packed) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < packed.count; ++i) size += packed.files[i].size;
  std::string text(size, '\0');
  z_stream zlib{};
  zlib.next_in = const_cast<unsigned char*>(packed.bytes);  // zlib reads only
  zlib.avail_in = static_cast<uInt>(packed.size);
  zlib.next_out = reinterpret_cast<unsigned char*>(text.data());
  zlib.avail_out = static_cast<uInt>(size);
  constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
  int status = inflateInit2(&zlib, kGzip);
  if (status == Z_OK) status = inflate(&zlib, Z_FINISH);
  inflateEnd(&zlib);
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  // The build made the stream, so an error in it is a bug of the library.
  if (status != Z_STREAM_END || zlib.avail_out != 0)
    throw InternalError("the files inside the library cannot be unpacked");
  std::vector<UnpackedFile> files;
  std::size_t start = 0;
  for (std::size_t i = 0; i < packed.count; ++i) {
    files.push_back({packed.files[i].name, text.substr(start, packed.files[i].size)});
    start += packed.files[i].size;
  }
  return files;
}

}  // namespace tenon
