// The formulas are those of ONNX's Resize; positions are doubles.  An output at position p of the
// input reads the places around it: two for linear, four for cubic, more where antialiasing widens
// the window of a smaller output.  Places beyond the input are its edge.
#include "ridge/onnx/import/converters/image_resize_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

constexpr double kMostEntries = 1 << 22;

Result<double> PositionOf(const ResizeMode& mode, const OnnxResizeAxis& axis, int64_t o) {
  const auto x = static_cast<double>(o), input = static_cast<double>(axis.input);
  const double output = axis.scale * input;  // need not be whole
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (mode.coordinates == "half_pixel") return half_pixel;
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "pytorch_half_pixel") return axis.output > 1 ? half_pixel : 0.0;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "align_corners") return output == 1 ? 0 : x * (input - 1) / (output - 1);
  if (mode.coordinates == "half_pixel_symmetric")
    return input / 2 * (1 - static_cast<double>(axis.output) / output) + half_pixel;
  if (mode.coordinates == "tf_crop_and_resize") {
    const double width = axis.roi_end - axis.roi_start;
    if (axis.output <= 1) return 0.5 * (axis.roi_start + axis.roi_end) * (input - 1);
    return axis.roi_start * (input - 1) + x * width * (input - 1) / (output - 1);
  }
  return Status(ErrorCode::kInvalidModel,
                fmt::format("coordinate_transformation_mode is \"{}\"", mode.coordinates));
}

Result<double> Rounded(const ResizeMode& mode, const OnnxResizeAxis& axis, double p) {
  if (mode.rounds_by_scale) return axis.scale < 1 ? std::ceil(p) : std::floor(p);
  if (mode.rounding == "round_prefer_floor") return std::ceil(p - 0.5);
  if (mode.rounding == "round_prefer_ceil") return std::floor(p + 0.5);
  if (mode.rounding == "floor") return std::floor(p);
  if (mode.rounding == "ceil") return std::ceil(p);
  return Status(ErrorCode::kInvalidModel, fmt::format("nearest_mode is \"{}\"", mode.rounding));
}

double CubicWeight(double distance, double a) {
  const double t = std::abs(distance);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

double LinearWeight(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

struct Entry {
  int64_t place;
  double weight;
};

// The places floor(p) - reach + 1 .. floor(p) + reach, `shrink` <= 1 apart in the kernel's own
// unit.
std::vector<Entry> EntriesAround(const ResizeMode& mode, double p, int64_t reach, double shrink) {
  const double low = std::floor(p);
  std::vector<Entry> entries;
  double sum = 0;
  for (int64_t k = 1 - reach; k <= reach; ++k) {
    const double distance = (low + static_cast<double>(k) - p) * shrink;
    const double weight = mode.interpolation == "linear" ? LinearWeight(distance)
                                                         : CubicWeight(distance, mode.cubic_a);
    entries.push_back({static_cast<int64_t>(low) + k, weight});
    sum += weight;
  }
  if (shrink < 1) {  // a widened window adds up to 1 by its own sum
    for (Entry& entry : entries) entry.weight /= sum;
  }
  return entries;
}

void ExcludeOutside(int64_t input, std::vector<Entry>& entries) {
  double sum = 0;
  for (Entry& entry : entries) {
    if (entry.place < 0 || entry.place >= input) entry.weight = 0;
    sum += entry.weight;
  }
  for (Entry& entry : entries) entry.weight /= sum == 0 ? 1 : sum;
}

// Entries in order of place: edges meet, zeros are left out.
void AppendRow(std::vector<Entry> entries, int64_t input, ResizeTable& table) {
  const size_t begin = table.places.size();
  for (const Entry& entry : entries) {
    if (entry.weight == 0) continue;
    const int64_t place = std::clamp<int64_t>(entry.place, 0, input - 1);
    if (table.places.size() > begin && table.places.back() == place) {
      table.weights.back() += entry.weight;
      continue;
    }
    table.places.push_back(place);
    table.weights.push_back(entry.weight);
  }
  table.starts.push_back(static_cast<int64_t>(table.places.size()));
}

// Places on either side of a position that are read.
double ReachOf(const ResizeMode& mode, double shrink) {
  if (mode.interpolation == "nearest") return 1;
  return std::ceil((mode.interpolation == "linear" ? 1 : 2) / shrink);
}

Status CheckMode(const ResizeMode& mode, const OnnxResizeAxis& axis, double reach) {
  if (mode.interpolation != "nearest" && mode.interpolation != "linear" &&
      mode.interpolation != "cubic") {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("mode is \"{}\"; it must be nearest, linear or cubic", mode.interpolation));
  }
  if (2 * reach * static_cast<double>(axis.output) <= kMostEntries) return Status();
  return Status(ErrorCode::kUnsupported, fmt::format("resizing {} to {} reads {} places for each",
                                                     axis.input, axis.output, 2 * reach));
}

}  // namespace

Result<ResizeTable> MakeResizeTable(const ResizeMode& mode, const OnnxResizeAxis& axis) {
  const double shrink = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = ReachOf(mode, shrink);
  RIDGE_RETURN_IF_ERROR(CheckMode(mode, axis, reach));
  const auto last = static_cast<double>(axis.input - 1);
  ResizeTable table;
  for (int64_t o = 0; o < axis.output; ++o) {
    RIDGE_ASSIGN_OR_RETURN(double p, PositionOf(mode, axis, o));
    const bool outside = mode.coordinates == "tf_crop_and_resize" && !(p >= 0 && p <= last);
    table.outside.push_back(outside);
    if (outside) {
      AppendRow({}, axis.input, table);
      continue;
    }
    p = std::clamp(p, -1e15, 1e15);
    if (mode.interpolation == "nearest") {
      RIDGE_ASSIGN_OR_RETURN(const double place, Rounded(mode, axis, p));
      AppendRow({{static_cast<int64_t>(place), 1}}, axis.input, table);
      continue;
    }
    std::vector<Entry> entries = EntriesAround(mode, p, static_cast<int64_t>(reach), shrink);
    if (mode.exclude_outside) ExcludeOutside(axis.input, entries);
    AppendRow(std::move(entries), axis.input, table);
  }
  return table;
}

AttrMap ResizeTable::attrs(int64_t axis) const {
  return {{"axis", axis}, {"starts", starts}, {"places", places}, {"weights", weights}};
}

bool ResizeTable::copies() const {
  if (places.size() + 1 != starts.size()) return false;
  for (size_t o = 0; o < starts.size(); ++o) {
    if (starts[o] != static_cast<int64_t>(o)) return false;
  }
  return std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; });
}

int64_t ResizeTable::repeats(const OnnxResizeAxis& axis) const {
  if (!copies() || axis.output % axis.input != 0) return 0;
  const int64_t factor = axis.output / axis.input;
  for (size_t o = 0; o < places.size(); ++o) {
    if (places[o] != static_cast<int64_t>(o) / factor) return 0;
  }
  return factor;
}

}  // namespace ridge
