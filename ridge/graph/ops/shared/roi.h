// Regions of interest: the sampling points of roi_align, shared with its gradient.
#pragma once
#include <algorithm>
#include <cmath>

#include "ridge/graph/op_def.h"

namespace ridge {

// Checks x [B,C,H,W], rois [R,4], batch_indices [R] and the attributes.
// `x` is given by its dims: the gradient has it as an attribute.
Status CheckRois(const OpCall& call, DType dtype, const Dims& x, size_t rois, size_t indices);

AttrMap RoiAlignAttrDefaults();

struct RoiGeometry {
  int64_t batch, channels, height, width, rois;
  int64_t out_height, out_width;
  int64_t sampling_ratio;
  double spatial_scale, offset;
  bool max;
};
RoiGeometry RoiGeometryOf(const OpCall& call, const Dims& x, int64_t rois);

// Four neighbours of a sampling point in one plane and their weights; outside x all weights are 0.
struct RoiSample {
  int64_t place[4];
  double weight[4];
  double weight_dy[4], weight_dx[4];  // derivatives of the weights by the point
  double at_y, at_x;                  // where in the region the point is, from 0 to 1
};
RoiSample SampleRoi(const RoiGeometry& g, double y, double x);

// Along one axis of a region: where its bins begin, how large they are, how many points each has.
struct RoiAxis {
  double start, bin;
  double points;     // a whole number
  bool follows_end;  // the size is end - start, not the least one
  int64_t extent;    // of x
  double PointAt(int64_t bin_index, double point) const {
    return start + (static_cast<double>(bin_index) + (point + 0.5) / points) * bin;
  }
  // Points [first, last) of a bin: all, or where there are more than x has places, those that may
  // be in x.
  struct Points {
    double first, last;
  };
  Points PointsOf(int64_t bin_index) const;
};
RoiAxis RoiAxisOf(const RoiGeometry& g, double from, double to, int64_t bins, int64_t extent);

// The samples of a bin that may be in x, and one of weight 0 if others are left out.
void SampleBin(const RoiGeometry& g, const RoiAxis& ay, const RoiAxis& ax, int64_t bin,
               std::vector<RoiSample>& samples);

// Calls visit(place of y, first of the plane of x, samples of the bin, their number with those that
// are left out) for every output.  A region whose batch index is out of range is left out.
template <typename Visit>
void ForEachRoiBin(const RoiGeometry& g, const double* rois, const double* indices,
                   const Visit& visit) {
  std::vector<RoiSample> samples;
  for (int64_t r = 0; r < g.rois; ++r) {
    if (!(indices[r] >= 0 && indices[r] < static_cast<double>(g.batch))) continue;
    const double* roi = rois + 4 * r;
    const RoiAxis ax = RoiAxisOf(g, roi[0], roi[2], g.out_width, g.width);
    const RoiAxis ay = RoiAxisOf(g, roi[1], roi[3], g.out_height, g.height);
    for (int64_t bin = 0; bin < g.out_height * g.out_width; ++bin) {
      SampleBin(g, ay, ax, bin, samples);
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t y = (r * g.channels + c) * g.out_height * g.out_width + bin;
        const int64_t plane = static_cast<int64_t>(indices[r]) * g.channels + c;
        visit(y, plane * g.height * g.width, samples, ay.points * ax.points);
      }
    }
  }
}

// With mode "max": the neighbour of all samples whose weighted value is largest; -1: no samples.
struct RoiWinner {
  int64_t place = -1;
  double weight = 0, value = 0;
  const RoiSample* sample = nullptr;
  int neighbour = 0;
};
RoiWinner LargestOf(const std::vector<RoiSample>& samples, const double* plane);

}  // namespace ridge
