// Learns a vocabulary: merges the most frequent pair of neighbours repeatedly.
//
// Pair counts are updated on each merge. A heap, whose entries may be outdated, returns the most
// frequent pair, so the time is proportional to the words that change.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "data/tokens/token_model.h"
#include "data/tokens/unicode.h"

namespace tenon::data {
namespace {

using NeighbourPair = std::pair<std::int64_t, std::int64_t>;

struct CountedPair {
  std::int64_t count;
  NeighbourPair pair;
  bool operator<(const CountedPair& other) const {  // most frequent first
    return count != other.count ? count < other.count : other.pair < pair;
  }
};

struct CountedWord {
  std::vector<std::int64_t> tokens;
  std::int64_t count;
};

class Learner {
 public:
  Learner(const WordCounts& words, TokenModel::Kind kind, std::int64_t most) : most_(most) {
    model_.kind = kind;
    words_.reserve(words.size());
  }

  std::int64_t add(const std::string& token) {
    const auto [it, is_new] = model_.numbers.try_emplace(token, std::ssize(texts_));
    if (is_new) texts_.push_back(token);
    return it->second;
  }

  void take_words(const WordCounts& words) {
    const bool marked = model_.kind == TokenModel::Kind::WordPiece;
    for (const auto& [word, count] : words) {
      CountedWord counted{{}, count};
      counted.tokens.reserve(word.size());
      for (std::size_t k = 0; k < word.size(); ++k) {
        std::string character = marked && k > 0 ? model_.prefix : std::string();
        append_utf8(character, word[k]);
        counted.tokens.push_back(add(character));
      }
      words_.push_back(std::move(counted));
    }
    if (std::ssize(texts_) > most_)
      throw ValueError(cat("a vocabulary of ", most_, " tokens has no room for the ", texts_.size(),
                           " characters and special tokens of the text: allow at least ",
                           texts_.size()));
  }

  TokenModel learn(std::int64_t least) {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::size_t k = 0; k + 1 < words_[w].tokens.size(); ++k)
        count({words_[w].tokens[k], words_[w].tokens[k + 1]}, words_[w].count, w);
    for (const auto& [pair, number] : counts_) queue_.push({number, pair});
    while (std::ssize(texts_) < most_ && !queue_.empty()) {
      CountedPair top = queue_.top();
      queue_.pop();
      if (const std::int64_t now = counts_[top.pair]; now != top.count) {
        top.count = now;
        if (now > 0) queue_.push(top);
        continue;
      }
      if (top.count < std::max<std::int64_t>(1, least)) break;
      join(top.pair);
    }
    return std::move(model_);
  }

 private:
  void count(const NeighbourPair& pair, std::int64_t by, std::size_t word) {
    counts_[pair] += by;
    if (by > 0) where_[pair].insert(word);
  }

  void join(const NeighbourPair& pair) {
    const bool marked = model_.kind == TokenModel::Kind::WordPiece;
    const std::string& right = texts_[at(pair.second)];
    const std::string text =
        texts_[at(pair.first)] +
        (marked && right.starts_with(model_.prefix) ? right.substr(model_.prefix.size()) : right);
    const std::int64_t joined = add(text);
    model_.merges.push_back({pair.first, pair.second, joined});
    const std::set<std::size_t> words = std::move(where_[pair]);
    where_.erase(pair);
    std::set<NeighbourPair> grown;
    for (const std::size_t w : words) join_in(w, pair, joined, grown);
    counts_[pair] = 0;
    for (const NeighbourPair& each : grown)
      if (const std::int64_t number = counts_[each]; number > 0) queue_.push({number, each});
  }

  void join_in(std::size_t w, const NeighbourPair& pair, std::int64_t joined,
               std::set<NeighbourPair>& grown) {
    std::vector<std::int64_t>& tokens = words_[w].tokens;
    const std::int64_t times = words_[w].count;
    std::size_t to = 0;
    for (std::size_t from = 0; from < tokens.size(); ++to) {
      const bool here =
          from + 1 < tokens.size() && tokens[from] == pair.first && tokens[from + 1] == pair.second;
      if (!here) {
        tokens[to] = tokens[from++];
        continue;
      }
      if (to > 0) {
        count({tokens[to - 1], pair.first}, -times, w);
        count({tokens[to - 1], joined}, times, w);
        grown.insert({tokens[to - 1], joined});
      }
      from += 2;
      if (from < tokens.size()) {
        count({pair.second, tokens[from]}, -times, w);
        count({joined, tokens[from]}, times, w);
        grown.insert({joined, tokens[from]});
      }
      tokens[to] = joined;
    }
    tokens.resize(to);
  }

  std::int64_t most_;
  TokenModel model_;
  std::vector<std::string> texts_;
  std::vector<CountedWord> words_;
  std::map<NeighbourPair, std::int64_t> counts_;
  std::map<NeighbourPair, std::set<std::size_t>> where_;
  std::priority_queue<CountedPair> queue_;
};

}  // namespace

TokenModel learn_tokens(const WordCounts& words, TokenModel::Kind kind, std::int64_t most,
                        std::int64_t least, const std::u32string& alphabet,
                        const std::vector<std::string>& first) {
  Learner learner(words, kind, most);
  for (const std::string& token : first) learner.add(token);
  std::set<char32_t> characters(alphabet.begin(), alphabet.end());
  for (const auto& entry : words) characters.insert(entry.first.begin(), entry.first.end());
  for (const char32_t character : characters) {
    std::string text;
    append_utf8(text, character);
    learner.add(text);
  }
  learner.take_words(words);
  return learner.learn(least);
}

}  // namespace tenon::data
