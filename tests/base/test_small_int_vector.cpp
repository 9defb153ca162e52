// SmallIntVector against std::vector.
#include "base/small_int_vector.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace tenon;

namespace {

bool same(const SmallIntVector& list, const std::vector<int>& plain) {
  return list.size() == plain.size() && list.empty() == plain.empty() &&
         std::equal(list.begin(), list.end(), plain.begin(), plain.end());
}

}  // namespace

TEST_CASE("small int vector: equals std::vector, within and beyond the inline storage") {
  std::mt19937 random(7);
  SmallIntVector list;
  std::vector<int> plain;
  for (int k = 0; k < 20000; ++k) {
    const int entry = static_cast<int>(random() % 100);
    const auto place = static_cast<std::size_t>(random() % (plain.size() + 1));
    switch (random() % 8) {
      case 0:
      case 1:
        list.push_back(entry);
        plain.push_back(entry);
        break;
      case 2:
        list.insert(list.begin() + place, entry);
        plain.insert(plain.begin() + static_cast<std::ptrdiff_t>(place), entry);
        break;
      case 3:
        if (place == plain.size()) break;
        list.erase(list.begin() + place);
        plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(place));
        break;
      case 4: {
        const auto is_small = [entry](int x) { return x < entry / 4; };
        list.erase(std::remove_if(list.begin(), list.end(), is_small), list.end());
        std::erase_if(plain, is_small);
        break;
      }
      case 5: {
        SmallIntVector copy(list);
        CHECK(same(copy, plain));
        copy.push_back(entry);
        CHECK(same(list, plain));
        list = std::as_const(copy);
        plain.push_back(entry);
        break;
      }
      case 6: {
        SmallIntVector moved(std::move(list));
        CHECK(same(moved, plain));
        list = SmallIntVector();
        CHECK(list.empty());
        list = std::move(moved);
        break;
      }
      case 7:
        if (k % 50 == 0) {
          list.clear();
          plain.clear();
        } else if (plain.size() > 12) {
          list.assign(plain.data() + 6, plain.data() + plain.size());
          plain.erase(plain.begin(), plain.begin() + 6);
        }
        break;
    }
    REQUIRE(same(list, plain));
    if (!plain.empty()) CHECK(list[plain.size() - 1] == plain.back());
  }
}

TEST_CASE("small int vector: a moved-from vector is empty and usable") {
  for (const int entries : {2, 9}) {
    SmallIntVector list;
    for (int k = 0; k < entries; ++k) list.push_back(k);
    const SmallIntVector other(std::move(list));
    CHECK(other.size() == static_cast<std::size_t>(entries));
    CHECK(list.empty());  // NOLINT(bugprone-use-after-move): that is what is said of it
    for (int k = 0; k < 9; ++k) list.push_back(-k);
    CHECK(list[8] == -8);
    CHECK(other[1] == 1);
  }
}
