// Fuzzes lists of pictures and their division into parts. The first byte chooses the part; what is
// listed is not opened.
#include <tenon/pictures.h>

#include "fuzz/file.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::data;
  static const tenon::fuzz::File file("list.txt");
  if (size == 0) return 0;
  PictureSplit split;
  split.whole = (data[0] & 2) != 0;
  if ((data[0] & 4) != 0) split.split.test = 0.4, split.split.seed = 3;
  if ((data[0] & 16) != 0) split.split.group = (data[0] & 32) != 0 ? "2" : "patient";
  if ((data[0] & 8) != 0) split.class_names = {"0", "cat"};
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    file.write(bytes);
    try {
      const auto pictures =
          open_picture_list(file.path(), (data[0] & 1) != 0 ? Split::Test : Split::Train, split);
      if (pictures == nullptr) return;  // no picture is left for this part
      const auto classes = static_cast<std::int64_t>(pictures->class_names().size());
      for (std::int64_t k = 0; k < pictures->size(); ++k)
        if (pictures->name(k).empty() || pictures->label(k) < 0 || pictures->label(k) >= classes)
          __builtin_trap();
    } catch (const tenon::ValueError&) {  // too few pictures, or no such column
    }
  });
}
