// The bins and sampling points of roi_align as text (graph/ops/shared/roi.h).
#pragma once
#include <string>

#include "ridge/graph/ops/shared/roi.h"

namespace ridge::cuda {

// Places are doubles, so that every float type has the same points; values are of type R, which
// must be declared.  Declares, for regions and planes of x stored as `storage`:
//
//   RoiBin BinOf(roi, bin)       .ay, .ax: RoiAxis; .by, .bx: which bin; .Points(): of a bin
//     .ForEachPoint(f)           f(neighbours across, neighbours along, y, x)
//   RoiNeighbours                .place[2], .weight[2]; .slope: d weight[1] / d point; .inside: x
//   R MeanOf(bin, plane)
//   RoiWinner LargestOf(bin, plane)
//
// REQUIRES: extents of x below 2^31.
std::string RoiText(const RoiGeometry& geometry, const char* storage);

}  // namespace ridge::cuda
