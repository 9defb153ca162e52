// A row of full length is encoded a second time to detect truncation.
#include "data/text_losses.h"

#include <algorithm>

#include "base/str.h"

namespace tenon::data {

TextLosses::TextLosses(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (const char* name : {"[UNK]", "<unk>"})
    if (unknown_ < 0) unknown_ = tokenizer_.number(name);
}

void TextLosses::add(std::string_view text, std::span<const std::int64_t> row, std::int64_t length,
                     const std::string& place) {
  add(row, place);
  if (std::ssize(row) == length && std::ssize(tokenizer_.encode(text)) > length)
    add_cut(length, place);
}

void TextLosses::add_pair(std::string_view first, std::string_view second,
                          std::span<const std::int64_t> row, std::int64_t length,
                          const std::string& place) {
  constexpr std::int64_t kMarks = 3;  // [CLS] and two of [SEP]
  add(row, place);
  if (std::ssize(row) == length && std::ssize(tokenizer_.encode(first, false)) +
                                           std::ssize(tokenizer_.encode(second, false)) + kMarks >
                                       length)
    add_cut(length, place);
}

void TextLosses::add(std::span<const std::int64_t> tokens, const std::string& place) {
  tokens_ += std::ssize(tokens);
  if (unknown_ < 0) return;
  const std::int64_t found = std::count(tokens.begin(), tokens.end(), unknown_);
  if (found > 0 && unknown_tokens_.count == 0) unknown_tokens_.first = place;
  unknown_tokens_.count += found;
}

void TextLosses::add_cut(std::int64_t length, const std::string& place) {
  if (cut_.count++ == 0) cut_.first = place;
  length_ = length;
}

Notes TextLosses::notes() const {
  Notes out;
  if (cut_.count > 0)
    out.push_back({cat(cut_.count, cut_.count == 1 ? " text is" : " texts are", " cut to ", length_,
                       " tokens"),
                   cut_.count, cut_.first});
  if (unknown_tokens_.count > 0)
    out.push_back({cat(unknown_tokens_.count, " of ", tokens_, " tokens are unknown (",
                       tokenizer_.token(unknown_), ")"),
                   unknown_tokens_.count, unknown_tokens_.first});
  return out;
}

}  // namespace tenon::data
