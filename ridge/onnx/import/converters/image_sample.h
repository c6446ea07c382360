// Reading an image at places that are computed: what GridSample and DeformConv share.
//
// A sample is a weighted sum of whole places around a point, one list of them for each axis.  All
// is made of gathers and arithmetic, so gradients reach the image, the points and the weights.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

enum class SampleMode { kNearest, kLinear, kCubic };
enum class SamplePadding { kZeros, kBorder, kReflection };

// Images as rows: the channels of one pixel side by side.
struct SampledImages {
  Value rows;    // [images * pixels, channels]
  Dims extents;  // of one image: 1 to 3, in order of memory; at least 1 each
  Value first;   // i64: the first row of the image of each sample; broadcasts to the points
};

// points[d]: float, one position along extents[d] for each sample, all of one shape S.
// Returns [S, channels].
Value SampleImages(GraphBuilder& b, const SampledImages& images, const std::vector<Value>& points,
                   SampleMode mode, SamplePadding padding, bool align_corners);

}  // namespace ridge
