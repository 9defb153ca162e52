// tenon tokenizer: trains a tokenizer on text, and shows the tokens of a text.
#include <fmt/core.h>
#include <tenon/io.h>
#include <tenon/tokenizer.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

// ---- train

struct TokenizerOptions {
  std::vector<std::string> files;
  std::string out = "tokenizer.json", kind = "bpe";
  std::int64_t tokens = 30'000, least = 2;
  bool cased = false;
};

int train(const TokenizerOptions& options) {
  if (options.tokens < 1) throw UsageError("--tokens: give 1 or more");
  data::TokenizerTraining how;
  how.kind = data::tokenizer_kind(options.kind);
  how.tokens = options.tokens;
  how.least = options.least;
  how.lower = !options.cased;
  std::string text = io::read_file(options.files.at(0));
  for (std::size_t k = 1; k < options.files.size(); ++k) text += io::read_file(options.files[k]);
  const data::Tokenizer tokenizer = data::Tokenizer::train(text, how);
  tokenizer.save(options.out);
  const std::int64_t bytes = std::ssize(text);
  text = {};
  std::int64_t pieces = 0;
  for (const std::string& file : options.files)
    tokenizer.encode_file(
        file, [&](std::span<const std::int64_t> numbers) { pieces += std::ssize(numbers); }, false);
  fmt::print("{}: {} tokens; {} of text are {} of them\n", printable(options.out),
             thousands(tokenizer.size()), bytes_text(bytes), thousands(pieces));
  return kOk;
}

Command tokenizer_train_command() {
  auto options = std::make_shared<TokenizerOptions>();
  Command command;
  command.name = "train";
  command.summary = "train a tokenizer on text";
  command.about =
      "Trains a tokenizer and writes it as tokenizer.json, which Hugging Face's tokenizers can "
      "read: byte-level byte-pair encoding as in GPT-2, which can encode any text, or WordPiece as "
      "in BERT. The same text gives the same file.";
  command.examples = {{"tenon tokenizer train book.txt --tokens 8000",
                       "Byte-pair encoding as in GPT-2, 8,000 tokens."},
                      {"tenon tokenizer train a.txt b.txt --kind wordpiece --out bert.json",
                       "WordPiece as in BERT, from two files."}};
  command.positional(options->files, "FILE", "text files, UTF-8").completes = Completes::Files;
  command.option(options->kind, "--kind", "NAME", "algorithm", "bpe").choices = {"bpe",
                                                                                 "wordpiece"};
  command.option(options->tokens, "--tokens", "N", "largest vocabulary size", "30000");
  command.option(options->least, "--least", "N",
                 "smallest number of occurrences of a pair to merge it", "2");
  command.flag(options->cased, "--cased", "wordpiece: keep upper case and accents");
  command.option(options->out, "--out", "FILE", "file to write", "tokenizer.json").completes =
      Completes::Files;
  command.run = [options] { return train(*options); };
  return command;
}

// ---- encode

struct EncodeOptions {
  std::string tokenizer, text, file;
  bool json = false;
};

// The printed form of token numbers, computed once for each distinct number.
class LongOutput {
 public:
  explicit LongOutput(std::function<std::string(std::int64_t)> text) : text_(std::move(text)) {}
  void add(std::int64_t number) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 16;
    auto known = known_.find(number);
    if (known == known_.end()) known = known_.emplace(number, text_(number)).first;
    waiting_ += known->second;
    if (waiting_.size() >= kAtOnce) flush();
  }
  void flush() {
    fmt::print("{}", waiting_);
    waiting_.clear();
  }

 private:
  std::function<std::string(std::int64_t)> text_;
  std::unordered_map<std::int64_t, std::string> known_;
  std::string waiting_;
};

int encode(const EncodeOptions& options) {
  if (options.text.empty() == options.file.empty())
    throw UsageError("tenon tokenizer encode: give either TEXT or --file FILE");
  const data::Tokenizer tokenizer = data::Tokenizer::open(options.tokenizer);
  const auto each = [&](const auto& use) {
    const auto all = [&](std::span<const std::int64_t> numbers) {
      for (const std::int64_t number : numbers) use(number);
    };
    if (options.file.empty())
      all(tokenizer.encode(options.text));
    else
      tokenizer.encode_file(options.file, all);
  };
  if (!options.json) {
    LongOutput out([&](std::int64_t number) {
      return fmt::format("{} {}\n", pad_left(std::to_string(number), 7),
                         printable(tokenizer.token(number)));
    });
    each([&](std::int64_t number) { out.add(number); });
    out.flush();
    return kOk;
  }
  std::vector<std::uint32_t> numbers;  // there are fewer than 2^22 tokens
  each([&](std::int64_t number) { numbers.push_back(static_cast<std::uint32_t>(number)); });
  const auto list = [&](const auto& text) {
    LongOutput out([&](std::int64_t number) { return text(number) + ","; });
    for (std::size_t k = 0; k + 1 < numbers.size(); ++k) out.add(numbers[k]);
    out.flush();
    if (!numbers.empty()) fmt::print("{}", text(numbers.back()));
  };
  fmt::print("{{\"numbers\":[");
  list([](std::int64_t number) { return std::to_string(number); });
  fmt::print("],\"tokens\":[");
  list([&](std::int64_t number) { return json_text(tokenizer.token(number)); });
  fmt::print("]}}\n");
  return kOk;
}

Command tokenizer_encode_command() {
  auto options = std::make_shared<EncodeOptions>();
  Command command;
  command.name = "encode";
  command.summary = "show the tokens of a text";
  command.about =
      "Prints the id and the text of each token, including the special tokens that a model expects "
      "around a text. TOKENIZER is tokenizer.json, vocab.txt (WordPiece), vocab.json with "
      "merges.txt in the same folder, or the folder of one of them.";
  command.examples = {
      {"tenon tokenizer encode tokenizer.json 'To be, or not to be'", "A sentence."},
      {"tenon tokenizer encode bert/ --file page.txt --json", "JSON for programs."}};
  command.positional(options->tokenizer, "TOKENIZER", "file or folder").completes =
      Completes::Files;
  command.positional(options->text, "TEXT", "text to encode", false);
  command.option(options->file, "--file", "FILE", "encode this file instead of TEXT").completes =
      Completes::Files;
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return encode(*options); };
  return command;
}

}  // namespace

Command tokenizer_command() {
  Command command;
  command.name = "tokenizer";
  command.summary = "train a tokenizer, show the tokens of a text";
  command.about =
      "A tokenizer converts text to the token ids that language models take. Reads Hugging Face's "
      "byte-pair encoding and WordPiece files and gives the same ids.";
  command.children = {tokenizer_train_command(), tokenizer_encode_command()};
  return command;
}

}  // namespace tenon::cli
