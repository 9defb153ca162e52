// Fuzzes lists of images and their split into parts, and the readers of lines and pairs. The first
// byte chooses the part and the format. Listed files are not opened.
#include <tenon/images.h>

#include "data/tables/line_reader.h"
#include "fuzz/file.h"
#include "fuzz/fuzz.h"

namespace {

using namespace tenon::data;

void read_list(const std::string& path, Split part, const ImageSplit& split,
               const RowFormat& rows) {
  const auto images = open_image_list(path, part, split, {}, rows);
  if (images == nullptr) return;  // the part has no image
  const auto classes = static_cast<std::int64_t>(images->class_names().size());
  for (std::int64_t k = 0; k < images->size(); ++k)
    if (images->name(k).empty() || images->label(k) < 0 || images->label(k) >= classes)
      __builtin_trap();
}

void read_lines(const std::string& path, LineForm form, const ImageSplit& split,
                const RowFormat& rows) {
  LineReader lines(path, form, rows, split.split.group);
  std::vector<std::string_view> fields;
  while (lines.next(fields))
    if (!lines.header().empty() && fields.size() != lines.columns()) __builtin_trap();
  (void)lines.notes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tenon::fuzz::File file("list.txt");
  if (size == 0) return 0;
  ImageSplit split;
  split.whole = (data[0] & 2) != 0;
  if ((data[0] & 4) != 0) split.split.test = 0.4, split.split.seed = 3;
  if ((data[0] & 16) != 0) split.split.group = (data[0] & 32) != 0 ? "2" : "patient";
  if ((data[0] & 8) != 0) split.class_names = {"0", "cat"};
  RowFormat rows;
  if ((data[0] & 64) != 0) rows.encoding = "latin1", rows.separator = ",";
  if ((data[0] & 128) != 0) rows.quotes = false, rows.comment = "none", rows.header = true;
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    file.write(bytes);
    const Split part = (data[0] & 1) != 0 ? Split::Test : Split::Train;
    for (const LineForm form : {LineForm::ClassLines, LineForm::Pairs, LineForm::List}) {
      try {
        if (form == LineForm::List)
          read_list(file.path(), part, split, rows);
        else
          read_lines(file.path(), form, split, rows);
      } catch (const tenon::ValueError&) {  // too few images, or no such column
      } catch (const tenon::FormatError&) {
      }
    }
  });
}
