// Converts the parts of a pickle to tensors. All values from the file are checked here.
#include "io/tensors/pt_state_dict.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "io/sizes.h"

namespace tenon::io {
namespace {

using Kind = PicklePart::Kind;
constexpr int kDeepest = 32;                                   // nesting of dictionaries
constexpr std::uint64_t kMostNamed = std::uint64_t{64} << 20;  // bytes of all names together
constexpr std::string_view kTorch = "torch.", kRebuild = "torch._utils._rebuild_";

std::string_view shown_key(std::string_view text) { return text.substr(0, 120); }

// The identity of a view: storage, offset, type, sizes and strides. Equal views are read once.
std::string identity(const TorchView& view) {
  std::string out = cat(view.storage->key, " ", view.type->name, " ", view.offset);
  for (int i = 0; i < view.rank; ++i) out += cat(" ", view.sizes[i], "/", view.strides[i]);
  return out;
}

}  // namespace

namespace {

bool makes_tensor(std::string_view function) {
  static constexpr std::string_view rebuilds[] = {"tensor", "tensor_v2", "tensor_v3", "parameter",
                                                  "parameter_with_state"};
  return function.starts_with(kRebuild) &&
         std::find(std::begin(rebuilds), std::end(rebuilds), function.substr(kRebuild.size())) !=
             std::end(rebuilds);
}

// The name of an element type, after "torch."; "" if the part is not a name.
std::string_view type_text(const PicklePart& part) {
  const std::string_view text = part.kind == Kind::Name ? part.text : std::string_view();
  return text.substr(text.starts_with(kTorch) ? kTorch.size() : 0);
}

// The key as part of a tensor's name; nullopt if the key is neither a string nor a number.
std::optional<std::string> key_text(const PicklePart& key) {
  if (key.kind == Kind::Text) return std::string(key.text);
  if (key.kind == Kind::Integer) return cat(key.integer);
  if (key.kind == Kind::Real) return cat(key.real);
  if (key.kind == Kind::Bool) return std::string(key.integer != 0 ? "True" : "False");
  return std::nullopt;
}

}  // namespace

StateDictReader::StateDictReader(const Pickle& pickle, std::string where)
    : pickle_(pickle), where_(std::move(where)) {
  for (const PicklePart& part : pickle_.parts)
    if (part.kind == Kind::Persistent) stretches_.emplace(&part, storage_at(part));
}

void StateDictReader::read(WeightTable& table) {
  table_ = &table;
  switch (pickle_.at(pickle_.root).kind) {
    case Kind::Call:
      return add("tensor", pickle_.root, 0);
    case Kind::Dict:
    case Kind::List:
    case Kind::Tuple:
      return walk("", pickle_.root, 0);
    default:
      damaged("is neither a dictionary of tensors nor a tensor");
  }
}

void StateDictReader::walk(const std::string& prefix, std::uint32_t place, int depth) {
  if (depth > kDeepest) damaged(cat("has more than ", kDeepest, " nested dictionaries"));
  const PicklePart& part = pickle_.at(place);
  const bool keyed = part.kind == Kind::Dict;
  for (std::size_t i = 0; i < part.items.size(); i += keyed ? 2 : 1) {
    if (++visited_ > pickle_.length) damaged("repeats the same parts too often");
    const std::optional<std::string> key =
        keyed ? key_text(pickle_.item(part, i)) : std::optional(cat(i));
    const std::string start = prefix.empty() ? "" : cat(prefix, ".");
    if (key)
      add(start + *key, part.items[i + (keyed ? 1 : 0)], depth + 1);
    else
      leave_out(cat(start, "?"), "an entry whose key is neither a string nor a number");
  }
}

void StateDictReader::add(const std::string& name, std::uint32_t place, int depth) {
  named_ += name.size();
  if (named_ > kMostNamed) damaged("has names of more than 64 MiB");
  const PicklePart& part = pickle_.at(place);
  switch (part.kind) {
    case Kind::Dict:
    case Kind::List:
    case Kind::Tuple:
      return walk(name, place, depth);
    case Kind::Call:
      return add_call(name, part);
    case Kind::Bool:
      table_->metadata[name] = part.integer != 0 ? "true" : "false";
      return;
    case Kind::Integer:
      table_->metadata[name] = cat(part.integer);
      return;
    case Kind::Real:
      table_->metadata[name] = cat(part.real);
      return;
    case Kind::Text:
      table_->metadata[name] = part.text;
      return;
    case Kind::Persistent:
      return leave_out(name, "a storage without a tensor");
    case Kind::Set:
      return leave_out(name, "a set");
    case Kind::Bytes:
      return leave_out(name, "bytes");
    case Kind::Large:
      return leave_out(name, "a number of more than 64 bits");
    case Kind::Name:
      // "torch.float16" and similar names describe how a value was stored.
      if (!part.text.starts_with(kTorch) ||
          part.text.find('.', kTorch.size()) != std::string_view::npos)
        leave_out(name, cat("the name '", shown_key(part.text), "'"));
      return;
    case Kind::None:
      return;
  }
}

void StateDictReader::leave_out(const std::string& name, std::string what) {
  table_->unread.push_back({name, std::move(what)});
}

void StateDictReader::add_call(const std::string& name, const PicklePart& part) {
  const std::string_view function = pickle_.item(part, 0).text;
  if (function == "torch.Size" || function == "torch.device") return;
  if (!makes_tensor(function))
    return leave_out(
        name, function.empty() ? "an object" : cat("an object of '", shown_key(function), "'"));
  std::string unknown;
  const TorchView view = tensor_of(name, part, 0, unknown);
  if (!unknown.empty()) return leave_out(name, cat("a tensor of ", shown_key(unknown)));
  if (!view.type->readable())
    return leave_out(name, cat("a tensor of ", view.type->name, " ", view.shape()));
  const auto [value, is_new] = values_.try_emplace(identity(view), table_->values.size());
  if (is_new) table_->values.emplace_back([view] { return read_view(view); });
  StoredTensor tensor{name, view.type->dtype, view.shape(), {}, value->second};
  if (view.type->conversion != Conversion::None) tensor.stored = view.type->name;
  table_->tensors.push_back(std::move(tensor));
}

// If the element type is unknown, `unknown` receives its name.
TorchView StateDictReader::tensor_of(const std::string& name, const PicklePart& part, int depth,
                                     std::string& unknown) const {
  const std::string_view function = pickle_.item(part, 0).text;
  const PicklePart& arguments = pickle_.item(part, 1);
  if (!makes_tensor(function)) {
    unknown = function;
    return {};
  }
  if (function.substr(kRebuild.size()).starts_with("parameter")) {
    if (depth > kDeepest || arguments.items.empty() ||
        pickle_.item(arguments, 0).kind != Kind::Call)
      refuse(name, "is a parameter without a tensor");
    return tensor_of(name, pickle_.item(arguments, 0), depth + 1, unknown);
  }
  if (arguments.items.size() < 4) refuse(name, "lacks storage, offset, sizes or strides");
  const auto stretch = stretches_.find(&pickle_.item(arguments, 0));
  if (stretch == stretches_.end()) refuse(name, "has no storage");
  TorchView view;
  view.storage = stretch->second.storage;
  view.type = view.storage->type;
  if (view.type == nullptr) {
    unknown = view.storage->unknown;
    return view;
  }
  if (function.ends_with("_v3")) {
    constexpr std::size_t type_place = 6;
    if (arguments.items.size() <= type_place) refuse(name, "lacks its element type");
    const std::string_view text = type_text(pickle_.item(arguments, type_place));
    view.type = torch_type(text);
    if (view.type == nullptr) {
      unknown = text.empty() ? "no element type" : text;
      return view;
    }
  }
  if (view.type->name.empty()) refuse(name, "has a storage without an element type");
  read_extent(name, stretch->second, arguments, view);
  return view;
}

void StateDictReader::read_extent(const std::string& name, const Stretch& stretch,
                                  const PicklePart& arguments, TorchView& view) const {
  const PicklePart& sizes = sizes_of(pickle_.item(arguments, 2));
  const PicklePart& strides = sizes_of(pickle_.item(arguments, 3));
  if (sizes.items.size() != strides.items.size())
    refuse(name, "does not have one stride for each size");
  if (sizes.items.size() > static_cast<std::size_t>(kMaxRank))
    throw NotSupported(cat(where_, ": tensor '", shown_key(name), "' has ", sizes.items.size(),
                           " dimensions; the maximum is ", kMaxRank));
  view.rank = static_cast<int>(sizes.items.size());
  for (std::size_t i = 0; i < sizes.items.size(); ++i) {
    view.sizes[i] = whole(name, pickle_.item(sizes, i));
    view.strides[i] = whole(name, pickle_.item(strides, i));
  }
  view.offset = whole(name, pickle_.item(arguments, 1));
  std::uint64_t count = 0;
  if (!count_elements(std::span<const std::uint64_t>(view.sizes, sizes.items.size()), count))
    refuse(name, "has a shape of more than 2^56 elements");
  if (count == 0) return;
  const std::uint64_t room = stretch.items * view.storage->type->item / view.type->item;
  std::uint64_t last = view.offset;
  for (std::size_t i = 0; i < sizes.items.size() && last < room; ++i) {
    const std::uint64_t steps = view.sizes[i] - 1;
    last = steps > 0 && view.strides[i] > room / steps ? room : last + view.strides[i] * steps;
  }
  if (last >= room)
    refuse(name, cat("extends beyond its storage '", shown_key(view.storage->key), "' of ", room,
                     " elements"));
  view.offset += stretch.offset;  // the stretch has the view's own element type
}

std::uint64_t StateDictReader::whole(const std::string& name, const PicklePart& part) const {
  if (part.kind != Kind::Integer || part.integer < 0)
    refuse(name, "has a size, stride or offset that is not a number of at least 0");
  return static_cast<std::uint64_t>(part.integer);
}

// The sizes: a tuple, or torch.Size(tuple).
const PicklePart& StateDictReader::sizes_of(const PicklePart& part) const {
  if (part.kind != Kind::Call || pickle_.item(part, 0).text != "torch.Size") return part;
  const PicklePart& arguments = pickle_.item(part, 1);
  return arguments.items.empty() ? arguments : pickle_.item(arguments, 0);
}

// Form: ('storage', type, key, device, elements[, (key, offset, elements)]).
StateDictReader::Stretch StateDictReader::storage_at(const PicklePart& part) {
  const PicklePart& id = pickle_.item(part, 0);
  const auto is = [&](std::size_t i, Kind kind) { return pickle_.item(id, i).kind == kind; };
  if (id.kind != Kind::Tuple || id.items.size() < 5 || pickle_.item(id, 0).text != "storage" ||
      !is(2, Kind::Text) || !is(4, Kind::Integer))
    damaged("has a storage that is not described as in PyTorch's files");
  const std::string key(pickle_.item(id, 2).text);
  const std::string_view named = type_text(pickle_.item(id, 1));
  const TorchType* type = torch_type(named);
  const std::uint64_t items = whole(cat("storage ", key), pickle_.item(id, 4));
  if (items > std::uint64_t{1} << 56)
    damaged(cat("states that storage '", shown_key(key), "' has ", items, " elements"));
  std::shared_ptr<TorchStorage>& storage = storages_[key];
  if (storage == nullptr) {
    storage = std::make_shared<TorchStorage>();
    storage->type = type;
    storage->items = items;
    storage->key = key;
    if (type == nullptr) storage->unknown = named.empty() ? "no element type" : named;
  }
  if (storage->type != type || storage->items != items)
    damaged(cat("describes storage '", shown_key(key), "' twice, with different values"));
  if (id.items.size() == 5 || is(5, Kind::None)) return {storage, 0, items};
  const PicklePart& stretch = pickle_.item(id, 5);
  if (stretch.kind != Kind::Tuple || stretch.items.size() != 3 || type == nullptr ||
      type->name.empty())
    damaged(cat("describes a part of storage '", shown_key(key), "' in an unknown form"));
  const std::uint64_t offset = whole(key, pickle_.item(stretch, 1));
  const std::uint64_t count = whole(key, pickle_.item(stretch, 2));
  if (offset > items || count > items - offset)
    damaged(cat("has a part of storage '", shown_key(key), "' that is outside the storage"));
  return {storage, offset, count};
}

void StateDictReader::damaged(std::string_view what) const {
  throw FormatError(cat(where_, " ", what));
}

void StateDictReader::refuse(const std::string& name, std::string_view what) const {
  throw FormatError(cat(where_, ": tensor '", shown_key(name), "' ", what));
}

}  // namespace tenon::io
