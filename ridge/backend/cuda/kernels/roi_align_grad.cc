// roi_align_grad.
//
// dx by mean: the weight of a bin for a pixel is a product of one along each axis; these are
// written first, and each pixel gathers over the regions that reach it.  dx of the largest: each
// output's winner is found, the winners are sorted by place, and each place walks its own.
// drois: a block a region.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/roi_text.h"
#include "ridge/backend/cuda/kernels/sort_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kChannelsOfThread = 8;

// reach: [rois, 5]: the image, or -1; the first and last row and column that may have a weight.
// across: [rois, out_height, height], over the points of a bin; along: [rois, out_width, width].
constexpr std::string_view kWeightsText = R"cuda(
RIDGE_FUNCTION int PixelBeside(double at, int extent) {
  return at > 0 ? at < extent - 1 ? (int)at : extent - 1 : 0;
}
RIDGE_FUNCTION R WeightAt(const RoiAxis& axis, int bin, int pixel) {
  R sum = 0;
  const double end = axis.EndPoint(bin);
  for (double p = axis.FirstPoint(bin); p < end; ++p) {
    const RoiNeighbours n = NeighboursOf(axis.PointAt(bin, p), axis.extent);
    if (n.inside)
      for (int i = 0; i < 2; ++i) sum += n.place[i] == pixel ? (R)n.weight[i] : R(0);
  }
  return sum;
}
RIDGE_FUNCTION void WriteReach(const RoiAxis& axis, int bins, int* range) {
  const double start = axis.start, end = axis.start + bins * axis.bin;
  range[0] = PixelBeside(start < end ? start : end, axis.extent);
  range[1] = PixelBeside((start < end ? end : start) + 1, axis.extent);
}
RIDGE_KERNEL void find_weights(const $T* rois, const $I* indices, int* reach, R* across, R* along) {
  for (i64 r = Thread(); r < $rois; r += Threads()) {
    const RoiBin bin = BinOf(rois + 4 * r, 0);
    const i64 image = indices[r];
    reach[5 * r] = image >= 0 && image < $batch ? (int)image : -1;
    WriteReach(bin.ay, $out_height, reach + 5 * r + 1);
    WriteReach(bin.ax, $out_width, reach + 5 * r + 3);
  }
  for (i64 e = Thread(); e < $rois * $out_height * $height; e += Threads()) {
    const RoiBin bin = BinOf(rois + 4 * (e / ($out_height * $height)), 0);
    const double points = bin.Points();
    across[e] = WeightAt(bin.ay, (int)(e / $height % $out_height), (int)(e % $height)) / (R)(points > 1 ? points : 1);
  }
  for (i64 e = Thread(); e < $rois * $out_width * $width; e += Threads()) {
    const RoiBin bin = BinOf(rois + 4 * (e / ($out_width * $width)), 0);
    along[e] = WeightAt(bin.ax, (int)(e / $width % $out_width), (int)(e % $width));
  }
}
RIDGE_KERNEL void gather_means(const int* reach, const R* across, const R* along, const $T* dy, $T* dx) {
  for (i64 e = Thread(); e < $batch * $channel_groups * $height * $width; e += Threads()) {
    const int w = e % $width, h = e / $width % $height;
    const i64 first = e / ($height * $width) % $channel_groups * $group;
    const i64 b = e / ($height * $width * $channel_groups);
    R sums[$group] = {};
    for (i64 r = 0; r < $rois; ++r) {
      const int* range = reach + 5 * r;
      if (range[0] != b || h < range[1] || h > range[2] || w < range[3] || w > range[4]) continue;
      for (i64 oy = 0; oy < $out_height; ++oy) {
        const R weight_y = across[(r * $out_height + oy) * $height + h];
        if (weight_y == R(0)) continue;
        for (i64 ox = 0; ox < $out_width; ++ox) {
          const R weight = weight_y * along[(r * $out_width + ox) * $width + w];
          if (weight == R(0)) continue;
#pragma unroll
          for (int k = 0; k < $group; ++k)
            if (first + k < $channels)
              sums[k] += weight * (R)Load(dy, ((r * $channels + first + k) * $out_height + oy) * $out_width + ox);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < $group; ++k)
      if (first + k < $channels)
        Store(dx, ((b * $channels + first + k) * $height + h) * $width + w, sums[k]);
  }
}
)cuda";

// places: i64, that of each output's winner in dx, or the number of its elements.
constexpr std::string_view kWinnersText = R"cuda(
RIDGE_KERNEL void find_winners(const $T* rois, const $I* indices, const $T* dy, const $T* x, i64* places, R* updates) {
  for (i64 e = Thread(); e < $outputs; e += Threads()) {
    const i64 c = e / $bins % $channels, r = e / ($bins * $channels), image = indices[r];
    places[e] = $inputs;
    if (image < 0 || image >= $batch) continue;
    const i64 plane = (image * $channels + c) * $height * $width;
    const RoiWinner winner = LargestOf(BinOf(rois + 4 * r, (int)(e % $bins)), x + plane);
    if (winner.place < 0 || winner.weight == 0) continue;
    places[e] = plane + winner.place;
    updates[e] = (R)winner.weight * (R)Load(dy, e);
  }
}
RIDGE_KERNEL void gather_winners(const u32* firsts, const u32* numbers, const R* updates, $T* dx) {
  for (i64 e = Thread(); e < $inputs; e += Threads()) {
    R sum = 0;
    const u32 end = firsts[e + 1];
    for (u32 n = firsts[e]; n < end; ++n) sum += updates[numbers[n]];
    Store(dx, e, sum);
  }
}
)cuda";

// point = start + at * (end - start) along each axis, in pixels; or start + at, of the least size.
constexpr std::string_view kRegionsText = R"cuda(
struct RegionSums {
  double x1, y1, x2, y2;
  RIDGE_FUNCTION void Add(const RoiBin& bin, double y, double x, double to_y, double to_x) {
    const double at_y = (y - bin.ay.start) / bin.ay.bin / $out_height;
    const double at_x = (x - bin.ax.start) / bin.ax.bin / $out_width;
    x1 += to_x * (bin.ax.follows_end ? 1 - at_x : 1);
    y1 += to_y * (bin.ay.follows_end ? 1 - at_y : 1);
    if (bin.ax.follows_end) x2 += to_x * at_x;
    if (bin.ay.follows_end) y2 += to_y * at_y;
  }
};
RIDGE_KERNEL void region_gradients(const $T* rois, const $I* indices, const $T* dy, const $T* x, $T* drois) {
  __shared__ double scratch[32];
  for (i64 r = blockIdx.x; r < $rois; r += gridDim.x) {
    const i64 image = indices[r];
    RegionSums sums = {0, 0, 0, 0};
    for (i64 e = threadIdx.x; image >= 0 && image < $batch && e < $channels * $bins; e += blockDim.x) {
      const RoiBin bin = BinOf(rois + 4 * r, (int)(e % $bins));
      const $T* plane = x + (image * $channels + e / $bins) * $height * $width;
      const double of_output = (double)Load(dy, r * $channels * $bins + e) * $scale;
$add    }
    const double x1 = BlockSum(sums.x1, scratch), y1 = BlockSum(sums.y1, scratch);
    const double x2 = BlockSum(sums.x2, scratch), y2 = BlockSum(sums.y2, scratch);
    if (threadIdx.x == 0) {
      Store(drois, 4 * r, x1);
      Store(drois, 4 * r + 1, y1);
      Store(drois, 4 * r + 2, x2);
      Store(drois, 4 * r + 3, y2);
    }
  }
}
)cuda";

constexpr std::string_view kAddMean = R"cuda(
      const double points = bin.Points(), share = of_output / (points > 1 ? points : 1);
      bin.ForEachPoint([&](const RoiNeighbours& ny, const RoiNeighbours& nx, double py, double px) {
        if (!ny.inside || !nx.inside) return;
        double to_y = 0, to_x = 0;
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 2; ++j) {
            const double value = share * (double)Load(plane, (i64)ny.place[i] * $width + nx.place[j]);
            to_y += value * (i ? ny.slope : -ny.slope) * nx.weight[j];
            to_x += value * (j ? nx.slope : -nx.slope) * ny.weight[i];
          }
        sums.Add(bin, py, px, to_y, to_x);
      });
)cuda";
constexpr std::string_view kAddLargest = R"cuda(
      const RoiWinner winner = LargestOf(bin, plane);
      if (winner.place < 0 || (winner.to_y == 0 && winner.to_x == 0)) continue;
      const double value = of_output * (double)Load(plane, winner.place);
      sums.Add(bin, winner.y, winner.x, value * winner.to_y, value * winner.to_x);
)cuda";

class RoiGradWriter {
 public:
  RoiGradWriter(const OpCall& call, KernelText& text)
      : call_(call),
        text_(text),
        g_(RoiGeometryOf(call, call.integers("input_dims"), call.inputs[0].dims[0])),
        dtype_(call.outputs[0].dtype) {}

  const char* Write() {
    const int64_t inputs = call_.outputs[0].elements(), outputs = call_.inputs[2].elements();
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const int64_t bins = g_.out_height * g_.out_width;
    if (std::max({g_.height, g_.width, g_.batch, bins}) >= kMost) return refusal::kSize;
    if (g_.max && !CanSort(outputs, inputs)) return refusal::kSize;
    SetValues(inputs, outputs);
    text_.source = std::string(kPlaceOfIndexText) +
                   fmt::format("typedef {} R;\n", ComputeType(dtype_)) +
                   RoiText(g_, StorageType(dtype_));
    if (inputs > 0 && g_.max && outputs > 0) {
      WriteLargest(inputs, outputs);
    } else if (inputs > 0) {
      WriteMeans();
    }
    if (call_.outputs.size() > 1 && g_.rois > 0) WriteRegions();
    return nullptr;
  }

 private:
  void SetValues(int64_t inputs, int64_t outputs) {
    const auto number = [](int64_t value) { return fmt::format("{}ll", value); };
    values_ = {{"T", StorageType(dtype_)},
               {"I", StorageType(call_.inputs[1].dtype)},
               {"rois", number(g_.rois)},
               {"batch", number(g_.batch)},
               {"channels", number(g_.channels)},
               {"channel_groups", number(CeilDiv(g_.channels, kChannelsOfThread))},
               {"group", std::to_string(kChannelsOfThread)},
               {"height", number(g_.height)},
               {"width", number(g_.width)},
               {"out_height", number(g_.out_height)},
               {"out_width", number(g_.out_width)},
               {"bins", number(g_.out_height * g_.out_width)},
               {"inputs", number(inputs)},
               {"outputs", number(outputs)},
               {"scale", fmt::format("((double)({}))", g_.spatial_scale)}};
    values_.emplace_back("add", FillText(g_.max ? kAddLargest : kAddMean, values_));
  }

  void WriteMeans() {
    text_.source += FillText(kWeightsText, values_);
    const int64_t across = g_.rois * g_.out_height * g_.height,
                  along = g_.rois * g_.out_width * g_.width;
    const Argument reach = text_.Reserve(g_.rois * 20),
                   weights_y = text_.Reserve(across * NumberBytes()),
                   weights_x = text_.Reserve(along * NumberBytes());
    Add("find_weights", BlocksFor(std::max(across, along)),
        {kRois, kIndices, reach, weights_y, weights_x});
    const int64_t groups = CeilDiv(g_.channels, kChannelsOfThread);
    Add("gather_means", BlocksFor(g_.batch * groups * g_.height * g_.width),
        {reach, weights_y, weights_x, kDy, Argument::Output(0)});
  }

  void WriteLargest(int64_t inputs, int64_t outputs) {
    text_.source += FillText(kWinnersText, values_);
    const Argument places = text_.Reserve(outputs * 8),
                   updates = text_.Reserve(outputs * NumberBytes());
    Add("find_winners", BlocksFor(outputs), {kRois, kIndices, kDy, kX, places, updates});
    RowSort sort{outputs, inputs, DType::kI64, places};
    AppendSort(sort, text_);
    Add("gather_winners", BlocksFor(inputs),
        {Argument::Workspace(sort.firsts_at), Argument::Workspace(sort.numbers_at), updates,
         Argument::Output(0)});
  }

  void WriteRegions() {
    text_.source += FillText(kRegionsText, values_);
    Add("region_gradients", BlocksForRows(g_.rois),
        {kRois, kIndices, kDy, kX, Argument::Output(1)});
  }

  int64_t NumberBytes() const { return dtype_ == DType::kF64 ? 8 : 4; }

  void Add(const char* function, int64_t blocks, std::vector<Argument> arguments) {
    text_.launches.push_back({function, blocks, kBlockThreads, std::move(arguments)});
  }

  static constexpr Argument kRois{Argument::Kind::kInput, 0, 0},
      kIndices{Argument::Kind::kInput, 1, 0}, kDy{Argument::Kind::kInput, 2, 0},
      kX{Argument::Kind::kInput, 3, 0};

  const OpCall& call_;
  KernelText& text_;
  const RoiGeometry g_;
  const DType dtype_;
  std::vector<std::pair<std::string_view, std::string>> values_;
};

const char* WriteRoiAlignGrad(const OpDef&, const OpCall& call, KernelText& text) {
  return RoiGradWriter(call, text).Write();
}

}  // namespace

TextKernelDef RoiAlignGradTextKernel() {
  return {.name = "cuda.roi_align_grad", .ops = {"roi_align_grad"}, .write = WriteRoiAlignGrad};
}

}  // namespace ridge::cuda
