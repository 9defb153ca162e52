// Drawn digits: equal bytes on every machine, plausible images, MNIST's layout.
#include <zlib.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>

#include "data/drawn/digit_shapes.h"
#include "data/drawn/digits.h"

using namespace tenon;

TEST_CASE("digits: a thousand digits have the recorded bytes") {
  std::vector<std::uint8_t> pixels(1000 * data::kDigitPixels), labels(1000);
  data::draw_digits(1, 0, 1000, pixels.data(), labels.data());
  CHECK(crc32(0, pixels.data(), static_cast<uInt>(pixels.size())) == 0xfa3a3e3bu);
  CHECK(crc32(0, labels.data(), static_cast<uInt>(labels.size())) == 0x9df6f78cu);
}

TEST_CASE("digits: single digits, in any order, equal the digits of a batch") {
  std::vector<std::uint8_t> pixels(130 * data::kDigitPixels), labels(130);
  data::draw_digits(7, 20, 130, pixels.data(), labels.data());
  std::array<std::uint8_t, data::kDigitPixels> one{};
  for (int i : {129, 0, 64, 63}) {
    one.fill(77);
    const auto index = static_cast<std::uint64_t>(20 + i);
    data::draw_digit(7, index, one.data());
    CHECK(std::equal(one.begin(), one.end(), pixels.begin() + i * data::kDigitPixels));
    CHECK(labels[static_cast<std::size_t>(i)] == data::digit_label(7, index));
  }
}

TEST_CASE("digits: every ten samples have each class once, in changing order") {
  std::set<std::string> orders;
  for (std::uint64_t block = 0; block < 50; ++block) {
    std::string order;
    for (std::uint64_t i = 0; i < 10; ++i)
      order.push_back(static_cast<char>('0' + data::digit_label(3, block * 10 + i)));
    CHECK(std::set<char>(order.begin(), order.end()).size() == 10);
    orders.insert(order);
  }
  CHECK(orders.size() > 45);
}

TEST_CASE("digits: the ink is inside the image, centred, neither too little nor too much") {
  std::array<std::uint8_t, data::kDigitPixels> p{};
  std::set<std::uint32_t> seen;
  for (std::uint64_t index = 0; index < 500; ++index) {
    data::draw_digit(11, index, p.data());
    double mass = 0, x = 0, y = 0;
    int border = 0;
    for (int at = 0; at < data::kDigitPixels; ++at) {
      const int row = at / data::kDigitSide, column = at % data::kDigitSide;
      const double ink = p[static_cast<std::size_t>(at)];
      mass += ink;
      x += ink * (column + 0.5);
      y += ink * (row + 0.5);
      if (row == 0 || column == 0 || row == data::kDigitSide - 1 || column == data::kDigitSide - 1)
        border += ink > 128;
    }
    CHECK(mass > 255 * 15);
    CHECK(mass < 255 * 400);
    CHECK(std::abs(x / mass - 14) < 2.5);
    CHECK(std::abs(y / mass - 14) < 2.5);
    CHECK(border <= 4);
    seen.insert(static_cast<std::uint32_t>(crc32(0, p.data(), data::kDigitPixels)));
  }
  CHECK(seen.size() == 500);
}

TEST_CASE("digits: the variants of a form can be blended, and weights sum to one") {
  for (int digit = 0; digit < 10; ++digit) {
    float sum = 0;
    for (const data::DigitForm& form : data::digit_forms(digit)) {
      sum += form.weight;
      const data::Variant& first = form.variants.front();
      REQUIRE(first.size() <= 24);
      for (const data::Variant& variant : form.variants) {
        REQUIRE(variant.size() == first.size());
        for (std::size_t i = 0; i < first.size(); ++i) {
          CHECK(variant[i].corner == first[i].corner);
          CHECK(variant[i].stroke_start == first[i].stroke_start);
          CHECK(variant[i].x <= 1.0f);
          CHECK(variant[i].y <= 1.0f);
        }
      }
    }
    CHECK(sum == doctest::Approx(1.0f));
  }
}

TEST_CASE("digits as a set: drawn once, then read from memory, with equal bytes") {
  const auto set = data::drawn_digits(5, 40);
  CHECK(set->size() == 40);
  CHECK(set->input_shape() == Shape{1, 28, 28});
  CHECK(set->classes() == 10);
  CHECK(set->class_names()[9] == "9");
  CHECK_FALSE(set->in_memory());
  std::vector<std::int64_t> all(40), target(40), again(40);
  for (std::size_t i = 0; i < 40; ++i) all[i] = static_cast<std::int64_t>(39 - i);
  std::vector<std::uint8_t> first(40 * 784, 1), second(40 * 784, 2);
  set->get(all, first.data(), target.data());
  CHECK(set->in_memory());
  set->get(all, second.data(), again.data());
  CHECK(first == second);
  CHECK(target == again);
  CHECK(target[0] == data::digit_label(5, 39));
  CHECK_THROWS_AS(data::drawn_digits(0, 0), ValueError);
  CHECK_THROWS_AS(data::drawn_digits(0, std::int64_t{1} << 60), ValueError);
}
