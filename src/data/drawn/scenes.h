// Synthetic scenes: colour images of one object among clutter, in CIFAR's shape (3 x 32 x 32, ten
// classes) or any other size.
//
// The class is the outline of the object only: its colours, texture, lighting, position, size and
// angle, the background and the clutter are drawn independently of the class. An image depends on
// (seed, index, side) only and is the same, byte for byte, on every machine. Every ten consecutive
// indices hold each class once.
#pragma once

#include <cstdint>

namespace tenon::data {

inline constexpr int kSceneSide = 32, kSceneChannels = 3, kSceneClasses = 10;
inline constexpr const char* kSceneNames[kSceneClasses] = {
    "ball", "ring", "box", "triangle", "star", "cross", "moon", "heart", "fish", "house"};

/// The class of a scene, in [0, kSceneClasses).
int scene_label(std::uint64_t seed, std::uint64_t index);

/// Draws one scene into three planes (red, green, blue) of side x side bytes, row by row.
void draw_scene(std::uint64_t seed, std::uint64_t index, int side, std::uint8_t* pixels);

}  // namespace tenon::data
