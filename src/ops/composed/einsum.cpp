// einsum() and its relatives: each pair of operands becomes one batched matrix product.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include <tenon/error.h>
#include <tenon/rearrange.h>

#include "base/contains.h"
#include "base/make_error.h"
#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// A name of an axis: a letter, or a number of the axes that "..." stands for, counted from the
// last.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

constexpr Label kEllipsis = 256;  // and above: the axes of "..."

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw make_error<ValueError>(where("einsum"), ": '", std::string(equation), "' ", why);
}

bool has_ellipsis(std::string_view term) { return term.find("...") != std::string_view::npos; }

constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The labels of one term; `ellipsis` is the number of axes that "..." stands for.
Labels labels_of(std::string_view equation, std::string_view term, int ellipsis) {
  Labels out;
  for (std::size_t k = 0; k < term.size(); ++k) {
    if (term.substr(k).starts_with("...")) {
      if (has_ellipsis(term.substr(k + 3))) refuse(equation, "has '...' twice in a term");
      for (int a = ellipsis; a-- > 0;) out.push_back(kEllipsis + a);
      k += 2;
    } else if (is_letter(term[k])) {
      out.push_back(static_cast<unsigned char>(term[k]));
    } else {
      refuse(equation, cat("has '", term.substr(k, 1), "': axes are letters or '...'"));
    }
  }
  return out;
}

Equation parsed(std::string_view equation, TensorList operands) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  const std::size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  std::vector<std::string_view> terms;
  for (std::size_t comma = left.find(',');; comma = left.find(',')) {
    terms.push_back(left.substr(0, comma));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != operands.size())
    refuse(equation, cat("has ", terms.size(), " operands, and ", operands.size(), " are given"));
  Equation out;
  int most = 0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const int letters = static_cast<int>(labels_of(equation, terms[k], 0).size());
    const int rest = operands[k].rank() - letters;
    if (rest < 0 || (rest > 0 && !has_ellipsis(terms[k])))
      throw make_error<ShapeError>(where("einsum"), ": operand ", k, " is ", operands[k].shape(),
                                   ", and '", std::string(terms[k]), "' names ", letters, " axes");
    if (has_ellipsis(terms[k])) most = std::max(most, rest);
    out.operands.push_back(labels_of(equation, terms[k], rest));
  }
  if (arrow != std::string::npos) {
    out.result = labels_of(equation, std::string_view(text).substr(arrow + 2), most);
  } else {
    std::map<Label, int> uses;
    for (const Labels& labels : out.operands)
      for (const Label l : labels) ++uses[l];
    for (int a = most; a-- > 0;) out.result.push_back(kEllipsis + a);
    for (const auto& [label, count] : uses)
      if (label < kEllipsis && count == 1) out.result.push_back(label);
  }
  for (std::size_t k = 0; k < out.result.size(); ++k) {
    const Label l = out.result[k];
    if (std::count(out.result.begin(), out.result.end(), l) > 1)
      refuse(equation, "names an axis of the result twice");
    const auto names = [&](const Labels& labels) { return contains(labels, l); };
    if (l < kEllipsis && std::none_of(out.operands.begin(), out.operands.end(), names))
      refuse(equation,
             cat("has the axis '", std::string(1, static_cast<char>(l)), "' in the result only"));
  }
  return out;
}

struct Term {
  Tensor x;
  Labels labels;
};

Tensor ordered(const Term& term, const Labels& order) {
  Ints axes;
  for (const Label l : order)
    axes.push_back(std::find(term.labels.begin(), term.labels.end(), l) - term.labels.begin());
  return permute(term.x, axes);
}

// Takes diagonals of axes with the same label.
Term without_repeats(Term term) {
  for (std::size_t k = 0; k < term.labels.size(); ++k) {
    const auto again = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                 term.labels.end(), term.labels[k]);
    if (again == term.labels.end()) continue;
    const auto other = again - term.labels.begin();
    const Label label = term.labels[k];
    if (term.x.size(static_cast<int>(k)) != term.x.size(static_cast<int>(other)))
      throw make_error<ShapeError>(where("einsum"), ": a letter names two axes of ", term.x.shape(),
                                   " with other sizes");
    term.x = diagonal(term.x, 0, static_cast<int>(k), static_cast<int>(other));
    term.labels.erase(again);
    term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(k));
    term.labels.push_back(label);
    --k;
  }
  return term;
}

// Sums over the labels that are not kept. The sum of integers is int64 if no product follows, as
// sum() is; a product has the dtype of its operands.
Term summed(const Term& term, const Labels& keep, bool is_alone = false) {
  Ints axes;
  Labels left;
  for (std::size_t k = 0; k < term.labels.size(); ++k) {
    if (contains(keep, term.labels[k]))
      left.push_back(term.labels[k]);
    else
      axes.push_back(static_cast<std::int64_t>(k));
  }
  if (axes.empty()) return term;
  const Tensor total = sum(term.x, axes);
  return {is_alone ? total : cast(total, term.x.dtype()), left};
}

std::int64_t size_of(const Term& term, const Labels& labels) {
  std::int64_t size = 1;
  for (const Label l : labels)
    size *= term.x.size(static_cast<int>(std::find(term.labels.begin(), term.labels.end(), l) -
                                         term.labels.begin()));
  return size;
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels out;
  for (const Labels& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

Term product(const Term& a, const Term& b, const Labels& keep) {
  Labels both, summed_up, only_a, only_b;
  for (const Label l : a.labels)
    (!contains(b.labels, l) ? only_a : contains(keep, l) ? both : summed_up).push_back(l);
  for (const Label l : b.labels)
    if (!contains(a.labels, l)) only_b.push_back(l);
  const std::int64_t batch = size_of(a, both), inner = size_of(a, summed_up),
                     rows = size_of(a, only_a), columns = size_of(b, only_b);
  Ints sizes;
  for (const Label l : joined({both, only_a})) sizes.push_back(size_of(a, {l}));
  for (const Label l : only_b) sizes.push_back(size_of(b, {l}));
  // A product of matrices that have a size of 1 is slow: numbers are multiplied one by one if
  // nothing is summed, or if nothing is left of either matrix. (Sums of 16-bit products would be
  // rounded first.)
  const bool alone =
      only_a.empty() && only_b.empty() && item_size(promote(a.x.dtype(), b.x.dtype())) != 2;
  if (summed_up.empty() || alone) {
    Tensor first = ordered(a, joined({both, only_a, summed_up})),
           second = ordered(b, joined({both, only_b, summed_up}));
    for (std::size_t k = 0; k < only_b.size(); ++k) first = unsqueeze(first, -1);
    for (std::size_t k = 0; k < only_a.size(); ++k)
      second = unsqueeze(second, static_cast<int>(both.size()));
    const Tensor product = first * second;
    if (summed_up.empty()) return {product, joined({both, only_a, only_b})};
    Ints axes;
    for (std::size_t k = 0; k < summed_up.size(); ++k)
      axes.push_back(static_cast<std::int64_t>(both.size() + k));
    return {cast(sum(product, axes), product.dtype()), both};
  }
  const Tensor left = ordered(a, joined({both, only_a, summed_up})),
               right = ordered(b, joined({both, summed_up, only_b}));
  return {
      reshape(matmul(reshape(left, {batch, rows, inner}), reshape(right, {batch, inner, columns})),
              sizes),
      joined({both, only_a, only_b})};
}

// Expands axes of size 1 to the size that the label has in another operand.
void broadcast_labels(std::vector<Term>& terms) {
  std::map<Label, std::int64_t> sizes;
  for (const Term& term : terms)
    for (std::size_t k = 0; k < term.labels.size(); ++k) {
      const std::int64_t size = term.x.size(static_cast<int>(k));
      std::int64_t& known = sizes.try_emplace(term.labels[k], size).first->second;
      if (known != size && known != 1 && size != 1)
        throw make_error<ShapeError>(where("einsum"), ": an axis of ", term.x.shape(), " has ",
                                     size, " elements where another operand has ", known);
      if (known == 1) known = size;
    }
  for (Term& term : terms) {
    Ints wanted;
    for (const Label l : term.labels) wanted.push_back(sizes[l]);
    if (to_ints(term.x.shape()) != wanted) term.x = expand(term.x, wanted);
  }
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList operands) {
  const Called called("einsum");
  if (operands.empty()) refuse(equation, "has no operands");
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (!operands[k].defined()) refuse_undefined("einsum", k, operands.size());
  const Equation wanted = parsed(equation, operands);
  std::vector<Term> terms;
  for (std::size_t k = 0; k < operands.size(); ++k)
    terms.push_back(without_repeats({operands[k], wanted.operands[k]}));
  broadcast_labels(terms);
  // The labels that the operands from k on, or the result, still need.
  const auto needed_from = [&](std::size_t k) {
    Labels needed = wanted.result;
    for (; k < terms.size(); ++k)
      needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
    return needed;
  };
  Term so_far = summed(terms[0], needed_from(1), terms.size() == 1);
  for (std::size_t k = 1; k < terms.size(); ++k) {
    const Labels later = needed_from(k + 1);
    const Term next = summed(terms[k], joined({later, so_far.labels}));
    so_far = summed(product(so_far, next, later), later);
  }
  Labels missing;  // axes of "..." that no operand has
  for (const Label l : wanted.result)
    if (!contains(so_far.labels, l)) missing.push_back(l);
  for (const Label l : missing) so_far.x = unsqueeze(so_far.x, -1), so_far.labels.push_back(l);
  return ordered(so_far, wanted.result);
}

Tensor tensordot(const Tensor& first_tensor, const Tensor& second_tensor, const Ints& axes_a,
                 const Ints& axes_b) {
  const Called called("tensordot");
  const OpPlace at = where("tensordot");
  require_defined("tensordot", first_tensor, second_tensor);
  Tensor a = first_tensor, b = second_tensor;
  if (axes_a.size() != axes_b.size())
    throw make_error<ValueError>(at, ": ", axes_a.size(), " axes of the first tensor and ",
                                 axes_b.size(), " of the second");
  Ints first, last, order_a, order_b, sizes;
  std::int64_t inner = 1;
  for (std::size_t k = 0; k < axes_a.size(); ++k) {
    first.push_back(axis_of("tensordot", axes_a[k], a.rank()));
    last.push_back(axis_of("tensordot", axes_b[k], b.rank()));
    const int axis_a = static_cast<int>(first.back()), axis_b = static_cast<int>(last.back());
    // An axis of one element broadcasts, so the other one is summed.
    if (a.size(axis_a) == 1) b = cast(sum(b, axis_b, true), b.dtype());
    if (b.size(axis_b) == 1) a = cast(sum(a, axis_a, true), a.dtype());
    if (a.size(axis_a) != b.size(axis_b))
      throw make_error<ShapeError>(at, ": axis ", axes_a[k], " of ", a.shape(), " and axis ",
                                   axes_b[k], " of ", b.shape(), " differ in size");
    inner *= a.size(axis_a);
  }
  (void)axis_mask("tensordot", axes_a, a.rank());  // refuses an axis that is given twice
  (void)axis_mask("tensordot", axes_b, b.rank());
  for (int k = 0; k < a.rank(); ++k)
    if (!contains(first, std::int64_t{k})) order_a.push_back(k), sizes.push_back(a.size(k));
  for (int k = 0; k < b.rank(); ++k)
    if (!contains(last, std::int64_t{k})) order_b.push_back(k), sizes.push_back(b.size(k));
  std::int64_t rows = 1, columns = 1;
  for (const std::int64_t k : order_a) rows *= a.size(static_cast<int>(k));
  for (const std::int64_t k : order_b) columns *= b.size(static_cast<int>(k));
  order_a.insert(order_a.end(), first.begin(), first.end());
  order_b.insert(order_b.begin(), last.begin(), last.end());
  return reshape(matmul(reshape(permute(a, order_a), {rows, inner}),
                        reshape(permute(b, order_b), {inner, columns})),
                 sizes);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int axes) {
  require_defined("tensordot", a, b);
  if (axes < 0 || axes > a.rank() || axes > b.rank())
    throw make_error<ValueError>(where("tensordot"), ": ", axes, " axes of ", a.shape(), " and ",
                                 b.shape());
  Ints last, first;
  for (int k = 0; k < axes; ++k) last.push_back(a.rank() - axes + k), first.push_back(k);
  return tensordot(a, b, last, first);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  const Called called("outer");
  require_defined("outer", a, b);
  if (a.rank() != 1 || b.rank() != 1)
    throw make_error<ShapeError>(where("outer"), ": takes two vectors, not ", a.shape(), " and ",
                                 b.shape());
  return unsqueeze(a, 1) * unsqueeze(b, 0);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const Called called("kron");
  require_defined("kron", a, b);
  const int rank = std::max(a.rank(), b.rank());
  if (2 * rank > kMaxRank)
    throw make_error<ShapeError>(where("kron"), ": takes at most ", kMaxRank / 2, " axes, not ",
                                 a.shape(), " and ", b.shape());
  Ints of_a, of_b, merged;
  for (int k = 0; k < rank; ++k) {
    const int at_a = k - (rank - a.rank()), at_b = k - (rank - b.rank());
    const std::int64_t size_a = at_a < 0 ? 1 : a.size(at_a), size_b = at_b < 0 ? 1 : b.size(at_b);
    of_a.insert(of_a.end(), {size_a, 1});
    of_b.insert(of_b.end(), {1, size_b});
    merged.push_back(size_product("kron", size_a, size_b));
  }
  return reshape(reshape(a, of_a) * reshape(b, of_b), merged);
}

}  // namespace tenon
