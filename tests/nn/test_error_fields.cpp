// Errors of operations and files carry as fields what their messages say.
#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/layers.h>
#include <tenon/loops.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/text.h>
#include <tenon/weights.h>

#include "io/folder.h"
#include "train/adapting/standardized.h"

using namespace tenon;

namespace {

/// The error that `f` throws; its type must be `E`.
template <class E, class F>
E thrown_by(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error;
  }
  throw InternalError("nothing was thrown");
}

class Block : public nn::Module {
 public:
  Block() : conv_(child("conv", nn::Conv2d(32, 8, 3))) {}
  Tensor forward(const Tensor& x) const override { return conv_(x); }

 private:
  nn::Conv2d conv_;
};

}  // namespace

TEST_CASE("errors: a shape error in a nested module names operation, layer path and operands") {
  const nn::Sequential inner{Block()}, net{nn::ReLU(), inner};
  const Shape input{2, 64, 8, 8}, weight{8, 32, 3, 3};
  const auto error = thrown_by<ShapeError>([&] { net(zeros(input)); });
  CHECK(error.operation() == "conv2d");
  CHECK(error.layer() == "1.0.conv");
  CHECK(error.shapes() == std::vector<Shape>{input, weight});
  CHECK(error.file().empty());
  CHECK(error.line() == 0);
  CHECK(std::string(error.what()).starts_with("conv2d (1.0.conv): "));
}

TEST_CASE("errors: outside of layers the layer is empty; the composite that was called is named") {
  const auto sum = thrown_by<ShapeError>([] { (void)(zeros({2, 3}) + zeros({4})); });
  CHECK(sum.operation() == "add");
  CHECK(sum.layer().empty());
  CHECK(sum.shapes() == std::vector<Shape>{{2, 3}, {4}});
  const auto axis = thrown_by<ShapeError>([] { unsqueeze(zeros({2}), 7); });
  CHECK(axis.operation() == "unsqueeze");
  const Scope scope("head");
  const auto pool = thrown_by<ShapeError>([] { max_pool3d(zeros({2, 3})); });
  CHECK(pool.operation() == "max_pool3d");
  CHECK(pool.layer() == "head");
  CHECK(pool.shapes() == std::vector<Shape>{{2, 3}});
  const auto type = thrown_by<DTypeError>([] { dropout(zeros({2}, DType::Int64)); });
  CHECK(type.operation() == "dropout");
  CHECK(type.layer() == "head");
}

TEST_CASE("errors: of loops and branches whose values differ") {
  const Scope scope("encoder");
  const Tensor c = zeros({3}), x = zeros({4, 3}), yes = scalar(true, DType::Bool);
  using Tensors = std::vector<Tensor>;
  const auto carry = thrown_by<ShapeError>([&] {
    scan([](const Tensors& in, const Tensors&) { return ScanResult{{sum(in[0])}, {}}; }, {c}, {x});
  });
  CHECK(std::string(carry.what()) ==
        "scan (encoder): carry 0 begins as float32[3] and a step returns float32[]");
  CHECK(carry.operation() == "scan");
  CHECK(carry.layer() == "encoder");
  CHECK(carry.shapes() == std::vector<Shape>{{3}, {}});
  const auto branch = thrown_by<DTypeError>([&] {
    cond(
        yes, [](const Tensors& in) { return in; },
        [](const Tensors& in) { return Tensors{cast(in[0], DType::Float64)}; }, {c});
  });
  CHECK(std::string(branch.what()) ==
        "cond (encoder): result 0 is float32[3] in one branch and float64[3] in the other: cast "
        "one of them");
  CHECK(branch.operation() == "cond");
  CHECK(branch.layer() == "encoder");
}

TEST_CASE("errors: an index that only the run finds names operation and layer too") {
  const Tensor table = ones({3, 2}), index = Tensor::from<std::int64_t>({0, 9}, {2});
  const Scope scope("words");
  const Tensor rows = embedding(index, table);
  const auto error = thrown_by<ValueError>([&] { rows.compute(); });
  CHECK(error.operation() == "embedding");
  CHECK(error.layer() == "words");
}

TEST_CASE("errors: outside of operations the shapes are those that the message names") {
  const auto item = thrown_by<ShapeError>([] { (void)zeros({2, 3}).item(); });
  CHECK(item.shapes() == std::vector<Shape>{{2, 3}});
  const auto targets = thrown_by<ShapeError>([] {
    train::StandardizedLoss()(zeros({4, 2}), zeros({4}));
  });
  CHECK(targets.shapes() == std::vector<Shape>{{4, 2}, {4}});
}

TEST_CASE("errors: fields survive copies and are empty where the error is about none") {
  const auto error = thrown_by<ShapeError>([] { matmul(zeros({2, 3}), zeros({4, 5})); });
  const Error base = error;
  CHECK(base.operation() == "matmul");
  CHECK(base.shapes().size() == 2);
  static_assert(std::is_nothrow_copy_constructible_v<ShapeError>);
  const ValueError plain("no fields");
  CHECK(plain.operation().empty());
  CHECK(plain.shapes().empty());
  CHECK(plain.fields().line == 0);
  const ValueError own("mine", {.operation = "augment", .file = "a.csv", .line = 3});
  CHECK(own.operation() == "augment");
  CHECK(own.file() == "a.csv");
  CHECK(own.line() == 3);
}

TEST_CASE("errors: of files, the file and the line") {
  const TestFolder folder;
  const std::string rows = folder / "rows.csv", list = folder / "list.csv",
                    pairs = folder / "pairs.tsv", toml = folder / "net.toml",
                    npy = folder / "x.npy", gone = folder / "gone.csv";
  io::write_file(rows, "a,b,label\n1,2,x\n3,y\n");
  const auto short_row = thrown_by<FormatError>([&] { data::open_csv(rows); });
  CHECK(short_row.file() == rows);
  CHECK(short_row.line() == 3);
  CHECK(short_row.operation().empty());
  io::write_file(toml, "name = \"net\"\nlayers = [ { linear = }\n");
  const auto syntax = thrown_by<FormatError>([&] {
    models::create(models::NetworkFile{toml, io::read_file(toml)});
  });
  CHECK(syntax.file() == toml);
  CHECK(syntax.line() == 2);
  io::write_file(npy, "no numpy");
  const auto bytes = thrown_by<FormatError>([&] { io::load_npy(npy); });
  CHECK(bytes.file() == npy);
  CHECK(bytes.line() == 0);
  const auto missing = thrown_by<IoError>([&] { data::open_csv(gone); });
  CHECK(missing.file() == gone);
  // Readers of lines say the line; whoever opens the file adds its name.
  io::write_file(pairs, "one\tuno\ntwo\n");
  const auto pair = thrown_by<FormatError>([&] { data::open_pairs(pairs, data::Split::Train); });
  CHECK(pair.file() == pairs);
  CHECK(pair.line() == 2);
}

TEST_CASE("errors: of images, tables, lists, weights and networks, the file and the line") {
  const TestFolder folder;
  const std::string image = folder / "x.pam", rows = folder / "rows.csv",
                    list = folder / "list.csv", weights = folder / "old.pt",
                    other = folder / "x.weights", network = folder / "net.toml";
  io::write_file(image, "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\nx");
  CHECK(thrown_by<NotSupported>([&] { io::load_image(image); }).file() == image);

  io::write_file(rows, "a,label\n1,x\n2,y\n3,z\n");
  const auto column =
      thrown_by<ValueError>([&] { data::open_csv(rows, {.label_name = "colour"}); });
  CHECK(column.file() == rows);
  CHECK(std::string(column.what()).starts_with(rows + ": has no column 'colour'"));
  const auto label = thrown_by<FormatError>([&] {
    data::open_csv(rows, {.class_names = {"x", "z"}});
  });
  CHECK(label.file() == rows);
  CHECK(label.line() == 3);
  const auto encoding =
      thrown_by<ValueError>([&] { data::open_csv(rows, {.rows = {.encoding = "utf-9"}}); });
  CHECK(encoding.file() == rows);
  io::write_file(rows, "a,label\n1,0.25\n2,0.5\n");
  CHECK(thrown_by<FormatError>([&] { data::open_csv(rows); }).file() == rows);

  io::write_file(list, "1.jpg\n2.jpg\n");
  const auto line =
      thrown_by<FormatError>([&] { data::open_dataset("list:" + list, data::Split::All); });
  CHECK(line.file() == list);
  CHECK(line.line() == 1);

  // PyTorch's magic number, and a pickle that ends too early.
  io::write_file(weights, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80");
  const auto pickle = thrown_by<FormatError>([&] { io::load_weights(weights); });
  CHECK(pickle.file() == weights);
  CHECK(std::string(pickle.what()).starts_with(weights + ": version at byte 15: "));
  CHECK(thrown_by<ValueError>([&] { io::save_weights(other, {}); }).file() == other);

  io::write_file(network, "name = \"net\"\ninput = [1]\nlayers = [ { linear = 2 } ]\n");
  const models::NetworkFile file{network, io::read_file(network)};
  CHECK(thrown_by<ValueError>([&] { models::create(file, {.activation = "relu"}); }).file() ==
        network);
}
