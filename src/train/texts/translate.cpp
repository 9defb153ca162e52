// Beam search. All beams of all texts are rows of one compiled step, which returns the most likely
// next tokens. The host selects the best beams of each text, and the next step first reorders the
// state accordingly.
#include "train/texts/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/system/option_ranges.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kLonger = 50;  // tokens of a translation beyond its source's
constexpr double kNone = -std::numeric_limits<double>::infinity();

struct BeamRow {
  double score = kNone;
  Tokens tokens;
};

// The beam of one text: unfinished translations, best first, and the best finished one.
class Beam {
 public:
  Beam(std::int64_t width, double penalty, std::int64_t limit)
      : rows_(at(width)), penalty_(penalty), limit_(limit) {
    rows_[0].score = 0;
  }

  bool is_done() const { return done_; }
  std::int64_t token(std::int64_t row) const {
    return rows_[at(row)].tokens.empty() ? data::kBegin : rows_[at(row)].tokens.back();
  }
  const Tokens& best() const { return ended_.score > kNone ? ended_.tokens : rows_[0].tokens; }

  /// Takes `each` candidates for each row. `from[k]` becomes the row that the new row k continues.
  void take(const float* scores, const std::int64_t* tokens, std::int64_t each,
            std::int64_t* from) {
    if (done_) return;
    struct Candidate {
      double score;
      std::int64_t row, token;
    };
    std::vector<Candidate> candidates;
    for (std::int64_t row = 0; row < std::ssize(rows_); ++row)
      for (std::int64_t k = row * each; k < (row + 1) * each; ++k)
        if (rows_[at(row)].score > kNone && tokens[k] != data::kPad && tokens[k] != data::kBegin)
          candidates.push_back(
              {rows_[at(row)].score + static_cast<double>(scores[k]), row, tokens[k]});
    sort_stably(candidates,
                [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    std::vector<BeamRow> next;
    for (const Candidate& c : candidates) {
      if (next.size() == rows_.size()) break;
      const BeamRow& row = rows_[at(c.row)];
      if (c.token == data::kEnd) {
        const double score = c.score / penalty(std::ssize(row.tokens) + 1);
        if (score > ended_.score) ended_ = {score, row.tokens};
        continue;
      }
      from[next.size()] = c.row;
      next.push_back({c.score, row.tokens});
      next.back().tokens.push_back(c.token);
    }
    next.resize(rows_.size());
    rows_ = std::move(next);
    // Done if no unfinished row can win. The score of a row only falls, and it is divided at most
    // by the penalty of the longest translation.
    done_ =
        rows_[0].score / penalty(limit_) <= ended_.score || std::ssize(rows_[0].tokens) >= limit_;
  }

 private:
  double penalty(std::int64_t length) const {
    return std::pow((5 + static_cast<double>(length)) / 6, penalty_);
  }
  std::vector<BeamRow> rows_;
  BeamRow ended_;
  double penalty_;
  std::int64_t limit_;
  bool done_ = false;
};

constexpr OptionRange<TranslateOptions> kTranslateRanges[] = {
    {"beam", &TranslateOptions::beam, from_to(1, 1024)},
    {"length_penalty", &TranslateOptions::length_penalty, from_to(0, 10)},
    {"batch", &TranslateOptions::batch, at_least(1)},
};

std::vector<Tensor> operator+(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Search {
 public:
  Search(const models::Translator& net, std::int64_t texts, std::int64_t length,
         const TranslateOptions& o)
      : net_(net), options_(o), texts_(texts), length_(length), limit_(length + kLonger) {
    const std::int64_t beam = o.beam;
    encode_ = compile([&net, texts, beam](const std::vector<Tensor>& in) {
      std::vector<Tensor> out = net.encode(in[0]);
      const Tensor rows =
          reshape(broadcast_to(unsqueeze(arange(0, texts), 1), {texts, beam}), {texts * beam});
      for (Tensor& t : out) t = index_select(t, 0, rows);
      return out;
    });
    initial_ = net.initial_state(texts * beam, limit_);
    for (Tensor& t : initial_) t = t.compute();
  }

  std::vector<Tokens> operator()(const std::vector<Tokens>& sources) {
    const std::int64_t rows = texts_ * options_.beam;
    const std::vector<Tensor> encoded = encode_({padded(sources)});
    if (!step_) compile_step(encoded.size());
    std::vector<Tensor> state = initial_;
    std::vector<Beam> beams(at(texts_), Beam(options_.beam, options_.length_penalty, limit_));
    std::vector<std::int64_t> tokens(at(rows)), from(at(rows));
    for (std::int64_t row = 0; row < rows; ++row) from[at(row)] = row;
    for (std::int64_t place = 0; place < limit_; ++place) {
      if (std::all_of(beams.begin(), beams.end(), [](const Beam& b) { return b.is_done(); })) break;
      for (std::int64_t row = 0; row < rows; ++row)
        tokens[at(row)] = beams[at(row / options_.beam)].token(row % options_.beam);
      const std::vector<Tensor>& out =
          (*step_)(std::vector<Tensor>{Tensor::from(tokens, {rows}), Tensor::from(from, {rows}),
                                       Tensor::from(std::vector<std::int64_t>{place}, {})} +
                   encoded + state);
      const std::vector<float> scores = out[0].to_vector<float>();
      const std::vector<std::int64_t> next = out[1].to_vector<std::int64_t>();
      state.assign(out.begin() + 2, out.end());
      take(beams, scores, next, from);
    }
    std::vector<Tokens> best;
    for (std::size_t k = 0; k < sources.size(); ++k) best.push_back(beams[k].best());
    return best;
  }

 private:
  Tensor padded(const std::vector<Tokens>& sources) const {
    std::vector<std::int64_t> rows(at(texts_ * length_), data::kPad);
    for (std::int64_t text = 0; text < texts_; ++text) {
      const auto row = rows.begin() + text * length_;
      if (text < std::ssize(sources))
        *std::copy(sources[at(text)].begin(), sources[at(text)].end(), row) = data::kEnd;
      else
        *row = data::kEnd;  // fills a batch that is not full
    }
    return Tensor::from(rows, {texts_, length_});
  }

  void compile_step(std::size_t encoded) {
    // two may be special tokens, and `beam` may end a translation
    const auto candidates = 2 * options_.beam + 2;
    step_ = compile([this, encoded, candidates](const std::vector<Tensor>& in) {
      const auto split = in.begin() + 3 + static_cast<std::ptrdiff_t>(encoded);
      std::vector<Tensor> state(split, in.end());
      for (Tensor& t : state) t = index_select(t, 0, in[1]);
      const models::Decoder::Next next =
          net_.decode(in[0], in[2], std::vector<Tensor>(in.begin() + 3, split), state);
      const Tensor scores = log_softmax(cast(next.scores, DType::Float32));
      const ValuesAndIndices best = topk(scores, std::min(candidates, scores.size(1)));
      return std::vector<Tensor>{best.values, best.indices} + next.state;
    });
  }

  void take(std::vector<Beam>& beams, const std::vector<float>& scores, const Tokens& next,
            std::vector<std::int64_t>& from) const {
    const std::int64_t beam = options_.beam, each = std::ssize(next) / (texts_ * beam);
    for (std::int64_t text = 0; text < texts_; ++text) {
      std::vector<std::int64_t> rows(at(beam), 0);
      const std::int64_t first = text * beam * each;
      beams[at(text)].take(scores.data() + first, next.data() + first, each, rows.data());
      for (std::int64_t k = 0; k < beam; ++k) from[at(text * beam + k)] = text * beam + rows[at(k)];
    }
  }

  const models::Translator& net_;
  TranslateOptions options_;
  std::int64_t texts_, length_, limit_;
  CompiledFunction encode_;
  std::optional<CompiledFunction> step_;
  std::vector<Tensor> initial_;
};

}  // namespace

std::vector<Tokens> translate(const models::Translator& net, const std::vector<Tokens>& sources,
                              const TranslateOptions& options) {
  check_options("translate", options, kTranslateRanges);
  std::int64_t length = 1;
  for (const Tokens& source : sources) length = std::max(length, std::ssize(source) + 1);
  const std::int64_t texts = std::min(options.batch, std::ssize(sources));
  std::vector<Tokens> out;
  if (texts == 0) return out;
  Search search(net, texts, length, options);
  for (auto from = sources.begin(); from != sources.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(texts, sources.end() - from);
    for (Tokens& tokens : search({from, to})) out.push_back(std::move(tokens));
    from = to;
  }
  return out;
}

double exact_share(const models::Translator& net, const data::Dataset& set) {
  const std::int64_t length = set.target_shape()[0], count = set.size();
  std::vector<Tokens> sources, targets;
  Tokens input(at(2 * length)), target(at(length));
  const auto until_end = [](const Tokens& row) {
    return Tokens(row.begin(), std::find(row.begin(), row.end(), data::kEnd));
  };
  for (std::int64_t i = 0; i < count; ++i) {
    set.get({&i, 1}, input.data(), target.data());
    sources.push_back(until_end(input));
    targets.push_back(until_end(target));
  }
  const std::vector<Tokens> made = translate(net, sources, {});
  std::int64_t exact = 0;
  for (std::size_t k = 0; k < made.size(); ++k) exact += made[k] == targets[k];
  return static_cast<double>(exact) / static_cast<double>(std::max<std::int64_t>(count, 1));
}

std::vector<std::string> TrainedModel::translate(const std::vector<std::string>& texts,
                                                 const TranslateOptions& options) const {
  const auto* net = net_.as<models::Translator>();
  if (net == nullptr || text_unit_.empty())
    throw make_error<ValueError>(
        FileName{file_}, ": model '", settings().model,
        net == nullptr ? "' does not translate" : "' does not say which tokens it knows");
  const ContextScope scope(context_);
  std::vector<Tokens> sources;
  sources.reserve(texts.size());
  for (const std::string& text : texts) sources.push_back(vocabulary_->encode(text));
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (Tokens& tokens : train::translate(*net, sources, options)) {
    // Remove outputs that no token of the training data has.
    std::erase_if(tokens, [&](std::int64_t token) { return token >= vocabulary_->size(); });
    out.push_back(vocabulary_->decode(tokens));
  }
  return out;
}

}  // namespace tenon::train
