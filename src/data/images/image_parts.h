// Image sources whose items are gathered once, whichever parts are opened.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tenon/images.h>

#include "data/samples/part_reader.h"

namespace tenon::data {

/// Like PartReader, for image files of any size.
using ImagePartReader = std::function<std::shared_ptr<ImageFiles>(Split)>;

/// Like open_image_folder(), open_image_list() and open_image_shards(), for all parts.
ImagePartReader read_image_folder(const std::string& folder, const ImageSplit& split,
                                  const VideoFrames& frames);
ImagePartReader read_image_list(const std::string& file, const ImageSplit& split,
                                const VideoFrames& frames, const RowFormat& rows);
ImagePartReader read_image_shards(const std::string& pattern, const ImageSplit& split);

}  // namespace tenon::data
