// The components of a tokenizer; files are read into them and written from them.
#pragma once

#include <string>
#include <vector>

#include <tenon/tokenizer.h>

#include "data/tokens/token_model.h"
#include "data/tokens/token_steps.h"

namespace tenon::data {

/// A token that is searched in the text before the text is split into words.
struct AddedToken {
  std::string text;
  std::int64_t number = 0;
  bool special = true;                           ///< has no text of its own in decoded output
  bool normalized = false;                       ///< searched in the normalized text
  bool takes_left = false, takes_right = false;  ///< whether it includes white space beside it
  bool alone = false;                            ///< no letter or digit is next to it
};

enum class TokenDecoding { Spaces, Bytes, WordPiece };

struct TokenizerParts {
  std::vector<NormalStep> normal;
  std::vector<SplitStep> splits;
  TokenModel model;
  std::vector<AddedToken> added;
  std::vector<std::int64_t> before, behind;  ///< added around a text, as the model expects
  TokenDecoding decoding = TokenDecoding::Spaces;
};

/// The largest number of all tokens; -1 without tokens.
std::int64_t largest_number(const TokenizerParts& parts);

/// Parses the bytes of tokenizer.json; `name` is for messages.
TokenizerParts parse_tokenizer_json(std::string_view bytes, const std::string& name);
std::string tokenizer_json(const TokenizerParts& parts);

/// Parse the older vocabulary files of BERT and of GPT-2.
TokenizerParts parse_vocab_txt(std::string_view bytes, const std::string& name, bool lower);
TokenizerParts parse_vocab_json(std::string_view vocabulary, std::string_view merges,
                                const std::string& name);
/// Whether to lower-case: from tokenizer_config.json, otherwise from the vocabulary.
bool config_lowers(std::string_view config, bool otherwise);

/// The steps around a vocabulary as BERT and GPT-2 have them.
TokenizerParts parts_as_bert(bool lower);
TokenizerParts parts_as_gpt2();

}  // namespace tenon::data
