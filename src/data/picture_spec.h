// Pictures by name: "folder:DIR,split=0.2,size=96".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// As open_dataset(), for sources of is_picture_source(). `class_names` are those of the training
/// part, when they are known; `strict` is PictureOptions::strict.
std::shared_ptr<Dataset> open_picture_source(const std::string& spec, Split split,
                                             const std::vector<std::string>& class_names = {},
                                             bool strict = false);

}  // namespace tenon::data
