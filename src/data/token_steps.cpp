// Normalising and splitting as Hugging Face's tokenizers do.
#include "data/token_steps.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace tenon::data {
namespace {

using Words = std::vector<std::u32string>;

// ---- Normalising

template <class Mark>
std::u32string without(const Mark& mark, const std::u32string& text) {
  std::u32string out;
  out.reserve(text.size());
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [&](char32_t c) { return !mark(c); });
  return out;
}

std::u32string lowered(const std::u32string& text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_lower(out, c);
  return out;
}

std::u32string cleaned_for_bert(const std::u32string& text, const NormalStep& step) {
  constexpr char32_t replacement = 0xfffd;
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (step.clean) {
      if (c == 0 || c == replacement || is_control_sign(c)) continue;
      if (is_white_space(c)) {
        out.push_back(' ');
        continue;
      }
    }
    if (step.chinese && is_chinese(c))
      out.append({' ', c, ' '});
    else
      out.push_back(c);
  }
  return out;
}

std::u32string after(const std::u32string& text, const NormalStep& step) {
  switch (step.kind) {
    case NormalStep::Kind::Form:
      return normal_form(text, step.form);
    case NormalStep::Kind::Lower:
      return lowered(text);
    case NormalStep::Kind::StripAccents:
      return without(is_mark, text);
    case NormalStep::Kind::Bert:
      break;
  }
  std::u32string out = cleaned_for_bert(text, step);
  if (step.accents) out = without(is_nonspacing_mark, normal_form(out, NormalForm::D));
  return step.lower ? lowered(out) : out;
}

// ---- Splitting

// Runs of signs that are not `apart` and no space; those that are stand alone.
template <class Apart>
void split_at_space(const std::u32string& text, const Apart& apart, Words& out) {
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) out.push_back(std::exchange(word, {}));
  };
  for (const char32_t c : text) {
    if (is_white_space(c)) {
      end_word();
    } else if (apart(c)) {
      end_word();
      out.push_back({c});
    } else {
      word.push_back(c);
    }
  }
  end_word();
}

// How many signs 's, 't, 're, 've, 'm, 'll or 'd take here, or 0.
std::size_t contraction(const std::u32string& text, std::size_t at) {
  if (text[at] != '\'' || at + 1 == text.size()) return 0;
  const char32_t a = text[at + 1], b = at + 2 < text.size() ? text[at + 2] : 0;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

enum class Sign { Letter, Number, Space, Other };
Sign sign_kind(char32_t c) {
  if (is_letter(c)) return Sign::Letter;
  if (is_number(c)) return Sign::Number;
  return is_white_space(c) ? Sign::Space : Sign::Other;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void split_as_gpt2(const std::u32string& text, Words& out) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + contraction(text, at);
    if (end == at) {
      const bool space = text[at] == ' ' && at + 1 < text.size();
      const Sign kind = sign_kind(text[space ? at + 1 : at]);
      if (kind != Sign::Space) {
        end = at + (space ? 2 : 1);
        while (end < text.size() && sign_kind(text[end]) == kind) ++end;
      } else {
        while (end < text.size() && is_white_space(text[end])) ++end;
        if (end < text.size() && end - at > 1) --end;  // the last one belongs to what follows
      }
    }
    out.push_back(text.substr(at, end - at));
    at = end;
  }
}

std::u32string as_signs(const std::u32string& word) {
  std::u32string out;
  for (const char byte : utf8(word)) out.push_back(sign_of_byte(static_cast<unsigned char>(byte)));
  return out;
}

void split_by_step(std::u32string text, const SplitStep& step, Words& out) {
  switch (step.kind) {
    case SplitStep::Kind::Bert:
      return split_at_space(text, is_punctuation, out);
    case SplitStep::Kind::Spaces:
      return split_at_space(
          text, [](char32_t) { return false; }, out);
    case SplitStep::Kind::Bytes:
      break;
  }
  if (step.space_before && !text.starts_with(U' ')) text.insert(text.begin(), U' ');
  Words words;
  if (step.pattern)
    split_as_gpt2(text, words);
  else
    words.push_back(std::move(text));
  for (const std::u32string& word : words) out.push_back(as_signs(word));
}

// GPT-2 shows bytes that are no visible sign of Latin-1 as those from 256 on, in order.
struct ByteSigns {
  ByteSigns() {
    back.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                           (byte >= 0xae && byte <= 0xff);
      const char32_t sign = visible ? static_cast<char32_t>(byte) : next++;
      signs[static_cast<std::size_t>(byte)] = sign;
      back[sign] = byte;
    }
  }
  std::array<char32_t, 256> signs{};
  std::array<int, 512> back{};
};
const ByteSigns& byte_signs() {
  static const ByteSigns table;
  return table;
}

}  // namespace

std::u32string made_uniform(std::u32string text, const std::vector<NormalStep>& steps) {
  for (const NormalStep& step : steps) text = after(text, step);
  return text;
}

std::vector<std::string> split_into_words(const std::u32string& text,
                                          const std::vector<SplitStep>& steps) {
  Words words;
  if (!text.empty()) words.push_back(text);
  for (const SplitStep& step : steps) {
    Words next;
    for (std::u32string& word : words) split_by_step(std::move(word), step, next);
    words = std::move(next);
  }
  std::vector<std::string> out;
  out.reserve(words.size());
  for (const std::u32string& word : words) out.push_back(utf8(word));
  return out;
}

bool splits_at_spaces(const std::vector<SplitStep>& steps) {
  return !steps.empty() && (steps[0].kind != SplitStep::Kind::Bytes || steps[0].pattern);
}

bool is_plain_space(std::u32string_view text, std::size_t place) {
  const auto is_visible = [](char32_t c) { return c > ' ' && c <= '~'; };
  return text[place] == ' ' && place > 0 && place + 1 < text.size() &&
         is_visible(text[place - 1]) && is_visible(text[place + 1]);
}

char32_t sign_of_byte(unsigned char byte) { return byte_signs().signs[byte]; }
int byte_of_sign(char32_t sign) { return sign < 512 ? byte_signs().back[sign] : -1; }

}  // namespace tenon::data
