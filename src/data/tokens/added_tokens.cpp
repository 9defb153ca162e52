// The automaton of added tokens, and texts that are divided by it.
#include "data/tokens/added_tokens.h"
#include "base/sort.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::data {
namespace {

// Stands for the beginning or end of a text: not a character of a word.
constexpr char32_t kNoCharacter = 0;

bool belongs_to_word(char32_t character) {
  return character != kNoCharacter && is_word_character(character);
}

}  // namespace

AddedFinder::AddedFinder(const TokenizerParts& parts, bool normalized) {
  std::vector<std::u32string> texts;
  std::size_t characters = 0;
  for (const AddedToken& token : parts.added) {
    if (token.normalized != normalized || token.text.empty()) continue;
    std::u32string text = code_points(token.text);
    if (normalized) text = normalize_text(std::move(text), parts.normal);
    if (text.empty()) continue;
    longest_ = std::max(longest_, text.size());
    takes_left_ = takes_left_ || token.takes_left;
    characters += text.size();
    tokens_.push_back({&token, text.size()});
    texts.push_back(std::move(text));
  }
  states_.emplace_back();
  if (tokens_.empty()) return;
  const std::size_t slots = std::bit_ceil(characters + characters / 2 + 2);
  keys_.resize(slots);
  ends_.resize(slots);
  shift_ = 64 - std::countr_zero(slots);
  // A trie of the reversed texts.
  std::vector<std::int32_t> parents{0}, depths{0};
  std::u32string edge_characters{U'\0'};
  for (std::size_t k = 0; k < texts.size(); ++k) {
    std::int32_t state = 0;
    for (auto character = texts[k].rbegin(); character != texts[k].rend(); ++character) {
      const std::size_t place = slot(state, *character);
      if (keys_[place] == 0) {
        keys_[place] = (static_cast<std::uint64_t>(state) << 32 | *character) + 1;
        ends_[place] = static_cast<std::int32_t>(states_.size());
        if (state == 0 && *character < first_ascii_.size()) first_ascii_[*character] = ends_[place];
        states_.emplace_back();
        parents.push_back(state);
        depths.push_back(depths[at(state)] + 1);
        edge_characters.push_back(*character);
      }
      state = ends_[place];
    }
    // Of equal texts the first token wins.
    if (states_[at(state)].token < 0) states_[at(state)].token = static_cast<std::int32_t>(k);
  }
  // In order of depth, so that the shorter state of each state is known.
  std::vector<std::int32_t> order(states_.size());
  std::iota(order.begin(), order.end(), 0);
  sort_stably(order, [&](std::int32_t a, std::int32_t b) { return depths[at(a)] < depths[at(b)]; });
  for (const std::int32_t state : order) {
    if (state == 0) continue;
    const std::int32_t parent = parents[at(state)];
    State& here = states_[at(state)];
    if (parent != 0) here.shorter = step(states_[at(parent)].shorter, edge_characters[at(state)]);
    if (here.token < 0) here.token = states_[at(here.shorter)].token;
  }
}

std::size_t AddedFinder::slot(std::int32_t state, char32_t character) const {
  const std::uint64_t key = static_cast<std::uint64_t>(state) << 32 | character;
  const std::size_t mask = keys_.size() - 1;
  std::size_t place = static_cast<std::size_t>(key * 0x9e3779b97f4a7c15ull >> shift_);
  while (keys_[place] != 0 && keys_[place] != key + 1) place = (place + 1) & mask;
  return place;
}

std::int32_t AddedFinder::after(std::int32_t state, char32_t character) const {
  if (state == 0 && character < first_ascii_.size()) return first_ascii_[character];
  const std::size_t place = slot(state, character);
  return keys_[place] == 0 ? 0 : ends_[place];
}

std::int32_t AddedFinder::step(std::int32_t state, char32_t character) const {
  for (;; state = states_[at(state)].shorter) {
    const std::int32_t next = after(state, character);
    if (next != 0 || state == 0) return next;
  }
}

void AddedFinder::find(std::u32string_view text, std::span<std::int32_t> begins) const {
  std::int32_t state = 0;
  for (std::size_t k = text.size(); k-- > 0;) {
    state = step(state, text[k]);
    if (k < begins.size()) begins[k] = states_[at(state)].token;
  }
}

void AddedScanner::push(std::u32string_view part) {
  if (finder_.empty()) return text_(part, false);
  kept_ += part;
  scan(false);
}

void AddedScanner::end() {
  if (finder_.empty()) return text_({}, true);
  scan(true);
  give(kept_.size(), true);
  kept_.clear();
  from_ = at_ = solid_ = 0;
  before_ = kNoCharacter;
  takes_spaces_ = false;
}

// A position is decided once the longest token and one more character after it are known. Text is
// processed in pieces as long as the longest token, so that each character is read twice.
void AddedScanner::scan(bool ended) {
  const std::size_t behind = finder_.longest();
  const std::size_t decided = ended ? kept_.size() : kept_.size() - std::min(kept_.size(), behind);
  if (!ended && decided < at_ + behind) return;
  find_tokens(decided);
  // White space before a token may belong to the token, so it is held back.
  if (const std::size_t end = finder_.takes_left() ? std::max(from_, solid_) : at_; end > from_)
    give(std::min(end, at_), false);
  if (from_ == 0) return;
  before_ = kept_[from_ - 1];
  kept_.erase(0, from_);
  at_ -= from_;
  solid_ -= std::min(solid_, from_);
  from_ = 0;
}

void AddedScanner::find_tokens(std::size_t end) {
  if (end <= at_) return;
  begins_.resize(end - at_);
  const std::size_t start = at_;
  finder_.find(std::u32string_view(kept_).substr(start, end - start + finder_.longest()), begins_);
  while (at_ < end) {
    if (takes_spaces_) {
      while (at_ < end && is_white_space(kept_[at_])) ++at_;
      from_ = solid_ = at_;
      if (at_ == end) return;
      takes_spaces_ = false;
    }
    const std::int32_t index = begins_[at_ - start];
    if (index < 0) {
      ++at_;
      if (finder_.takes_left() && !is_white_space(kept_[at_ - 1])) solid_ = at_;
      continue;
    }
    const std::size_t behind = at_ + finder_.size(index);
    const char32_t left = at_ > 0 ? kept_[at_ - 1] : before_,
                   right = behind < kept_.size() ? kept_[behind] : kNoCharacter;
    if (finder_.token(index).alone && (belongs_to_word(left) || belongs_to_word(right))) {
      at_ = behind;
      solid_ = at_;
    } else {
      found(index, behind);
    }
  }
}

void AddedScanner::found(std::int32_t index, std::size_t end) {
  const AddedToken& token = finder_.token(index);
  std::size_t first = at_;
  if (token.takes_left)
    while (first > from_ && is_white_space(kept_[first - 1])) --first;
  give(first, true);
  token_(token);
  from_ = at_ = solid_ = end;
  takes_spaces_ = token.takes_right;
}

void AddedScanner::give(std::size_t end, bool last) {
  text_(std::u32string_view(kept_).substr(from_, end - from_), last);
  from_ = end;
}

}  // namespace tenon::data
