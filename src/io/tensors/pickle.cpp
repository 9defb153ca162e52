// The virtual machine of pickles: a stack with marks, and a memo of earlier objects. It builds
// parts (pickle.h) and calls nothing. Each item must take at least one byte of the pickle, so a
// small file cannot request much memory.
#include "io/tensors/pickle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <tenon/error.h>

#include "base/str.h"
#include "io/byte_order.h"

namespace tenon::io {
namespace {

using Kind = PicklePart::Kind;
constexpr std::size_t kMostParts = std::size_t{1} << 23;
constexpr std::size_t kMostNameText = std::size_t{1}
                                      << 20;  // bytes of names beyond the pickle's size
constexpr std::string_view kOrderedDict = "collections.OrderedDict",
                           kDefaultDict = "collections.defaultdict";

// Instructions, named as in Python's pickle module.
enum class Instruction : unsigned char {
  Mark = '(',
  Stop = '.',
  Pop = '0',
  PopMark = '1',
  Dup = '2',
  BinFloat = 'G',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  None = 'N',
  BinPersId = 'Q',
  Reduce = 'R',
  BinString = 'T',
  ShortBinString = 'U',
  BinUnicode = 'X',
  EmptyList = ']',
  Append = 'a',
  Build = 'b',
  Global = 'c',
  Dict = 'd',
  EmptyDict = '}',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  List = 'l',
  BinPut = 'q',
  LongBinPut = 'r',
  SetItem = 's',
  Tuple = 't',
  EmptyTuple = ')',
  SetItems = 'u',
  BinBytes = 'B',
  ShortBinBytes = 'C',
  Proto = 0x80,
  NewObj = 0x81,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  Long4 = 0x8b,
  ShortBinUnicode = 0x8c,
  BinUnicode8 = 0x8d,
  BinBytes8 = 0x8e,
  StackGlobal = 0x93,
  EmptySet = 0x8f,
  AddItems = 0x90,
  FrozenSet = 0x91,
  NewObjEx = 0x92,
  Memoize = 0x94,
  Frame = 0x95,
  ByteArray8 = 0x96,
};

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {
    // Constants are stored once.
    add({});
    add({Kind::Bool, 0});
    add({Kind::Bool, 1});
    add({Kind::Tuple});
  }

  Pickle run() {
    while (step(static_cast<Instruction>(byte()))) {
    }
    if (stack_.size() != 1 || !marks_.empty()) damaged("it does not end with exactly one value");
    out_.root = stack_[0];
    out_.length = at_;
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

  // Executes one instruction; false at the end.
  bool step(Instruction instruction) {
    begin_ = at_ - 1;
    switch (instruction) {
      case Instruction::Proto:
        if (byte() > 5) damaged("its protocol is above 5");
        return true;
      case Instruction::Frame:
        number<std::uint64_t>();
        return true;
      case Instruction::Stop:
        return false;
      case Instruction::Mark:
        marks_.push_back(stack_.size());
        return true;
      case Instruction::Pop:
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return true;
      case Instruction::PopMark:
        since_mark();
        return true;
      case Instruction::Dup:
        stack_.push_back(top());
        return true;
      case Instruction::BinPut:
        memory_[byte()] = top();
        return true;
      case Instruction::LongBinPut:
        memory_[number<std::uint32_t>()] = top();
        return true;
      case Instruction::Memoize:
        memory_[static_cast<std::uint32_t>(memory_.size())] = top();
        return true;
      case Instruction::BinGet:
        recall(byte());
        return true;
      case Instruction::LongBinGet:
        recall(number<std::uint32_t>());
        return true;
      default:
        return scalar(instruction) || text(instruction) || container(instruction) ||
               call(instruction) || unknown(instruction);
    }
  }

  bool scalar(Instruction instruction) {
    switch (instruction) {
      case Instruction::None:
        stack_.push_back(kNone);
        return true;
      case Instruction::NewTrue:
        stack_.push_back(kTrue);
        return true;
      case Instruction::NewFalse:
        stack_.push_back(kFalse);
        return true;
      case Instruction::BinInt:
        return integer(number<std::int32_t>());
      case Instruction::BinInt1:
        return integer(byte());
      case Instruction::BinInt2:
        return integer(number<std::uint16_t>());
      case Instruction::Long1:
        return long_integer(take(byte()));
      case Instruction::Long4:
        return long_integer(take(number<std::uint32_t>()));
      case Instruction::BinFloat: {
        const std::string_view bytes = take(8);
        push({Kind::Real, 0, read_big<double>(bytes.data())});
        return true;
      }
      default:
        return false;
    }
  }

  bool text(Instruction instruction) {
    switch (instruction) {
      case Instruction::ShortBinString:
      case Instruction::ShortBinUnicode:
        return words(Kind::Text, byte());
      case Instruction::BinString:
      case Instruction::BinUnicode:
        return words(Kind::Text, number<std::uint32_t>());
      case Instruction::BinUnicode8:
        return words(Kind::Text, number<std::uint64_t>());
      case Instruction::ShortBinBytes:
        return words(Kind::Bytes, byte());
      case Instruction::BinBytes:
        return words(Kind::Bytes, number<std::uint32_t>());
      case Instruction::BinBytes8:
      case Instruction::ByteArray8:
        return words(Kind::Bytes, number<std::uint64_t>());
      default:
        return false;
    }
  }

  bool container(Instruction instruction) {
    switch (instruction) {
      case Instruction::EmptyTuple:
        stack_.push_back(kEmptyTuple);
        return true;
      case Instruction::EmptyList:
        push({Kind::List});
        return true;
      case Instruction::EmptyDict:
        push({Kind::Dict});
        return true;
      case Instruction::EmptySet:
        push({Kind::Set});
        return true;
      case Instruction::FrozenSet:
        return collect(Kind::Set, since_mark());
      case Instruction::AddItems:
        return extend(Kind::Set, since_mark());
      case Instruction::Tuple:
        return collect(Kind::Tuple, since_mark());
      case Instruction::Tuple1:
        return collect(Kind::Tuple, last(1));
      case Instruction::Tuple2:
        return collect(Kind::Tuple, last(2));
      case Instruction::Tuple3:
        return collect(Kind::Tuple, last(3));
      case Instruction::List:
        return collect(Kind::List, since_mark());
      case Instruction::Dict:
        return collect(Kind::Dict, pairs(since_mark()));
      case Instruction::Append:
        return extend(Kind::List, last(1));
      case Instruction::Appends:
        return extend(Kind::List, since_mark());
      case Instruction::SetItem:
        return extend(Kind::Dict, last(2));
      case Instruction::SetItems:
        return extend(Kind::Dict, pairs(since_mark()));
      default:
        return false;
    }
  }

  bool call(Instruction instruction) {
    switch (instruction) {
      case Instruction::Global: {
        const std::string_view module = line();
        return global(module, line());
      }
      case Instruction::StackGlobal: {
        const std::vector<std::uint32_t> parts = last(2);
        if (part(parts[0]).kind != Kind::Text || part(parts[1]).kind != Kind::Text)
          damaged("a name is not a string");
        return global(part(parts[0]).text, part(parts[1]).text);
      }
      case Instruction::Reduce:
      case Instruction::NewObj:
        return reduce();
      case Instruction::NewObjEx: {
        const std::vector<std::uint32_t> parts = last(3);  // class, arguments, named arguments
        if (part(parts[1]).kind != Kind::Tuple || part(parts[2]).kind != Kind::Dict)
          damaged("it creates an object without arguments");
        return collect(Kind::Call, {parts[0], parts[1]});
      }
      case Instruction::Build:
        pop();  // attributes: tensors do not need them
        top();
        return true;
      case Instruction::BinPersId:
        return collect(Kind::Persistent, last(1));
      default:
        return false;
    }
  }

  bool reduce() {
    const std::vector<std::uint32_t> parts = last(2);
    const Kind function = part(parts[0]).kind;
    if ((function != Kind::Name && function != Kind::Call) || part(parts[1]).kind != Kind::Tuple)
      damaged("it calls a value that is not a function");
    if (part(parts[0]).text == kDefaultDict) return collect(Kind::Dict, {});
    if (part(parts[0]).text != kOrderedDict) return collect(Kind::Call, parts);
    // OrderedDict(), or OrderedDict([[key, value], …]) as Python 2 wrote it.
    std::vector<std::uint32_t> items;
    const PicklePart& arguments = part(parts[1]);
    if (arguments.items.size() > 1) damaged("an OrderedDict has more than one argument");
    if (!arguments.items.empty()) {
      const PicklePart& rows = part(arguments.items[0]);
      if (rows.kind != Kind::List) damaged("an OrderedDict is not made of a list");
      items.reserve(2 * rows.items.size());
      for (const std::uint32_t row : rows.items) {
        if (part(row).items.size() != 2) damaged("an OrderedDict is not made of pairs");
        items.insert(items.end(), part(row).items.begin(), part(row).items.end());
      }
    }
    return collect(Kind::Dict, std::move(items));
  }

  bool global(std::string_view module, std::string_view name) {
    named_ += module.size() + name.size();
    if (named_ > kMostNameText + bytes_.size()) damaged("it repeats the same name too often");
    push({Kind::Name, 0, 0, out_.names.emplace_back(cat(module, ".", name))});
    return true;
  }

  bool integer(std::int64_t value) {
    push({Kind::Integer, value});
    return true;
  }
  bool long_integer(std::string_view bytes) {
    if (bytes.size() > 8) {
      push({Kind::Large, 0, 0, bytes});
      return true;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    const std::size_t bits = 8 * bytes.size();
    if (bits > 0 && bits < 64 && (value >> (bits - 1) & 1) != 0) value |= ~std::uint64_t{0} << bits;
    return integer(static_cast<std::int64_t>(value));
  }
  bool words(Kind kind, std::uint64_t size) {
    push({kind, 0, 0, take(size)});
    return true;
  }
  // A valid pickle has at least one byte for each item. Only an OrderedDict that is built from the
  // same list many times has more items than bytes; such a file is an attack and is refused.
  void count(const std::vector<std::uint32_t>& items) {
    items_ += items.size();
    if (items_ > bytes_.size()) damaged("it repeats the same values too often");
  }
  bool collect(Kind kind, std::vector<std::uint32_t> items) {
    count(items);
    push({kind, 0, 0, {}, std::move(items)});
    return true;
  }
  bool extend(Kind kind, const std::vector<std::uint32_t>& items) {
    PicklePart& target = out_.parts[top()];
    if (target.kind == Kind::Call) return true;  // items of an object of another class are ignored
    if (target.kind != kind)
      damaged(kind == Kind::Set    ? "it adds to a value that is not a set"
              : kind == Kind::List ? "it appends to a value that is not a list"
                                   : "it sets items of a value that is not a dictionary");
    count(items);
    target.items.insert(target.items.end(), items.begin(), items.end());
    return true;
  }
  std::vector<std::uint32_t> pairs(std::vector<std::uint32_t> items) {
    if (items.size() % 2 != 0) damaged("a key has no value");
    return items;
  }
  bool unknown(Instruction instruction) {
    throw NotSupported(cat(where_, ": instruction ", static_cast<int>(instruction), " at byte ",
                           begin_,
                           " does not occur in state dicts, or the file is damaged: save "
                           "model.state_dict() with torch.save()"));
  }

  std::uint32_t add(PicklePart part) {
    if (out_.parts.size() == kMostParts)
      throw FormatError(
          cat(where_, ": has more than ", kMostParts, " parts, more than any state dict"));
    out_.parts.push_back(std::move(part));
    return static_cast<std::uint32_t>(out_.parts.size() - 1);
  }
  void push(PicklePart part) { stack_.push_back(add(std::move(part))); }
  const PicklePart& part(std::uint32_t place) const { return out_.parts[place]; }
  void recall(std::uint32_t key) {
    const auto found = memory_.find(key);
    if (found == memory_.end())
      damaged(cat("it reads memo entry ", key, ", which was never written"));
    stack_.push_back(found->second);
  }

  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  std::uint32_t top() {
    if (stack_.size() <= bottom()) damaged("a value is missing");
    return stack_.back();
  }
  std::uint32_t pop() {
    const std::uint32_t value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<std::uint32_t> last(std::size_t count) {
    if (stack_.size() - bottom() < count) damaged("a value is missing");
    return cut(stack_.size() - count);
  }
  std::vector<std::uint32_t> since_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return cut(from);
  }
  std::vector<std::uint32_t> cut(std::size_t from) {
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(from);
    std::vector<std::uint32_t> out(first, stack_.end());
    stack_.erase(first, stack_.end());
    return out;
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) damaged("it is truncated");
    const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return out;
  }
  unsigned char byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <class T>
  T number() {
    return read_little<T>(take(sizeof(T)).data());
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("it is truncated");
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  [[noreturn]] void damaged(std::string_view what) const {
    throw FormatError(cat(where_, ": damaged pickle at byte ", begin_, ": ", what));
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0, begin_ = 0, items_ = 0, named_ = 0;
  Pickle out_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, std::uint32_t> memory_;
};

}  // namespace

Pickle parse_pickle(std::string_view bytes, const std::string& where) {
  return PickleMachine(bytes, where).run();
}

}  // namespace tenon::io
