// Preprocessing of a photograph of a digit, step by step. Every step works on float planes from 0
// (black) to 1 (white).
#include "image.h"

#include <fmt/core.h>
#include <tenon/error.h>

#include <algorithm>
#include <cmath>

#include "terminal.h"

namespace tenon::cli {
namespace {

struct Plane {
  int width = 0, height = 0;
  std::vector<float> values;
  Plane(int w, int h)
      : width(w), height(h), values(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {}
  float& at(int x, int y) {
    return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
  float at(int x, int y) const {
    return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

Plane to_plane(const io::Image& image) {
  Plane plane(image.width, image.height);
  for (std::size_t i = 0; i < plane.values.size(); ++i)
    plane.values[i] = static_cast<float>(image.pixels[i]) / 255.0f;
  return plane;
}

// Median of the pixels along the four edges: the background.
float background(const Plane& plane) {
  std::vector<float> edge;
  for (int x = 0; x < plane.width; ++x)
    edge.push_back(plane.at(x, 0)), edge.push_back(plane.at(x, plane.height - 1));
  for (int y = 0; y < plane.height; ++y)
    edge.push_back(plane.at(0, y)), edge.push_back(plane.at(plane.width - 1, y));
  const auto middle = edge.begin() + static_cast<std::ptrdiff_t>(edge.size() / 2);
  std::nth_element(edge.begin(), middle, edge.end());
  return *middle;
}

// Area average over [x0, x1) x [y0, y1), with fractional edges.
float area_mean(const Plane& plane, double x0, double x1, double y0, double y1) {
  double sum = 0, weight = 0;
  for (int y = std::max(0, static_cast<int>(y0)); y < std::min<double>(plane.height, std::ceil(y1));
       ++y) {
    const double wy = std::min<double>(y + 1, y1) - std::max<double>(y, y0);
    for (int x = std::max(0, static_cast<int>(x0));
         x < std::min<double>(plane.width, std::ceil(x1)); ++x) {
      const double w = wy * (std::min<double>(x + 1, x1) - std::max<double>(x, x0));
      sum += w * static_cast<double>(plane.at(x, y)), weight += w;
    }
  }
  return weight > 0 ? static_cast<float>(sum / weight) : 0.0f;
}

Plane resized(const Plane& plane, int width, int height) {
  Plane out(width, height);
  const double sx = static_cast<double>(plane.width) / width,
               sy = static_cast<double>(plane.height) / height;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      out.at(x, y) = area_mean(plane, x * sx, (x + 1) * sx, y * sy, (y + 1) * sy);
  return out;
}

// Larger images contain no more information about one digit than this many pixels per side.
Plane limited(const Plane& plane, int side) {
  const int longest = std::max(plane.width, plane.height);
  if (longest <= side) return plane;
  const double scale = static_cast<double>(side) / longest;
  return resized(plane, std::max(1, static_cast<int>(std::lround(plane.width * scale))),
                 std::max(1, static_cast<int>(std::lround(plane.height * scale))));
}

// Running maximum over 2 * radius + 1 values of a line. The line is cut into blocks; a window of
// the result covers the end of one block and the start of the next, so two running maxima suffice
// for any radius.
void convert_line(const std::vector<float>& in, std::vector<float>& out, int radius) {
  const int n = static_cast<int>(in.size()), window = 2 * radius + 1;
  std::vector<float> ahead(in), behind(in);
  for (int i = 1; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i % window != 0) behind[at] = std::max(behind[at], behind[at - 1]);
  }
  for (int i = n - 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if ((i + 1) % window != 0) ahead[at] = std::max(ahead[at], ahead[at + 1]);
  }
  for (int i = 0; i < n; ++i) {
    const int first = std::max(0, i - radius), last = std::min(n - 1, i + radius);
    float most =
        std::max(ahead[static_cast<std::size_t>(first)], behind[static_cast<std::size_t>(last)]);
    // At the edges the window is truncated, and both ends may be in one block.
    if (last / window == first / window && last - first + 1 < window)
      most = *std::max_element(in.begin() + first, in.begin() + last + 1);
    out[static_cast<std::size_t>(i)] = most;
  }
}

// Grey dilation by a square: bright areas grow by `radius`.
Plane dilated(const Plane& plane, int radius) {
  Plane out = plane;
  std::vector<float> line, wide;
  for (int y = 0; y < plane.height; ++y) {
    const auto row = out.values.begin() + static_cast<std::ptrdiff_t>(y) * plane.width;
    line.assign(row, row + plane.width);
    wide.resize(line.size());
    convert_line(line, wide, radius);
    std::copy(wide.begin(), wide.end(), row);
  }
  for (int x = 0; x < plane.width; ++x) {
    line.clear();
    for (int y = 0; y < plane.height; ++y) line.push_back(out.at(x, y));
    wide.resize(line.size());
    convert_line(line, wide, radius);
    for (int y = 0; y < plane.height; ++y) out.at(x, y) = wide[static_cast<std::size_t>(y)];
  }
  return out;
}

// Estimates uneven lighting of the paper: the brightness after everything narrower than a pen
// stroke is filled.
Plane without_lighting(const Plane& ink) {
  Plane dark = ink;
  for (float& value : dark.values) value = 1 - value;
  const int radius = std::max(2, std::max(ink.width, ink.height) / 10);
  // Closing of the paper's brightness: dilation, then erosion (dilation of the complement).
  Plane paper = dilated(dark, radius);
  for (float& value : paper.values) value = 1 - value;
  paper = dilated(paper, radius);
  Plane out = ink;
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = std::max(0.0f, ink.values[i] - paper.values[i]);
  return out;
}

// Otsu's threshold: the threshold that best separates two groups of values.
float threshold(const Plane& plane) {
  constexpr int kBins = 256;
  std::vector<double> histogram(kBins);
  for (const float value : plane.values)
    ++histogram[static_cast<std::size_t>(
        std::clamp(static_cast<int>(value * 255.0f), 0, kBins - 1))];
  double total = 0, sum = 0;
  for (int i = 0; i < kBins; ++i)
    total += histogram[static_cast<std::size_t>(i)],
        sum += i * histogram[static_cast<std::size_t>(i)];
  double below = 0, below_sum = 0, best = -1;
  int cut = 0;
  for (int i = 0; i < kBins - 1; ++i) {
    below += histogram[static_cast<std::size_t>(i)],
        below_sum += i * histogram[static_cast<std::size_t>(i)];
    if (below == 0 || below == total) continue;
    const double gap = below_sum / below - (sum - below_sum) / (total - below);
    const double between = below * (total - below) * gap * gap;
    if (between > best) best = between, cut = i;
  }
  return (static_cast<float>(cut) + 1.0f) / 255.0f;
}

struct Blob {
  std::vector<std::size_t> pixels;
  int left, top, right, bottom;
  bool touches_edge;
};

// Connected components (8 neighbours) of pixels above the threshold.
std::vector<Blob> blobs(const Plane& plane, float cut) {
  std::vector<Blob> found;
  std::vector<char> seen(plane.values.size());
  std::vector<std::size_t> stack;
  const auto width = static_cast<std::size_t>(plane.width);
  for (std::size_t start = 0; start < seen.size(); ++start) {
    if (seen[start] != 0 || plane.values[start] < cut) continue;
    Blob blob{{}, plane.width, plane.height, -1, -1, false};
    stack.assign(1, start);
    seen[start] = 1;
    while (!stack.empty()) {
      const std::size_t at = stack.back();
      stack.pop_back();
      blob.pixels.push_back(at);
      const int x = static_cast<int>(at % width), y = static_cast<int>(at / width);
      blob.left = std::min(blob.left, x), blob.right = std::max(blob.right, x);
      blob.top = std::min(blob.top, y), blob.bottom = std::max(blob.bottom, y);
      for (int ny = std::max(0, y - 1); ny <= std::min(plane.height - 1, y + 1); ++ny)
        for (int nx = std::max(0, x - 1); nx <= std::min(plane.width - 1, x + 1); ++nx) {
          const std::size_t next =
              static_cast<std::size_t>(ny) * width + static_cast<std::size_t>(nx);
          if (seen[next] == 0 && plane.values[next] >= cut) seen[next] = 1, stack.push_back(next);
        }
    }
    blob.touches_edge = blob.left == 0 || blob.top == 0 || blob.right == plane.width - 1 ||
                        blob.bottom == plane.height - 1;
    found.push_back(std::move(blob));
  }
  return found;
}

struct Cutout {
  Plane plane;
  double stroke;  ///< mean width of a stroke, in pixels
  int dropped;    ///< specks and edges left out
};

// Keeps the ink only: removes specks far smaller than the largest component, and components that
// touch the image border.
Cutout cut_out(const Plane& ink, float cut, const std::string& what) {
  std::vector<Blob> all = blobs(ink, cut);
  std::size_t largest = 0;
  const bool inside = std::any_of(
      all.begin(), all.end(), [](const Blob& b) { return !b.touches_edge && b.pixels.size() > 8; });
  for (const Blob& blob : all)
    if (!inside || !blob.touches_edge) largest = std::max(largest, blob.pixels.size());
  if (largest < 4)
    throw FormatError(
        fmt::format(
            "{}: there is no ink on this image; write one digit, dark on light or light on dark",
            what),
        {.file = what});
  Plane kept(ink.width, ink.height);
  int left = ink.width, top = ink.height, right = -1, bottom = -1, dropped = 0;
  double area = 0;
  for (const Blob& blob : all) {
    if ((inside && blob.touches_edge) || blob.pixels.size() * 25 < largest) {
      ++dropped;
      continue;
    }
    for (const std::size_t at : blob.pixels) kept.values[at] = ink.values[at];
    area += static_cast<double>(blob.pixels.size());
    left = std::min(left, blob.left), right = std::max(right, blob.right);
    top = std::min(top, blob.top), bottom = std::max(bottom, blob.bottom);
  }
  double edge = 0;  // pixel sides between ink and paper
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      if (kept.at(x, y) < cut) continue;
      edge += (x == 0 || kept.at(x - 1, y) < cut) + (x + 1 == ink.width || kept.at(x + 1, y) < cut);
      edge +=
          (y == 0 || kept.at(x, y - 1) < cut) + (y + 1 == ink.height || kept.at(x, y + 1) < cut);
    }
  Plane box(right - left + 1, bottom - top + 1);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) box.at(x - left, y - top) = kept.at(x, y);
  // A long stroke has two edges; a slanting one has up to 1.4 times as many pixel sides as its
  // length.
  return {std::move(box), edge > 0 ? 2.4 * area / edge : 1, dropped};
}

Plane framed(const Plane& plane, int border) {
  Plane out(plane.width + 2 * border, plane.height + 2 * border);
  for (int y = 0; y < plane.height; ++y)
    for (int x = 0; x < plane.width; ++x) out.at(x + border, y + border) = plane.at(x, y);
  return out;
}

// Places `small` on a black plane with its centre of mass in the middle, inside the frame if
// possible.
Plane centred(const Plane& small, int width, int height) {
  double mass = 0, mx = 0, my = 0;
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x) {
      const double value = static_cast<double>(small.at(x, y));
      mass += value, mx += value * (x + 0.5), my += value * (y + 0.5);
    }
  const int left =
      std::clamp(static_cast<int>(std::lround(width / 2.0 - mx / mass)), 0, width - small.width);
  const int top =
      std::clamp(static_cast<int>(std::lround(height / 2.0 - my / mass)), 0, height - small.height);
  Plane out(width, height);
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x) out.at(left + x, top + y) = small.at(x, y);
  return out;
}

Glyph to_glyph(const Plane& plane, std::string how) {
  Glyph glyph{plane.width, plane.height, {}, std::move(how)};
  glyph.pixels.reserve(plane.values.size());
  for (const float value : plane.values)
    glyph.pixels.push_back(
        static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 1.0f) * 255.0f)));
  return glyph;
}

}  // namespace

Glyph prepare(const io::Image& grey, int width, int height, const std::string& what) {
  Plane plane = to_plane(grey);
  std::vector<std::string> steps;
  const bool fits = plane.width == width && plane.height == height;
  if (const bool light_paper = background(plane) > 0.5f; light_paper) {
    for (float& value : plane.values) value = 1 - value;
    steps.emplace_back("dark ink on light paper inverted");
  }
  if (fits) return to_glyph(plane, join(steps, ", "));
  plane = without_lighting(limited(plane, 400));
  const float brightest = *std::max_element(plane.values.begin(), plane.values.end());
  if (brightest < 0.1f)
    throw FormatError(
        fmt::format(
            "{}: there is no ink on this image; write one digit, dark on light or light on dark",
            what),
        {.file = what});
  for (float& value : plane.values) value /= brightest;
  const float cut = threshold(plane);
  Cutout cutout = cut_out(plane, cut, what);
  steps.push_back(cutout.dropped > 0
                      ? fmt::format("digit cropped ({} specks removed)", cutout.dropped)
                      : "digit cropped");
  if (cutout.dropped > 30) steps.emplace_back("the image hardly looks like one digit");
  // Saturates pixels that are certainly ink, so pencil counts as much as a felt pen.
  for (float& value : cutout.plane.values)
    value = std::min(1.0f, value / std::min(1.0f, 1.5f * cut));
  const int inner_w = width * 5 / 7, inner_h = height * 5 / 7;
  const int longest = std::max(cutout.plane.width, cutout.plane.height);
  // MNIST's strokes are about a tenth of the digit's height; thinner strokes would fade when scaled
  // down.
  const int missing = static_cast<int>((0.1 * longest - cutout.stroke) / 2);
  if (missing > 0) {
    cutout.plane = dilated(framed(cutout.plane, missing), missing);
    steps.emplace_back("thin strokes thickened");
  }
  const double scale = std::min(static_cast<double>(inner_w) / cutout.plane.width,
                                static_cast<double>(inner_h) / cutout.plane.height);
  const Plane small =
      resized(cutout.plane, std::max(1, static_cast<int>(std::lround(cutout.plane.width * scale))),
              std::max(1, static_cast<int>(std::lround(cutout.plane.height * scale))));
  steps.push_back(fmt::format("scaled to {} x {}", small.width, small.height));
  steps.push_back(fmt::format("centred in {} x {}", width, height));
  return to_glyph(centred(small, width, height), join(steps, ", "));
}

Fitted fit(const io::Image& colour, int width, int height) {
  const double scale = std::min(static_cast<double>(colour.width) / width,
                                static_cast<double>(colour.height) / height);
  const int used_width = std::max(1, static_cast<int>(std::lround(scale * width))),
            used_height = std::max(1, static_cast<int>(std::lround(scale * height)));
  const int left = (colour.width - used_width) / 2, top = (colour.height - used_height) / 2;
  constexpr float kLuma[] = {0.299f, 0.587f, 0.114f};
  Plane grey(width, height);
  Fitted out;
  for (int channel = 0; channel < 3; ++channel) {
    Plane part(used_width, used_height);
    for (int y = 0; y < used_height; ++y)
      for (int x = 0; x < used_width; ++x) {
        const auto pixel =
            static_cast<std::size_t>(top + y) * static_cast<std::size_t>(colour.width) +
            static_cast<std::size_t>(left + x);
        part.at(x, y) =
            static_cast<float>(colour.pixels[3 * pixel + static_cast<std::size_t>(channel)]) /
            255.0f;
      }
    const Plane small = resized(part, width, height);
    const Glyph plane = to_glyph(small, "");
    out.planes.insert(out.planes.end(), plane.pixels.begin(), plane.pixels.end());
    for (std::size_t i = 0; i < grey.values.size(); ++i)
      grey.values[i] += kLuma[channel] * small.values[i];
  }
  std::vector<std::string> steps;
  if (used_width != colour.width || used_height != colour.height)
    steps.push_back(fmt::format("its middle, {} x {}", used_width, used_height));
  if (used_width != width || used_height != height)
    steps.push_back(fmt::format("scaled to {} x {}", width, height));
  out.grey = to_glyph(grey, join(steps, ", "));
  return out;
}

std::vector<std::string> draw(const Glyph& glyph) {
  static constexpr char kRamp[] = " .:-=+*#%@";
  const Terminal& terminal = stdout_terminal();
  const bool blocks = terminal.utf8 && terminal.color;
  const auto level = [&](int x, int y) {
    return y < glyph.height
               ? glyph.pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(glyph.width) +
                              static_cast<std::size_t>(x)]
               : 0;
  };
  const auto grey = [](int value) { return 232 + value * 23 / 255; };
  std::vector<std::string> lines;
  for (int y = 0; y < glyph.height; y += 2) {
    std::string line, inks;
    for (int x = 0; x < glyph.width; ++x) {
      const int upper = level(x, y), lower = level(x, y + 1);
      if (!blocks) {
        line += kRamp[(upper + lower) * 9 / 510];
        continue;
      }
      // Colours are set only where they change, which makes the output ten times shorter.
      std::string wanted = fmt::format("\x1b[38;5;{};48;5;{}m", grey(upper), grey(lower));
      if (wanted != inks) line += inks = std::move(wanted);
      line += "▀";
    }
    lines.push_back(blocks ? line + "\x1b[0m" : line);
  }
  return lines;
}

}  // namespace tenon::cli
