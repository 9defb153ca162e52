// Sources of images that are gathered once, whatever parts of them are opened.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tenon/pictures.h>

#include "data/part_reader.h"

namespace tenon::data {

/// As PartReader, of images of sizes of their own.
using ImagePartReader = std::function<std::shared_ptr<Pictures>(Split)>;

/// As open_picture_folder(), open_picture_list() and open_picture_shards(), which open one part.
ImagePartReader read_image_folder(const std::string& folder, const PictureSplit& split,
                                  const VideoFrames& frames);
ImagePartReader read_image_list(const std::string& file, const PictureSplit& split,
                                const VideoFrames& frames, const RowFormat& rows);
ImagePartReader read_image_shards(const std::string& pattern, const PictureSplit& split);

}  // namespace tenon::data
