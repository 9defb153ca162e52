// CardModels of cards: those known by name, those made from a driver's properties, and the file in
// the cache folder that `tenon doctor` writes of a card that is not known by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/card_model.h"

namespace tenon::cuda {

/// A card that is known by name: from NVIDIA's data sheets.
std::optional<CardModel> named_card(std::string_view name);

/// What is the same for all cards of an architecture (ten times the compute capability), on a chip
/// as its largest data-centre card has it.
CardModel card_of_arch(int arch);

/// What choices go by where kernels cannot be compiled: the model of the card of this architecture
/// for which they were compiled ahead (tools/idle_card.cpp).
CardModel card_compiled_for(int arch);

/// "tenon-card 1" and a line a measured figure: multiply-adds a cycle, bytes a second.
std::string card_text(const CardModel& card);
/// Takes over the figures of such a text; false, and nothing taken, when it is none.
bool read_card(std::string_view text, CardModel& card);

/// Takes over what was measured of a card of that name in this cache folder, if anything.
void add_measured(std::string_view name, CardModel& card);
/// Keeps it there.
void keep_measured(std::string_view name, const CardModel& card);

}  // namespace tenon::cuda
