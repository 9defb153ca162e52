// Fuzzes the tokenizer readers and encoding. The first byte chooses: the bytes are tokenizer.json,
// vocab.txt, merges.txt, or a text.
#include "data/tokens/added_tokens.h"
#include "data/tokens/token_stream.h"
#include "data/tokens/tokenizer_impl.h"
#include "fuzz/fuzz.h"

#include <cstdlib>
#include <vector>

namespace {

using namespace tenon::data;

// Encoding in one call and part by part must give the same token numbers.
void take_apart(const TokenizerParts& parts, std::string_view text) {
  const WordEncoder encoder(parts.model);
  const AddedFinder raw(parts, false), normalized(parts, true);
  std::vector<std::int64_t> whole, cut;
  TokenStream at_once(parts, encoder, raw, normalized, whole);
  at_once.push(text);
  at_once.end();
  TokenStream by_bytes(parts, encoder, raw, normalized, cut);
  for (std::size_t k = 0; k < text.size(); ++k) by_bytes.push(text.substr(k, 1));
  by_bytes.end();
  if (whole != cut || at_once.unknown() != by_bytes.unknown()) std::abort();
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
