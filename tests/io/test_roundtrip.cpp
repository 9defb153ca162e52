// Files exchanged with Python's numpy and safetensors, if they are installed. roundtrip.py is the
// Python side.
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/folder.h"

using namespace tenon;

namespace {

template <class T>
void put(std::vector<unsigned char>& bytes, T value) {
  const auto* from = reinterpret_cast<const unsigned char*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

// A 3 x 4 tensor of 0 to 11 in the given dtype; for bool every third element is true.
Tensor table(DType dtype) {
  std::vector<unsigned char> bytes;
  for (int i = 0; i < 12; ++i) switch (dtype) {
      case DType::Bool:
        put(bytes, i % 3 == 0);
        break;
      case DType::UInt8:
        put(bytes, static_cast<std::uint8_t>(i));
        break;
      case DType::Int8:
        put(bytes, static_cast<std::int8_t>(i));
        break;
      case DType::Int32:
        put(bytes, std::int32_t{i});
        break;
      case DType::Int64:
        put(bytes, std::int64_t{i});
        break;
      case DType::Float16:
        put(bytes, float16(static_cast<float>(i)));
        break;
      case DType::BFloat16:
        put(bytes, bfloat16(static_cast<float>(i)));
        break;
      case DType::Float32:
        put(bytes, static_cast<float>(i));
        break;
      case DType::Float64:
        put(bytes, static_cast<double>(i));
        break;
    }
  return Tensor::from_data(bytes.data(), {3, 4}, dtype);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::string_view(static_cast<const char*>(a.data()),
                          static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) ==
             std::string_view(static_cast<const char*>(b.data()),
                              static_cast<std::size_t>(b.numel()) * item_size(b.dtype()));
}

}  // namespace

TEST_CASE("files exchanged with numpy and safetensors") {
  TestFolder dir;
  io::TensorMap tensors{{"scalar", Tensor::from<float>({2.5f}, Shape{})},
                        {"empty", Tensor::from<float>({}, {0, 2})}};
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    tensors[name(dtype)] = table(dtype);
    if (dtype != DType::BFloat16)
      io::save_npy(dir / cat("ours.", name(dtype), ".npy"), table(dtype));
  }
  io::save_npy(dir / "ours.scalar.npy", tensors["scalar"]);
  io::save_safetensors(dir / "ours.safetensors", tensors,
                       {{"made by", "tenon"}, {"\xc3\xa9", "\"\n"}});

  const char* python = std::getenv("TENON_PYTHON");
  const std::string command =
      cat(python != nullptr ? python : "python3", " tests/io/roundtrip.py ", dir.path());
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 77 || code == 127) {
    MESSAGE("skipped: Python with numpy and safetensors is not here");
    return;
  }
  REQUIRE(code == 0);

  const io::SafeTensors theirs = io::load_safetensors(dir / "theirs.safetensors");
  CHECK(theirs.metadata.at("made by") == "python");
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtype == DType::BFloat16) continue;
    CHECK(same(io::load_npy(dir / cat("theirs.", name(dtype), ".npy")), table(dtype)));
    CHECK(same(theirs.tensors.at(name(dtype)), table(dtype)));
  }
  CHECK(same(io::load_npy(dir / "theirs.fortran.npy"), table(DType::Float64)));
  CHECK(same(io::load_npy(dir / "theirs.big.npy"), table(DType::Float32)));
  CHECK(same(io::load_safetensors(dir / "theirs.bf16.safetensors").tensors.at("half"),
             table(DType::BFloat16)));
}
