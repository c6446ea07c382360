// After Pillow 13, src/libImaging/Resample.c (bilinear) and Geometry.c (nearest).  Bounds and
// weights are its expressions in its order, since their roundings decide the last bit; box corners
// are floats there, so they are floats here.
//
// The horizontal pass runs on the rows that the window needs, into scratch; the vertical pass on
// its columns.  Axes that stay as they are have weights of 1 and lose nothing by them, so only the
// horizontal pass, which costs more, is left out for them.
#include "ridge/data/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ridge/core/rounding.h"
#include "ridge/core/status.h"
#include "ridge/data/image/resize_passes.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kColumnGroup = 4;  // of the horizontal pass

struct Range {
  int64_t begin = 0, end = 0;
};

// What the weights of an axis are made of.
class AxisWeights {
 public:
  explicit AxisWeights(const ResizeAxis& axis)
      : axis_(axis),
        scale_(static_cast<double>(axis.box_end - axis.box_begin) / static_cast<double>(axis.out)),
        filter_scale_(std::max(scale_, 1.0)) {}

  int64_t most_taps() const { return 2 * static_cast<int64_t>(std::ceil(filter_scale_)) + 1; }

  Range Sources(int64_t x) const {
    const double centre = Centre(x), support = filter_scale_;
    return {std::max<int64_t>(0, static_cast<int>(centre - support + 0.5)),
            std::min<int64_t>(axis_.in, static_cast<int>(centre + support + 0.5))};
  }

  // One of 2^22ths for each source pixel of Sources(x); `weights` has room for most_taps().
  void Fill(int64_t x, double* weights, int32_t* coefficients) const {
    const Range range = Sources(x);
    const double centre = Centre(x), inverse = 1.0 / filter_scale_;
    const int64_t taps = range.end - range.begin;
    double sum = 0;
    for (int64_t i = 0; i < taps; ++i) {
      const double distance =
          std::abs((static_cast<double>(i + range.begin) - centre + 0.5) * inverse);
      weights[i] = distance < 1 ? 1 - distance : 0;
      sum += weights[i];
    }
    for (int64_t i = 0; i < taps; ++i) {
      const double weight = sum != 0 ? weights[i] / sum : weights[i];
      coefficients[i] = static_cast<int32_t>(0.5 + weight * (1 << kCoefficientBits));
    }
  }

 private:
  double Centre(int64_t x) const {
    return static_cast<double>(axis_.box_begin) + (static_cast<double>(x) + 0.5) * scale_;
  }

  const ResizeAxis& axis_;
  double scale_;
  double filter_scale_;
};

bool IsWhole(const ResizeAxis& axis) {
  return axis.box_begin == 0 && axis.in == axis.out &&
         axis.box_end == static_cast<float>(axis.in);
}

// Where in the scratch everything lies.
struct Layout {
  int64_t columns = 0;    // of the window, rounded up to a group
  int64_t taps_x = 0;     // of a column, rounded up to a block
  int64_t taps_y = 0;     // of a row, rounded up to a pair
  Range rows;             // of the source, for the window
  int64_t stride = 0;     // of the rows between the passes
  int64_t weights = 0;    // double [taps]: the offset, as those that follow
  int64_t numbers = 0;    // int32 [taps]
  int64_t first_x = 0;    // int32 [columns]
  int64_t taps_of_x = 0;  // TapBlock, or int32 for grey, [columns][taps_x]
  int64_t first_y = 0;    // int32 [y.count]
  int64_t taps_of_y = 0;  // TapPair [y.count][taps_y / 2]
  int64_t between = 0;    // [rows][stride]
  int64_t bytes = 0;
};

int64_t Place(int64_t bytes, Layout& layout) {
  const int64_t offset = layout.bytes;
  layout.bytes += RoundUp(bytes, kAlignment);
  return offset;
}

Layout LayOut(const ResizeCall& call) {
  const AxisWeights x(call.x), y(call.y);
  Layout layout;
  layout.columns = RoundUp(call.x.count, kColumnGroup);
  layout.taps_x = RoundUp(x.most_taps(), kBlockTaps);
  layout.taps_y = RoundUp(y.most_taps(), 2);
  layout.rows = {y.Sources(call.y.first).begin, y.Sources(call.y.first + call.y.count - 1).end};
  const int64_t taps = std::max(layout.taps_x, layout.taps_y);
  layout.weights = Place(taps * sizeof(double), layout);
  layout.numbers = Place(taps * sizeof(int32_t), layout);
  layout.first_y = Place(call.y.count * sizeof(int32_t), layout);
  layout.taps_of_y = Place(call.y.count * layout.taps_y / 2 * sizeof(TapPair), layout);
  if (IsWhole(call.x)) return layout;
  const int64_t tap_bytes =
      call.channels == 3 ? sizeof(TapBlock) / kBlockTaps : sizeof(int32_t);
  layout.stride = RoundUp(layout.columns * call.channels + 16, kAlignment);
  layout.first_x = Place(layout.columns * sizeof(int32_t), layout);
  layout.taps_of_x = Place(layout.columns * layout.taps_x * tap_bytes, layout);
  const int64_t rows = layout.rows.end - layout.rows.begin;
  layout.between = Place(rows * layout.stride + kResizeSlackBytes, layout);
  return layout;
}

// The scratch as what lies in it.
class Scratch {
 public:
  Scratch(const ResizeCall& call, std::span<char> memory)
      : layout(LayOut(call)), memory_(memory.data()) {
    RIDGE_CHECK(static_cast<int64_t>(memory.size()) >= layout.bytes + kAlignment,
                "the scratch is as large as ResizeScratchBytes says");
    const auto address = reinterpret_cast<uintptr_t>(memory_);
    memory_ += RoundUp(static_cast<int64_t>(address), kAlignment) - static_cast<int64_t>(address);
  }

  template <typename T>
  T* At(int64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }

  // The coefficients of one output pixel, `taps` of them, with zeros behind.
  const int32_t* Numbers(const AxisWeights& weights, int64_t x, int64_t taps) const {
    auto* numbers = At<int32_t>(layout.numbers);
    std::fill_n(numbers, taps, 0);
    weights.Fill(x, At<double>(layout.weights), numbers);
    return numbers;
  }

  const Layout layout;

 private:
  char* memory_;
};

int16_t Upper(int32_t number) { return static_cast<int16_t>(number >> kLowerBits); }
int16_t Lower(int32_t number) { return static_cast<int16_t>(number & ((1 << kLowerBits) - 1)); }

// Two taps as a vector of 32-bit numbers has them.
int32_t Pair(int16_t first, int16_t second) {
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(second)) << 16 |
                              static_cast<uint16_t>(first));
}

TapBlock BlockOf(const int32_t* numbers) {
  TapBlock block{};
  for (int lane = 0; lane < 6; ++lane) {  // RR, GG, BB
    const int tap = lane % 2;
    block.upper01[lane] = Upper(numbers[tap]);
    block.lower01[lane] = Lower(numbers[tap]);
    block.upper23[lane] = Upper(numbers[tap + 2]);
    block.lower23[lane] = Lower(numbers[tap + 2]);
  }
  return block;
}

// Columns behind the window, up to a whole group, are copies of its last.
void FillFirstX(const ResizeAxis& axis, const AxisWeights& weights, const Scratch& scratch) {
  for (int64_t c = 0; c < scratch.layout.columns; ++c) {
    const int64_t x = axis.first + std::min(c, axis.count - 1);
    scratch.At<int32_t>(scratch.layout.first_x)[c] = static_cast<int32_t>(weights.Sources(x).begin);
  }
}

void ResizeRowsRgb(const ResizeCall& call, const uint8_t* from, const Scratch& scratch) {
  const Layout& layout = scratch.layout;
  const AxisWeights weights(call.x);
  auto* blocks = scratch.At<TapBlock>(layout.taps_of_x);
  const int64_t blocks_a_column = layout.taps_x / kBlockTaps;
  FillFirstX(call.x, weights, scratch);
  for (int64_t c = 0; c < layout.columns; ++c) {
    const int64_t x = call.x.first + std::min(c, call.x.count - 1);
    const int32_t* numbers = scratch.Numbers(weights, x, layout.taps_x);
    for (int64_t b = 0; b < blocks_a_column; ++b)
      blocks[c * blocks_a_column + b] = BlockOf(numbers + b * kBlockTaps);
  }
  RunHorizontalPass({.from = from + layout.rows.begin * call.x.in * 3,
                     .from_stride = call.x.in * 3,
                     .rows = layout.rows.end - layout.rows.begin,
                     .first = scratch.At<int32_t>(layout.first_x),
                     .blocks = blocks,
                     .blocks_a_column = blocks_a_column,
                     .columns = layout.columns,
                     .to = scratch.At<uint8_t>(layout.between),
                     .to_stride = layout.stride});
}

uint8_t WeighGrey(const uint8_t* pixels, const int32_t* numbers, int64_t taps) {
  int32_t sum = 1 << (kCoefficientBits - 1);
  for (int64_t i = 0; i < taps; ++i) sum += pixels[i] * numbers[i];
  return static_cast<uint8_t>(std::clamp(sum >> kCoefficientBits, 0, 255));
}

void ResizeRowsGrey(const ResizeCall& call, const uint8_t* from, const Scratch& scratch) {
  const Layout& layout = scratch.layout;
  const AxisWeights weights(call.x);
  auto* table = scratch.At<int32_t>(layout.taps_of_x);
  for (int64_t c = 0; c < call.x.count; ++c)
    std::copy_n(scratch.Numbers(weights, call.x.first + c, layout.taps_x), layout.taps_x,
                table + c * layout.taps_x);
  for (int64_t y = layout.rows.begin; y < layout.rows.end; ++y) {
    uint8_t* to = scratch.At<uint8_t>(layout.between) + (y - layout.rows.begin) * layout.stride;
    for (int64_t c = 0; c < call.x.count; ++c) {
      const Range range = weights.Sources(call.x.first + c);
      to[c] = WeighGrey(from + y * call.x.in + range.begin, table + c * layout.taps_x,
                        range.end - range.begin);
    }
  }
}

// The rows of the source, or those between the passes, to the result.
void ResizeColumns(const ResizeCall& call, const uint8_t* from, int64_t stride, int64_t rows,
                   int64_t first_row, const Scratch& scratch, uint8_t* to) {
  const Layout& layout = scratch.layout;
  const AxisWeights weights(call.y);
  auto* first = scratch.At<int32_t>(layout.first_y);
  auto* pairs = scratch.At<TapPair>(layout.taps_of_y);
  for (int64_t row = 0; row < call.y.count; ++row) {
    const int64_t y = call.y.first + row;
    first[row] = static_cast<int32_t>(weights.Sources(y).begin - first_row);
    const int32_t* numbers = scratch.Numbers(weights, y, layout.taps_y);
    for (int64_t p = 0; p < layout.taps_y / 2; ++p) {
      const int32_t a = numbers[2 * p], b = numbers[2 * p + 1];
      *pairs++ = {Pair(Upper(a), Upper(b)), Pair(Lower(a), Lower(b))};
    }
  }
  RunVerticalPass({.from = from,
                   .from_stride = stride,
                   .last_row = rows - 1,
                   .first = first,
                   .pairs = scratch.At<TapPair>(layout.taps_of_y),
                   .pairs_a_row = layout.taps_y / 2,
                   .rows = call.y.count,
                   .row_bytes = call.x.count * call.channels,
                   .to = to});
}

void ResizeBilinear(const ResizeCall& call, const uint8_t* from, std::span<char> memory,
                    uint8_t* to) {
  const Scratch scratch(call, memory);
  const Range rows = scratch.layout.rows;
  if (IsWhole(call.x)) {
    return ResizeColumns(call, from + call.x.first * call.channels, call.x.in * call.channels,
                         call.y.in, /*first_row=*/0, scratch, to);
  }
  if (call.channels == 3)
    ResizeRowsRgb(call, from, scratch);
  else
    ResizeRowsGrey(call, from, scratch);
  ResizeColumns(call, scratch.At<uint8_t>(scratch.layout.between), scratch.layout.stride,
                rows.end - rows.begin, rows.begin, scratch, to);
}

// Source pixels of the window, by sums of steps as Pillow has them.
void NearestSources(const ResizeAxis& axis, int32_t* sources) {
  const double step = static_cast<double>(axis.box_end - axis.box_begin) / static_cast<double>(axis.out);
  double at = static_cast<double>(axis.box_begin) + step * 0.5;
  for (int64_t x = 0; x < axis.first + axis.count; ++x, at += step) {
    const auto source = std::min<int64_t>(static_cast<int64_t>(at), axis.in - 1);
    if (x >= axis.first) sources[x - axis.first] = static_cast<int32_t>(source);
  }
}

int64_t NearestBytes(const ResizeCall& call) {
  return (call.x.count + call.y.count) * static_cast<int64_t>(sizeof(int32_t));
}

void ResizeNearest(const ResizeCall& call, const uint8_t* from, std::span<char> memory,
                   uint8_t* to) {
  RIDGE_CHECK(static_cast<int64_t>(memory.size()) >= NearestBytes(call), "the scratch is there");
  auto* columns = reinterpret_cast<int32_t*>(memory.data());
  int32_t* rows = columns + call.x.count;
  NearestSources(call.x, columns);
  NearestSources(call.y, rows);
  for (int64_t y = 0; y < call.y.count; ++y) {
    const uint8_t* row = from + rows[y] * call.x.in * call.channels;
    for (int64_t x = 0; x < call.x.count; ++x) {
      for (int c = 0; c < call.channels; ++c) *to++ = row[int64_t{columns[x]} * call.channels + c];
    }
  }
}

}  // namespace

int64_t ResizeScratchBytes(const ResizeCall& call) {
  if (call.filter == ResizeFilter::kNearest) return NearestBytes(call);
  return LayOut(call).bytes + kAlignment;
}

void Resize(const ResizeCall& call, const uint8_t* from, std::span<char> scratch, uint8_t* to) {
  if (call.filter == ResizeFilter::kNearest) return ResizeNearest(call, from, scratch, to);
  ResizeBilinear(call, from, scratch, to);
}

}  // namespace ridge
