// Runs a chain in bands: each worker computes one band of an image with all parts of the chain, one
// after another.
//
// Kernels of convolutions and poolings need contiguous images, so intermediate values are in a
// worker's scratch, as whole rows of all channels. Rows of other values are copied there, and
// results are copied out. Maps access whole values in place. Bands of equal height and padding
// share a kernel. Bands are cut by shape alone, so the number of threads does not change the bits.
#include "cpu/engines/run/chain_bands.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/engines/run/workspace.h"
#include "plan/merge/bands.h"

namespace tenon::cpu {
namespace {

using Engines = std::span<const Engine* const>;

/// The parts, and how they access entries and rows.
struct BandChain {
  std::vector<PartRows> rows;
  std::vector<std::vector<ChainAccess>> entries;  // of each part alone
  std::vector<Capabilities> can;

  /// Null, or the reason why the part cannot be the last one.
  const char* add(const Region& part, std::int64_t samples, std::span<const Value> values,
                  Engines engines) {
    const Engine* engine = first_that_claims(engines, part, values);
    if (engine == nullptr) return "runs on no engine that can compute it piece by piece";
    can.push_back(engine->capabilities(part, values));
    if (can.back().no_bands != nullptr) return can.back().no_bands;
    const char* why = list_accesses(part, can.back(), values, samples, entries.emplace_back());
    return why == nullptr ? list_rows(part, values, rows.emplace_back()) : why;
  }
};

class BandKernel final : public Kernel {
 public:
  BandKernel(const Region& chain, std::span<const Value> values, int threads, Engines engines)
      : chain_(chain) {
    for (const Region& part : chain.parts) parts_.add(part, chain.samples, values, engines);
    cut_bands(values, engines);
    place_values(values.size());
    std::size_t kernels = 0;
    for (const auto& kernel : kernels_) kernels = std::max(kernels, kernel->workspace_bytes);
    workers_ = std::min<std::int64_t>(threads, pieces());
    scratch_bytes_ = kernels_offset_ + whole_lines(kernels);
    workspace_bytes = scratch_bytes_ * at(workers_);
  }

  void run(const Binding& binding) const override {
    std::atomic<std::int64_t> next = 0;
    parallel_for(workers_, [&](std::int64_t worker, int) {
      const OnlyThread only;
      std::byte* const mine = binding.workspace + scratch_bytes_ * at(worker);
      for (std::int64_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces();)
        run_band(binding, piece / bands(), bands_[at(piece % bands())], mine);
    });
  }

 private:
  struct Stage {
    PartBand band;
    std::size_t kernel = 0;
  };
  using Band = std::vector<Stage>;

  /// The address of a value for a part: a byte step per entry and per row, or an offset in the
  /// scratch.
  struct Place {
    ValueId value = kNoValue;
    std::int64_t entry = 0, row = 0, rows = 0;  // rows: of the whole value
    std::int64_t places = 1;                    // of an entry: channels
    bool in_scratch = false, local = false, operand = false;
    std::size_t offset = 0;
  };

  std::int64_t bands() const { return static_cast<std::int64_t>(bands_.size()); }
  std::int64_t pieces() const { return chain_.samples * bands(); }

  void cut_bands(std::span<const Value> values, Engines engines) {
    using Key = std::array<std::int64_t, 4>;
    std::map<Key, std::size_t> known;
    const std::int64_t rows = parts_.rows.back().rows;
    std::vector<PartBand> met;
    for (std::int64_t first = 0; first < rows; first += chain_.band) {
      list_bands(chain_, parts_.rows, {first, std::min(chain_.band, rows - first)}, true, met);
      Band& band = bands_.emplace_back();
      for (std::size_t k = 0; k < met.size(); ++k) {
        const Key key{static_cast<std::int64_t>(k), met[k].made.count, met[k].read.count,
                      met[k].pad};
        const auto [found, is_new] = known.emplace(key, kernels_.size());
        if (is_new) kernels_.push_back(prepared(k, met[k], values, engines));
        band.push_back({met[k], found->second});
      }
    }
  }

  std::unique_ptr<Kernel> prepared(std::size_t k, const PartBand& band,
                                   std::span<const Value> values, Engines engines) const {
    std::vector<Value> shapes(values.begin(), values.end());
    const Region entry = sliced(chain_.parts[k], parts_.can[k], chain_, 1, shapes);
    const Region band_part = cut_to_band(entry, parts_.rows[k], band, chain_, shapes);
    return first_that_claims(engines, band_part, shapes)->prepare(band_part, shapes, 1);
  }

  // Placed behind the table of pointers: intermediate values once, copies for each part.
  void place_values(std::size_t values) {
    std::size_t top = whole_lines(values * sizeof(std::byte*));
    std::map<ValueId, std::size_t> locals;
    for (std::size_t k = 0; k < chain_.parts.size(); ++k) {
      std::vector<Place>& places = places_.emplace_back();
      for (const ChainAccess& access : parts_.entries[k]) {
        Place place = place_of(k, access);
        const auto found = locals.find(place.value);
        if (place.in_scratch && found != locals.end()) {
          place.offset = found->second;
        } else if (place.in_scratch) {
          place.offset = top;
          top += whole_lines(at(most_rows(k, place.operand) * place.row * place.places));
          if (place.local) locals.emplace(place.value, place.offset);
        }
        places.push_back(place);
      }
    }
    kernels_offset_ = top;
  }

  Place place_of(std::size_t k, const ChainAccess& access) const {
    const PartRows& own = parts_.rows[k];
    Place place;
    place.value = access.value;
    place.entry = access.step;
    place.local = contains(chain_.local, access.value);
    place.operand = access.value == own.operand;
    const ChainAccess* rows = own.find(access.value);
    if (rows == nullptr) return place;
    place.row = rows->step;
    place.rows = place.operand ? own.operand_rows : own.rows;
    place.places = rows->places / chain_.samples;
    const bool one_piece = place.operand || access.value == own.result;
    place.in_scratch = place.local || (one_piece && place.places > 1);
    return place;
  }

  // Over all bands.
  std::int64_t most_rows(std::size_t k, bool read) const {
    std::int64_t most = 0;
    for (const Band& band : bands_)
      most = std::max(most, (read ? band[k].band.read : band[k].band.made).count);
    return most;
  }

  void run_band(const Binding& binding, std::int64_t entry, const Band& band,
                std::byte* mine) const {
    auto** table = reinterpret_cast<std::byte**>(mine);
    for (std::size_t k = 0; k < band.size(); ++k) {
      const auto rows_of = [&](const Place& place) {
        return place.operand ? band[k].band.read : band[k].band.made;
      };
      const auto whole = [&](const Place& place) {
        return binding.values[place.value] + entry * place.entry + rows_of(place).first * place.row;
      };
      for (const Place& place : places_[k]) {
        table[place.value] = place.in_scratch ? mine + place.offset : whole(place);
        if (place.in_scratch && !place.local && place.operand)
          copy_rows(place, rows_of(place).count, whole(place), place.rows, mine + place.offset,
                    rows_of(place).count);
      }
      kernels_[band[k].kernel]->run({table, mine + kernels_offset_, nullptr});
      for (const Place& place : places_[k])
        if (place.in_scratch && !place.local && !place.operand)
          copy_rows(place, rows_of(place).count, mine + place.offset, rows_of(place).count,
                    whole(place), place.rows);
    }
  }

  // Copies the rows of each channel; channels are `rows_from` and `rows_to` rows apart.
  static void copy_rows(const Place& place, std::int64_t count, const std::byte* from,
                        std::int64_t rows_from, std::byte* to, std::int64_t rows_to) {
    for (std::int64_t k = 0; k < place.places; ++k)
      std::memcpy(to + k * rows_to * place.row, from + k * rows_from * place.row,
                  at(count * place.row));
  }

  const Region chain_;
  BandChain parts_;
  std::vector<Band> bands_;
  std::vector<std::vector<Place>> places_;  // of each part
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::int64_t workers_ = 1;
  std::size_t kernels_offset_ = 0, scratch_bytes_ = 0;  // in and of a worker's scratch
};

}  // namespace

const char* band_refusal(const Region& chain, std::span<const Value> values, Engines engines,
                         const Region** part) {
  BandChain parts;
  for (const Region& next : chain.parts) {
    *part = &next;
    if (const char* why = parts.add(next, chain.samples, values, engines)) return why;
  }
  std::vector<PartBand> bands;
  const bool hands_on = list_bands(chain, parts.rows, {0, chain.band}, false, bands);
  return hands_on ? nullptr : "computes a value that no later region reads row by row";
}

std::unique_ptr<Kernel> prepare_bands(const Region& chain, std::span<const Value> values,
                                      int threads, Engines engines) {
  return std::make_unique<BandKernel>(chain, values, threads, engines);
}

}  // namespace tenon::cpu
