// The stages of a text: characters, added tokens, normalized text, added tokens in the normalized
// text, words, numbers.
#include "data/tokens/token_stream.h"

#include <algorithm>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {
namespace {

void check_length(const std::u32string& held_back) {
  if (held_back.size() > TokenStream::kLongestWord)
    throw ValueError(cat("the text has a word of more than ", TokenStream::kLongestWord,
                         " characters: put white space between its words"));
}

}  // namespace

TokenStream::TokenStream(const TokenizerParts& parts, const WordEncoder& words,
                         const AddedFinder& raw, const AddedFinder& normalized,
                         std::vector<std::int64_t>& out)
    : parts_(parts),
      words_(words),
      out_(out),
      normalized_(
          normalized, [this](std::u32string_view part, bool last) { take_words(part, last); },
          [this](const AddedToken& token) { out_.push_back(token.number); }),
      raw_(
          raw, [this](std::u32string_view part, bool last) { normalize(part, last); },
          [this](const AddedToken& token) { out_.push_back(token.number); }),
      use_([this](std::string_view word) { append(word); }) {}

void TokenStream::push(std::string_view bytes) {
  std::string joined;
  if (!begun_.empty()) {
    joined = std::exchange(begun_, {}).append(bytes);
    bytes = joined;
  }
  const std::size_t begun = unfinished_bytes(bytes);
  begun_ = bytes.substr(bytes.size() - begun);
  bytes.remove_suffix(begun);
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, kPartBytes);
    // `bytes` does not end in an unfinished character: one at the end of the last part is
    // malformed.
    if (part.size() < bytes.size()) part.remove_suffix(unfinished_bytes(part));
    characters_.clear();
    append_code_points(characters_, part, read_);
    read_ += part.size();
    raw_.push(characters_);
    bytes.remove_prefix(part.size());
  }
}

void TokenStream::end() {
  if (!begun_.empty())
    append_code_points(characters_, begun_, read_);  // throws for the unfinished character
  raw_.end();
}

// A normal form changes only text between two characters that never combine.
void TokenStream::normalize(std::u32string_view part, bool last) {
  if (parts_.normal.empty()) {
    normalized_.push(part);
  } else {
    const std::size_t before = undecided_.size();
    undecided_ += part;
    std::size_t end = undecided_.size();
    if (!last) {
      while (end > before && !never_combines(undecided_[end - 1])) --end;
      end = end > before ? end - 1 : 0;
    }
    if (end > 0) {
      normalized_.push(normalize_text(undecided_.substr(0, end), parts_.normal));
      undecided_.erase(0, end);
    }
    check_length(undecided_);
  }
  if (last) normalized_.end();
}

void TokenStream::take_words(std::u32string_view part, bool last) {
  const std::size_t before = word_.size();
  word_ += part;
  std::size_t end = word_.size();
  if (!last) {
    const std::size_t first = std::max<std::size_t>(before, 1);
    if (end > 0) --end;
    while (end >= first && !word_ends_between(word_[end - 1], word_[end], parts_.splits)) --end;
    if (end < first) end = 0;
  }
  if (end > 0) {
    each_word(std::u32string_view(word_).substr(0, end), parts_.splits, begins_, use_);
    word_.erase(0, end);
    begins_ = false;
  }
  check_length(word_);
  if (last) begins_ = true;
}

void TokenStream::append(std::string_view word) {
  if (word.size() > kLongestKept) {
    unknown_ += words_.append(word, out_);
    return;
  }
  if (const auto known = kept_.find(word); known != kept_.end()) {
    const Kept& kept = known->second;
    for (std::size_t k = kept.first; k < kept.first + kept.count; ++k)
      out_.push_back(kept_tokens_[k]);
    unknown_ += kept.unknown;
    return;
  }
  const std::size_t first = out_.size();
  const std::int64_t unknown = words_.append(word, out_);
  unknown_ += unknown;
  if (kept_tokens_.size() > kMostKept || kept_.size() > kMostKept) {
    kept_.clear();
    kept_tokens_.clear();
  }
  kept_.emplace(word, Kept{kept_tokens_.size(), static_cast<std::uint32_t>(out_.size() - first),
                           static_cast<std::uint32_t>(unknown)});
  kept_tokens_.insert(kept_tokens_.end(), out_.begin() + static_cast<std::ptrdiff_t>(first),
                      out_.end());
}

}  // namespace tenon::data
