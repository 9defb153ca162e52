// .npy: all element types both ways, versions, orders, damaged headers.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/folder.h"
#include "io/tensors/npy.h"

using namespace tenon;

namespace {

std::string npy(const std::string& dictionary, const std::string& values, int version = 1) {
  std::string out = cat("\x93NUMPY", static_cast<char>(version), '\0');
  const std::size_t n = dictionary.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out.push_back(static_cast<char>(n >> (8 * i) & 0xff));
  return out + dictionary + values;
}

template <class E = FormatError>
std::string refusal(const std::string& bytes) {
  try {
    io::parse_npy(bytes, "x.npy");
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

TEST_CASE(".npy: round trip of every element type and odd shapes") {
  TestFolder dir;
  std::vector<unsigned char> noise(8 * 35);
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<unsigned char>(i * 37 % 251);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    std::vector<unsigned char> values = noise;
    if (dtype == DType::Bool)
      for (auto& v : values) v &= 1;
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{35}, Shape{5, 7}, Shape{0, 3}, Shape{5, 1, 7, 1}}) {
      const Tensor t = Tensor::from_data(values.data(), shape, dtype);
      if (dtype == DType::BFloat16) {
        CHECK_THROWS_AS(io::save_npy(dir / "t.npy", t), DTypeError);
        continue;
      }
      io::save_npy(dir / "t.npy", t);
      const Tensor back = io::load_npy(dir / "t.npy");
      CHECK(back.dtype() == dtype);
      CHECK(back.shape() == shape);
      CHECK(std::memcmp(back.data(), values.data(),
                        static_cast<std::size_t>(shape.numel()) * item_size(dtype)) == 0);
      CHECK(io::read_file(dir / "t.npy").find('\n') % 64 == 63);
    }
  }
}

TEST_CASE(".npy: versions, byte order, Fortran order, spellings") {
  const std::vector<float> v{1, 2, 3, 4, 5, 6};
  const std::string plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  for (int version : {1, 2, 3})
    CHECK(io::parse_npy(npy(plain, bytes_of(v), version), "x").to_vector<float>() == v);
  CHECK(
      io::parse_npy(
          npy("{\"shape\":(2L,3L),\"descr\":\"<f4\",\"fortran_order\":False}\n", bytes_of(v)), "x")
          .shape() == Shape{2, 3});
  const Tensor f = io::parse_npy(
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", bytes_of(v)), "x");
  CHECK(f.to_vector<float>() == std::vector<float>{1, 3, 5, 2, 4, 6});
  const Tensor big = io::parse_npy(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }",
                                       std::string("\0\0\1\2\xff\xff\xff\xff", 8)),
                                   "x");
  CHECK(big.to_vector<std::int32_t>() == std::vector<std::int32_t>{258, -1});
  const Tensor b = io::parse_npy(
      npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\2\xff", 3)),
      "x");
  CHECK(std::memcmp(b.data(), "\0\1\1", 3) == 0);
}

TEST_CASE(".npy: three axes in Fortran order") {
  const Shape shape{3, 4, 5};
  std::vector<std::int64_t> column_major(60);
  for (std::int64_t i = 0, at = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      for (std::int64_t k = 0; k < 5; ++k)
        column_major[static_cast<std::size_t>(i + 3 * (j + 4 * k))] = at++;
  const Tensor t = io::parse_npy(
      npy("{'descr': '<i8', 'fortran_order': True, 'shape': (3, 4, 5), }", bytes_of(column_major)),
      "x");
  std::vector<std::int64_t> expected(60);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(t.to_vector<std::int64_t>() == expected);
}

TEST_CASE(".npy: damaged, unknown or implausible files are refused") {
  const std::string four(4, '\0');
  CHECK(refusal("") != "");
  CHECK(refusal("\x93NUMPY") != "");
  CHECK(refusal(npy("{}", "", 9)).find("version 9") != std::string::npos);
  CHECK(refusal(std::string("\x93NUMPY\1\0\xff\xff{", 11)).find("65535") != std::string::npos);
  CHECK(refusal(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)).find("4294967295") !=
        std::string::npos);
  CHECK(refusal(npy("{}", "")).find("missing") != std::string::npos);
  for (const char* bad :
       {"", "{", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "{'x': 1}"})
    CHECK(refusal(npy(bad, four)).find("x.npy") == 0);
  const auto shaped = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}";
  };
  CHECK(refusal(npy(shaped("(2,)"), four)).find("truncated") != std::string::npos);
  CHECK(refusal(npy(shaped("(1,)"), four + "x")) != "");
  CHECK(refusal(npy(shaped("(4611686018427387904, 4)"), "")) != "");
  CHECK(refusal(npy(shaped("(288230376151711744, 288230376151711744, 0)"), "")) != "");
  CHECK(refusal(npy(shaped("(0, 288230376151711744, 288230376151711744)"), "")) != "");
  CHECK(refusal<NotSupported>(npy(shaped("(1,1,1,1,1,1,1,1,1)"), four)) != "");
  CHECK(refusal<NotSupported>(npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", four))
            .find("bfloat16") != std::string::npos);
  CHECK(refusal<NotSupported>(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", four))
            .find("c8") != std::string::npos);
  CHECK(refusal<NotSupported>(
            npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four))
            .find("records") != std::string::npos);
}
