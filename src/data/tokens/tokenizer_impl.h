// The components of a tokenizer; files are read into them and written from them.
#pragma once

#include <string>
#include <vector>

#include <tenon/tokenizer.h>

#include "data/tokens/token_model.h"
#include "data/tokens/token_steps.h"

namespace tenon::data {

/// A token that is looked for in the text itself, before it falls into words.
struct AddedToken {
  std::string text;
  std::int64_t number = 0;
  bool special = true;                           ///< has no text
  bool normalized = false;                       ///< searched in the normalized text
  bool takes_left = false, takes_right = false;  ///< white space beside it
  bool alone = false;                            ///< no letter or digit is next to it
};

enum class TokenDecoding { Spaces, Bytes, WordPiece };

struct TokenizerParts {
  std::vector<NormalStep> normal;
  std::vector<SplitStep> splits;
  TokenModel model;
  std::vector<AddedToken> added;
  std::vector<std::int64_t> before, behind;  ///< of a text, as its model expects
  TokenDecoding decoding = TokenDecoding::Spaces;
};

/// Of all tokens; -1 where there are none.
std::int64_t largest_number(const TokenizerParts& parts);

/// Of the bytes of tokenizer.json; `name` is for messages.
TokenizerParts parse_tokenizer_json(std::string_view bytes, const std::string& name);
std::string tokenizer_json(const TokenizerParts& parts);

/// BERT's and GPT-2's from their older files.
TokenizerParts parse_vocab_txt(std::string_view bytes, const std::string& name, bool lower);
TokenizerParts parse_vocab_json(std::string_view vocabulary, std::string_view merges,
                                const std::string& name);
/// What tokenizer_config.json says of capitals, or what the vocabulary shows.
bool config_lowers(std::string_view config, bool otherwise);

/// The steps around a vocabulary as BERT and GPT-2 have them.
TokenizerParts parts_as_bert(bool lower);
TokenizerParts parts_as_gpt2();

}  // namespace tenon::data
