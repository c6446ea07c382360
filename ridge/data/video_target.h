// VideoTarget: which frames of a video are a sample.
#pragma once
#include <cstdint>

#include "ridge/core/shape.h"

namespace ridge {

inline constexpr int64_t kMostClipFrames = 1 << 12;

struct VideoTarget {
  // Picked are the frames that are shown at each time k/fps, each once; else the frames 0, every,
  // 2 * every...
  double fps = 1;
  int64_t every = 0;  // 0: by fps

  // A sample is a clip of this many picked frames; 0: one frame.
  int64_t frames = 0;
  int64_t stride = 0;  // picked frames from the beginning of a clip to that of the next

  bool makes_clips() const { return frames > 0; }
  // Of a picture u8[H,W] or u8[H,W,C]; of clips u8[frames,H,W,C].
  TensorType TypeOf(const TensorType& picture) const;
  bool operator==(const VideoTarget&) const = default;
};

}  // namespace ridge
