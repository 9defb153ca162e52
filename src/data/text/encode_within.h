// Special tokens of a tokenizer, for the texts that are encoded with them.
#pragma once

#include <cstdint>

#include <tenon/tokenizer.h>

namespace tenon::data {

/// The number of a token such as "[SEP]". Throws ValueError if the tokenizer lacks it.
std::int64_t token_of(const Tokenizer& tokenizer, const char* token);

}  // namespace tenon::data
