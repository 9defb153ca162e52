// Words into tokens: byte-pair encoding and longest match.
#include "data/tokens/token_model.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <set>

namespace tenon::data {
namespace {

std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

// Bytes of the first UTF-8 character of a well-formed text.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

PairMerger::PairMerger(const std::vector<TokenMerge>& merges) {
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (const TokenMerge& merge : merges)
    merges_.insert_or_assign(pair_key(merge.left, merge.right), Merge{rank++, merge.joined});
}

const PairMerger::Merge* PairMerger::find(std::int64_t left, std::int64_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// For short words: each merge scans all remaining pairs.
void PairMerger::join_few(std::vector<std::int64_t>& tokens) const {
  std::array<const Merge*, kFew> merges{};  // merge of each token with its successor
  std::size_t count = tokens.size();
  for (std::size_t k = 0; k + 1 < count; ++k) merges[k] = find(tokens[k], tokens[k + 1]);
  for (;;) {
    std::size_t first = kFew;
    for (std::size_t k = 0; k + 1 < count; ++k)
      if (merges[k] != nullptr && (first == kFew || merges[k]->rank < merges[first]->rank))
        first = k;
    if (first == kFew) break;
    tokens[first] = merges[first]->joined;
    --count;
    for (std::size_t k = first + 1; k < count; ++k) {
      tokens[k] = tokens[k + 1];
      merges[k] = merges[k + 1];
    }
    merges[first] = first + 1 < count ? find(tokens[first], tokens[first + 1]) : nullptr;
    if (first > 0) merges[first - 1] = find(tokens[first - 1], tokens[first]);
  }
  tokens.resize(count);
}

void PairMerger::join(std::vector<std::int64_t>& tokens) const {
  if (tokens.size() <= kFew) return join_few(tokens);
  struct Candidate {
    std::int32_t rank;
    std::uint32_t left;          // position of the left token
    std::int32_t first, second;  // the tokens when it was added; outdated if they changed
    bool operator<(const Candidate& other) const {  // the earliest merge is at the top of the heap
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  constexpr std::int64_t gone = -1;
  const auto none = static_cast<std::uint32_t>(tokens.size());
  std::vector<std::uint32_t> next(tokens.size()), previous(tokens.size());
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::uint32_t left) {
    const std::uint32_t right = next[left];
    if (right == none) return;
    if (const Merge* merge = find(tokens[left], tokens[right]))
      queue.push({merge->rank, left, static_cast<std::int32_t>(tokens[left]),
                  static_cast<std::int32_t>(tokens[right])});
  };
  for (std::uint32_t k = 0; k < none; ++k) next[k] = k + 1, previous[k] = k - 1;
  for (std::uint32_t k = 0; k + 1 < none; ++k) offer(k);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const std::uint32_t right = tokens[top.left] == gone ? none : next[top.left];
    if (right == none || tokens[top.left] != top.first || tokens[right] != top.second) continue;
    tokens[top.left] = find(top.first, top.second)->joined;
    tokens[right] = gone;
    next[top.left] = next[right];
    if (next[right] != none) previous[next[right]] = top.left;
    offer(top.left);
    if (top.left != 0) offer(previous[top.left]);
  }
  std::erase(tokens, gone);
}

WordEncoder::WordEncoder(const TokenModel& model) : model_(model), merger_(model.merges) {
  if (model.kind == TokenModel::Kind::Bpe) return;
  std::set<std::size_t, std::greater<>> first, later;
  for (const auto& [token, number] : model.numbers) {
    if (!token.empty()) first.insert(token.size());
    if (token.starts_with(model.prefix) && token.size() > model.prefix.size())
      later.insert(token.size() - model.prefix.size());
  }
  first_sizes_.assign(first.begin(), first.end());
  later_sizes_.assign(later.begin(), later.end());
}

std::int64_t WordEncoder::append(std::string_view word, std::vector<std::int64_t>& out) const {
  return model_.kind == TokenModel::Kind::Bpe ? append_pairs(word, out) : append_longest(word, out);
}

std::int64_t WordEncoder::append_pairs(std::string_view word,
                                       std::vector<std::int64_t>& out) const {
  if (model_.whole_words)
    if (const auto whole = model_.numbers.find(word); whole != model_.numbers.end()) {
      out.push_back(whole->second);
      return 0;
    }
  std::vector<std::int64_t> tokens;
  std::int64_t unknown = 0;
  bool unknown_before = false;
  for (std::size_t from = 0; from < word.size();) {
    const std::size_t count = character_bytes(word.substr(from));
    const auto found = model_.numbers.find(word.substr(from, count));
    const bool known = found != model_.numbers.end();
    if (known)
      tokens.push_back(found->second);
    else if (model_.unknown && !(model_.join_unknown && unknown_before))
      tokens.push_back(*model_.unknown);
    unknown_before = !known;
    if (!known) ++unknown;
    from += count;
  }
  merger_.join(tokens);
  out.insert(out.end(), tokens.begin(), tokens.end());
  return unknown;
}

// Takes the longest token that the word begins with, then the longest for the rest; if the rest has
// none, the whole word is unknown. Only lengths that occur among the tokens are tried, so the time
// is proportional to the length of the word. Tokens are UTF-8, so they end between characters.
std::int64_t WordEncoder::append_longest(std::string_view word,
                                         std::vector<std::int64_t>& out) const {
  const std::size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    if (model_.unknown) out.push_back(*model_.unknown);
    return std::int64_t{1};
  };
  const auto characters = std::count_if(word.begin(), word.end(), begins_character);
  if (static_cast<std::size_t>(characters) > model_.longest) return unknown();
  std::string candidate;
  for (std::size_t from = 0; from < word.size();) {
    const std::size_t rest = word.size() - from, start = from;
    const std::string_view prefix = from == 0 ? std::string_view() : model_.prefix;
    const std::vector<std::size_t>& sizes = from == 0 ? first_sizes_ : later_sizes_;
    for (auto size = std::lower_bound(sizes.begin(), sizes.end(), rest, std::greater<>());
         size != sizes.end() && from == start; ++size) {
      candidate.assign(prefix).append(word, from, *size);
      if (const auto found = model_.numbers.find(candidate); found != model_.numbers.end()) {
        out.push_back(found->second);
        from += *size;
      }
    }
    if (from == start) return unknown();
  }
  return 0;
}

}  // namespace tenon::data
