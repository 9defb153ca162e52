// A program outside the source tree: it sees only the installed files.
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/shape.h>

#include <cstdio>

int main() {
  const tenon::Shape shape = tenon::broadcast_shapes({2, 1}, {3}, "consumer");
  std::printf("%s %s\n", tenon::name(tenon::promote(tenon::DType::Int8, tenon::DType::Float32)),
              shape.str().c_str());
  try {
    tenon::dtype_from_name("flaot32");
  } catch (const tenon::ValueError& error) {  // typed errors cross the library boundary
    std::printf("%s\n", error.what());
    return shape == tenon::Shape{2, 3} ? 0 : 1;
  }
  return 1;
}
