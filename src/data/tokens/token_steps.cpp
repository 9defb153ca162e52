// Normalization and splitting as in Hugging Face's tokenizers.
#include "data/tokens/token_steps.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace tenon::data {
namespace {

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
      if (c == 0 || c == replacement || is_control_character(c)) continue;
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

// Runs of characters that are neither `apart` nor spaces. Each `apart` character is a run of its
// own.
template <class Apart, class Use>
void split_at_space(std::u32string_view text, const Apart& apart, const Use& use) {
  std::size_t from = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > from) use(text.substr(from, end - from));
    from = end + 1;
  };
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (is_white_space(text[k])) {
      end_word(k);
    } else if (apart(text[k])) {
      end_word(k);
      use(text.substr(k, 1));
    }
  }
  end_word(text.size());
}

// The number of characters of 's, 't, 're, 've, 'm, 'll or 'd at this position, or 0.
std::size_t contraction(std::u32string_view text, std::size_t at) {
  if (text[at] != '\'' || at + 1 == text.size()) return 0;
  const char32_t a = text[at + 1], b = at + 2 < text.size() ? text[at + 2] : 0;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

enum class CharacterKind { Letter, Number, Space, Other };
CharacterKind character_kind(char32_t c) {
  if (is_letter(c)) return CharacterKind::Letter;
  if (is_number(c)) return CharacterKind::Number;
  return is_white_space(c) ? CharacterKind::Space : CharacterKind::Other;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
template <class Use>
void split_as_gpt2(std::u32string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + contraction(text, at);
    if (end == at) {
      const bool space = text[at] == ' ' && at + 1 < text.size();
      const CharacterKind kind = character_kind(text[space ? at + 1 : at]);
      if (kind != CharacterKind::Space) {
        end = at + (space ? 2 : 1);
        while (end < text.size() && character_kind(text[end]) == kind) ++end;
      } else {
        while (end < text.size() && is_white_space(text[end])) ++end;
        if (end < text.size() && end - at > 1) --end;  // the last one belongs to what follows
      }
    }
    use(text.substr(at, end - at));
    at = end;
  }
}

// GPT-2 represents bytes that are not visible Latin-1 characters by the code points from 256 on, in
// order.
struct ByteCharacters {
  ByteCharacters() {
    back.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                           (byte >= 0xae && byte <= 0xff);
      const char32_t character = visible ? static_cast<char32_t>(byte) : next++;
      characters[static_cast<std::size_t>(byte)] = character;
      back[character] = byte;
    }
  }
  std::array<char32_t, 256> characters{};
  std::array<int, 512> back{};
};
const ByteCharacters& byte_characters() {
  static const ByteCharacters table;
  return table;
}

}  // namespace

std::u32string normalize_text(std::u32string text, const std::vector<NormalStep>& steps) {
  for (const NormalStep& step : steps) text = after(text, step);
  return text;
}

namespace {

// Takes a text through the steps from one on.
class Splitter {
 public:
  Splitter(const std::vector<SplitStep>& steps, const std::function<void(std::string_view)>& use)
      : steps_(steps), use_(use) {}

  void split(std::u32string_view text, std::size_t step, bool begins) {
    if (step == steps_.size()) {
      word_.clear();
      for (const char32_t c : text) append_utf8(word_, c);
      return use_(word_);
    }
    const SplitStep& how = steps_[step];
    const auto next = [&](std::u32string_view word) { split(word, step + 1, true); };
    switch (how.kind) {
      case SplitStep::Kind::Bert:
        return split_at_space(text, is_punctuation, next);
      case SplitStep::Kind::Spaces:
        return split_at_space(
            text, [](char32_t) { return false; }, next);
      case SplitStep::Kind::Bytes:
        break;
    }
    std::u32string spaced;
    if (how.space_before && begins && !text.starts_with(U' ')) {
      spaced.append(1, U' ').append(text);
      text = spaced;
    }
    const auto bytes = [&](std::u32string_view word) {
      if (step + 1 == steps_.size()) return use_(as_characters(word));
      std::u32string characters;
      for (const char byte : utf8(word))
        characters.push_back(character_of_byte(static_cast<unsigned char>(byte)));
      next(characters);
    };
    if (how.pattern)
      split_as_gpt2(text, bytes);
    else
      bytes(text);
  }

 private:
  // The characters that represent a word's bytes.
  std::string_view as_characters(std::u32string_view word) {
    word_.clear();
    char bytes[4];
    for (const char32_t c : word) {
      const std::size_t count = encode_utf8(c, bytes);
      for (std::size_t k = 0; k < count; ++k)
        append_utf8(word_, character_of_byte(static_cast<unsigned char>(bytes[k])));
    }
    return word_;
  }

  const std::vector<SplitStep>& steps_;
  const std::function<void(std::string_view)>& use_;
  std::string word_;
};

}  // namespace

void each_word(std::u32string_view text, const std::vector<SplitStep>& steps, bool begins,
               const std::function<void(std::string_view)>& use) {
  if (!text.empty()) Splitter(steps, use).split(text, 0, begins);
}

bool word_ends_between(char32_t before, char32_t after, const std::vector<SplitStep>& steps) {
  if (steps.empty()) return false;
  const bool space_before = is_white_space(before), space_after = is_white_space(after);
  switch (steps[0].kind) {
    case SplitStep::Kind::Bert:
      return space_before || space_after || is_punctuation(before) || is_punctuation(after);
    case SplitStep::Kind::Spaces:
      return space_before || space_after;
    case SplitStep::Kind::Bytes:
      break;
  }
  // A space may belong to what follows it, and a letter to the apostrophe before it.
  if (!steps[0].pattern || space_before) return false;
  return space_after || (before != '\'' && character_kind(before) != character_kind(after));
}

char32_t character_of_byte(unsigned char byte) { return byte_characters().characters[byte]; }
int byte_of_character(char32_t character) {
  return character < 512 ? byte_characters().back[character] : -1;
}

}  // namespace tenon::data
