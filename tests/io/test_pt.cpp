// PyTorch's files: files of torch.save() are read value for value; files that Tenon writes equal
// the ones that make_weights_fixtures.py loaded with torch.load(); unknown, implausible and damaged
// files are refused by name.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/weights.h>

#include "base/str.h"
#include "io/archives/zip.h"
#include "io/folder.h"
#include "io/tensors/pickle.h"
#include "io/tensors/weight_table.h"

using namespace tenon;

namespace {

const std::string kFolder = "tests/e2e/fixtures/weights/";

// The tensors of expected.safetensors whose names begin with `part`, without this prefix.
io::TensorMap expected(const std::string& part) {
  io::TensorMap out;
  for (const auto& [name, tensor] : io::load_safetensors(kFolder + "expected.safetensors").tensors)
    if (name.starts_with(part + "/")) out.emplace(name.substr(part.size() + 1), tensor);
  return out;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

void check_equal(const io::TensorMap& got, const io::TensorMap& wanted) {
  CHECK(got.size() == wanted.size());
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    REQUIRE(got.contains(name));
    CHECK(same_bytes(got.at(name), tensor));
  }
}

io::TensorMap read_bytes(const std::string& bytes) {
  const io::WeightTable table = io::read_pt(bytes, "x.pt");
  io::TensorMap out;
  for (const io::StoredTensor& tensor : table.tensors)
    out.emplace(tensor.name, table.values[tensor.value]());
  return out;
}

template <class E = FormatError>
std::string refusal_of_pt(const std::string& bytes) {
  try {
    read_bytes(bytes);
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

template <class E = FormatError>
std::string refusal_of_file(const std::string& name) {
  try {
    io::load_weights(kFolder + name);
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

// An archive with this pickle and a storage "0" of 16 bytes.
std::string archive(const std::string& pickle, const std::string& storage = std::string(16, '\1')) {
  io::ZipWriter zip;
  zip.add("a/data.pkl", {pickle});
  zip.add("a/data/0", {storage});
  std::string out;
  for (const std::string_view piece : zip.finish()) out += piece;
  return out;
}

std::string little32(std::uint32_t value) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &value, 4);
  return out;
}
std::string whole(std::int64_t value) {
  std::string out("\x8a\x08", 2);
  out.resize(10);
  std::memcpy(out.data() + 2, &value, 8);
  return out;
}

// A pickle of {"w": view} over four floats, with these numbers.
std::string view_pickle(std::int64_t offset, const std::vector<std::int64_t>& sizes,
                        const std::vector<std::int64_t>& strides, std::int64_t items = 4) {
  const auto tuple = [](const std::vector<std::int64_t>& numbers) {
    std::string out = "(";
    for (const std::int64_t number : numbers) out += whole(number);
    return out + "t";
  };
  const auto text = [](const std::string& words) {
    return cat('X', little32(static_cast<std::uint32_t>(words.size())), words);
  };
  return cat("\x80\x02}", text("w"), "ctorch._utils\n_rebuild_tensor_v2\n((", text("storage"),
             "ctorch\nFloatStorage\n", text("0"), text("cpu"), whole(items), "tQ", whole(offset),
             tuple(sizes), tuple(strides), "\x89NtRs.");
}

}  // namespace

TEST_CASE(".pt: every type, view and tied tensor in all formats of torch.save()") {
  const io::TensorMap all = expected("all");
  REQUIRE(all.size() > 20);
  for (const char* file : {"zip.pt", "legacy.pt", "protocol4.pt"}) {
    CAPTURE(file);
    const io::WeightFile opened(kFolder + file);
    const io::TensorMap got = opened.read_all();
    check_equal(got, all);
    CHECK(got.at("tied.a").node() == got.at("tied.b").node());
    for (std::size_t i = 0; i < opened.tensors().size(); ++i) {
      const io::StoredTensor& tensor = opened.tensors()[i];
      CHECK(same_bytes(opened.read(i), all.at(tensor.name)));
      CHECK(tensor.stored == (tensor.name == "type.int16" ? "int16" : ""));
    }
  }
  CHECK(io::WeightFile(kFolder + "zip.pt").format() == "pt");
  CHECK(io::WeightFile(kFolder + "legacy.pt").format() == "pt (legacy)");
}

TEST_CASE(".pt: checkpoints of nested dictionaries, one tensor, and files of other machines") {
  const io::WeightFile checkpoint(kFolder + "checkpoint.pt");
  check_equal(checkpoint.read_all(), expected("checkpoint"));
  CHECK(checkpoint.metadata().at("epoch") == "3");
  CHECK(checkpoint.metadata().at("best") == "0.5");
  CHECK(checkpoint.metadata().at("arch") == "tiny");
  CHECK(checkpoint.metadata().at("done") == "false");
  const io::TensorMap few = expected("few");
  check_equal(io::load_weights(kFolder + "tensor.pt"), {{"tensor", few.at("a")}});
  for (const char* file : {"few.pt", "big_endian.pt", "no_checksums.pt"}) {
    CAPTURE(file);
    check_equal(io::load_weights(kFolder + file), few);
  }
  check_equal(io::load_weights(kFolder + "stretches.pt"), expected("stretches"));
}

TEST_CASE(".pt: written files equal those that torch.load(weights_only=True) has read") {
  TestFolder dir;
  io::TensorMap all = expected("all");
  all["tied.b"] = all["tied.a"];
  io::save_weights(dir / "ours.pt", all);
  CHECK(io::read_file(dir / "ours.pt") == io::read_file(kFolder + "ours.pt"));
  const io::TensorMap back = io::load_weights(dir / "ours.pt");
  check_equal(back, all);
  CHECK(back.at("tied.a").node() == back.at("tied.b").node());
  io::save_weights(dir / "none.pth", {});
  CHECK(io::load_weights(dir / "none.pth").empty());
  io::save_weights(dir / "a.safetensors", all);
  CHECK(io::WeightFile(dir / "a.safetensors").format() == "safetensors");
  check_equal(io::load_weights(dir / "a.safetensors"), all);
  CHECK_THROWS_AS(io::save_weights(dir / "a.onnx", all), ValueError);
  CHECK_THROWS_AS(io::save_weights(dir / "a.pt", {{"w", Tensor()}}), ValueError);
  CHECK_THROWS_AS(io::WeightFile(dir / "a.safetensors").read(all.size()), ValueError);
}

TEST_CASE(".pt: programs, and files without a readable tensor, are refused by name") {
  for (const char* file : {"foreign.pt", "runs.pt"})
    CHECK(io::load_weights(kFolder + file).size() == 1);
  const std::string ran = io::WeightFile(kFolder + "runs.pt").unread()[0].what;
  CHECK(ran.find("eval'") != std::string::npos);
  CHECK(refusal_of_file<NotSupported>("script.pt").find("TorchScript") != std::string::npos);
  CHECK(io::load_weights(kFolder + "float8.pt").at("layer.w").dtype() == DType::Float32);
  CHECK(refusal_of_file<NotSupported>("complex.pt").find("complex64 [3, 4]") != std::string::npos);
  CHECK(refusal_of_file<NotSupported>("complex.pt").find("'layer.w'") != std::string::npos);
  CHECK(refusal_of_file<NotSupported>("deflated.pt").find("deflated") != std::string::npos);
  CHECK(refusal_of_pt("").find("x.pt") == 0);
  TestFolder dir;
  for (const char* text : {"", "hello, world", "\x80\x02K\1."}) {
    io::write_file(dir / "text", text);
    CHECK_THROWS_AS(io::WeightFile(dir / "text"), FormatError);
  }
  CHECK_THROWS_AS(io::WeightFile(dir / "missing.pt"), IoError);
}

TEST_CASE(
    ".pt: files that are truncated or have a changed byte are refused or read, and never crash") {
  for (const char* file : {"few.pt", "legacy.pt", "stretches.pt", "checkpoint.pt"}) {
    const std::string bytes = io::read_file(kFolder + file);
    for (std::size_t n = 0; n < bytes.size(); n += n < 200 ? 1 : 7) {
      CAPTURE(n);
      CHECK_THROWS_AS(read_bytes(bytes.substr(0, n)), Error);  // a zip's table is at its end
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ 0x41);
      try {
        read_bytes(changed);
      } catch (const FormatError&) {
      } catch (const NotSupported&) {
      }
    }
  }
  // The checksum detects one changed bit of a weight.
  std::string bytes = io::read_file(kFolder + "few.pt");
  const io::WeightTable table = io::read_pt(bytes, "x.pt");
  const std::size_t at = bytes.find(std::string("\0\0\x80\xc0\0\0\x40\xc0", 8));
  REQUIRE(at != std::string::npos);
  bytes[at] = 1;
  CHECK(refusal_of_pt(bytes).find("checksum") != std::string::npos);
}

TEST_CASE(".pt: views must be inside their storage, and storages inside the file") {
  const auto refused = [](std::int64_t offset, const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides, std::int64_t items = 4) {
    return refusal_of_pt(archive(view_pickle(offset, sizes, strides, items)));
  };
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  CHECK(read_bytes(archive(view_pickle(0, {2, 2}, {1, 2}))).at("w").shape() == Shape{2, 2});
  CHECK(read_bytes(archive(view_pickle(0, {7, 4}, {0, 1}))).at("w").shape() == Shape{7, 4});
  CHECK(read_bytes(archive(view_pickle(9, {0, 4}, {huge, 1}))).at("w").numel() == 0);
  CHECK(refused(0, {5}, {1}).find("beyond its storage") != std::string::npos);
  CHECK(refused(1, {4}, {1}).find("'w'") != std::string::npos);
  CHECK(refused(4, {}, {}).find("beyond") != std::string::npos);
  CHECK(refused(0, {2, 2}, {1, 3}).find("beyond") != std::string::npos);
  CHECK(refused(0, {3}, {huge}).find("beyond") != std::string::npos);
  CHECK(refused(huge, {1}, {1}).find("beyond") != std::string::npos);
  CHECK(refused(0, {2}, {-1}).find("not a number of at least 0") != std::string::npos);
  CHECK(refused(-1, {2}, {1}).find("not a number of at least 0") != std::string::npos);
  CHECK(refused(0, {huge, huge}, {0, 0}).find("more than 2^56") != std::string::npos);
  CHECK(refused(0, {std::int64_t{1} << 40}, {0}).find("too much for a file of") !=
        std::string::npos);
  CHECK(refused(0, {4}, {1}, 5).find("has 16 bytes of 20") != std::string::npos);
  CHECK(refused(0, {4}, {1}, huge).find("elements") != std::string::npos);
  CHECK(refused(0, {4}, {1, 1}).find("stride") != std::string::npos);
  CHECK(refusal_of_pt<NotSupported>(
            archive(view_pickle(0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1})))
            .find("9 dimensions") != std::string::npos);
}

TEST_CASE("pickles: damaged, unknown, too deep and endless ones are refused") {
  const auto refused = [](const std::string& pickle) {
    return refusal_of_pt(archive("\x80\x02" + pickle));
  };
  for (const char* damaged : {"",
                              ".",
                              "(.",
                              "NN.",
                              "0.",
                              "1.",
                              "t.",
                              "h\1.",
                              "}N.",
                              "]Ns.",
                              "}Na.",
                              "(Nd.",
                              "R.",
                              "NNR.",
                              ")R.",
                              "Nb",
                              "X\xff\xff\xff\xff.",
                              "\x85.",
                              "Q.",
                              "ctorch",
                              "\x8c\5ab.",
                              "\x8b\xff\xff.",
                              "}(NNNu.",
                              "\x93.",
                              "K\1."}) {
    CAPTURE(damaged);
    CHECK(refused(damaged).find("x.pt: a/data.pkl") == 0);
  }
  // A name alone is not an object, and calls are not executed.
  CHECK(refused("cos\nsystem\n.").find("neither a dictionary") != std::string::npos);
  for (const char* called : {"cos\nsystem\n)R.", "\x8c\2os\x8c\6system\x93)\x81."})
    CHECK(refusal_of_pt<NotSupported>(archive(cat("\x80\x02", called))).find("'os.system'") !=
          std::string::npos);
  CHECK(refusal_of_pt<NotSupported>(archive("\x80\x02I1\n.")).find("instruction 73") !=
        std::string::npos);
  // A list that contains itself, and lists that each contain the previous one twice.
  CHECK(refused("]q\1h\1a.").find("too often") != std::string::npos);
  std::string doubled = "](K\1K\1eq\1";
  for (int i = 0; i < 20; ++i) doubled += "0](h\1h\1eq\1";
  CHECK(refused(doubled + ".").find("too often") != std::string::npos);
  // Many dictionaries built from the same long list.
  std::string again = "](";
  for (int i = 0; i < 300; ++i) again += "]K\1K\1\x86";
  again += "eq\1";
  for (int i = 0; i < 500; ++i) again += "ccollections\nOrderedDict\nh\1\x85R";
  CHECK(refused(again + "0.") != "");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "]";
  for (int i = 1; i < 100000; ++i) deep += "a";
  CHECK(refused(deep + ".").find("nested") != std::string::npos);
}

TEST_CASE("zip archives: overlaps, bombs, missing tables, names that appear twice") {
  const std::string good = archive(view_pickle(0, {4}, {1}));
  REQUIRE(refusal_of_pt(good) == "");
  const std::size_t table = good.find("PK\1\2"), second = good.find("PK\1\2", table + 1),
                    end = good.find("PK\5\6");
  std::string bytes = good;
  bytes.replace(second + 46, 8, good, table + 46, 8);
  bytes[second + 28] = 10;  // the length of the first name
  CHECK(refusal_of_pt(bytes) != "");
  bytes = good;
  bytes.replace(second + 42, 4, good, table + 42, 4);  // both entries have the same offset
  CHECK(refusal_of_pt(bytes) != "");
  bytes = good;
  bytes[end + 16] = static_cast<char>(bytes[end + 16] + 1);
  CHECK(refusal_of_pt(bytes).find("table") != std::string::npos);
  bytes = good;
  bytes[second + 10] = 12;
  CHECK(refusal_of_pt<NotSupported>(bytes).find("compression method 12") != std::string::npos);
  bytes = good;
  bytes[second + 8] = 1;
  CHECK(refusal_of_pt<NotSupported>(bytes).find("encrypted") != std::string::npos);
  bytes = good;
  bytes[second + 10] = 8;
  std::memset(bytes.data() + second + 24, 0xfe, 4);  // 16 bytes that unpack to 4 GB
  CHECK(refusal_of_pt(bytes).find("cannot unpack") != std::string::npos);
}

TEST_CASE("a state dict of many tensors is read and written in linear time") {
  TestFolder dir;
  io::TensorMap many;
  const Tensor shared = Tensor::from<float>({1, 2, 3}, {3});
  for (int i = 0; i < 20000; ++i)
    many.emplace(cat("layer.", i, ".weight"),
                 i % 2 == 0 ? shared : Tensor::from<float>({static_cast<float>(i)}, {1}));
  io::save_weights(dir / "many.pt", many);
  const io::TensorMap back = io::load_weights(dir / "many.pt");
  REQUIRE(back.size() == many.size());
  CHECK(back.at("layer.19999.weight").item() == 19999);
  CHECK(back.at("layer.4.weight").node() == back.at("layer.6.weight").node());
}
