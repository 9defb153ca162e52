// Byte-pair encoding over characters (Sennrich et al., 2016). Pair counts are updated on each
// merge, and a heap returns the most frequent pair: the time is proportional to the words that
// change, not to the whole text for every merge.
#include "data/tokens/pieces.h"

#include <algorithm>
#include <queue>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"

namespace tenon::data {
namespace {

// Text without spaces is cut into words of this length, to bound the time for a word.
constexpr std::size_t kLongestWord = 256;  // bytes, not counting the last character

// Calls use(word) for each word with the space before it, and for each other character.
template <class Use>
void split_words(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (text[end] == ' ' && end + 1 < text.size() && in_word(text[end + 1])) ++end;
    if (!in_word(text[end])) end += code_point(text, end);
    while (end < text.size() && in_word(text[end]) && end - at < kLongestWord)
      end += code_point(text, end);
    use(text.substr(at, end - at));
    at = end;
  }
}

std::vector<std::string> characters_of(const std::string& word) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < word.size(); at += out.back().size())
    out.push_back(word.substr(at, code_point(word, at)));
  return out;
}

using Numbers = TokenNumbers;

// The token that two neighbours form merged_token; `none` if they form none.
std::int64_t merged_token(const std::string& a, const std::string& b, const Numbers& numbers,
                          std::int64_t none) {
  const auto found = numbers.find(a + b);
  return found == numbers.end() ? none : found->second;
}

std::vector<std::int64_t> encode_word(const std::string& word, const Numbers& numbers) {
  const std::int64_t none = std::ssize(numbers);
  std::vector<std::string> parts = characters_of(word);
  std::vector<std::int64_t> joins;  // the token of parts k and k + 1
  for (std::size_t k = 0; k + 1 < parts.size(); ++k)
    joins.push_back(merged_token(parts[k], parts[k + 1], numbers, none));
  while (!joins.empty()) {
    const auto lowest = std::min_element(joins.begin(), joins.end());
    if (*lowest == none) break;
    const auto k = lowest - joins.begin();
    parts[at(k)] += parts[at(k) + 1];
    parts.erase(parts.begin() + k + 1);
    joins.erase(joins.begin() + k);
    if (k > 0) joins[at(k) - 1] = merged_token(parts[at(k) - 1], parts[at(k)], numbers, none);
    if (at(k) < joins.size())
      joins[at(k)] = merged_token(parts[at(k)], parts[at(k) + 1], numbers, none);
  }
  std::vector<std::int64_t> out;
  out.reserve(parts.size());
  for (const std::string& part : parts) {
    const auto found = numbers.find(part);
    if (found == numbers.end())
      throw ValueError(cat("'", part, "' is not one of the ", none, " known tokens"));
    out.push_back(found->second);
  }
  return out;
}

using Neighbours = std::pair<std::int64_t, std::int64_t>;

struct NeighboursHash {
  std::size_t operator()(const Neighbours& n) const {
    return static_cast<std::size_t>(n.first) * 0x9e3779b97f4a7c15ull +
           static_cast<std::size_t>(n.second);
  }
};

// The words of a text as tokens, and the words that contain each pair of neighbours.
class Joiner {
 public:
  Joiner(std::string_view text, const Numbers& numbers) {
    Numbers counts;
    split_words(text, [&](std::string_view word) {
      auto known = counts.find(word);
      if (known == counts.end()) known = counts.emplace(word, 0).first;
      ++known->second;
    });
    for (const auto& [word, times] : counts) {
      Word w{{}, times};
      for (const std::string& c : characters_of(word)) w.tokens.push_back(numbers.at(c));
      words_.push_back(std::move(w));
    }
    for (std::size_t w = 0; w < words_.size(); ++w)
      count(w, std::vector<bool>(words_[w].tokens.size(), true), 1);
    for (const auto& [pair, place] : places_) heap_.push({place.count, pair});
    changed_.clear();
  }

  // The most frequent pair, and of equally frequent pairs the one with lower numbers; false if no
  // pair occurs twice.
  bool most_frequent(Neighbours& out) {
    for (; !heap_.empty(); heap_.pop()) {
      const Candidate top = heap_.top();
      if (top.count < 2) return false;
      if (places_.at(top.pair).count != top.count) continue;  // outdated: the count has changed
      out = top.pair;
      return true;
    }
    return false;
  }

  void join(const Neighbours& pair, std::int64_t token) {
    const std::vector<std::size_t> where = std::move(places_.at(pair).words);
    for (const std::size_t w : where) {
      Word& word = words_[w];
      std::vector<bool> joined(word.tokens.size(), false), made;
      std::vector<std::int64_t> tokens;
      for (std::size_t k = 0; k < word.tokens.size(); ++k) {
        const bool here = k + 1 < word.tokens.size() && word.tokens[k] == pair.first &&
                          word.tokens[k + 1] == pair.second;
        tokens.push_back(here ? token : word.tokens[k]);
        made.push_back(here);
        if (here) joined[k] = joined[k + 1] = true, ++k;
      }
      count(w, joined, -1);
      word.tokens = std::move(tokens);
      count(w, made, 1);
    }
    for (const Neighbours& each : changed_) heap_.push({places_.at(each).count, each});
    changed_.clear();
    places_.at(pair) = {};
  }

 private:
  struct Word {
    std::vector<std::int64_t> tokens;
    std::int64_t count;
  };
  struct Place {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // words that have or had the pair, possibly repeated
  };
  struct Candidate {
    std::int64_t count;
    Neighbours pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  // Adds to the counts, or subtracts, a word's neighbours of which at least one is marked.
  void count(std::size_t w, const std::vector<bool>& marked, std::int64_t sign) {
    const Word& word = words_[w];
    for (std::size_t k = 0; k + 1 < word.tokens.size(); ++k) {
      if (!marked[k] && !marked[k + 1]) continue;
      const Neighbours pair{word.tokens[k], word.tokens[k + 1]};
      Place& place = places_[pair];
      place.count += sign * word.count;
      if (sign > 0 && (place.words.empty() || place.words.back() != w)) place.words.push_back(w);
      changed_.push_back(pair);
    }
  }

  std::vector<Word> words_;
  std::unordered_map<Neighbours, Place, NeighboursHash> places_;
  std::vector<Neighbours> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::size_t code_point(std::string_view text, std::size_t from) {
  const auto byte = static_cast<unsigned char>(text[from]);
  const std::size_t count = byte < 0x80             ? 1
                            : (byte & 0xe0) == 0xc0 ? 2
                            : (byte & 0xf0) == 0xe0 ? 3
                            : (byte & 0xf8) == 0xf0 ? 4
                                                    : 0;
  bool good = count > 0 && from + count <= text.size();
  for (std::size_t i = 1; good && i < count; ++i)
    good = (static_cast<unsigned char>(text[from + i]) & 0xc0) == 0x80;
  if (!good)
    throw FormatError(
        cat("the text is not UTF-8 at byte ", from, ": read it by bytes, or convert it"));
  return count;
}

std::size_t cut_between_words(std::string_view text, std::size_t from, std::size_t most) {
  if (text.size() - from <= most) return text.size();
  std::size_t cut = from + most;
  while (cut > from && text[cut] != ' ' && text[cut] != '\n') --cut;
  return cut > from ? cut : text.size();
}

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '\'';
}

void join_pieces(std::string_view text, std::int64_t most, std::vector<std::string>& tokens) {
  Numbers numbers;
  for (std::size_t k = 0; k < tokens.size(); ++k)
    numbers.emplace(tokens[k], static_cast<std::int64_t>(k));
  Joiner joiner(text, numbers);
  for (Neighbours pair; std::ssize(tokens) < most && joiner.most_frequent(pair);) {
    std::string piece = tokens[at(pair.first)] + tokens[at(pair.second)];
    // Another pair may have formed the same text before; then its number is used.
    const auto [found, is_new] = numbers.emplace(piece, std::ssize(tokens));
    if (is_new) tokens.push_back(std::move(piece));
    joiner.join(pair, found->second);
  }
}

std::vector<std::int64_t> PieceEncoder::operator()(std::string_view text) {
  std::vector<std::int64_t> out;
  split_words(text, [&](std::string_view word) {
    auto found = known_.find(word);
    if (found == known_.end())
      found = known_.emplace(word, encode_word(std::string(word), numbers_)).first;
    out.insert(out.end(), found->second.begin(), found->second.end());
  });
  return out;
}

}  // namespace tenon::data
