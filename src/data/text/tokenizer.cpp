// Tokenizers: encoding finds added tokens, normalises the rest, splits it into words and maps words
// to ids; decoding is the inverse.
#include <tenon/tokenizer.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/text/text_readers.h"
#include "data/tokens/added_tokens.h"
#include "data/tokens/token_stream.h"
#include "data/tokens/tokenizer_impl.h"
#include "io/file.h"
#include "io/text/encoding.h"

namespace tenon::data {

namespace {

constexpr std::uint64_t kMostTokenizerBytes = std::uint64_t{256} << 20;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

bool is_there(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed);
}

std::string bytes_of(const std::string& path) {
  return io::as_text(io::read_file(path, kMostTokenizerBytes), path);
}

bool any_capital(const std::string& vocabulary) {
  for (std::size_t line = 0; line < vocabulary.size();) {
    const std::size_t end = std::min(vocabulary.find('\n', line), vocabulary.size());
    if (vocabulary[line] >= 'A' && vocabulary[line] <= 'Z') return true;  // not of "[CLS]"
    line = end + 1;
  }
  return false;
}

TokenizerParts open_parts(const std::string& path) {
  if (path.ends_with(".txt")) {
    const std::string vocabulary = bytes_of(path);
    const std::string config = folder_of(path) + "tokenizer_config.json";
    const bool lower = config_lowers(is_there(config) ? bytes_of(config) : std::string(),
                                     !any_capital(vocabulary));
    return parse_vocab_txt(vocabulary, path, lower);
  }
  const std::string merges = folder_of(path) + "merges.txt";
  if (path.ends_with("vocab.json")) return parse_vocab_json(bytes_of(path), bytes_of(merges), path);
  return parse_tokenizer_json(bytes_of(path), path);
}

// Removes spaces before punctuation, as BERT's decoder does.
void tidy_up(std::string& piece) {
  static constexpr std::pair<std::string_view, std::string_view> changes[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : changes) {
    std::size_t at = piece.find(from), copied = 0;
    if (at == std::string::npos) continue;
    std::string changed;
    for (; at != std::string::npos; at = piece.find(from, copied)) {
      changed.append(piece, copied, at - copied).append(to);
      copied = at + from.size();
    }
    piece = changed.append(piece, copied);
  }
}

// Bytes as text. Invalid UTF-8 becomes U+FFFD, one for each longest prefix of a character.
std::string shown_bytes(const std::string& bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const std::size_t wanted = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    std::size_t count = 1;
    for (; count < wanted && at + count < bytes.size(); ++count) {
      const auto byte = static_cast<unsigned char>(bytes[at + count]);
      const unsigned least = count > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
      const unsigned most = count > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
      if (byte < least || byte > most) break;
    }
    if (count == wanted)
      out += bytes.substr(at, count);
    else
      out += "\xef\xbf\xbd";
    at += count;
  }
  return out;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(TokenizerParts given)
      : parts(std::move(given)), words(parts.model), raw(parts, false), normalized(parts, true) {
    texts.reserve(parts.model.numbers.size());
    for (const auto& [text, number] : parts.model.numbers) texts.insert_or_assign(number, text);
    for (const AddedToken& token : parts.added) {
      texts.insert_or_assign(token.number, token.text);
      added.emplace(token.number, &token);
      numbers.emplace(token.text, token.number);
    }
    size = largest_number(parts) + 1;
  }

  TokenizerParts parts;
  WordEncoder words;
  AddedFinder raw, normalized;
  std::int64_t size = 0;
  /// Token texts by number, as views of `parts`. A map, because numbers may have large gaps.
  std::unordered_map<std::int64_t, std::string_view> texts;
  std::unordered_map<std::int64_t, const AddedToken*> added;
  std::unordered_map<std::string_view, std::int64_t> numbers;  // of added tokens
};

TokenizerKind tokenizer_kind(const std::string& name) {
  static const std::string names[] = {"bpe", "wordpiece"};
  for (int k = 0; k < 2; ++k)
    if (name == names[k]) return static_cast<TokenizerKind>(k);
  const std::string near = nearest(name, names, 2);
  throw ValueError(cat("'", name, "' is not a kind of tokenizer: use bpe or wordpiece",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

Tokenizer Tokenizer::open(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed))
    return Tokenizer(std::make_shared<const Impl>(open_parts(path)));
  for (const char* name : {"tokenizer.json", "vocab.txt", "vocab.json"})
    if (const std::string file = cat(path, "/", name); is_there(file)) return open(file);
  throw make_error<IoError>(FileName{path},
                            ": contains none of tokenizer.json, vocab.txt and vocab.json");
}

Tokenizer Tokenizer::train(std::string_view text, const TokenizerTraining& options) {
  const bool bytes = options.kind == TokenizerKind::Bpe;
  TokenizerParts parts = bytes ? parts_as_gpt2() : parts_as_bert(options.lower);
  const std::vector<std::string> first =
      bytes ? std::vector<std::string>{"<|endoftext|>"}
            : std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  std::u32string alphabet;
  for (int byte = 0; bytes && byte < 256; ++byte)
    alphabet.push_back(character_of_byte(static_cast<unsigned char>(byte)));
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> places;
  WordCounts words;
  const auto count = [&](std::string_view word) {
    auto place = places.find(word);
    if (place == places.end()) {
      place = places.emplace(word, words.size()).first;
      words.emplace_back(code_points(word), 0);
    }
    ++words[place->second].second;
  };
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size() - 1) + 1;
    each_word(normalize_text(code_points(text.substr(line, end - line)), parts.normal),
              parts.splits, true, count);
    line = end;
  }
  const auto kind = bytes ? TokenModel::Kind::Bpe : TokenModel::Kind::WordPiece;
  parts.model = learn_tokens(words, kind, options.tokens, options.least, alphabet, first);
  if (!bytes) {
    parts.model.merges.clear();  // WordPiece takes the longest match and has no merges
    parts.model.unknown = parts.model.numbers.at("[UNK]");
    parts.before = {parts.model.numbers.at("[CLS]")};
    parts.behind = {parts.model.numbers.at("[SEP]")};
  }
  for (const std::string& token : first)
    parts.added.push_back({token, parts.model.numbers.at(token)});
  return Tokenizer(std::make_shared<const Impl>(std::move(parts)));
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, bool special,
                                            std::int64_t* unknown) const {
  const Impl& is = *impl_;
  std::vector<std::int64_t> out;
  if (special) out = is.parts.before;
  TokenStream stream(is.parts, is.words, is.raw, is.normalized, out);
  stream.push(text);
  stream.end();
  if (special) out.insert(out.end(), is.parts.behind.begin(), is.parts.behind.end());
  if (unknown != nullptr) *unknown += stream.unknown();
  return out;
}

void Tokenizer::encode_parts(std::string_view text,
                             const std::function<void(std::span<const std::int64_t>)>& use,
                             bool special, std::int64_t* unknown) const {
  const Impl& is = *impl_;
  std::vector<std::int64_t> out;
  if (special) out = is.parts.before;
  TokenStream stream(is.parts, is.words, is.raw, is.normalized, out);
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), TokenStream::kPartBytes))) {
    stream.push(text.substr(0, TokenStream::kPartBytes));
    use(out);
    out.clear();
  }
  stream.end();
  if (special) out.insert(out.end(), is.parts.behind.begin(), is.parts.behind.end());
  use(out);
  if (unknown != nullptr) *unknown += stream.unknown();
}

void Tokenizer::encode_file(const std::string& path,
                            const std::function<void(std::span<const std::int64_t>)>& use,
                            bool special) const {
  const Impl& is = *impl_;
  const io::InputFile file(path);
  std::vector<std::int64_t> out;
  if (special) out = is.parts.before;
  TokenStream stream(is.parts, is.words, is.raw, is.normalized, out);
  const auto give = [&] {
    if (!out.empty()) use(out);
    out.clear();
  };
  std::string part;
  for (std::uint64_t from = 0; from < file.size(); from += part.size(), give()) {
    part.resize(std::min<std::uint64_t>(TokenStream::kPartBytes, file.size() - from));
    file.read_at(from, part.data(), part.size());
    naming_file(path, [&] { stream.push(part); });
  }
  naming_file(path, [&] { stream.end(); });
  if (special) out.insert(out.end(), is.parts.behind.begin(), is.parts.behind.end());
  give();
}

std::string Tokenizer::decode(std::span<const std::int64_t> tokens, bool special) const {
  const Impl& is = *impl_;
  std::vector<std::string> pieces;
  for (const std::int64_t number : tokens) {
    if (number < 0 || number >= size())
      throw ValueError(cat("token ", number, " is outside the vocabulary of ", size()));
    const auto added = is.added.find(number);
    if (added != is.added.end() && added->second->special && !special) continue;
    const auto text = is.texts.find(number);
    pieces.emplace_back(text == is.texts.end() ? std::string_view() : text->second);
  }
  std::string out;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    std::string& piece = pieces[k];
    const std::string& prefix = is.parts.model.prefix;
    if (is.parts.decoding == TokenDecoding::WordPiece) {
      if (k > 0 && piece.starts_with(prefix))
        piece.erase(0, prefix.size());
      else if (k > 0)
        piece.insert(0, 1, ' ');
      tidy_up(piece);
    } else if (is.parts.decoding == TokenDecoding::Spaces && k > 0) {
      piece.insert(0, 1, ' ');
    }
    if (is.parts.decoding != TokenDecoding::Bytes) {
      out += piece;
      continue;
    }
    const std::u32string characters = code_points(piece);
    const bool all = std::all_of(characters.begin(), characters.end(), [](char32_t character) {
      return byte_of_character(character) >= 0;
    });
    if (!all) out += piece;  // an added token is plain text, not byte characters
    for (const char32_t character : all ? characters : std::u32string())
      out.push_back(static_cast<char>(byte_of_character(character)));
  }
  return is.parts.decoding == TokenDecoding::Bytes ? shown_bytes(out) : out;
}

std::int64_t Tokenizer::size() const { return impl_->size; }

std::string Tokenizer::token(std::int64_t number) const {
  const auto found = impl_->texts.find(number);
  return found == impl_->texts.end() ? std::string() : std::string(found->second);
}

std::int64_t Tokenizer::number(std::string_view token) const {
  if (const auto added = impl_->numbers.find(token); added != impl_->numbers.end())
    return added->second;
  const auto found = impl_->parts.model.numbers.find(token);
  return found == impl_->parts.model.numbers.end() ? -1 : found->second;
}

std::int64_t Tokenizer::unknown() const { return impl_->parts.model.unknown.value_or(-1); }

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  return Tokenizer(std::make_shared<const Impl>(parse_tokenizer_json(json, name)));
}

std::string Tokenizer::json() const { return tokenizer_json(impl_->parts); }

void Tokenizer::save(const std::string& path) const { io::write_file(path, json()); }

}  // namespace tenon::data
