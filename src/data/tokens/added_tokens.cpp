// The automaton of added tokens, and texts that are divided by it.
#include "data/tokens/added_tokens.h"
#include "base/sort.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::data {
namespace {

// Of a text's beginning or end: no sign of a word.
constexpr char32_t kNoSign = 0;

bool belongs_to_word(char32_t sign) { return sign != kNoSign && is_word_sign(sign); }

}  // namespace

AddedFinder::AddedFinder(const TokenizerParts& parts, bool normalized) {
  std::vector<std::u32string> texts;
  std::size_t signs = 0;
  for (const AddedToken& token : parts.added) {
    if (token.normalized != normalized || token.text.empty()) continue;
    std::u32string text = code_points(token.text);
    if (normalized) text = made_uniform(std::move(text), parts.normal);
    if (text.empty()) continue;
    longest_ = std::max(longest_, text.size());
    takes_left_ = takes_left_ || token.takes_left;
    signs += text.size();
    tokens_.push_back({&token, text.size()});
    texts.push_back(std::move(text));
  }
  states_.emplace_back();
  if (tokens_.empty()) return;
  const std::size_t slots = std::bit_ceil(signs + signs / 2 + 2);
  keys_.resize(slots);
  ends_.resize(slots);
  shift_ = 64 - std::countr_zero(slots);
  // A tree of the texts from their ends.
  std::vector<std::int32_t> parents{0}, depths{0};
  std::u32string signs_to{U'\0'};
  for (std::size_t k = 0; k < texts.size(); ++k) {
    std::int32_t state = 0;
    for (auto sign = texts[k].rbegin(); sign != texts[k].rend(); ++sign) {
      const std::size_t place = slot(state, *sign);
      if (keys_[place] == 0) {
        keys_[place] = (static_cast<std::uint64_t>(state) << 32 | *sign) + 1;
        ends_[place] = static_cast<std::int32_t>(states_.size());
        if (state == 0 && *sign < first_ascii_.size()) first_ascii_[*sign] = ends_[place];
        states_.emplace_back();
        parents.push_back(state);
        depths.push_back(depths[at(state)] + 1);
        signs_to.push_back(*sign);
      }
      state = ends_[place];
    }
    // Of equal texts the first counts.
    if (states_[at(state)].token < 0) states_[at(state)].token = static_cast<std::int32_t>(k);
  }
  // By depth: the shorter state of each is known before.
  std::vector<std::int32_t> order(states_.size());
  std::iota(order.begin(), order.end(), 0);
  sort_stably(order, [&](std::int32_t a, std::int32_t b) { return depths[at(a)] < depths[at(b)]; });
  for (const std::int32_t state : order) {
    if (state == 0) continue;
    const std::int32_t parent = parents[at(state)];
    State& here = states_[at(state)];
    if (parent != 0) here.shorter = step(states_[at(parent)].shorter, signs_to[at(state)]);
    if (here.token < 0) here.token = states_[at(here.shorter)].token;
  }
}

std::size_t AddedFinder::slot(std::int32_t state, char32_t sign) const {
  const std::uint64_t key = static_cast<std::uint64_t>(state) << 32 | sign;
  const std::size_t mask = keys_.size() - 1;
  std::size_t place = static_cast<std::size_t>(key * 0x9e3779b97f4a7c15ull >> shift_);
  while (keys_[place] != 0 && keys_[place] != key + 1) place = (place + 1) & mask;
  return place;
}

std::int32_t AddedFinder::after(std::int32_t state, char32_t sign) const {
  if (state == 0 && sign < first_ascii_.size()) return first_ascii_[sign];
  const std::size_t place = slot(state, sign);
  return keys_[place] == 0 ? 0 : ends_[place];
}

std::int32_t AddedFinder::step(std::int32_t state, char32_t sign) const {
  for (;; state = states_[at(state)].shorter) {
    const std::int32_t next = after(state, sign);
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
  before_ = kNoSign;
  takes_spaces_ = false;
}

// What has the longest token and one sign more after it is settled. Stretches are as long as the
// longest token, so that each sign is looked at twice.
void AddedScanner::scan(bool ended) {
  const std::size_t behind = finder_.longest();
  const std::size_t settled = ended ? kept_.size() : kept_.size() - std::min(kept_.size(), behind);
  if (!ended && settled < at_ + behind) return;
  look_at(settled);
  // White space before a token may be the token's.
  if (const std::size_t end = finder_.takes_left() ? std::max(from_, solid_) : at_; end > from_)
    give(std::min(end, at_), false);
  if (from_ == 0) return;
  before_ = kept_[from_ - 1];
  kept_.erase(0, from_);
  at_ -= from_;
  solid_ -= std::min(solid_, from_);
  from_ = 0;
}

void AddedScanner::look_at(std::size_t end) {
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
                   right = behind < kept_.size() ? kept_[behind] : kNoSign;
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
