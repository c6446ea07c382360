// After Pillow 13, src/libImaging/Resample.c (bilinear, bicubic) and Geometry.c (nearest).  Bounds
// and weights are its expressions in its order, since their roundings decide the last bit; box
// corners are floats there, so they are floats here.
//
// Each pass writes the rows and columns that the window needs, the first one into scratch.  Axes
// that stay as they are have weights of 1 and lose nothing by them, so only the horizontal pass,
// which costs more, is left out for them.
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
  AxisWeights(const ResizeAxis& axis, ResizeFilter filter)
      : axis_(axis),
        is_cubic_(filter == ResizeFilter::kBicubic),
        scale_(static_cast<double>(axis.box_end - axis.box_begin) / static_cast<double>(axis.out)),
        filter_scale_(std::max(scale_, 1.0)) {}

  Range Sources(int64_t x) const {
    const double centre = Centre(x), support = (is_cubic_ ? 2.0 : 1.0) * filter_scale_;
    return {std::max<int64_t>(0, static_cast<int>(centre - support + 0.5)),
            std::min<int64_t>(axis_.in, static_cast<int>(centre + support + 0.5))};
  }

  // 2^22ths for each source pixel of Sources(x); `weights` has room for as many.
  void Fill(int64_t x, double* weights, int32_t* coefficients) const {
    const Range range = Sources(x);
    const double centre = Centre(x), inverse = 1.0 / filter_scale_;
    const int64_t taps = range.end - range.begin;
    double sum = 0;
    for (int64_t i = 0; i < taps; ++i) {
      const double distance =
          std::abs((static_cast<double>(i + range.begin) - centre + 0.5) * inverse);
      weights[i] = is_cubic_ ? Cubic(distance) : distance < 1 ? 1 - distance : 0;
      sum += weights[i];
    }
    for (int64_t i = 0; i < taps; ++i) {
      const double weight = sum != 0 ? weights[i] / sum : weights[i];
      const double half = weight < 0 ? -0.5 : 0.5;
      coefficients[i] = static_cast<int32_t>(half + weight * (1 << kCoefficientBits));
    }
  }

 private:
  double Centre(int64_t x) const {
    return static_cast<double>(axis_.box_begin) + (static_cast<double>(x) + 0.5) * scale_;
  }

  static double Cubic(double x) {
    constexpr double a = -0.5;
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
  }

  const ResizeAxis& axis_;
  const bool is_cubic_;
  double scale_;
  double filter_scale_;
};

bool IsWhole(const ResizeAxis& axis) {
  return axis.box_begin == 0 && axis.in == axis.out && axis.box_end == static_cast<float>(axis.in);
}

// Pillow's rule since version 13; 1 level here and there depends on it.
bool IsVerticalFirst(const ResizeCall& call) {
  const int64_t fewer_rows = call.y.in - call.y.out, fewer_columns = call.x.in - call.x.out;
  return !IsWhole(call.x) && fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
}

// The source pixels that the window needs.
Range SourcesOf(const ResizeAxis& axis, ResizeFilter filter) {
  const AxisWeights weights(axis, filter);
  return {weights.Sources(axis.first).begin, weights.Sources(axis.first + axis.count - 1).end};
}

int64_t MostTaps(const ResizeAxis& axis, ResizeFilter filter) {
  const AxisWeights weights(axis, filter);
  int64_t most = 0;
  for (int64_t x = axis.first; x < axis.first + axis.count; ++x) {
    const Range range = weights.Sources(x);
    most = std::max(most, range.end - range.begin);
  }
  return most;
}

// Where in the scratch everything lies: offsets in bytes.
struct Layout {
  int64_t columns = 0;    // of the window, rounded up to a group
  int64_t taps_x = 0;     // of a column, rounded up to a block
  int64_t taps_y = 0;     // of a row, rounded up to a pair
  int64_t weights = 0;    // double [taps]
  int64_t numbers = 0;    // int32 [taps]
  int64_t first_x = 0;    // int32 [columns]
  int64_t taps_of_x = 0;  // TapBlock, or int32 for grey, [columns][taps_x]
  int64_t first_y = 0;    // int32 [y.count]
  int64_t taps_of_y = 0;  // TapPair [y.count][taps_y / 2]
  int64_t wide = 0;       // after a vertical pass that comes first
  int64_t wide_stride = 0;
  int64_t narrow = 0;  // after the horizontal pass
  int64_t narrow_stride = 0;
  int64_t bytes = 0;
};

int64_t Place(int64_t bytes, Layout& layout) {
  const int64_t offset = layout.bytes;
  layout.bytes += RoundUp(bytes, kAlignment);
  return offset;
}

void PlaceHorizontal(const ResizeCall& call, Layout& layout) {
  constexpr int64_t kBlockBytes = sizeof(TapBlock) / kBlockTaps;
  const int64_t tap_bytes = call.channels == 3 ? kBlockBytes : int64_t{sizeof(int32_t)};
  layout.first_x = Place(layout.columns * sizeof(int32_t), layout);
  layout.taps_of_x = Place(layout.columns * layout.taps_x * tap_bytes, layout);
  layout.narrow_stride = RoundUp(layout.columns * call.channels + 16, kAlignment);
  int64_t rows = call.y.count;
  if (IsVerticalFirst(call)) {
    const Range columns = SourcesOf(call.x, call.filter);
    layout.wide_stride = (columns.end - columns.begin) * call.channels;
    layout.wide = Place(rows * layout.wide_stride + kResizeSlackBytes, layout);
  } else {
    rows = SourcesOf(call.y, call.filter).end - SourcesOf(call.y, call.filter).begin;
  }
  layout.narrow = Place(rows * layout.narrow_stride + kResizeSlackBytes, layout);
}

Layout LayOut(const ResizeCall& call) {
  Layout layout;
  layout.columns = RoundUp(call.x.count, kColumnGroup);
  layout.taps_x = RoundUp(MostTaps(call.x, call.filter), kBlockTaps);
  layout.taps_y = RoundUp(MostTaps(call.y, call.filter), 2);
  const int64_t taps = std::max(layout.taps_x, layout.taps_y);
  layout.weights = Place(taps * sizeof(double), layout);
  layout.numbers = Place(taps * sizeof(int32_t), layout);
  layout.first_y = Place(call.y.count * sizeof(int32_t), layout);
  layout.taps_of_y = Place(call.y.count * layout.taps_y / 2 * sizeof(TapPair), layout);
  if (!IsWhole(call.x)) PlaceHorizontal(call, layout);
  return layout;
}

// Rows of pixels, or what becomes them.
struct Rows {
  const uint8_t* data = nullptr;
  int64_t stride = 0;  // bytes
  int64_t count = 0;
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

uint8_t WeighGrey(const uint8_t* pixels, const int32_t* numbers, int64_t taps) {
  int32_t sum = 1 << (kCoefficientBits - 1);
  for (int64_t i = 0; i < taps; ++i) sum += pixels[i] * numbers[i];
  return static_cast<uint8_t>(std::clamp(sum >> kCoefficientBits, 0, 255));
}

// One call with its scratch.
class WeightedResize {
 public:
  WeightedResize(const ResizeCall& call, std::span<char> memory)
      : call_(call),
        layout_(LayOut(call)),
        x_(call.x, call.filter),
        y_(call.y, call.filter),
        memory_(memory.data()) {
    RIDGE_CHECK(static_cast<int64_t>(memory.size()) >= layout_.bytes + kAlignment,
                "the scratch is as large as ResizeScratchBytes says");
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory_));
    memory_ += RoundUp(address, kAlignment) - address;
  }

  void Run(const uint8_t* from, uint8_t* to) {
    const int64_t channels = call_.channels, row_bytes = call_.x.count * channels;
    const Rows source{from, call_.row_stride(), call_.y.in};
    if (IsWhole(call_.x)) {
      const Rows window{from + call_.x.first * channels, source.stride, source.count};
      return Vertical(window, /*first_row=*/0, row_bytes, to, row_bytes);
    }
    if (IsVerticalFirst(call_)) return RunVerticalFirst(source, to);
    const Range rows = SourcesOf(call_.y, call_.filter);
    const Rows needed{from + rows.begin * source.stride, source.stride, rows.end - rows.begin};
    Vertical(Horizontal(needed, {0, call_.x.in}), rows.begin, row_bytes, to, row_bytes);
  }

 private:
  void RunVerticalFirst(const Rows& source, uint8_t* to) {
    const Range columns = SourcesOf(call_.x, call_.filter);
    const Rows window{source.data + columns.begin * call_.channels, source.stride, source.count};
    auto* wide = At<uint8_t>(layout_.wide);
    Vertical(window, /*first_row=*/0, layout_.wide_stride, wide, layout_.wide_stride);
    const Rows narrow = Horizontal({wide, layout_.wide_stride, call_.y.count}, columns);
    const auto row_bytes = static_cast<size_t>(call_.x.count * call_.channels);
    for (int64_t y = 0; y < narrow.count; ++y, to += row_bytes)
      std::memcpy(to, narrow.data + y * narrow.stride, row_bytes);
  }

  template <typename T>
  T* At(int64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }

  // The coefficients of one output pixel: `taps` of them, zeros before and behind.
  const int32_t* Numbers(const AxisWeights& weights, int64_t x, int64_t taps,
                         int64_t before) const {
    auto* numbers = At<int32_t>(layout_.numbers);
    std::fill_n(numbers, taps, 0);
    weights.Fill(x, At<double>(layout_.weights), numbers + before);
    return numbers;
  }

  // `from` has these columns of the source.  At the right edge taps begin further to the left, so
  // that not more than the last block of a picture narrower than it reaches behind a row.
  Rows Horizontal(const Rows& from, Range columns) {
    auto* first = At<int32_t>(layout_.first_x);
    for (int64_t c = 0; c < layout_.columns; ++c) {
      const int64_t most = std::max(columns.begin, columns.end - layout_.taps_x);
      const int64_t begin = std::min(x_.Sources(Column(c)).begin, most);
      first[c] = static_cast<int32_t>(begin - columns.begin);
    }
    first_column_ = columns.begin;
    if (call_.channels == 3)
      HorizontalRgb(from);
    else
      HorizontalGrey(from);
    return {At<uint8_t>(layout_.narrow), layout_.narrow_stride, from.count};
  }

  // Columns behind the window, up to a whole group, are copies of its last.
  int64_t Column(int64_t c) const { return call_.x.first + std::min(c, call_.x.count - 1); }

  const int32_t* ColumnNumbers(int64_t c) const {
    const int64_t begin = first_column_ + At<int32_t>(layout_.first_x)[c];
    const int64_t before = x_.Sources(Column(c)).begin - begin;
    return Numbers(x_, Column(c), layout_.taps_x, before);
  }

  void HorizontalRgb(const Rows& from) {
    auto* blocks = At<TapBlock>(layout_.taps_of_x);
    const int64_t blocks_a_column = layout_.taps_x / kBlockTaps;
    for (int64_t c = 0; c < layout_.columns; ++c) {
      const int32_t* numbers = ColumnNumbers(c);
      for (int64_t b = 0; b < blocks_a_column; ++b) *blocks++ = BlockOf(numbers + b * kBlockTaps);
    }
    RunHorizontalPass({.from = from.data,
                       .from_stride = from.stride,
                       .rows = from.count,
                       .first = At<int32_t>(layout_.first_x),
                       .blocks = At<TapBlock>(layout_.taps_of_x),
                       .blocks_a_column = blocks_a_column,
                       .columns = layout_.columns,
                       .to = At<uint8_t>(layout_.narrow),
                       .to_stride = layout_.narrow_stride});
  }

  void HorizontalGrey(const Rows& from) {
    auto* table = At<int32_t>(layout_.taps_of_x);
    const auto* first = At<int32_t>(layout_.first_x);
    for (int64_t c = 0; c < call_.x.count; ++c)
      std::copy_n(ColumnNumbers(c), layout_.taps_x, table + c * layout_.taps_x);
    for (int64_t y = 0; y < from.count; ++y) {
      const uint8_t* row = from.data + y * from.stride;
      uint8_t* to = At<uint8_t>(layout_.narrow) + y * layout_.narrow_stride;
      for (int64_t c = 0; c < call_.x.count; ++c)
        to[c] = WeighGrey(row + first[c], table + c * layout_.taps_x, layout_.taps_x);
    }
  }

  // `from` begins at row `first_row` of the source.
  void Vertical(const Rows& from, int64_t first_row, int64_t row_bytes, uint8_t* to,
                int64_t to_stride) {
    auto* first = At<int32_t>(layout_.first_y);
    auto* pairs = At<TapPair>(layout_.taps_of_y);
    for (int64_t row = 0; row < call_.y.count; ++row) {
      const int64_t y = call_.y.first + row;
      first[row] = static_cast<int32_t>(y_.Sources(y).begin - first_row);
      const int32_t* numbers = Numbers(y_, y, layout_.taps_y, /*before=*/0);
      for (int64_t p = 0; p < layout_.taps_y / 2; ++p) {
        const int32_t a = numbers[2 * p], b = numbers[2 * p + 1];
        *pairs++ = {Pair(Upper(a), Upper(b)), Pair(Lower(a), Lower(b))};
      }
    }
    RunVerticalPass({.from = from.data,
                     .from_stride = from.stride,
                     .last_row = from.count - 1,
                     .first = first,
                     .pairs = At<TapPair>(layout_.taps_of_y),
                     .pairs_a_row = layout_.taps_y / 2,
                     .rows = call_.y.count,
                     .row_bytes = row_bytes,
                     .to = to,
                     .to_stride = to_stride});
  }

  const ResizeCall& call_;
  const Layout layout_;
  const AxisWeights x_, y_;
  int64_t first_column_ = 0;  // of what the horizontal pass reads
  char* memory_;
};

// Source pixels of the window, by sums of steps as Pillow has them.
void NearestSources(const ResizeAxis& axis, int32_t* sources) {
  const double step =
      static_cast<double>(axis.box_end - axis.box_begin) / static_cast<double>(axis.out);
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
    const uint8_t* row = from + rows[y] * call.row_stride();
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

// Taps grow with the source; of the two orders of the passes either may be a smaller source's.
int64_t MostResizeScratchBytes(const ResizeCall& call) {
  if (call.filter == ResizeFilter::kNearest) return NearestBytes(call);
  const int64_t reach = call.filter == ResizeFilter::kBicubic ? 4 : 2;
  const auto most_taps = [reach](const ResizeAxis& axis) {
    return reach * std::max<int64_t>(1, CeilDiv(axis.in, axis.out)) + 2;
  };
  const int64_t columns = RoundUp(call.x.count, kColumnGroup);
  const int64_t taps_x = RoundUp(most_taps(call.x), kBlockTaps);
  const int64_t taps_y = RoundUp(most_taps(call.y), 2);
  const int64_t rows = std::max(call.y.in, call.y.count);
  const int64_t tap_bytes = std::max<int64_t>(sizeof(TapBlock) / kBlockTaps, sizeof(int32_t));
  const int64_t parts[] = {
      std::max(taps_x, taps_y) * static_cast<int64_t>(sizeof(double) + sizeof(int32_t)),
      (call.y.count + columns) * static_cast<int64_t>(sizeof(int32_t)),
      call.y.count * taps_y / 2 * static_cast<int64_t>(sizeof(TapPair)),
      columns * taps_x * tap_bytes,
      call.y.count * call.x.in * call.channels + kResizeSlackBytes,
      rows * RoundUp(columns * call.channels + 16, kAlignment) + kResizeSlackBytes};
  int64_t bytes = 10 * kAlignment;  // each placement is rounded up
  for (const int64_t part : parts) bytes += part;
  return bytes;
}

void Resize(const ResizeCall& call, const uint8_t* from, std::span<char> scratch, uint8_t* to) {
  if (call.filter == ResizeFilter::kNearest) return ResizeNearest(call, from, scratch, to);
  WeightedResize(call, scratch).Run(from, to);
}

}  // namespace ridge
