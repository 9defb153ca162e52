// Reads and writes tokenizer.json and the older vocabulary files. An unknown part is refused by
// name: a tokenizer that silently skipped a step would give wrong token numbers.

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/tokens/tokenizer_impl.h"
#include "io/text/json.h"

namespace tenon::data {
namespace {

using io::Json;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 22;
// Limits: every text goes through each step and gets each template token, so a small file must not
// make every text expensive.
constexpr std::size_t kMostSteps = 64, kMostAround = 4096;

class TokenizerJson {
 public:
  explicit TokenizerJson(const std::string& name) : name_(name) {}

  Json parse(std::string_view bytes) const {
    Json json = io::parse_json_or_discard(bytes);
    if (json.is_discarded() || !json.is_object()) damaged("is not a JSON object");
    return json;
  }

  // A member, or null.
  static const Json& member(const Json& json, const char* key) {
    static const Json none;
    const Json* found = json.find(key);
    return found == nullptr ? none : *found;
  }
  std::string text(const Json& json, const char* key) const {
    const Json& value = member(json, key);
    if (!value.is_string()) damaged(cat("has no string '", key, "' where one belongs"));
    return value.get<std::string>();
  }
  bool flag(const Json& json, const char* key, bool otherwise) const {
    const Json& value = member(json, key);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) damaged(cat("has '", key, "' that is neither true nor false"));
    return value.get<bool>();
  }
  std::int64_t whole(const Json& value, const char* what) const {
    if (!value.is_number_integer() || value.get<double>() < 0 ||
        value.get<double>() >= static_cast<double>(kMostTokens))
      damaged(cat("has ", what, " that is not the number of a token"));
    return value.get<std::int64_t>();
  }
  const Json& list(const Json& json, const char* key) const {
    const Json& value = member(json, key);
    if (!value.is_array()) damaged(cat("has no list '", key, "' where one belongs"));
    return value;
  }

  TokenNumbers numbers(const Json& vocabulary) const {
    if (!vocabulary.is_object()) damaged("has no vocabulary");
    TokenNumbers out;
    out.reserve(vocabulary.size());
    for (const auto& [token, number] : vocabulary.members())
      out.emplace(token, whole(number, "a vocabulary"));
    return out;
  }

  TokenMerge merge(const TokenModel& model, const std::string& left,
                   const std::string& right) const {
    const auto find = [&](const std::string& token) {
      const auto found = model.numbers.find(token);
      if (found == model.numbers.end())
        damaged(cat("merges '", left, "' and '", right, "', but '", token,
                    "' is not in the vocabulary"));
      return found->second;
    };
    return {find(left), find(right), find(left + right)};
  }
  TokenMerge merge_of_line(const TokenModel& model, const std::string& line) const {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      damaged(cat("has the merge '", line.substr(0, 80), "', which is not two tokens"));
    return merge(model, line.substr(0, space), line.substr(space + 1));
  }

  [[noreturn]] void damaged(std::string_view what) const {
    throw make_error<FormatError>(FileName{name_}, " ", what);
  }
  [[noreturn]] void unknown(std::string_view step, const std::string& type) const {
    throw make_error<NotSupported>(FileName{name_}, ": the ", step, " '", type, "' is not known");
  }

  // ---- Steps

  void normalizer(const Json& json, TokenizerParts& parts, int depth = 0) const {
    if (json.is_null()) return;
    const std::string type = text(json, "type");
    NormalStep step;
    if (type == "Sequence" && depth == 0) {
      for (const Json& each : list(json, "normalizers")) normalizer(each, parts, 1);
      return;
    }
    if (type == "BertNormalizer") {
      step.kind = NormalStep::Kind::Bert;
      step.clean = flag(json, "clean_text", true);
      step.chinese = flag(json, "handle_chinese_chars", true);
      step.lower = flag(json, "lowercase", true);
      step.accents = flag(json, "strip_accents", step.lower);
    } else if (type == "Lowercase") {
      step.kind = NormalStep::Kind::Lower;
    } else if (type == "StripAccents") {
      step.kind = NormalStep::Kind::StripAccents;
    } else {
      static constexpr std::pair<const char*, NormalForm> forms[] = {{"NFC", NormalForm::C},
                                                                     {"NFD", NormalForm::D},
                                                                     {"NFKC", NormalForm::KC},
                                                                     {"NFKD", NormalForm::KD}};
      const auto* form = std::find_if(std::begin(forms), std::end(forms),
                                      [&](const auto& each) { return type == each.first; });
      if (form == std::end(forms)) unknown("normalizer", type);
      step.kind = NormalStep::Kind::Form;
      step.form = form->second;
    }
    require_room(parts.normal, "normalizer");
    parts.normal.push_back(step);
  }

  void pre_tokenizer(const Json& json, TokenizerParts& parts, int depth = 0) const {
    if (json.is_null()) return;
    const std::string type = text(json, "type");
    SplitStep step;
    if (type == "Sequence" && depth == 0) {
      for (const Json& each : list(json, "pretokenizers")) pre_tokenizer(each, parts, 1);
      return;
    }
    if (type == "BertPreTokenizer") {
      step.kind = SplitStep::Kind::Bert;
    } else if (type == "WhitespaceSplit") {
      step.kind = SplitStep::Kind::Spaces;
    } else if (type == "ByteLevel") {
      step.kind = SplitStep::Kind::Bytes;
      step.space_before = flag(json, "add_prefix_space", true);
      step.pattern = flag(json, "use_regex", true);
    } else {
      unknown("pre-tokenizer", type);
    }
    require_room(parts.splits, "pre-tokenizer");
    parts.splits.push_back(step);
  }

  void model(const Json& json, TokenizerParts& parts) const {
    TokenModel& out = parts.model;
    out.numbers = numbers(member(json, "vocab"));
    // Files from before 2020 lack the type; merges identify BPE.
    const bool named = member(json, "type").is_string();
    const std::string type = named                               ? text(json, "type")
                             : member(json, "merges").is_array() ? "BPE"
                                                                 : "WordPiece";
    if (type == "BPE") {
      out.kind = TokenModel::Kind::Bpe;
      for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (const Json& value = member(json, key); value.is_string() && value != "")
          unknown("model's", key);
      if (flag(json, "byte_fallback", false)) unknown("model's", "byte_fallback");
      out.join_unknown = flag(json, "fuse_unk", false);
      out.whole_words = flag(json, "ignore_merges", false);
      for (const Json& each : list(json, "merges")) {
        if (each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string())
          out.merges.push_back(merge(out, each[0].get<std::string>(), each[1].get<std::string>()));
        else if (each.is_string())
          out.merges.push_back(merge_of_line(out, each.get<std::string>()));
        else
          damaged("has a merge that is not two tokens");
      }
    } else if (type == "WordPiece") {
      out.kind = TokenModel::Kind::WordPiece;
      if (member(json, "continuing_subword_prefix").is_string())
        out.prefix = text(json, "continuing_subword_prefix");
      if (const Json& longest = member(json, "max_input_chars_per_word"); !longest.is_null())
        out.longest = static_cast<std::size_t>(whole(longest, "max_input_chars_per_word"));
    } else {
      unknown("model", type);
    }
    if (const Json& value = member(json, "unk_token"); value.is_string()) {
      const auto found = out.numbers.find(value.get<std::string>());
      if (found != out.numbers.end()) out.unknown = found->second;
    }
  }

  template <class Steps>
  void require_room(const Steps& steps, const char* what) const {
    if (steps.size() >= kMostSteps)
      damaged(cat("has more than ", kMostSteps, " steps of its ", what));
  }

  void post_processor(const Json& json, TokenizerParts& parts, int depth = 0) const {
    if (json.is_null()) return;
    const std::string type = text(json, "type");
    if (type == "ByteLevel") return;  // affects offsets only
    if (type == "Sequence" && depth == 0) {
      for (const Json& each : list(json, "processors")) post_processor(each, parts, 1);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      const auto number = [&](const char* key) {
        const Json& pair = list(json, key);
        if (pair.size() != 2) damaged(cat("has '", key, "' that is not a token with its number"));
        return whole(pair[1], key);
      };
      parts.before = {number("cls")};
      parts.behind = {number("sep")};
    } else if (type == "TemplateProcessing") {
      template_processing(json, parts);
    } else {
      unknown("post-processor", type);
    }
  }

  void template_processing(const Json& json, TokenizerParts& parts) const {
    bool seen = false;
    std::unordered_map<std::string_view, const Json*> special;
    if (const Json& tokens = member(json, "special_tokens"); tokens.is_object())
      for (const auto& [key, value] : tokens.members()) special.insert_or_assign(key, &value);
    static const Json none;
    for (const Json& piece : list(json, "single")) {
      if (!member(piece, "Sequence").is_null()) {
        if (std::exchange(seen, true)) damaged("has a template that contains its text twice");
        continue;
      }
      const std::string token = text(member(piece, "SpecialToken"), "id");
      const auto known = special.find(token);
      const Json& numbers = list(known == special.end() ? none : *known->second, "ids");
      std::vector<std::int64_t>& side = seen ? parts.behind : parts.before;
      if (side.size() + numbers.size() > kMostAround)
        damaged(cat("has a template of more than ", kMostAround, " tokens on a side of its text"));
      for (const Json& number : numbers) side.push_back(whole(number, "a template"));
    }
    if (!seen) damaged("has a template that does not contain its text");
  }

  void decoder(const Json& json, TokenizerParts& parts) const {
    if (json.is_null()) return;
    const std::string type = text(json, "type");
    if (type == "ByteLevel") {
      parts.decoding = TokenDecoding::Bytes;
    } else if (type == "WordPiece") {
      parts.decoding = TokenDecoding::WordPiece;
    } else {
      unknown("decoder", type);
    }
  }

  void added_tokens(const Json& json, TokenizerParts& parts) const {
    if (json.is_null()) return;
    if (!json.is_array()) damaged("has 'added_tokens' that is not a list");
    for (const Json& each : json)
      parts.added.push_back({text(each, "content"), whole(member(each, "id"), "an added token"),
                             flag(each, "special", false), flag(each, "normalized", false),
                             flag(each, "lstrip", false), flag(each, "rstrip", false),
                             flag(each, "single_word", false)});
  }

 private:
  const std::string& name_;
};

// Lines without their ends.
template <class Use>
void each_line_of(std::string_view text, const Use& use) {
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line);
    from = end + 1;
  }
}

void add_special(TokenizerParts& parts, std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (const auto found = parts.model.numbers.find(std::string_view(text));
        found != parts.model.numbers.end())
      parts.added.push_back({text, found->second});
}

// ---- Writing

Json json_of_normal(const TokenizerParts& parts) {
  if (parts.normal.empty()) return nullptr;
  Json steps = Json::array();
  for (const NormalStep& step : parts.normal) {
    static constexpr const char* forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    if (step.kind == NormalStep::Kind::Bert)
      steps.append(Json()
                       .add("type", "BertNormalizer")
                       .add("clean_text", step.clean)
                       .add("handle_chinese_chars", step.chinese)
                       .add("strip_accents", step.accents)
                       .add("lowercase", step.lower));
    else
      steps.append(Json().add("type", step.kind == NormalStep::Kind::Form
                                          ? forms[static_cast<int>(step.form)]
                                      : step.kind == NormalStep::Kind::Lower ? "Lowercase"
                                                                             : "StripAccents"));
  }
  if (steps.size() == 1) return steps.items()[0];
  return Json().add("type", "Sequence").add("normalizers", std::move(steps));
}

Json json_of_splits(const TokenizerParts& parts) {
  if (parts.splits.empty()) return nullptr;
  Json steps = Json::array();
  for (const SplitStep& step : parts.splits)
    if (step.kind == SplitStep::Kind::Bytes)
      steps.append(Json()
                       .add("type", "ByteLevel")
                       .add("add_prefix_space", step.space_before)
                       .add("trim_offsets", true)
                       .add("use_regex", step.pattern));
    else
      steps.append(Json().add(
          "type", step.kind == SplitStep::Kind::Bert ? "BertPreTokenizer" : "WhitespaceSplit"));
  if (steps.size() == 1) return steps.items()[0];
  return Json().add("type", "Sequence").add("pretokenizers", std::move(steps));
}

// Token texts by number. A map, because numbers may have large gaps.
using TextsByNumber = std::unordered_map<std::int64_t, std::string>;

const std::string& text_of(const TextsByNumber& texts, std::int64_t number) {
  static const std::string none;
  const auto found = texts.find(number);
  return found == texts.end() ? none : found->second;
}

Json json_of_template(const TokenizerParts& parts, const TextsByNumber& texts) {
  if (parts.before.empty() && parts.behind.empty()) return nullptr;
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  std::unordered_set<std::string_view> known;  // texts already in `special`
  const auto add = [&](Json& list, const std::vector<std::int64_t>& numbers, int type) {
    for (const std::int64_t number : numbers) {
      const std::string& text = text_of(texts, number);
      list.append(Json().add("SpecialToken", Json().add("id", text).add("type_id", type)));
      if (known.insert(text).second)
        special.add(text, Json()
                              .add("id", text)
                              .add("ids", Json().append(number))
                              .add("tokens", Json().append(text)));
    }
  };
  const auto sequence = [](const char* id, int type) {
    return Json().add("Sequence", Json().add("id", id).add("type_id", type));
  };
  add(single, parts.before, 0);
  single.append(sequence("A", 0));
  add(single, parts.behind, 0);
  pair = single;
  pair.append(sequence("B", 1));
  add(pair, parts.behind, 1);
  return Json()
      .add("type", "TemplateProcessing")
      .add("single", std::move(single))
      .add("pair", std::move(pair))
      .add("special_tokens", std::move(special));
}

Json json_of_decoding(const TokenizerParts& parts) {
  switch (parts.decoding) {
    case TokenDecoding::Bytes:
      return Json()
          .add("type", "ByteLevel")
          .add("add_prefix_space", true)
          .add("trim_offsets", true)
          .add("use_regex", true);
    case TokenDecoding::WordPiece:
      return Json().add("type", "WordPiece").add("prefix", parts.model.prefix).add("cleanup", true);
    case TokenDecoding::Spaces:
      break;
  }
  return nullptr;
}

Json json_of_model(const TokenModel& model, const TextsByNumber& texts) {
  Json vocabulary = Json::object();
  std::vector<std::pair<std::int64_t, std::string>> order;
  order.reserve(model.numbers.size());
  for (const auto& [token, number] : model.numbers) order.emplace_back(number, token);
  std::sort(order.begin(), order.end());
  for (const auto& [number, token] : order) vocabulary.add(token, number);
  Json unknown = model.unknown ? Json(text_of(texts, *model.unknown)) : Json(nullptr);
  if (model.kind == TokenModel::Kind::WordPiece)
    return Json()
        .add("type", "WordPiece")
        .add("unk_token", std::move(unknown))
        .add("continuing_subword_prefix", model.prefix)
        .add("max_input_chars_per_word", model.longest)
        .add("vocab", std::move(vocabulary));
  Json merges = Json::array();
  for (const TokenMerge& merge : model.merges)
    merges.append(Json().append(text_of(texts, merge.left)).append(text_of(texts, merge.right)));
  return Json()
      .add("type", "BPE")
      .add("dropout", nullptr)
      .add("unk_token", std::move(unknown))
      .add("continuing_subword_prefix", nullptr)
      .add("end_of_word_suffix", nullptr)
      .add("fuse_unk", model.join_unknown)
      .add("byte_fallback", false)
      .add("ignore_merges", model.whole_words)
      .add("vocab", std::move(vocabulary))
      .add("merges", std::move(merges));
}

}  // namespace

std::int64_t largest_number(const TokenizerParts& parts) {
  std::int64_t most = -1;
  for (const auto& entry : parts.model.numbers) most = std::max(most, entry.second);
  for (const AddedToken& token : parts.added) most = std::max(most, token.number);
  return most;
}

TokenizerParts parse_tokenizer_json(std::string_view bytes, const std::string& name) {
  const TokenizerJson reader(name);
  const Json json = reader.parse(bytes);
  if (!TokenizerJson::member(json, "model").is_object())
    reader.damaged("has no 'model': it is not a tokenizer.json");
  TokenizerParts parts;
  reader.model(json["model"], parts);
  reader.normalizer(TokenizerJson::member(json, "normalizer"), parts);
  reader.pre_tokenizer(TokenizerJson::member(json, "pre_tokenizer"), parts);
  reader.post_processor(TokenizerJson::member(json, "post_processor"), parts);
  reader.decoder(TokenizerJson::member(json, "decoder"), parts);
  reader.added_tokens(TokenizerJson::member(json, "added_tokens"), parts);
  const std::int64_t most = largest_number(parts);
  for (const auto* around : {&parts.before, &parts.behind})
    for (const std::int64_t number : *around)
      if (number > most)
        reader.damaged(cat("puts token ", number, " around a text, of ", most + 1));
  return parts;
}

std::string tokenizer_json(const TokenizerParts& parts) {
  TextsByNumber texts;
  for (const auto& [token, number] : parts.model.numbers) texts.insert_or_assign(number, token);
  Json added = Json::array();
  for (const AddedToken& token : parts.added) {
    texts.insert_or_assign(token.number, token.text);
    added.append(Json()
                     .add("id", token.number)
                     .add("content", token.text)
                     .add("single_word", token.alone)
                     .add("lstrip", token.takes_left)
                     .add("rstrip", token.takes_right)
                     .add("normalized", token.normalized)
                     .add("special", token.special));
  }
  const Json out = Json()
                       .add("version", "1.0")
                       .add("truncation", nullptr)
                       .add("padding", nullptr)
                       .add("added_tokens", std::move(added))
                       .add("normalizer", json_of_normal(parts))
                       .add("pre_tokenizer", json_of_splits(parts))
                       .add("post_processor", json_of_template(parts, texts))
                       .add("decoder", json_of_decoding(parts))
                       .add("model", json_of_model(parts.model, texts));
  return io::json_text(out, 1) + "\n";
}

TokenizerParts parts_as_bert(bool lower) {
  TokenizerParts parts;
  NormalStep step;
  step.kind = NormalStep::Kind::Bert;
  step.lower = step.accents = lower;
  parts.normal.push_back(step);
  parts.splits.push_back({SplitStep::Kind::Bert});
  parts.decoding = TokenDecoding::WordPiece;
  return parts;
}

TokenizerParts parts_as_gpt2() {
  TokenizerParts parts;
  parts.splits.push_back({SplitStep::Kind::Bytes});
  parts.decoding = TokenDecoding::Bytes;
  return parts;
}

TokenizerParts parse_vocab_txt(std::string_view bytes, const std::string& name, bool lower) {
  TokenizerParts parts = parts_as_bert(lower);
  parts.model.kind = TokenModel::Kind::WordPiece;
  std::int64_t number = 0;
  code_points(bytes);  // throws if the text is not UTF-8
  each_line_of(bytes, [&](std::string_view line) {
    while (line.ends_with(' ') || line.ends_with('\t')) line.remove_suffix(1);
    parts.model.numbers.insert_or_assign(std::string(line), number++);
  });
  const TokenizerJson reader(name);
  const auto needed = [&](const char* token) {
    const auto found = parts.model.numbers.find(std::string_view(token));
    if (found == parts.model.numbers.end())
      reader.damaged(cat("has no line '", token, "': it is not a vocabulary of WordPiece"));
    return found->second;
  };
  parts.model.unknown = needed("[UNK]");
  parts.before = {needed("[CLS]")};
  parts.behind = {needed("[SEP]")};
  add_special(parts, {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"});
  return parts;
}

TokenizerParts parse_vocab_json(std::string_view vocabulary, std::string_view merges,
                                const std::string& name) {
  const TokenizerJson reader(name);
  TokenizerParts parts = parts_as_gpt2();
  parts.model.numbers = reader.numbers(reader.parse(vocabulary));
  bool first = true;
  each_line_of(merges, [&](std::string_view line) {
    const bool version = std::exchange(first, false) && line.starts_with("#version");
    if (!version && !line.empty())
      parts.model.merges.push_back(reader.merge_of_line(parts.model, std::string(line)));
  });
  add_special(parts, {"<|endoftext|>"});
  return parts;
}

bool config_lowers(std::string_view config, bool otherwise) {
  const Json json = io::parse_json_or_discard(config);
  const Json& value = TokenizerJson::member(json, "do_lower_case");
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace tenon::data
