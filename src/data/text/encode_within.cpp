// Encodes texts within the number of tokens that a network takes, and counts what is cut off.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/index.h"
#include "base/str.h"
#include "data/text/encode_within.h"
#include "data/text/text_parts.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;

// Counts what one text lost in encoding, if `losses` is given.
void count_losses(TextLosses* losses, const Tokenizer& tokenizer, bool cut, std::int64_t unknown,
                  std::string_view where) {
  if (losses == nullptr) return;
  if (tokenizer.unknown() < 0) losses->leave_out_unknown();
  losses->add(cut, unknown, where);
}

}  // namespace

std::int64_t token_of(const Tokenizer& tokenizer, const char* token) {
  const std::int64_t number = tokenizer.number(token);
  if (number < 0)
    throw ValueError(
        cat("its tokenizer has no ", token, ": this takes one of BERT's kind (WordPiece)"));
  return number;
}

void TextLosses::add(bool cut, std::int64_t unknown, std::string_view where) {
  ++texts_;
  if (cut && ++cut_ == 1) first_cut_ = where;
  if (unknown == 0) return;
  unknown_ += unknown;
  if (++with_unknown_ == 1) first_unknown_ = where;
}

Notes TextLosses::notes(std::int64_t length, std::string_view texts) const {
  Notes out;
  if (cut_ > 0)
    out.push_back({cat(cut_, " of ", texts_, " ", texts, cut_ == 1 ? " is" : " are", " cut to ",
                       length, " tokens"),
                   cut_, first_cut_});
  add_unknown_note(out, unknown_, {"word or character", "words or characters"},
                   cat(with_unknown_, " of ", texts_, " ", texts), left_out_, first_unknown_);
  return out;
}

TokenRow encode_within(const Tokenizer& tokenizer, std::string_view text, std::int64_t length,
                       TextLosses* losses, std::string_view where) {
  std::int64_t unknown = 0;
  TokenRow tokens = tokenizer.encode(text, true, &unknown);
  count_losses(losses, tokenizer, std::ssize(tokens) > length, unknown, where);
  if (std::ssize(tokens) <= length) return tokens;
  // The token that ends a text, [SEP], is kept.
  const TokenRow around = tokenizer.encode("");
  const std::int64_t last = tokens.back();
  tokens.resize(at(length));
  if (!around.empty() && around.back() == last && length > 0) tokens.back() = last;
  return tokens;
}

TypedTokens encode_pair_within(const Tokenizer& tokenizer, std::string_view first,
                               std::string_view second, std::int64_t length, TextLosses* losses,
                               std::string_view where) {
  std::int64_t unknown = 0;
  TokenRow a = tokenizer.encode(first, false, &unknown),
           b = tokenizer.encode(second, false, &unknown);
  const std::int64_t begin = token_of(tokenizer, "[CLS]"), end = token_of(tokenizer, "[SEP]");
  const std::int64_t most = std::max<std::int64_t>(0, length - 3);
  count_losses(losses, tokenizer, std::ssize(a) + std::ssize(b) > most, unknown, where);
  if (std::ssize(a) + std::ssize(b) > most) {
    // The longer text is cut; both are cut if neither fits half the length.
    const bool swapped = a.size() > b.size();
    std::int64_t shorter = std::min(std::ssize(a), std::ssize(b));
    std::int64_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
    if (shorter + longer > most) shorter = most / 2, longer = most / 2 + most % 2;
    (swapped ? b : a).resize(at(shorter));
    (swapped ? a : b).resize(at(longer));
  }
  TypedTokens out{{begin}, {}};
  out.tokens.insert(out.tokens.end(), a.begin(), a.end());
  out.tokens.push_back(end);
  out.types.assign(out.tokens.size(), 0);
  out.tokens.insert(out.tokens.end(), b.begin(), b.end());
  out.tokens.push_back(end);
  out.types.resize(out.tokens.size(), 1);
  return out;
}

}  // namespace tenon::data
