// Prints the epilogue of a contraction as a device struct: one function for an element, one for
// neighbours in a row, and a thread's accumulators if the whole result is reduced.
#include <algorithm>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/maps/print_instrs.h"
#include "cuda/engines/maps/print_reduction.h"
#include "plan/regions/channel_sums.h"
#include "plan/regions/groups.h"

namespace tenon::cuda {

namespace {

constexpr std::size_t kSumBytes = 8;  // of one gathered number
constexpr char kDevice[] = "__device__ __forceinline__ ";

/// A map program that only stores the accumulator.
MapProgram with_result(const Region& region, std::span<const Value> values) {
  MapProgram map = region.contraction.has_epilogue ? region.map : MapProgram();
  if (map.has_rows) throw InternalError(cat(region.title, ": an epilogue has no rows"));
  if (!region.contraction.has_epilogue)
    map.space = epilogue_space(region.contraction.op, region.contraction.out_shape,
                               region.contraction.channels_last);
  if (map.space.rank() != 3)
    throw InternalError(
        cat(region.title, ": an epilogue's space is [batch, rows, columns], not ", map.space));
  const ValueId out = region.contraction.out;
  if (out == kNoValue) return map;
  MapInstr result;
  result.code = MapCode::Accumulator;
  result.dtype = values[at(out)].dtype;
  map.instrs.push_back(result);
  MapStore store;
  store.source = static_cast<int>(map.instrs.size()) - 1;
  store.view.value = out;
  store.view.stride[2] = 1;
  store.view.stride[1] = map.space[2];
  store.view.stride[0] = map.space[1] * map.space[2];
  map.stores.push_back(store);
  return map;
}

class EpiloguePrinter {
 public:
  EpiloguePrinter(const Region& region, std::span<const Value> values)
      : map_(with_result(region, values)),
        accumulator_(
            is_floating(region.contraction.dtype)
                ? (region.contraction.dtype == DType::Float64 ? DType::Float64 : DType::Float32)
                : DType::Int64),
        printer_(map_, values,
                 {{map_.space[0], map_.space[1], map_.space[2]}, {"batch", "row", "column"}},
                 arguments_, "", "long long") {
    printer_.set_numbers();
    for (const MapReduce& reduce : map_.reduces) {
      if (keeps_channels(reduce, map_.space) != keeps_channels(map_.reduces[0], map_.space) ||
          reduce.rows != map_.reduces[0].rows)
        throw InternalError(
            cat(region.title, ": an epilogue reduces all of its space, some rows or channels"));
      sums_.push_back({reduce.op, map_.instrs[at(reduce.source)].dtype,
                       values[at(reduce.value)].dtype, reduce.deviations});
    }
    by_rows_ = !map_.reduces.empty() && map_.reduces[0].rows > 0;
    channels_ = !map_.reduces.empty() && !by_rows_ && keeps_channels(map_.reduces[0], map_.space);
    if (by_rows_ || channels_) number_sums();
    for (const Reduction& sum : sums_)
      if (by_rows_ && sum.gathered() != DType::Float32)
        throw InternalError(cat(region.title, ": an epilogue reduces some rows in float32 only"));
    uses_position_ = std::any_of(map_.instrs.begin(), map_.instrs.end(),
                                 [](const MapInstr& i) { return i.code == MapCode::Random; });
  }

  PrintedEpilogue print(const std::string& title) {
    // The version for one element and the one for several use the same members; the first names
    // them.
    const std::string one = channels_ ? std::string() : cat(print_store(), "\n"),
                      held = print_hold();
    const std::string several =
        cat(held, "\n", print_finish(), channels_ ? std::string() : cat("\n", print_store_row()));
    const std::string end = sums_.empty() ? std::string() : cat("\n", print_end());
    const bool whole = !sums_.empty() && !by_rows_ && !channels_;
    const char* include = sums_.empty() ? ""
                          : by_rows_    ? "#include \"cuda/kernels/maps/epilogue_columns.cuh\"\n"
                          : channels_   ? "#include \"cuda/kernels/maps/epilogue_channels.cuh\"\n"
                                        : "#include \"cuda/kernels/maps/epilogue_sums.cuh\"\n";
    const std::string arrivals =
        whole ? cat("__device__ unsigned epilogue_arrivals[", kEpilogueArrivals, "];\n\n")
              : std::string();
    PrintedEpilogue printed;
    printed.code = cat(printer_.includes(), include, "namespace tenon::cuda {\n\n", arrivals, "// ",
                       title, "\nstruct Epilogue {\n", print_sums(), arguments_.members(), "\n",
                       one, several, end, "};\n\n}  // namespace tenon::cuda\n");
    if (channels_) printed.channel_numbers = numbers_;
    if (sums_.empty() || by_rows_)
      printed.arguments = EpilogueArguments(arguments_.block());
    else if (channels_)
      printed.arguments = {arguments_.block(), sizeof(float), partials_word_, arrival_word_};
    else
      printed.arguments = {arguments_.block(), sums_.size() * kSumBytes, partials_word_,
                           arrival_word_};
    return printed;
  }

 private:
  std::string position(const std::string& step) {
    arguments_.number("rows", map_.space[1]);
    arguments_.number("columns", map_.space[2]);
    return cat("(batch * rows + row) * columns + column", step);
  }

  /// Statements for one element; `lane` is "" or the number of the neighbour.
  void compute(CodeWriter& out, const std::string& lane) {
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      const std::string result = InstrPrinter::name('t', i), type = printer_.type(i);
      std::string text, sum;
      switch (instr.code) {
        case MapCode::Accumulator:
          sum = lane.empty() ? "acc" : cat("acc[", lane, "]");
          text = print_cast(sum, accumulator_, instr.dtype);
          break;
        case MapCode::Affine:
          text = printer_.affine(i, lane);
          break;
        case MapCode::Random:
          text = printer_.random_element(i, cat("random_row<1>(r", i, ", position)"), "0");
          break;
        case MapCode::Compute:
          out.line(printer_.compute(i));
          continue;
        case MapCode::RowReduce:
          throw InternalError("an epilogue has no rows");
        default:
          continue;
      }
      out.line(cat("const ", type, " ", result, " = ", text, ";"));
      printer_.set(i, result);
      if (is_16_bit_float(instr.dtype) && accumulator_ == DType::Float32)
        printer_.set_stored(i, std::move(sum));
    }
  }

  void random_draws(CodeWriter& out) {
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i)
      if (map_.instrs[at(i)].code == MapCode::Random) out.line(printer_.random_draw(i));
  }

  std::string print_store() {
    CodeWriter out(1);
    out.line(
        cat("__device__ __forceinline__ void store(long long batch, long long row, "
            "long long column, ",
            compute_type(accumulator_), " acc, Sums& sums) const {"));
    random_draws(out);
    if (uses_position_) out.line(cat("const long long position = ", position(""), ";"));
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      if (instr.code != MapCode::Load) continue;
      const std::string x = InstrPrinter::name('x', i);
      out.line(cat("const ", printer_.type(i), " ", x, " = load(",
                   printer_.address(instr.view, true), ");"));
      printer_.set(i, x);
    }
    compute(out, "");
    for (const MapStore& store : map_.stores)
      out.line(cat("save(", printer_.address(store.view, true), ", ",
                   printer_.get_stored(store.source), ");"));
    if (!by_rows_) gather(out);
    out.line("}");
    return out.text();
  }

  /// Numbers the partial results of each channel or column. A sum next to a variance of the same
  /// numbers is taken from the mean and has no partial result.
  void number_sums() {
    number_.assign(sums_.size(), -1);
    moments_of_.assign(sums_.size(), -1);
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      for (std::size_t o = 0; o < sums_.size(); ++o)
        if (sums_[o].deviations && !sums_[r].deviations && sums_[r].op == Op::Sum &&
            map_.reduces[o].source == map_.reduces[r].source)
          moments_of_[r] = static_cast<int>(o);
      if (moments_of_[r] >= 0) continue;
      number_[r] = numbers_;
      numbers_ += sums_[r].deviations ? 2 : 1;
    }
  }

  /// The numbers that a thread passes on.
  std::string print_taken() const {
    CodeWriter out(1);
    out.line("template <int N>");
    out.line("struct Taken {");
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (number_[r] >= 0) out.line(cat("float s", r, "[N];"));
    out.line("};");
    out.line(cat("static constexpr bool kSums = false, kChannels = true;"));
    out.line(cat("static constexpr int kNumbers = ", numbers_, ";"));
    return out.text();
  }

  /// The type of a thread's accumulators.
  std::string print_sums() const {
    if (channels_) return print_taken();
    CodeWriter taken(1);
    taken.line("static constexpr bool kChannels = false;");
    taken.line("template <int N>");
    taken.line("using Taken = Sums;");
    if (sums_.empty())
      return cat(
          "  struct Sums {};\n  static constexpr bool kSums = false, kColumnSums = false;\n  "
          "static ",
          kDevice, "Sums no_sums() { return {}; }\n", taken.text());
    CodeWriter out(1);
    if (by_rows_) {
      print_column_sums(out);
      return cat(out.text(), taken.text());
    }
    std::string neutral;
    out.line("struct Sums {");
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      out.line(cat("alignas(", kSumBytes, ") ", sums_[r].type(), " s", r, ";"));
      neutral += cat(r == 0 ? "" : ", ", sums_[r].neutral());
    }
    out.line(cat(kDevice, "void add(const Sums& other) {"));
    for (std::size_t r = 0; r < sums_.size(); ++r)
      out.line(cat("s", r, " = ", sums_[r].function(), "::combine(s", r, ", other.s", r, ");"));
    out.line("}");
    out.line(cat(kDevice, "void over_lanes() {"));
    for (std::size_t r = 0; r < sums_.size(); ++r)
      out.line(cat("s", r, " = reduce_lanes<", sums_[r].function(), ", 32>(s", r, ");"));
    out.line("}");
    out.line("};");
    out.line("static constexpr bool kSums = true, kColumnSums = false;");
    out.line(cat("static ", kDevice, "Sums no_sums() { return {", neutral, "}; }"));
    return cat(out.text(), taken.text());
  }

  /// A thread's accumulators for four neighbouring columns.
  void print_column_sums(CodeWriter& out) const {
    out.line("struct Sums {");
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (number_[r] >= 0)
        out.line(cat(sums_[r].deviations ? "Spread<float>" : "float", " s", r, "[4] = {};"));
    out.line("bool begun = false;");
    out.line(cat("template <int kRows>\n  ", kDevice, "void put(float* to, int lane) const {"));
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (number_[r] >= 0)
        out.line(cat("put_columns<kRows>(to + ", number_[r], " * kWarpColumns, lane, s", r, ");"));
    out.line("}");
    out.line("};");
    out.line("static constexpr bool kSums = false, kColumnSums = true;");
    out.line(cat("static constexpr int kNumbers = ", numbers_, ";"));
    out.line(cat("static ", kDevice, "Sums no_sums() { return {}; }"));
  }

  /// Combines a column's partial results of four warps into a block's result.
  void print_save_columns(CodeWriter& out) {
    arguments_.number("columns", map_.space[2]);
    out.line(cat("template <int kRows, int kPitch>\n  ", kDevice,
                 "void save_columns(const float* from, long long block, long long column) const "
                 "{"));
    out.line("const long long place = block * columns + column;");
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (number_[r] >= 0)
        out.line(cat("const auto all", r, " = ",
                     sums_[r].deviations ? "columns_moments" : "columns_sum",
                     "<kRows, kPitch>(from + ", number_[r], " * kWarpColumns);"));
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      const int m = moments_of_[r];
      const std::string x = m >= 0                ? cat("all", m, ".count * all", m, ".mean")
                            : sums_[r].deviations ? cat("all", r, ".squares")
                                                  : cat("all", r);
      out.line(cat("save(", printer_.pointer(map_.reduces[r].value), " + place, ", x, ");"));
    }
    out.line("}");
  }

  void gather_columns(CodeWriter& out) {
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      if (number_[r] < 0) continue;
      const std::string x = sums_[r].element(printer_.get(map_.reduces[r].source), "0");
      out.line(sums_[r].deviations ? cat("sums.s", r, "[i % 4].add(", x, ", !sums.begun);")
                                   : cat("sums.s", r, "[i % 4] += ", x, ";"));
    }
  }

  void gather(CodeWriter& out) {
    if (channels_) {
      for (std::size_t r = 0; r < sums_.size(); ++r)
        if (number_[r] >= 0)
          out.line(cat("sums.s", r,
                       "[i] = ", sums_[r].element(printer_.get(map_.reduces[r].source), "0"), ";"));
      return;
    }
    for (std::size_t r = 0; r < sums_.size(); ++r)
      out.line(cat("sums.s", r, " = ", sums_[r].function(), "::combine(sums.s", r, ", ",
                   sums_[r].element(printer_.get(map_.reduces[r].source), "0"), ");"));
  }

  /// The end of the reduction: stores the totals.
  std::string print_end() {
    CodeWriter out(1);
    if (by_rows_) {
      print_save_columns(out);
      return out.text();
    }
    if (channels_) {
      print_leave(out);
      print_save_channel(out);
    } else {
      print_save_sums(out);
    }
    partials_word_ = static_cast<int>(arguments_.block().words.size());
    arguments_.word(channels_ ? "float*" : "Sums*", "partials", 0);
    if (channels_) return out.text();
    arrival_word_ = static_cast<int>(arguments_.block().words.size());
    arguments_.number("arrival", 0);
    return out.text();
  }

  /// Turns the lanes' values of a channel into partial results.
  void print_leave(CodeWriter& out) {
    out.line("template <int N, class Part>");
    out.line(cat(kDevice, "void leave(const Taken<N>& taken, const Part& part) const {"));
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      const std::string numbers = cat("(", number_[r], ", taken.s", r);
      if (number_[r] >= 0 && sums_[r].deviations)
        out.line(cat("part.deviations", numbers, ");"));
      else if (number_[r] >= 0)
        out.line(cat("part.template reduce<", sums_[r].function(), ">", numbers, ", ",
                     sums_[r].neutral(), ");"));
    }
    out.line("}");
  }

  void print_save_channel(CodeWriter& out) {
    out.line(cat(kDevice, "void save_channel(const ChannelParts& parts, int channel) const {"));
    const auto declare = [&](std::size_t r, const std::string& value) {
      out.line(cat("const ", sums_[r].type(), " s", r, " = ", value, ";"));
    };
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (number_[r] >= 0 && sums_[r].deviations)
        declare(r, cat("combine_moments(parts, ", number_[r], ", kNumbers, channel)"));
      else if (number_[r] >= 0)
        declare(r, cat("combine_channel<", sums_[r].function(), ">(parts, ", number_[r],
                       ", channel, ", sums_[r].neutral(), ")"));
    for (std::size_t r = 0; r < sums_.size(); ++r)
      if (const int m = moments_of_[r]; m >= 0) declare(r, cat("s", m, ".count * s", m, ".mean"));
    out.line("if (threadIdx.x % 32 != 0) return;");
    for (std::size_t r = 0; r < sums_.size(); ++r)
      out.line(cat("save(", printer_.pointer(map_.reduces[r].value), " + channel, ",
                   sums_[r].result(cat("s", r)), ");"));
    out.line("}");
  }

  void print_save_sums(CodeWriter& out) {
    out.line(cat(kDevice, "unsigned* arrived() const { return &epilogue_arrivals[arrival]; }"));
    out.line(cat(kDevice, "void save_sums(const Sums& sums) const {"));
    for (std::size_t r = 0; r < sums_.size(); ++r)
      out.line(cat("save(", printer_.pointer(map_.reduces[r].value), ", ",
                   sums_[r].result(cat("sums.s", r)), ");"));
    out.line("}");
    out.line("template <int kThreads>");
    out.line(cat(kDevice, "void end_block(const Sums& gathered) const {"));
    out.line("tenon::cuda::end_block<kThreads>(*this, gathered);");
    out.line("}");
    out.line("template <int kThreads, class Sync>");
    out.line(cat(kDevice,
                 "void combine_partials(int thread, unsigned blocks, unsigned count, const Sync& "
                 "sync) const {"));
    out.line("tenon::cuda::combine_partials<kThreads>(*this, thread, blocks, count, sync);");
    out.line("}");
  }

  /// The loads of the region at N neighbours as members of a struct, so that a kernel can start the
  /// loads of several elements before it stores any.
  std::string print_hold() {
    CodeWriter members(1), loads(2), again(2), unused;
    std::int64_t varying = 0;  // bytes of an element
    members.line("template <int N>");
    members.line("struct Held {");
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      if (instr.code != MapCode::Load) continue;
      printer_.hold_row(members, loads, i, true);
      if (!varies_by_row(instr.view)) continue;
      printer_.hold_row(unused, again, i, true);
      const int packed = printer_.packed_bytes(instr.view);
      varying += packed > 0
                     ? packed
                     : std::max<std::int64_t>(4, static_cast<std::int64_t>(item_size(instr.dtype)));
    }
    members.line("};");
    CodeWriter out(1), next(1);
    out.line("template <int N>");
    out.line(
        "__device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) "
        "const {");
    out.line("Held<N> held;");
    // Offsets for another row of the same columns.
    next.line(cat("static constexpr int kVaryingBytes = ", varying, ";"));
    next.line("template <int N>");
    next.line(
        cat(kDevice,
            "void hold_again(Held<N>& held, long long batch, long long row, long long column) "
            "const {"));
    return cat(members.text(), out.text(), loads.text(), "    return held;\n  }\n", next.text(),
               again.text(), "  }\n");
  }
  bool varies_by_row(const View& view) const {
    return (map_.space[0] != 1 && view.stride[0] != 0) ||
           (map_.space[1] != 1 && view.stride[1] != 0);
  }

  std::string print_finish() {
    CodeWriter out(1);
    out.line("template <int N>");
    out.line(cat(
        "__device__ __forceinline__ void finish(long long batch, long long row, "
        "long long column, const ",
        compute_type(accumulator_), " (&acc)[N], const Held<N>& held, Taken<N>& sums) const {"));
    random_draws(out);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(printer_.type(map_.stores[s].source), " ",
                   InstrPrinter::name('y', static_cast<int>(s)), "[N];"));
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    if (uses_position_) out.line(cat("const long long position = ", position(" + i"), ";"));
    compute(out, "i");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(InstrPrinter::name('y', static_cast<int>(s)),
                   "[i] = ", printer_.get_stored(map_.stores[s].source), ";"));
    if (by_rows_)
      gather_columns(out);
    else
      gather(out);
    out.line("}");
    if (by_rows_) out.line("sums.begun = true;");
    for (std::size_t s = 0; s < map_.stores.size(); ++s) printer_.save_row(out, s);
    out.line("}");
    return out.text();
  }

  std::string print_store_row() const {
    return cat(
        "  template <int N>\n  __device__ __forceinline__ void store_row(long long batch, long "
        "long "
        "row, long long column, const ",
        compute_type(accumulator_),
        " (&acc)[N], Sums& sums) const {\n    finish(batch, row, column, acc, hold<N>(batch, row, "
        "column), sums);\n  }\n");
  }

  const MapProgram map_;
  const DType accumulator_;
  Arguments arguments_;
  InstrPrinter printer_;
  bool uses_position_ = false;
  bool by_rows_ = false;  // reduces some rows at a time
  std::vector<Reduction> sums_;
  bool channels_ = false;  // reduces each row, not the whole result
  // By channel sum: its first partial result, and the sum that also gives its moments.
  std::vector<int> number_, moments_of_;
  int numbers_ = 0;
  int partials_word_ = -1, arrival_word_ = -1;
};

}  // namespace

PrintedEpilogue print_epilogue(const Region& region, std::span<const Value> values, const Target&) {
  return EpiloguePrinter(region, values).print(region.title);
}

}  // namespace tenon::cuda
