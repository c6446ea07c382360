// assign_boxes in four launches (graph/ops/shared/box_assignment.h says what they compute):
//
//   take_best    a block a true box: the k best places, one after the other
//   choose_owner a thread a place: the true box that it is taught
//   find_maxima  a block a true box: the largest metric and overlap of its places
//   write_targets
//
// In doubles, so that every float type chooses the same places.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/best_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/box_assignment.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kMostTakingBlocks = 264;  // each has the metrics of all places

constexpr std::string_view kBoxFunctions = R"cuda(
typedef double R;
typedef $T T;
struct Box {
  double x1, y1, x2, y2;
};
RIDGE_FUNCTION double Least(double a, double b) { return b < a ? b : a; }
RIDGE_FUNCTION double Most(double a, double b) { return a < b ? b : a; }
RIDGE_FUNCTION Box BoxAt(const T* boxes, i64 i) {
  return {(double)Load(boxes, 4 * i), (double)Load(boxes, 4 * i + 1), (double)Load(boxes, 4 * i + 2),
          (double)Load(boxes, 4 * i + 3)};
}
RIDGE_FUNCTION double CompleteIou(const Box& a, const Box& b) {
  const double eps = 1e-7;
  const double aw = a.x2 - a.x1, ah = a.y2 - a.y1 + eps;
  const double bw = b.x2 - b.x1, bh = b.y2 - b.y1 + eps;
  const double w = Most(0.0, Least(a.x2, b.x2) - Most(a.x1, b.x1));
  const double h = Most(0.0, Least(a.y2, b.y2) - Most(a.y1, b.y1));
  const double iou = w * h / (aw * ah + bw * bh - w * h + eps);
  const double hull_w = Most(a.x2, b.x2) - Least(a.x1, b.x1);
  const double hull_h = Most(a.y2, b.y2) - Least(a.y1, b.y1);
  const double dx = b.x1 + b.x2 - a.x1 - a.x2, dy = b.y1 + b.y2 - a.y1 - a.y2;
  const double distance = (dx * dx + dy * dy) / 4 / (hull_w * hull_w + hull_h * hull_h + eps);
  const double turn = atan(bw / bh) - atan(aw / ah);
  const double shape = 0.40528473456935109 * turn * turn;  // 4 / pi^2
  return iou - distance - shape * shape / (shape - iou + 1 + eps);
}
RIDGE_FUNCTION bool Counts(i64 c) { return c >= 0 && c < $classes; }
RIDGE_FUNCTION bool Contains(const Box& truth, const T* anchors, i64 place) {
  const double x = (double)Load(anchors, 2 * place), y = (double)Load(anchors, 2 * place + 1);
  return Least(Least(x - truth.x1, y - truth.y1), Least(truth.x2 - x, truth.y2 - y)) > 1e-9;
}
RIDGE_FUNCTION double Overlap(const Box& truth, const Box& box) {
  const double iou = CompleteIou(truth, box);
  return iou > 0 ? iou : 0;
}
RIDGE_FUNCTION double Metric(double score, double overlap) {
  const double metric = pow(score, $alpha) * pow(overlap, $beta);
  return metric > 0 ? metric : 0;
}
)cuda";

// metrics: [blocks, places], -1 where the true box lacks the place or has it.  taken: [batch,
// truths, places].  A thread has its places alone.
constexpr std::string_view kTakeText = R"cuda(
RIDGE_KERNEL void take_best(const T* scores, const T* boxes, const T* anchors, const T* truths, const i64* classes, double* metrics, u8* taken) {
  __shared__ double best_metrics[32];
  __shared__ i64 best_places[32];
  double* own = metrics + (i64)blockIdx.x * $places;
  for (i64 truth = blockIdx.x; truth < $all_truths; truth += gridDim.x) {
    const i64 b = truth / $truths, c = classes[truth];
    const Box box = BoxAt(truths, truth);
    for (i64 place = threadIdx.x; place < $places; place += blockDim.x) {
      const i64 at = b * $places + place;
      const bool inside = Counts(c) && Contains(box, anchors, place);
      own[place] = inside ? Metric((double)Load(scores, at * $classes + c), Overlap(box, BoxAt(boxes, at))) : -1;
      taken[truth * $places + place] = 0;
    }
    for (i64 k = 0; k < $k; ++k) {
      Best best = {-1, $places};
      for (i64 place = threadIdx.x; place < $places; place += blockDim.x)
        best = Better(best, {own[place], place});
      best = BlockBest(best, best_metrics, best_places);
      if (best.value < 0) break;
      if (best.place % blockDim.x == threadIdx.x) {
        own[best.place] = -1;
        taken[truth * $places + best.place] = 1;
      }
    }
  }
}
)cuda";

// owners: [batch, places], -1 for none; metrics and overlaps with them.
constexpr std::string_view kOwnerText = R"cuda(
RIDGE_KERNEL void choose_owner(const T* scores, const T* boxes, const T* anchors, const T* truths, const i64* classes, const u8* taken, i64* owners, double* metrics, double* overlaps) {
  for (i64 e = Thread(); e < $all_places; e += Threads()) {
    const i64 b = e / $places, place = e % $places;
    const Box box = BoxAt(boxes, e);
    i64 owner = -1, takers = 0;
    for (i64 n = 0; n < $truth_count; ++n) {
      if (!taken[(b * $truths + n) * $places + place]) continue;
      ++takers;
      owner = n;
    }
    double most = -1;
    for (i64 n = 0; takers > 1 && n < $truth_count; ++n) {
      const i64 truth = b * $truths + n;
      const Box other = BoxAt(truths, truth);
      if (!Counts(classes[truth]) || !Contains(other, anchors, place)) continue;
      const double overlap = Overlap(other, box);
      if (overlap <= most) continue;
      most = overlap;
      owner = n;
    }
    owners[e] = owner;
    if (owner < 0) continue;
    const i64 truth = b * $truths + owner;
    overlaps[e] = Overlap(BoxAt(truths, truth), box);
    metrics[e] = Metric((double)Load(scores, e * $classes + classes[truth]), overlaps[e]);
  }
}
)cuda";

// maxima: [batch, truths, 2].
constexpr std::string_view kMaximaText = R"cuda(
RIDGE_KERNEL void find_maxima(const i64* owners, const double* metrics, const double* overlaps, double* maxima) {
  __shared__ double scratch[32];
  for (i64 truth = blockIdx.x; truth < $all_truths; truth += gridDim.x) {
    double metric = 0, overlap = 0;
    for (i64 place = threadIdx.x; place < $places; place += blockDim.x) {
      const i64 e = truth / $truths * $places + place;
      if (owners[e] != truth % $truths) continue;
      metric = Most(metric, metrics[e]);
      overlap = Most(overlap, overlaps[e]);
    }
    metric = BlockMax(metric, scratch);
    overlap = BlockMax(overlap, scratch);
    if (threadIdx.x == 0) {
      maxima[2 * truth] = metric;
      maxima[2 * truth + 1] = overlap;
    }
  }
}
)cuda";

constexpr std::string_view kTargetsText = R"cuda(
RIDGE_KERNEL void write_targets(const T* truths, const i64* classes, const i64* owners, const double* metrics, const double* maxima, T* target_boxes, T* target_scores) {
  for (i64 e = Thread(); e < $all_places * 4; e += Threads()) {
    const i64 at = e / 4, owner = owners[at];
    const i64 truth = at / $places * $truths + owner;
    Store(target_boxes, e, owner < 0 ? 0.0 : (double)Load(truths, 4 * truth + e % 4));
  }
  for (i64 e = Thread(); e < $all_places * $classes; e += Threads()) {
    const i64 at = e / $class_count, owner = owners[at];
    const i64 truth = at / $places * $truths + owner;
    double score = 0;
    if (owner >= 0 && classes[truth] == e % $class_count)
      score = metrics[at] * maxima[2 * truth + 1] / (maxima[2 * truth] + 1e-9);
    Store(target_scores, e, score);
  }
}
)cuda";

class AssignWriter {
 public:
  AssignWriter(const OpCall& call, KernelText& text)
      : call_(call), text_(text), sizes_(call), batch_(call.inputs[0].dims[0]) {}

  void Write() {
    text_.source =
        std::string(BestText()) +
        FillText(std::string(kBoxFunctions) + std::string(kTakeText) + std::string(kOwnerText) +
                     std::string(kMaximaText) + std::string(kTargetsText),
                 Values());
    const int64_t places = batch_ * sizes_.places, truths = batch_ * sizes_.truths;
    const int64_t taking = std::min(truths, kMostTakingBlocks);
    const Argument all_metrics = text_.Reserve(taking * sizes_.places * 8),
                   taken = text_.Reserve(truths * sizes_.places),
                   owners = text_.Reserve(places * 8), metrics = text_.Reserve(places * 8),
                   overlaps = text_.Reserve(places * 8), maxima = text_.Reserve(truths * 16);
    const Argument scores = Argument::Input(0), boxes = Argument::Input(1),
                   anchors = Argument::Input(2), true_boxes = Argument::Input(3),
                   classes = Argument::Input(4);
    if (truths > 0) {
      Add("take_best", taking, {scores, boxes, anchors, true_boxes, classes, all_metrics, taken});
    }
    Add("choose_owner", BlocksFor(places),
        {scores, boxes, anchors, true_boxes, classes, taken, owners, metrics, overlaps});
    if (truths > 0) Add("find_maxima", BlocksForRows(truths), {owners, metrics, overlaps, maxima});
    Add("write_targets", BlocksFor(places * std::max<int64_t>(4, sizes_.classes)),
        {true_boxes, classes, owners, metrics, maxima, Argument::Output(0), Argument::Output(1)});
  }

 private:
  std::vector<std::pair<std::string_view, std::string>> Values() const {
    const auto number = [](int64_t value) { return fmt::format("{}ll", value); };
    return {{"T", StorageType(call_.inputs[0].dtype)},
            {"places", number(sizes_.places)},
            {"truths", number(std::max<int64_t>(1, sizes_.truths))},
            {"truth_count", number(sizes_.truths)},
            {"classes", number(sizes_.classes)},
            {"class_count", number(std::max<int64_t>(1, sizes_.classes))},
            {"all_places", number(batch_ * sizes_.places)},
            {"all_truths", number(batch_ * sizes_.truths)},
            {"k", number(sizes_.k)},
            {"alpha", Literal(sizes_.alpha)},
            {"beta", Literal(sizes_.beta)}};
  }

  void Add(const char* function, int64_t blocks, std::vector<Argument> arguments) {
    text_.launches.push_back({function, blocks, kBlockThreads, std::move(arguments)});
  }

  const OpCall& call_;
  KernelText& text_;
  const AssignmentSizes sizes_;
  const int64_t batch_;
};

const char* WriteAssignBoxes(const OpDef&, const OpCall& call, KernelText& text) {
  AssignWriter(call, text).Write();
  return nullptr;
}

}  // namespace

TextKernelDef AssignBoxesTextKernel() {
  return {.name = "cuda.assign_boxes", .ops = {"assign_boxes"}, .write = WriteAssignBoxes};
}

}  // namespace ridge::cuda
