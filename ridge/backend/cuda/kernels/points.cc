// farthest_points: a block a cloud, which takes one point after the other.  ball_query: a warp a
// center, which asks 32 points at once.  Distances are doubles, so that every float type chooses
// the points that the reference does.
#include "ridge/backend/cuda/kernels/best_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int kCloudThreads = 1024;

constexpr std::string_view kDistanceText = R"cuda(
RIDGE_FUNCTION double SquaredDistance(const $T* a, const $T* b) {
  double sum = 0;
  for (int d = 0; d < $width; ++d) {
    const double difference = (double)Load(a, d) - (double)Load(b, d);
    sum += difference * difference;
  }
  return sum;
}
)cuda";

// nearest: [samples, points], the squared distance of each point to the chosen ones; a NaN is none.
constexpr std::string_view kFarthestText = R"cuda(
RIDGE_KERNEL void farthest_points(const $T* x, double* nearest, i64* y) {
  __shared__ double distances[32];
  __shared__ i64 points[32];
  for (i64 sample = blockIdx.x; sample < $samples; sample += gridDim.x) {
    const $T* cloud = x + sample * $points * $width;
    double* own = nearest + sample * $points;
    int next = 0;
    for (i64 k = 0; k < $count; ++k) {
      if (threadIdx.x == 0) y[sample * $count + k] = next;
      Best farthest = {-1, $points};
      for (int i = threadIdx.x; i < $points; i += blockDim.x) {
        const double to_next = SquaredDistance(cloud + (i64)i * $width, cloud + (i64)next * $width);
        double least = k == 0 ? Infinity<double>() : own[i];
        if (to_next < least) least = to_next;
        own[i] = least;
        farthest = Better(farthest, {least, i});
      }
      next = (int)BlockBest(farthest, distances, points).place;
    }
  }
}
)cuda";

constexpr std::string_view kBallText = R"cuda(
RIDGE_KERNEL void ball_query(const $T* x, const $T* centers, i64* y) {
  const int lane = threadIdx.x % 32;
  for (i64 center = Thread() / 32; center < $centers; center += Threads() / 32) {
    const $T* cloud = x + center / $centers_of_sample * $points * $width;
    i64* group = y + center * $count;
    int found = 0, first = 0;
    for (int base = 0; base < $points && found < $count; base += 32) {
      const int i = base + lane;
      const bool within = i < $points && SquaredDistance(cloud + (i64)i * $width, centers + center * $width) <= $squared_radius;
      int end = within;
      for (int distance = 1; distance < 32; distance *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, end, distance);
        if (lane >= distance) end += before;
      }
      const int total = __shfl_sync(0xffffffffu, end, 31);
      if (found == 0 && total > 0) {
        first = within ? i : 0x7fffffff;
        for (int distance = 16; distance > 0; distance >>= 1) {
          const int other = __shfl_xor_sync(0xffffffffu, first, distance);
          first = other < first ? other : first;
        }
      }
      if (within && found + end <= $count) group[found + end - 1] = i;
      found += total;
    }
    for (int k = found + lane; k < $count; k += 32) group[k] = first;
  }
}
)cuda";

std::string DistanceText(const TensorType& x) {
  return FillText(kDistanceText,
                  {{"T", StorageType(x.dtype)}, {"width", std::to_string(x.dims[2])}});
}

const char* WriteFarthest(const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const int64_t samples = x.dims[0], points = x.dims[1];
  int threads = kWarpThreads;
  while (threads < kCloudThreads && threads < points) threads *= 2;
  text.source = DistanceText(x) + std::string(BestText()) +
                FillText(kFarthestText, {{"T", StorageType(x.dtype)},
                                         {"width", std::to_string(x.dims[2])},
                                         {"samples", std::to_string(samples)},
                                         {"points", std::to_string(points)},
                                         {"count", std::to_string(call.integer("count"))}});
  text.workspace_bytes = samples * points * 8;
  text.launches = {{"farthest_points",
                    BlocksForRows(samples),
                    threads,
                    {Argument::Input(0), Argument::Workspace(), Argument::Output(0)}}};
  return nullptr;
}

const char* WriteBall(const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const Dims& centers = call.inputs[1].dims;
  const int64_t count = centers[0] * centers[1];
  const double radius = call.number("radius");
  text.source = DistanceText(x) + "typedef double R;\n" +
                FillText(kBallText, {{"T", StorageType(x.dtype)},
                                     {"width", std::to_string(x.dims[2])},
                                     {"centers", std::to_string(count)},
                                     {"centers_of_sample", std::to_string(centers[1])},
                                     {"points", std::to_string(x.dims[1])},
                                     {"count", std::to_string(call.integer("count"))},
                                     {"squared_radius", Literal(radius * radius)}});
  text.launches = {{"ball_query",
                    BlocksFor(count * kWarpThreads),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Input(1), Argument::Output(0)}}};
  return nullptr;
}

const char* WritePoints(const OpDef& op, const OpCall& call, KernelText& text) {
  if (call.inputs[0].dims[1] >= int64_t{1} << 30) return refusal::kSize;
  return op.name == "farthest_points" ? WriteFarthest(call, text) : WriteBall(call, text);
}

}  // namespace

TextKernelDef PointsTextKernel() {
  return {.name = "cuda.points", .ops = {"farthest_points", "ball_query"}, .write = WritePoints};
}

}  // namespace ridge::cuda
