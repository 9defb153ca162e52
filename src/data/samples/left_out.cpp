// Note texts about omitted files, in singular and plural.
#include "data/samples/left_out.h"

#include <algorithm>

#include "base/str.h"

namespace tenon::data {
namespace {

constexpr std::size_t kNamesInNote = 5;

Note note_of(const Tally& tally, const char* what) {
  std::string text = cat(tally.count, " ", what);
  for (std::size_t k = 0; k < tally.names.size(); ++k)
    text += cat(k == 0 ? ": " : ", ", tally.names[k]);
  if (!tally.names.empty() && tally.count > std::ssize(tally.names)) text += ", …";
  return {std::move(text), tally.count, tally.first};
}

}  // namespace

void Tally::add(const std::string& where, const std::string& name) {
  if (++count == 1) first = where;
  if (!name.empty() && names.size() < kNamesInNote) names.push_back(name);
}

Notes LeftOut::notes() const {
  const struct {
    const Tally& tally;
    const char *one, *many;
  } kinds[] = {
      {empty_classes, "folder contains no images and is not a class",
       "folders contain no images and are not classes"},
      {not_images, "file is not an image by its extension and was left out",
       "files are not images by their extensions and were left out"},
      {too_deep, "folder is nested too deeply below its class and was left out",
       "folders are nested too deeply below their classes and were left out"},
      {beside_classes, "image is in no class folder and was left out",
       "images are in no class folder and were left out"},
      {several_images, "key has several images; the first one was taken",
       "keys have several images; the first one of each was taken"},
      {no_image, "key has no image and was left out", "keys have no images and were left out"},
      {no_files, "member of the archive is neither file nor folder and was left out",
       "members of the archive are neither files nor folders and were left out"}};
  Notes out;
  for (const auto& kind : kinds)
    if (kind.tally.count > 0)
      out.push_back(note_of(kind.tally, kind.tally.count == 1 ? kind.one : kind.many));
  return out;
}

}  // namespace tenon::data
