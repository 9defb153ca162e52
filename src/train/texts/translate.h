// Translation by beam search, on token ids.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/models.h>
#include <tenon/train.h>

namespace tenon::train {

using Tokens = std::vector<std::int64_t>;

/// The most likely translations of the sources; sources and results exclude kEnd. Throws ValueError
/// for an option out of range.
std::vector<Tokens> translate(const models::Translator& net, const std::vector<Tokens>& sources,
                              const TranslateOptions& options);

/// Share of the pairs whose translation equals the target.
double exact_share(const models::Translator& net, const data::Dataset& set);

}  // namespace tenon::train
