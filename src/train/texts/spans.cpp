// Answer spans from scores, and SQuAD's metrics.
#include "train/texts/spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "data/tokens/unicode.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kWindowsAtOnce = 16;  // windows of a batch
constexpr std::int64_t kMostTokens = 30;     // most tokens of an answer
constexpr double kLowest = -std::numeric_limits<double>::infinity();

// softmax(scores) at one position.
double share(std::span<const float> scores, std::int64_t place) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double all = 0;
  for (const float score : scores) all += std::exp(score - highest);
  return std::exp(scores[at(place)] - highest) / all;
}

struct Found {
  double score = kLowest, none = std::numeric_limits<double>::infinity();
  Answer answer;
};

// Updates the best answer with the scores of a window, whose text begins at position `behind` of
// the row.
void take_window(Found& found, const data::SpanText& text, const data::SpanWindow& window,
                 std::int64_t behind, std::span<const float> starts, std::span<const float> ends) {
  found.none = std::min(found.none, static_cast<double>(starts[0]) + ends[0]);
  for (std::int64_t i = 0; i < window.count; ++i)
    for (std::int64_t j = i; j < std::min(window.count, i + kMostTokens); ++j) {
      const double score = static_cast<double>(starts[at(behind + i)]) + ends[at(behind + j)];
      if (score <= found.score) continue;
      found.score = score;
      const std::size_t from = text.bytes[at(window.first + i)].first,
                        to = text.bytes[at(window.first + j)].second;
      found.answer = {text.text.substr(from, to - from), static_cast<std::int64_t>(from),
                      share(starts, behind + i) * share(ends, behind + j)};
    }
}

// The words in lower case, without ASCII punctuation and articles.
std::vector<std::string> plain_words(const std::string& text) {
  std::u32string lower;
  for (const char32_t c : data::code_points(text))
    if (!(c < 0x80 && data::is_punctuation(c))) data::append_lower(lower, c);
  std::vector<std::string> out;
  std::u32string word;
  const auto end = [&] {
    const std::string done = data::utf8(word);
    word.clear();
    if (!done.empty() && done != "a" && done != "an" && done != "the") out.push_back(done);
  };
  for (const char32_t c : lower)
    if (data::is_white_space(c))
      end();
    else
      word.push_back(c);
  end();
  return out;
}

}  // namespace

CompiledFunction compiled_answer_scores(const nn::AnyModule& net) {
  return compile([net](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{cast(net(in[0]), DType::Float32)};
  });
}

std::vector<Answer> answers_of(const CompiledFunction& scores_of, const data::SpanDataset& set,
                               bool may_lack) {
  std::vector<Found> found(set.questions().size());
  const std::int64_t places = set.input_shape()[1];
  std::vector<std::int64_t> numbers, rows, targets;
  for (std::int64_t from = 0; from < set.size(); from += kWindowsAtOnce) {
    const std::int64_t count = std::min(kWindowsAtOnce, set.size() - from);
    numbers.clear();
    for (std::int64_t k = 0; k < count; ++k) numbers.push_back(from + k);
    rows.resize(at(count * 2 * places));
    targets.resize(at(count * 2));
    set.get(numbers, rows.data(), targets.data());
    const Tensor out = scores_of({Tensor::from(rows, {count, 2, places})})[0];
    if (out.shape() != Shape{count, 2, places})
      throw make_error<ShapeError>("the network gives ", out.shape(), ", must be [N, 2, places]");
    const std::vector<float> scores = out.to_vector<float>();
    for (std::int64_t k = 0; k < count; ++k) {
      const data::SpanWindow& window = set.windows()[at(from + k)];
      const std::span<const float> row(scores.data() + k * 2 * places, at(2 * places));
      take_window(found[at(window.question)], *set.questions()[at(window.question)].text, window,
                  set.text_start(window), row.first(at(places)), row.last(at(places)));
    }
  }
  std::vector<Answer> out;
  out.reserve(found.size());
  for (Found& f : found)
    out.push_back(may_lack && f.none > f.score ? Answer{} : std::move(f.answer));
  return out;
}

SpanMeasure measure_answer(const std::string& given, const std::vector<std::string>& right) {
  const std::vector<std::string> words = plain_words(given);
  SpanMeasure best;
  for (const std::string& answer : right.empty() ? std::vector<std::string>{""} : right) {
    const std::vector<std::string> wanted = plain_words(answer);
    std::map<std::string, int> left;
    for (const std::string& word : wanted) ++left[word];
    double same = 0;
    for (const std::string& word : words) same += left[word]-- > 0 ? 1 : 0;
    const bool none = words.empty() || wanted.empty();
    const double f1 = none ? static_cast<double>(words == wanted)
                           : 2 * same / static_cast<double>(words.size() + wanted.size());
    best.exact = std::max(best.exact, static_cast<double>(words == wanted));
    best.f1 = std::max(best.f1, f1);
  }
  return best;
}

bool lacks_answers(const data::SpanDataset& set) {
  return std::any_of(set.questions().begin(), set.questions().end(),
                     [](const data::SpanQuestion& q) { return q.answers.empty(); });
}

SpanMeasure measure_spans(const nn::AnyModule& net, const data::SpanDataset& set) {
  const auto& asked = set.questions();
  nn::AnyModule evaluated = net;
  evaluated.eval();
  const std::vector<Answer> given =
      answers_of(compiled_answer_scores(evaluated), set, lacks_answers(set));
  SpanMeasure sum;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const SpanMeasure one = measure_answer(given[k].text, asked[k].answers);
    sum.exact += one.exact;
    sum.f1 += one.f1;
  }
  const auto count = static_cast<double>(asked.size());
  return {sum.exact / count, sum.f1 / count};
}

}  // namespace tenon::train
