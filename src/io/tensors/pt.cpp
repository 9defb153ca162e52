// PyTorch's files: the pickle of a state dict and the bytes of its storages, which are entries of a
// zip archive, or follow the pickle in files written before PyTorch 1.6.
#include <bit>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/archives/zip.h"
#include "io/byte_order.h"
#include "io/tensors/pt_state_dict.h"

namespace tenon::io {
namespace {

constexpr std::size_t kMostPickle = std::size_t{64} << 20;
constexpr bool kLittle = std::endian::native == std::endian::little;

// The folder of all entries of an archive, with the slash.
std::string archive_root(const ZipReader& zip, const std::string& name) {
  for (const ZipEntry& entry : zip.entries()) {
    const std::size_t slash = entry.name.find('/');
    if (slash != std::string::npos &&
        entry.name.compare(slash + 1, std::string::npos, "data.pkl") == 0)
      return entry.name.substr(0, slash + 1);
  }
  throw make_error<FormatError>(FileName{name},
                                ": the zip archive has no data.pkl: PyTorch did not write it");
}

void place_in_archive(TorchStorage& storage, const std::shared_ptr<const ZipReader>& zip,
                      const std::string& root, const std::string& name) {
  const std::string entry = cat(root, "data/", storage.key.substr(0, 120));
  if (storage.type == nullptr) return;
  const std::uint64_t needed = storage.items * storage.type->item;
  storage.entry = zip->find(cat(root, "data/", storage.key));
  storage.archive = zip;
  if (storage.entry == nullptr)
    throw make_error<FormatError>(FileName{name}, ": '", entry, "', a storage of ", needed,
                                  " bytes, is missing: the "
                                  "file is damaged");
  if (storage.entry->deflated)
    throw make_error<NotSupported>(FileName{name}, ": '", entry,
                                   "' is compressed; torch.save() stores tensors "
                                   "uncompressed: unpack the archive and save again");
  if (storage.entry->size < needed)
    throw make_error<FormatError>(FileName{name}, ": '", entry, "' has ", storage.entry->size,
                                  " bytes of ", needed, ": the file is damaged");
}

WeightTable read_zip_pt(std::string_view bytes, const std::string& name) {
  const auto zip = std::make_shared<const ZipReader>(bytes, name);
  const std::string root = archive_root(*zip, name);
  if (zip->find(root + "constants.pkl") != nullptr)
    throw make_error<NotSupported>(
        FileName{name},
        ": is a TorchScript program, which contains code: load it in PyTorch "
        "and save its state_dict()");
  const ZipEntry* order = zip->find(root + "byteorder");
  const bool swapped = order != nullptr && zip->stored(*order) == (kLittle ? "big" : "little");
  const std::string where = cat(name, ": ", root, "data.pkl");
  const ZipEntry& entry = *zip->find(root + "data.pkl");
  if (entry.size > kMostPickle)
    throw FormatError(cat(where, ": has ", entry.size, " bytes, more than the ", kMostPickle,
                          " that are allowed for names and shapes"));
  const Pickle pickle = parse_pickle(zip->stored(entry), where);
  StateDictReader reader(pickle, where);
  for (const auto& [key, storage] : reader.storages()) {
    place_in_archive(*storage, zip, root, name);
    storage->swapped = swapped;
  }
  WeightTable table;
  table.format = "pt";
  reader.read(table);
  return table;
}

// Files from before PyTorch 1.6. Five pickles: magic number, version, properties of the machine,
// state dict, list of storages. Then each storage: number of elements, elements.
class LegacyPt {
 public:
  LegacyPt(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  WeightTable read() {
    next("magic number");
    next("version");
    read_machine(next("properties of the machine"));
    const std::string where = cat(name_, ": state dict at byte ", at_);
    const Pickle pickle = next("state dict");
    StateDictReader reader(pickle, where);
    read_storages(next("list of storages"), reader.storages());
    WeightTable table;
    table.format = "pt (legacy)";
    reader.read(table);
    return table;
  }

 private:
  Pickle next(std::string_view what) {
    const std::string where = cat(name_, ": ", what, " at byte ", at_);
    Pickle pickle = parse_pickle(bytes_.substr(at_, kMostPickle), where);
    at_ += pickle.length;
    return pickle;
  }
  void read_machine(const Pickle& pickle) {
    const PicklePart& facts = pickle.at(pickle.root);
    if (facts.kind != PicklePart::Kind::Dict) return;
    for (std::size_t i = 0; i < facts.items.size(); i += 2)
      if (pickle.item(facts, i).text == "little_endian")
        little_ = pickle.item(facts, i + 1).integer != 0;
  }
  void read_storages(const Pickle& pickle, TorchStorages missing) {
    const PicklePart& list = pickle.at(pickle.root);
    if (list.kind != PicklePart::Kind::List)
      throw make_error<FormatError>(FileName{name_},
                                    ": the list of storages is missing: the file is damaged");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string key(pickle.item(list, i).text);
      const auto found = missing.find(key);
      if (found == missing.end())
        throw make_error<FormatError>(FileName{name_}, ": lists storage '", key.substr(0, 120),
                                      "' twice or without a tensor: the file is damaged");
      place(*found->second);
      missing.erase(found);
    }
    if (!missing.empty())
      throw make_error<FormatError>(FileName{name_}, ": storage '",
                                    missing.begin()->first.substr(0, 120),
                                    "' is missing: the file is damaged");
  }
  void place(TorchStorage& storage) {
    if (storage.type == nullptr)
      throw make_error<NotSupported>(
          FileName{name_}, ": storage '", storage.key.substr(0, 120), "' is of ",
          storage.unknown.substr(0, 120),
          ", whose size is unknown, so the storages after it cannot be found: save "
          "the file again with torch.save()");
    const std::uint64_t size = storage.items * storage.type->item;
    std::uint64_t items = 0;
    const std::string_view rest = bytes_.substr(at_);
    if (rest.size() >= sizeof items)
      items =
          little_ ? read_little<std::uint64_t>(rest.data()) : read_big<std::uint64_t>(rest.data());
    if (rest.size() < sizeof items || items != storage.items || size > rest.size() - sizeof items)
      throw make_error<FormatError>(FileName{name_}, ": storage '", storage.key.substr(0, 120),
                                    "' of ", storage.items, " elements is not at byte ", at_,
                                    ": the file is truncated or damaged, fetch it again");
    storage.bytes = rest.substr(sizeof items, static_cast<std::size_t>(size));
    storage.swapped = little_ != kLittle;
    at_ += sizeof items + static_cast<std::size_t>(size);
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  bool little_ = true;
};

}  // namespace

bool is_legacy_pt(std::string_view bytes) noexcept {
  // A protocol 2 pickle of PyTorch's magic number, 0x1950a86a20f9469cfc6c.
  return bytes.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
}

WeightTable read_pt(std::string_view bytes, const std::string& name) {
  WeightTable table;
  try {
    table = is_zip(bytes) ? read_zip_pt(bytes, name) : LegacyPt(bytes, name).read();
  } catch (const FormatError& error) {  // readers of pickles begin with a part of the file
    throw in_file(name, error);
  } catch (const NotSupported& error) {
    throw in_file(name, error);
  }
  check_weights(table, bytes.size(), name);
  if (table.tensors.empty() && !table.unread.empty()) {
    const Unread& first = table.unread.front();
    throw make_error<NotSupported>(
        FileName{name}, ": contains no readable tensor, but ", first.what, " ('",
        first.name.substr(0, 120), "')",
        table.unread.size() > 1 ? cat(" and ", table.unread.size() - 1, " more") : "",
        ": code in a file is not executed; load the file in PyTorch and save "
        "model.state_dict(), in a type such as float32");
  }
  return table;
}

}  // namespace tenon::io
