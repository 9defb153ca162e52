// Shapes: limits of construction, axes and broadcasting, and error messages.
#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/shape.h>

#include <cstdint>

using namespace tenon;

TEST_CASE("shape: sizes, rank and text") {
  CHECK(Shape{}.rank() == 0);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{}.str() == "[]");
  const Shape s{64, 3, 28, 28};
  CHECK(s.str() == "[64, 3, 28, 28]");
  CHECK(s.numel() == 64 * 3 * 28 * 28);
  CHECK(s.at(-1) == 28);
  CHECK(s.at(0) == 64);
  CHECK_THROWS_AS(s.at(4), ShapeError);
  CHECK_THROWS_AS(s.at(-5), ShapeError);
  CHECK(Shape{5, 0}.numel() == 0);
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{1} != Shape{});
}

TEST_CASE("shape: limits are errors") {
  CHECK_THROWS_WITH_AS((Shape{2, -1}), doctest::Contains("negative size -1 on axis 1"), ShapeError);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  const std::int64_t big = std::int64_t{1} << 29;
  CHECK_NOTHROW(Shape{big, 2 * big});  // the largest: float64 elements whose bytes fit int64
  CHECK_THROWS_AS((Shape{big, 2 * big, 2}), ShapeError);
  CHECK_THROWS_AS((Shape{0, 2 * big, 2 * big, 2 * big}),
                  ShapeError);  // strides would overflow, although a size is 0
  Shape full{1, 1, 1, 1, 1, 1, 1};
  full.push_back(3);
  CHECK(full.rank() == kMaxRank);
  CHECK_THROWS_AS(full.push_back(1), ShapeError);
  CHECK(full == Shape{1, 1, 1, 1, 1, 1, 1, 3});
}

TEST_CASE("shape: axes from either end") {
  CHECK(normalize_axis(-1, 3, "sum") == 2);
  CHECK(normalize_axis(0, 3, "sum") == 0);
  CHECK_THROWS_WITH_AS(normalize_axis(3, 3, "sum"),
                       "sum: axis 3 is outside [-3, 2] for a tensor of rank 3", ShapeError);
  CHECK_THROWS_WITH_AS(normalize_axis(0, 0, "sum"), doctest::Contains("scalar"), ShapeError);
}

TEST_CASE("shape: broadcasting") {
  CHECK(broadcast_shapes({8, 1, 6, 1}, {7, 1, 5}, "add") == Shape{8, 7, 6, 5});
  CHECK(broadcast_shapes({}, {3, 0}, "add") == Shape{3, 0});
  CHECK(broadcast_shapes({1}, {0}, "add") == Shape{0});
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {4, 3}, "add"),
                       doctest::Contains("add: shapes [2, 3] and [4, 3] do not broadcast: axis -2"),
                       ShapeError);
  CHECK_THROWS_AS(broadcast_shapes({2}, {0}, "add"), ShapeError);
}
