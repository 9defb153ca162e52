// Words into tokens: byte-pair encoding and longest match.
#include "data/token_model.h"

#include <algorithm>
#include <queue>

#include "base/index.h"

namespace tenon::data {
namespace {

std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

// Bytes of the UTF-8 sign at the beginning of text that is well-formed.
std::size_t sign_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

void append_pairs(const TokenModel& model, const PairMerger& merger, std::string_view word,
                  std::vector<std::int64_t>& out) {
  if (model.whole_words)
    if (const auto whole = model.numbers.find(word); whole != model.numbers.end()) {
      out.push_back(whole->second);
      return;
    }
  std::vector<std::int64_t> tokens;
  bool unknown_before = false;
  for (std::size_t from = 0; from < word.size();) {
    const std::size_t count = sign_bytes(word.substr(from));
    const auto found = model.numbers.find(word.substr(from, count));
    const bool known = found != model.numbers.end();
    if (known)
      tokens.push_back(found->second);
    else if (model.unknown && !(model.join_unknown && unknown_before))
      tokens.push_back(*model.unknown);
    unknown_before = !known;
    from += count;
  }
  merger.join(tokens);
  out.insert(out.end(), tokens.begin(), tokens.end());
}

// The longest token of the vocabulary, then the longest of the rest; a rest without one makes the
// whole word unknown.
void append_longest(const TokenModel& model, std::string_view word,
                    std::vector<std::int64_t>& out) {
  std::vector<std::size_t> ends;  // of the word's signs
  for (std::size_t from = 0; from < word.size();)
    ends.push_back(from += sign_bytes(word.substr(from)));
  const std::size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    if (model.unknown) out.push_back(*model.unknown);
  };
  if (ends.size() > model.longest) return unknown();
  std::string candidate;
  for (std::size_t from = 0, sign = 0; from < word.size();) {
    std::size_t last = ends.size();
    for (; last > sign; --last) {
      candidate.assign(from == 0 ? std::string_view() : model.prefix);
      candidate += word.substr(from, ends[last - 1] - from);
      if (const auto found = model.numbers.find(candidate); found != model.numbers.end()) {
        out.push_back(found->second);
        break;
      }
    }
    if (last == sign) return unknown();
    sign = last;
    from = ends[last - 1];
  }
}

}  // namespace

PairMerger::PairMerger(const std::vector<TokenMerge>& merges) {
  merges_.reserve(merges.size());
  std::int64_t rank = 0;
  for (const TokenMerge& merge : merges)
    merges_.insert_or_assign(pair_key(merge.left, merge.right), Merge{rank++, merge.joined});
}

const PairMerger::Merge* PairMerger::find(std::int64_t left, std::int64_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void PairMerger::join(std::vector<std::int64_t>& tokens) const {
  struct Candidate {
    std::int64_t rank;
    std::size_t left;                               // its place
    std::int64_t first, second;                     // what stood there: otherwise it is out of date
    bool operator<(const Candidate& other) const {  // the heap's top is the earliest
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  constexpr std::int64_t gone = -1;
  const std::size_t none = tokens.size();
  std::vector<std::size_t> next(tokens.size()), previous(tokens.size());
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::size_t left) {
    const std::size_t right = next[left];
    if (right == none) return;
    if (const Merge* merge = find(tokens[left], tokens[right]))
      queue.push({merge->rank, left, tokens[left], tokens[right]});
  };
  for (std::size_t k = 0; k < tokens.size(); ++k) next[k] = k + 1, previous[k] = k - 1;
  for (std::size_t k = 0; k + 1 < tokens.size(); ++k) offer(k);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const std::size_t right = tokens[top.left] == gone ? none : next[top.left];
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

void append_word(const TokenModel& model, const PairMerger& merger, std::string_view word,
                 std::vector<std::int64_t>& out) {
  if (model.kind == TokenModel::Kind::Bpe)
    append_pairs(model, merger, word, out);
  else
    append_longest(model, word, out);
}

}  // namespace tenon::data
