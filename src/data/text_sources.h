// The data sources that read text files: "text:", "lines:", "pairs:" and "spans:".
#pragma once

#include <string>

#include <tenon/data.h>

#include "data/samples/part_reader.h"

namespace tenon::data {

/// The reader of a source "kind:rest", whose whole text is `spec`; empty for a kind that reads no
/// text. Throws ValueError for an option that the kind does not have.
PartReader read_text_source(const std::string& kind, const std::string& rest,
                            const std::string& spec, const SourceOptions& source);

}  // namespace tenon::data
