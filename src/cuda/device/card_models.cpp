// Sources: NVIDIA's data sheets of H200, H100, A100, L40 and L40S; the white papers of GA100, AD102
// and GH100 for rates of a multiprocessor. Clocks are those at which the sheets' rates hold.
#include "cuda/device/card_models.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/cache_file.h"
#include "base/str.h"

namespace tenon::cuda {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::string_view kFormat = "tenon-card 1\n";

/// `cache`: as the driver counts it.
constexpr CardModel hopper(int multiprocessors, double clock, double memory, std::int64_t cache) {
  CardModel card;
  card.cache_bytes = cache;
  card.multiprocessors = multiprocessors;
  card.clock = clock;
  card.memory = memory;
  return card;
}

constexpr CardModel ampere(int multiprocessors, double clock, double memory) {
  CardModel card = hopper(multiprocessors, clock, memory, 40 * kMiB);
  card.shared_bytes = 156 * 1024;
  card.fp64 = 32, card.fp32 = 64, card.tf32 = 512, card.half = 1024;
  card.mma_share = 0.9;  // as CUTLASS's figures have it: mma.sync is all that there is
  return card;
}

/// Also 8.6, which has the same multiprocessor. `half`: with sums in float32, which GeForce cards
/// make at half the rate.
constexpr CardModel ada(int multiprocessors, double clock, double memory, std::int64_t cache,
                        double half) {
  CardModel card = ampere(multiprocessors, clock, memory);
  card.cache_bytes = cache;
  card.shared_bytes = 96 * 1024;
  card.fp64 = 2, card.fp32 = 128, card.tf32 = half / 2, card.half = half;
  return card;
}

/// Its mma.sync is Hopper's; twice its rates are reached by instructions of its own.
constexpr CardModel blackwell(int multiprocessors, double clock, double memory) {
  CardModel card = hopper(multiprocessors, clock, memory, 126 * kMiB);
  card.tf32 *= 2, card.half *= 2, card.mma_share /= 2;
  return card;
}

struct Named {
  std::string_view name;  // how the driver's name begins
  CardModel card;
};

// Longer names before those that they begin with.
constexpr Named kNamed[] = {
    {"NVIDIA B200", blackwell(148, 1.85e9, 8.0e12)},
    {"NVIDIA H200", hopper(132, 1.755e9, 4.8e12, 60 * kMiB)},
    {"NVIDIA H100 PCIe", hopper(114, 1.62e9, 2.0e12, 50 * kMiB)},
    {"NVIDIA H100", hopper(132, 1.755e9, 3.35e12, 50 * kMiB)},
    {"NVIDIA A100-PCIE-40GB", ampere(108, 1.41e9, 1.555e12)},
    {"NVIDIA A100-SXM4-40GB", ampere(108, 1.41e9, 1.555e12)},
    {"NVIDIA A100", ampere(108, 1.41e9, 2.039e12)},
    {"NVIDIA GeForce RTX 4090", ada(128, 2.52e9, 1.008e12, 72 * kMiB, 256)},
    {"NVIDIA L40S", ada(142, 2.52e9, 0.864e12, 96 * kMiB, 512)},
    {"NVIDIA L40", ada(142, 2.49e9, 0.864e12, 96 * kMiB, 256)},
};

/// What doctor measures, by name.
template <class Card>
auto figures(Card& card) {
  return std::array<std::pair<std::string_view, decltype(&card.memory)>, 4>{
      {{"memory", &card.memory}, {"fp32", &card.fp32}, {"tf32", &card.tf32}, {"half", &card.half}}};
}

}  // namespace

std::optional<CardModel> named_card(std::string_view name) {
  for (const Named& each : kNamed)
    if (name.starts_with(each.name)) return each.card;
  return {};
}

CardModel card_of_arch(int arch) {
  if (arch == 80 || arch == 87) return *named_card("NVIDIA A100");
  if (arch < 90) return *named_card("NVIDIA GeForce RTX 4090");
  return *named_card(arch == 90 ? "NVIDIA H200" : "NVIDIA B200");
}

CardModel card_compiled_for(int arch) { return card_of_arch(arch < 90 ? 80 : arch); }

std::string card_text(const CardModel& card) {
  std::string text(kFormat);
  for (const auto& [name, figure] : figures(card))
    text += cat(name, " ", static_cast<std::int64_t>(std::llround(*figure)), "\n");
  return text;
}

bool read_card(std::string_view text, CardModel& card) {
  if (!text.starts_with(kFormat)) return false;
  text.remove_prefix(kFormat.size());
  CardModel read = card;
  for (const auto& [name, figure] : figures(read)) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with(' ')) return false;
    text.remove_prefix(name.size() + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *figure);
    if (error != std::errc() || !(*figure > 0 && std::isfinite(*figure))) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('\n')) return false;
    text.remove_prefix(1);
  }
  card = read;
  return text.empty();
}

namespace {

std::string file_of(std::string_view name) {
  std::string file;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    file += plain ? c : '_';
  }
  const std::string folder = cache_folder_of("cards");
  return folder.empty() ? "" : cat(folder, "/", file);
}

}  // namespace

void add_measured(std::string_view name, CardModel& card) {
  constexpr std::size_t kLargest = std::size_t{1} << 16;
  const std::string file = file_of(name);
  if (file.empty()) return;
  if (const std::optional<std::string> text = read_cache_file(file, kLargest))
    read_card(*text, card);
}

void keep_measured(std::string_view name, const CardModel& card) {
  if (const std::string file = file_of(name); !file.empty())
    write_cache_file(file, {card_text(card)});
}

}  // namespace tenon::cuda
