// Keys, rows and the text form of the tune table.
//
// The text: a first line that names the format, then one line for each row, with fields separated
// by tabs. The last field is a checksum over the others.
#include "plan/program/tune.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <sstream>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"

namespace tenon {
namespace {

constexpr std::string_view kFormat = "tenon-tune 1";
constexpr std::size_t kFields = 9, kLongestLine = 4096, kMostRows = 65536;

// FNV-1a: protects against damage, not against forgery.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  void add(std::int64_t number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    add(std::string_view(bytes, sizeof bytes));
  }
  std::string hex() const {
    char digits[16];
    for (int k = 0; k < 16; ++k) digits[k] = "0123456789abcdef"[value_ >> (60 - 4 * k) & 15];
    return std::string(digits, sizeof digits);
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

std::string checksum(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.hex();
}

// Three decimals, so that a table that is read and written again gives the same text.
std::string microseconds_text(double us) {
  const std::int64_t thousandths = std::llround(us * 1000);
  const std::string digits = std::to_string(thousandths % 1000);
  return cat(thousandths / 1000, ".", std::string(3 - digits.size(), '0'), digits);
}

bool read_microseconds(std::string_view text, double& us) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
  if (error != std::errc() || end != text.data() + text.size() || !(us >= 0 && us <= 1e9))
    return false;
  us = std::round(us * 1000) / 1000;  // rounded as in the text form
  return true;
}

// Names of engines are plain text. A GPU's name may contain any characters and must not break a
// line.
std::string field(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return out;
}

std::string row_text(const std::string& key, const TuneChoice& c) {
  std::string line;
  for (const std::string& each :
       {key, c.engine, c.configuration, c.version, microseconds_text(c.microseconds), c.next,
        microseconds_text(c.next_microseconds), c.rivals})
    line += field(each) + '\t';
  return line + checksum(line);
}

// Replaces the engine names of earlier builds by the present ones, in a list such as "native,
// cublaslt 130002".
std::string present_names(std::string_view names) {
  constexpr std::string_view kEarlier = "picture", kPresent = "image", kBetween = ", ";
  std::string out;
  for (std::size_t start = 0; start < names.size();) {
    const std::size_t end = std::min(names.find(kBetween, start), names.size());
    const std::string_view one = names.substr(start, end - start),
                           name = one.substr(0, one.find(' '));
    if (start > 0) out += kBetween;
    out += name == kEarlier ? cat(kPresent, one.substr(name.size())) : std::string(one);
    start = end + kBetween.size();
  }
  return out;
}

bool read_row(std::string_view line, std::string& key, TuneChoice& c) {
  if (line.size() > kLongestLine) return false;
  std::string_view fields[kFields];
  std::size_t count = 0, start = 0;
  for (std::size_t k = 0; k <= line.size(); ++k) {
    if (k < line.size() && line[k] != '\t') continue;
    if (count == kFields) return false;
    fields[count++] = line.substr(start, k - start);
    start = k + 1;
  }
  if (count != kFields || fields[0].empty() || fields[1].empty()) return false;
  if (checksum(line.substr(0, line.rfind('\t') + 1)) != fields[8]) return false;
  key = fields[0];
  c = {present_names(fields[1]), std::string(fields[2]),
       std::string(fields[3]),   0,
       present_names(fields[5]), 0,
       present_names(fields[7])};
  return read_microseconds(fields[4], c.microseconds) &&
         read_microseconds(fields[6], c.next_microseconds);
}

// "native, cublaslt 130002" names both.
bool competed(const TuneChoice& choice, std::string_view engine) {
  const std::string_view all = choice.rivals;
  for (std::size_t start = 0; start < all.size();) {
    const std::size_t end = std::min(all.find(", ", start), all.size());
    const std::string_view one = all.substr(start, end - start);
    if (one.substr(0, one.find(' ')) == engine) return true;
    start = end + 2;
  }
  return false;
}

// The parts of a key.
struct Key {
  explicit Key(const std::string& key) {
    constexpr std::string_view kWith = " with ";
    const std::size_t end = key.rfind(kWith);
    pattern = key.substr(0, end);
    if (end == std::string::npos) return;
    std::istringstream words(key.substr(end + kWith.size()));
    std::string letter;
    for (std::int64_t size = 0; words >> letter >> size;) sizes.push_back(size);
  }

  std::string pattern;
  std::vector<std::int64_t> sizes;
};

// An offset is part of the key only as far as it changes the alignment.
std::string view_text(const View& view, int rank, std::span<const Value> values) {
  std::string text = cat(values[static_cast<std::size_t>(view.value)].dtype, "{");
  for (int a = 0; a < rank; ++a) text += cat(a == 0 ? "" : ",", view.stride[a]);
  return cat(text, "}", view.offset % 16 == 0 ? "" : cat("+", view.offset % 16));
}

// A shape whose axes may be a letter instead of a number.
struct LetteredShape {
  Shape shape;
  std::string letters = std::string(at(shape.rank()), ' ');

  std::string text() const {
    std::string out = "[";
    for (std::size_t a = 0; a < letters.size(); ++a)
      out += cat(a == 0 ? "" : ", ",
                 letters[a] == ' ' ? cat(shape[static_cast<int>(a)]) : std::string(1, letters[a]));
    return out + "]";
  }
};

// The operands and the result of a contraction.
struct LetteredShapes {
  LetteredShape a, b, out;

  explicit LetteredShapes(const Contraction& c) : a{c.a_shape}, b{c.b_shape}, out{c.out_shape} {
    if (c.op == Op::Matmul) {
      if (b.shape.rank() == out.shape.rank() && out.shape.rank() > 2 && b.shape[0] != 1)
        b.letters.front() = 'm';
      a.letters.front() = out.letters.front() = 'm';
      a.letters.back() = b.letters[b.letters.size() - 2] = 'k';
    } else {
      a.letters.front() = 'n';
      (c.op == Op::Conv2dWeightGrad ? b : out).letters.front() = 'n';
    }
  }
  /// " with m 64 k 400"
  std::string sizes() const {
    std::string text = cat(" with ", std::string(1, a.letters.front()), " ", a.shape[0]);
    if (a.letters.back() == 'k') text += cat(" k ", a.shape[a.shape.rank() - 1]);
    return text;
  }
};

// Values are numbered by first appearance, because only their identity matters. Ops are hashed by
// name, because stored tables outlive the order of the enum.
class MapHash {
 public:
  /// Over the elements of `shape`.
  MapHash(const Region& region, const MapProgram& map, const LetteredShape& shape,
          std::span<const Value> values)
      : values_(values), rank_(map.space.rank()) {
    number(region.contraction.a.value), number(region.contraction.b.value);
    // The last axes of both agree, and so does the first; the axes in between may be merged in the
    // map.
    const int before = rank_ - shape.shape.rank(), first = std::max(before, 0);
    for (int a = 0; a < rank_; ++a) {
      const int axis = a == first ? 0 : a - before;
      const bool same = a >= first && map.space[a] == shape.shape[axis];
      const char letter = same ? shape.letters[at(axis)] : ' ';
      hash_.add(letter == ' ' ? map.space[a] : -std::int64_t{letter});
    }
    for (const MapInstr& i : map.instrs) add(i);
    for (const MapStore& s : map.stores) hash_.add(std::int64_t{s.source}), add(s.view);
    for (const MapReduce& r : map.reduces) {
      hash_.add(op_row(r.op).name);
      if (r.deviations) hash_.add("deviations");
      if (r.rows > 0) hash_.add("rows"), hash_.add(std::int64_t{r.rows});
      for (const std::int64_t n : {std::int64_t{r.source}, std::int64_t{r.axes}, number(r.value)})
        hash_.add(n);
    }
  }
  std::string hex() const { return hash_.hex(); }

 private:
  std::int64_t number(ValueId id) {
    const auto found = std::find(seen_.begin(), seen_.end(), id);
    if (found != seen_.end()) return found - seen_.begin();
    seen_.push_back(id);
    return static_cast<std::int64_t>(seen_.size()) - 1;
  }
  void add(const View& view) {
    hash_.add(number(view.value));
    if (view.value != kNoValue)
      hash_.add(static_cast<std::int64_t>(values_[static_cast<std::size_t>(view.value)].dtype));
    hash_.add(view.offset % 16);
    for (int a = 0; a < rank_; ++a) hash_.add(view.stride[a]);
  }
  void add(const MapInstr& i) {
    hash_.add(op_row(i.op).name);
    for (const int n : {static_cast<int>(i.code), static_cast<int>(i.dtype), i.per_row ? 1 : 0,
                        i.args[0], i.args[1], i.args[2]})
      hash_.add(std::int64_t{n});
    add(i.code == MapCode::Number ? Attrs() : i.attrs);
    add(i.view);
  }
  // Always adds sixteen words, because the keys of stored tables were made with sixteen.
  void add(const Attrs& attrs) {
    constexpr int kWords = 16;
    int count = -1;  // the first word identifies the struct
    attrs.each_word([&](std::uint64_t word) {
      if (count++ >= 0) hash_.add(static_cast<std::int64_t>(word));
    });
    for (; count < kWords; ++count) hash_.add(std::int64_t{0});
  }

  std::span<const Value> values_;
  const int rank_;
  Hash hash_;
  std::vector<ValueId> seen_;
};

}  // namespace

const TuneChoice* TuneTable::find(const std::string& key) const {
  const auto row = rows_.find(field(key));
  return row == rows_.end() ? nullptr : &row->second;
}

const TuneChoice* TuneTable::find_larger(const std::string& key) const {
  const Key wanted(field(key));
  const TuneChoice* nearest = nullptr;
  std::int64_t least = 0;
  for (auto row = rows_.lower_bound(wanted.pattern);
       row != rows_.end() && row->first.starts_with(wanted.pattern); ++row) {
    const Key other(row->first);
    if (other.pattern != wanted.pattern || other.sizes.size() != wanted.sizes.size()) continue;
    int different = 0, smaller = 0;
    std::int64_t more = 0;
    for (std::size_t k = 0; k < wanted.sizes.size(); ++k) {
      if (other.sizes[k] == wanted.sizes[k]) continue;
      ++different;
      if (other.sizes[k] < wanted.sizes[k])
        ++smaller;
      else
        more = other.sizes[k] - wanted.sizes[k];
    }
    if (different != 1 || smaller != 0 || (nearest != nullptr && more >= least)) continue;
    nearest = &row->second;
    least = more;
  }
  return nearest;
}

void TuneTable::put(const std::string& key, TuneChoice choice) {
  rows_.insert_or_assign(field(key), std::move(choice));
}

void TuneTable::merge(const TuneTable& other) {
  rows_.insert(other.rows_.begin(), other.rows_.end());
}

std::string TuneTable::summary() const {
  std::map<std::string, int> counts;
  for (const auto& [key, choice] : rows_) ++counts[choice.engine];
  std::string out;
  for (const auto& [engine, count] : counts)
    out += cat(out.empty() ? "" : ", ", engine, " ", count);
  return out;
}

std::string TuneTable::text() const {
  std::string out = cat(kFormat, "\n");
  for (const auto& [key, choice] : rows_) out += row_text(key, choice) + '\n';
  return out;
}

TuneTable TuneTable::parse(std::string_view text, int* damaged) {
  if (damaged != nullptr) *damaged = 0;
  TuneTable table;
  std::size_t start = text.find('\n');
  if (text.substr(0, start) != kFormat)
    throw FormatError(cat("this is not a tune table: its first line is not '", kFormat, "'"));
  while (start < text.size() && table.size() < kMostRows) {
    const std::size_t end = std::min(text.find('\n', ++start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end;
    std::string key;
    TuneChoice choice;
    if (read_row(line, key, choice))
      table.put(key, std::move(choice));
    else if (!line.empty() && damaged != nullptr)
      ++*damaged;
  }
  return table;
}

std::string tune_key(std::string_view gpu, const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  std::string key = cat(gpu, " | ", op_row(c.op).name, " ");
  if (c.op != Op::Matmul) {
    const ConvAttrs& conv = c.attrs.conv;
    key += cat("stride ", conv.stride_h, "x", conv.stride_w, " pad ", conv.pad_h, "x", conv.pad_w,
               " dilation ", conv.dil_h, "x", conv.dil_w, " groups ", conv.groups, " ");
    if (c.channels_last) key += "last ";
  }
  const LetteredShapes shapes(c);
  key += cat(shapes.a.text(), view_text(c.a, c.a_shape.rank(), values), " ", shapes.b.text(),
             view_text(c.b, c.b_shape.rank(), values), " -> ", shapes.out.text(), c.dtype, " in ",
             c.tf32() ? std::string("tf32") : cat(c.compute()));
  if (c.out != kNoValue) key += " stored";
  if (c.has_epilogue) key += cat(" then ", MapHash(region, region.map, shapes.out, values).hex());
  if (!region.prologue_a.instrs.empty())
    key += cat(" a from ", MapHash(region, region.prologue_a, shapes.a, values).hex());
  if (!region.prologue_b.instrs.empty())
    key += cat(" b from ", MapHash(region, region.prologue_b, shapes.b, values).hex());
  return key + shapes.sizes();
}

double multiply_adds(const Contraction& c) {
  const auto behind_first = [](const Shape& shape) {
    return static_cast<double>(shape.numel()) / static_cast<double>(shape[0]);
  };
  const auto out = static_cast<double>(c.out_shape.numel());
  // Every element of the result (for convolution gradients: of the forward output) is a sum over
  // the other axes.
  switch (c.op) {
    case Op::Matmul:
      return out * static_cast<double>(c.a_shape[c.a_shape.rank() - 1]);
    case Op::Conv2d:
      return out * behind_first(c.b_shape);
    case Op::Conv2dInputGrad:
      return static_cast<double>(c.a_shape.numel()) * behind_first(c.b_shape);
    default:
      return static_cast<double>(c.b_shape.numel()) * behind_first(c.out_shape);
  }
}

const Engine* engine_of(const TuneChoice& choice, std::span<const Engine* const> engines,
                        const Region& region, std::span<const Value> values) {
  for (const Engine* engine : engines)
    if (choice.engine == engine->name() && can_run(*engine, region, values))
      return choice.version == engine->version() ? engine : nullptr;
  return nullptr;
}

bool all_were_measured(const TuneChoice& choice, std::span<const Engine* const> engines,
                       const Region& region, std::span<const Value> values) {
  return std::all_of(engines.begin(), engines.end(), [&](const Engine* engine) {
    std::string why;
    return !runs(*engine, region, values, &why) || competed(choice, engine->name());
  });
}

std::string choice_text(const TuneAdvice& advice) {
  const auto tenths = [](double us) {
    const std::int64_t count = std::llround(us * 10);
    return cat(count / 10, ".", count % 10, " us");
  };
  if (!advice.choice) return "model";
  const TuneChoice& c = *advice.choice;
  std::string text = advice.source;
  if (c.microseconds > 0) text += cat(": ", tenths(c.microseconds));
  if (!c.next.empty()) text += cat(", next ", c.next, " ", tenths(c.next_microseconds));
  return text;
}

}  // namespace tenon
