// Positions at which a text is split. Shares are of bytes; the code that makes windows counts
// tokens.
#include "data/text/text_parts.h"

#include <algorithm>
#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/split.h"

namespace tenon::data {
namespace {

bool is_white(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The next position at which the text may be cut. Text without white space is cut between
// characters.
std::size_t cut_from(std::string_view text, std::size_t place, bool between_words) {
  constexpr std::size_t kFarthest = 256;
  if (between_words && place > 0 && place < text.size())
    for (std::size_t k = place; k < std::min(text.size(), place + kFarthest); ++k)
      if (is_white(text[k - 1]) && !is_white(text[k])) return k;
  while (place < text.size() && (static_cast<unsigned char>(text[place]) & 0xc0) == 0x80) ++place;
  return place;
}

void add(Stretches& out, std::size_t from, std::size_t to) {
  if (from < to && !out.empty() && out.back().second == from)
    out.back().second = to;
  else if (from < to)
    out.emplace_back(from, to);
}

std::size_t share_of(std::size_t bytes, double share) {
  return static_cast<std::size_t>(std::llround(static_cast<double>(bytes) * share));
}

}  // namespace

TextParts text_parts(std::string_view text, const SplitOptions& options, bool own_test,
                     bool between_words, const std::string& name) {
  SplitOptions how = own_test ? without_test(options, name) : options;
  if (!how.group.empty() || how.stratify.value_or(false))
    throw make_error<ValueError>(
        FileName{name},
        ": parts of a text are stretches of it, neither grouped nor stratified: "
        "leave out '",
        how.group.empty() ? "stratify" : "group", "'");
  const double validation = checked_shares(how, name).second;
  const auto cut = [&](double share) {
    return cut_from(text, std::min(text.size(), share_of(text.size(), share)), between_words);
  };
  TextParts out;
  Stretches rest;
  std::size_t from = text.size(), to = text.size();
  if (how.folds != 0) {
    const int blocks = how.folds + (how.chronological ? 1 : 0),
              block = how.fold - (how.chronological ? 0 : 1);
    from = cut(static_cast<double>(block) / blocks);
    to = cut(static_cast<double>(block + 1) / blocks);
  } else {
    from = cut(1 - checked_shares(how, name).first);
  }
  add(out.test, from, to);
  add(rest, 0, from);
  if (!how.chronological) add(rest, to, text.size());
  // Validation is the end of the rest, which may be on both sides of a fold.
  std::size_t all = 0;
  for (const auto& [begin, end] : rest) all += end - begin;
  std::size_t wanted = share_of(all, validation);
  while (wanted > 0 && !rest.empty()) {
    const auto [begin, end] = rest.back();
    const std::size_t taken = std::min(wanted, end - begin);
    const std::size_t middle =
        taken == end - begin ? begin : std::min(end, cut_from(text, end - taken, between_words));
    if (middle < end) out.validation.insert(out.validation.begin(), {middle, end});
    rest.pop_back();
    add(rest, begin, middle);
    wanted -= taken;
  }
  out.train = std::move(rest);
  return out;
}

TextParts without_validation(const TextParts& parts) {
  Stretches all = parts.train;
  all.insert(all.end(), parts.validation.begin(), parts.validation.end());
  std::sort(all.begin(), all.end());
  TextParts out{.test = parts.test};
  for (const auto& [from, to] : all) add(out.train, from, to);
  return out;
}

std::vector<std::int64_t> window_begins(const std::vector<std::int64_t>& stretch_tokens,
                                        std::int64_t length, std::int64_t after) {
  std::vector<std::int64_t> out;
  std::int64_t begin = 0;
  for (const std::int64_t tokens : stretch_tokens) {
    for (std::int64_t at = 0; at + length + after <= tokens; at += length)
      out.push_back(begin + at);
    begin += tokens;
  }
  return out;
}

std::string window_name(const std::string& file, Split part, std::int64_t index) {
  return cat(file, ", window ", index + 1,
             part == Split::All ? "" : cat(" of the ", name(part), " part"));
}

std::string part_text(const char* what, Split part) {
  return part == Split::All ? std::string(what) : cat(what, " of the ", name(part), " part");
}

void add_unknown_note(Notes& notes, std::int64_t count,
                      const std::pair<const char*, const char*>& what, const std::string& in,
                      bool left_out, const std::string& where) {
  if (count == 0) return;
  notes.push_back({cat(count, " ", count == 1 ? what.first : what.second, " in ", in,
                       count == 1 ? " is not in the vocabulary and was "
                                  : " are not in the vocabulary and were ",
                       left_out ? "left out" : "read as the unknown token"),
                   count, where});
}

}  // namespace tenon::data
