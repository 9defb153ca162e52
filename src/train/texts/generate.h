// Checks that generation and the prediction of the next token share.
#pragma once

#include <tenon/tokenizer.h>
#include <tenon/train.h>

namespace tenon::train {

/// Throws ValueError if the tokenizer has more tokens than the settings' network has outputs. Does
/// nothing for null.
void check_tokenizer(const data::Tokenizer* tokenizer, const Settings& settings);

}  // namespace tenon::train
