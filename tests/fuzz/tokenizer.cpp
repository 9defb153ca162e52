// Fuzzes the readers of tokenizers and what they make of text: the first byte chooses between the
// bytes as tokenizer.json, as vocab.txt, as merges.txt, and as a text.
#include "data/tokenizer_impl.h"
#include "fuzz/fuzz.h"

#include <vector>

namespace {

using namespace tenon::data;

void take_apart(const TokenizerParts& parts, std::string_view text) {
  const WordEncoder encoder(parts.model);
  std::vector<std::int64_t> out;
  for (const std::string& word :
       split_into_words(made_uniform(code_points(text), parts.normal), parts.splits))
    encoder.append(word, out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    constexpr std::string_view vocabulary = R"({"a":0,"b":1,"ab":2,"\u0120":3,"\u0120a":4})";
    const std::string text = "a b\xc3\xa9 [CLS] ab's 12 \xe6\xbc\xa2";
    switch (data[0] % 4) {
      case 0: {
        const TokenizerParts parts = parse_tokenizer_json(bytes, "input");
        take_apart(parts, text);
        tokenizer_json(parts);
        return;
      }
      case 1:
        return take_apart(parse_vocab_txt(bytes, "input", true), text);
      case 2:
        return take_apart(parse_vocab_json(vocabulary, bytes, "input"), text);
      default:
        take_apart(parse_vocab_txt("[UNK]\n[CLS]\n[SEP]\na\n##b\n", "input", true), bytes);
        take_apart(parse_vocab_json(vocabulary, "a b\n\xc4\xa0 a\n", "input"), bytes);
    }
  });
}
