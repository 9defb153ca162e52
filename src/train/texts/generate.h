// What generation shares with predictions of the next token.
#pragma once

#include <tenon/tokenizer.h>
#include <tenon/train.h>

namespace tenon::train {

/// Throws ValueError if the tokenizer has more tokens than the settings' network has outputs. Null
/// is no tokenizer.
void check_tokenizer(const data::Tokenizer* tokenizer, const Settings& settings);

}  // namespace tenon::train
