// Text generation, one token at a time: a compiled step with the state of the previous tokens,
// scores read back, and sampling on the host.
#include "train/texts/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/philox.h"
#include "base/str.h"
#include "base/system/option_ranges.h"

namespace tenon::train {
namespace {

constexpr OptionRange<GenerateOptions> kGenerateRanges[] = {
    {"tokens", &GenerateOptions::tokens, at_least(0)},
    {"temperature", &GenerateOptions::temperature, finite_from(0)},
    {"top_k", &GenerateOptions::top_k, at_least(0)},
    {"top_p", &GenerateOptions::top_p, above_to(0, 1)},
};

// The tokens that may be drawn, likeliest first, with their probabilities: the `top_k` likeliest,
// and of those the fewest that together reach `top_p` (Holtzman et al., "The curious case of neural
// text degeneration", 2020).
class Candidates {
 public:
  Candidates(const std::vector<float>& scores, const GenerateOptions& o) : order_(scores.size()) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    const std::size_t most = o.temperature == 0 ? 1
                             : o.top_k > 0      ? std::min(at(o.top_k), order_.size())
                                                : order_.size();
    const auto likelier = [&](std::int64_t a, std::int64_t b) {
      const float x = scores[at(a)], y = scores[at(b)];
      return x != y ? x > y : a < b;
    };
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(most),
                      order_.end(), likelier);
    order_.resize(most);
    const double scale = o.temperature == 0 ? 1 : 1 / o.temperature;
    const double highest = scores[at(order_[0])];
    for (const std::int64_t token : order_)
      shares_.push_back(std::exp((scores[at(token)] - highest) * scale));
    const double all = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < shares_.size() && (kept == 0 || sum < o.top_p * all)) sum += shares_[kept++];
    order_.resize(kept);
    shares_.resize(kept);
  }

  std::int64_t draw(double uniform) const {
    double left = uniform * std::accumulate(shares_.begin(), shares_.end(), 0.0);
    for (std::size_t k = 0; k + 1 < shares_.size(); ++k) {
      left -= shares_[k];
      if (left < 0) return order_[k];
    }
    return order_.back();
  }

 private:
  std::vector<std::int64_t> order_;
  std::vector<double> shares_;
};

// Feeds tokens to the network one at a time. When the context is full, continues with the newer
// half of its tokens.
class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(const models::Decoder& net)
      : net_(net), step_(compile([&net](const std::vector<Tensor>& in) {
          models::Decoder::Next next =
              net.decode(in[0], in[1], std::vector<Tensor>(in.begin() + 2, in.end()));
          std::vector<Tensor> out{cast(next.scores, DType::Float32)};
          out.insert(out.end(), next.state.begin(), next.state.end());
          return out;
        })) {
    restart();
  }

  void take(std::int64_t token) {
    if (net_.context() > 0 && place_ == net_.context()) {
      const std::vector<std::int64_t> kept(seen_.begin() + (net_.context() + 1) / 2, seen_.end());
      restart();
      for (const std::int64_t old : kept) take(old);
    }
    std::vector<Tensor> inputs{Tensor::from(std::vector<std::int64_t>{token}, {1}),
                               Tensor::from(std::vector<std::int64_t>{place_}, {})};
    inputs.insert(inputs.end(), state_.begin(), state_.end());
    const std::vector<Tensor>& out = step_(inputs);
    scores_ = out[0];
    state_.assign(out.begin() + 1, out.end());
    seen_.push_back(token);
    ++place_;
  }
  std::vector<float> scores() const { return scores_.to_vector<float>(); }

 private:
  void restart() {
    place_ = 0;
    seen_.clear();
    state_ = net_.initial_state(1);
    for (Tensor& part : state_) part = part.compute();
  }

  const models::Decoder& net_;
  CompiledFunction step_;
  std::vector<Tensor> state_;
  std::vector<std::int64_t> seen_;
  Tensor scores_;
  std::int64_t place_ = 0;
};

// Converts between text and a model's tokens, by the vocabulary of the training data or a
// tokenizer.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  virtual std::vector<std::int64_t> begin(const std::string& prompt) = 0;
  virtual std::string piece(std::int64_t token) = 0;  // "" while a character is incomplete
};

class VocabularyCodec : public TextCodec {
 public:
  explicit VocabularyCodec(data::Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  // Without a prompt the text starts after a newline; if there is no newline token, after token 0.
  std::vector<std::int64_t> begin(const std::string& prompt) override {
    text_ = prompt;
    std::vector<std::int64_t> tokens = vocabulary_.encode(prompt);
    if (!tokens.empty()) return tokens;
    const auto& all = vocabulary_.tokens();
    const auto line = std::find(all.begin(), all.end(), "\n");
    return {line == all.end() ? 0 : line - all.begin()};
  }
  std::string piece(std::int64_t token) override {
    // the network has more outputs than the text has tokens
    if (token >= vocabulary_.size()) return "";
    std::string out = vocabulary_.piece(token, text_);
    text_ += out;
    return out;
  }

 private:
  data::Vocabulary vocabulary_;
  std::string text_;
};

class TokenizerCodec : public TextCodec {
 public:
  explicit TokenizerCodec(const data::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::vector<std::int64_t> begin(const std::string& prompt) override {
    std::vector<std::int64_t> tokens = tokenizer_.encode(prompt, false);
    if (!tokens.empty()) return tokens;
    return {std::max<std::int64_t>(0, tokenizer_.number("<|endoftext|>"))};
  }
  std::string piece(std::int64_t token) override {
    constexpr std::size_t longest_sign = 4;  // bytes of the longest UTF-8 character
    if (token >= tokenizer_.size()) return "";
    open_.push_back(token);
    std::string out = tokenizer_.decode(open_);
    if (out.ends_with("\xef\xbf\xbd") && open_.size() < longest_sign) return "";
    open_.clear();
    return out;
  }

 private:
  const data::Tokenizer& tokenizer_;
  std::vector<std::int64_t> open_;  // tokens whose bytes are not a whole character yet
};

}  // namespace

void check_tokenizer(const data::Tokenizer* tokenizer, const Settings& settings) {
  if (tokenizer != nullptr && tokenizer->size() > settings.classes)
    throw ValueError(cat("the tokenizer has ", tokenizer->size(), " tokens, and model '",
                         settings.model, "' ", settings.classes,
                         ": the tokenizer belongs to another network"));
}

std::string TrainedModel::generate(const std::string& prompt,
                                   const GenerateOptions& options) const {
  check_options("generate", options, kGenerateRanges);
  const auto* net = net_.as<models::Decoder>();
  const data::Tokenizer* tokenizer = options.tokenizer ? options.tokenizer.get() : tokenizer_.get();
  if (net == nullptr || (text_unit_.empty() && tokenizer == nullptr))
    throw make_error<ValueError>(FileName{file_}, ": model '", settings().model,
                                 net == nullptr
                                     ? "' is not a language model: it cannot generate text"
                                     : "' has no vocabulary: give a tokenizer");
  check_tokenizer(tokenizer, settings());
  const ContextScope scope(context_);
  std::unique_ptr<TextCodec> codec;
  if (tokenizer != nullptr)
    codec = std::make_unique<TokenizerCodec>(*tokenizer);
  else
    codec = std::make_unique<VocabularyCodec>(*vocabulary_);
  IncrementalDecoder decoder(*net);
  for (const std::int64_t token : codec->begin(prompt)) decoder.take(token);
  std::string added;
  for (std::int64_t k = 0; k < options.tokens; ++k) {
    const Philox4 words = philox(options.seed, static_cast<std::uint64_t>(k), 0);
    const std::int64_t token =
        Candidates(decoder.scores(), options).draw(static_cast<double>(uniform01(words.v[0])));
    const std::string piece = codec->piece(token);
    added += piece;
    if (options.on_text && !options.on_text(piece)) break;
    if (k + 1 < options.tokens) decoder.take(token);
  }
  return added;
}

}  // namespace tenon::train
