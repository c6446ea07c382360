// Resize: Pillow's resize of u8 pictures, bit for bit.
//
// Bilinear and bicubic are antialiased: per axis scale = box / out, filter scale fs = max(scale,
// 1), centre = box0 + (x + 0.5) scale, weight of source pixel i = w(|i + 0.5 - centre| / fs), with
// w(d) = max(0, 1 - d), or the cubic of Keys with a = -1/2, which reaches to d = 2; the weights are
// normalized in double and rounded to 22 bits.  The horizontal pass comes first, but where the
// height shrinks by more than twice of what the width does (as in Pillow 13; older ones know no
// such rule, and differ by a level there); both passes round to u8. Nearest takes the pixel under
// each centre.
//
// A window of the result can be asked for alone: a resize and a crop behind it are one call.
// Allocates nothing.  Thread-safe.
#pragma once
#include <cstdint>
#include <span>

namespace ridge {

enum class ResizeFilter : uint8_t { kBilinear, kNearest, kBicubic };

struct ResizeAxis {
  int64_t in = 0;                    // extent of the source
  float box_begin = 0, box_end = 0;  // the part of it that is resized, Pillow's `box`
  int64_t out = 0;                   // extent that the box gets
  int64_t first = 0, count = 0;      // the window of it that is written

  // All of the source, and all of the result.
  static ResizeAxis Whole(int64_t in, int64_t out) {
    return {in, 0, static_cast<float>(in), out, 0, out};
  }
};

struct ResizeCall {
  ResizeAxis x = {}, y = {};
  int channels = 3;  // 1 or 3
  ResizeFilter filter = ResizeFilter::kBilinear;
  int64_t stride = 0;  // bytes from row to row of the source; 0: x.in * channels

  int64_t row_stride() const { return stride > 0 ? stride : x.in * channels; }
};

// Bytes behind the source picture that Resize may read, without an effect on the result.
constexpr int64_t kResizeSlackBytes = 64;

int64_t ResizeScratchBytes(const ResizeCall& call);

// The most that it is for `call` and all calls with smaller sources, each whole to the same size.
// REQUIRES: call resizes all of its source to all of its result.
int64_t MostResizeScratchBytes(const ResizeCall& call);

// `from`: [y.in, x.in, channels], rows `stride` apart; `to`: [y.count, x.count, channels].
// REQUIRES: 0 <= box_begin < box_end <= in, 0 <= first, 1 <= count, first + count <= out for both
// axes; kResizeSlackBytes are readable behind `from`; ResizeScratchBytes(call) in `scratch`.
void Resize(const ResizeCall& call, const uint8_t* from, std::span<char> scratch, uint8_t* to);

}  // namespace ridge
