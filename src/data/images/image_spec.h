// Image sources as text: "folder:DIR,split=0.2,size=96".
#pragma once

#include <string>
#include <vector>

#include <tenon/data.h>

#include "data/samples/part_reader.h"

namespace tenon::data {

/// As Source, for sources of is_image_source(). `class_names` are those of the training
/// part, when they are known; `strict` is ImageOptions::strict.
PartReader read_image_source(const std::string& spec,
                             const std::vector<std::string>& class_names = {}, bool strict = false);

}  // namespace tenon::data
