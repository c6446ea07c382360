#include "ridge/plan/choose/layout_cost.h"

#include <algorithm>

#include "ridge/core/rounding.h"
#include "ridge/plan/choose/communication.h"
#include "ridge/plan/choose/pipeline_formula.h"

namespace ridge {
namespace {

constexpr int64_t kBucketBytes = 25 << 20;  // PyTorch's bucket_cap_mb
constexpr int64_t kGatheredUnits = 2;       // the one in use, and the next

// Gathers or sums of a stage's parameters: so many of equal size, one after the other.
struct Train {
  int64_t units = 1;
  double unit_s = 0;  // alone

  double all_s() const { return static_cast<double>(units) * unit_s; }
};

// What of the units is left when kernels of `over_s` have ended, beside which unit i can leave as
// soon as (i + 1) / units of them are done.
double LeftBehind(const Train& train, double over_s) {
  double free_s = 0;
  for (int64_t i = 0; i < train.units; ++i) {
    const double ready_s = over_s * static_cast<double>(i + 1) / static_cast<double>(train.units);
    const double start_s = std::max(free_s, ready_s);
    free_s = start_s + SecondsBesideKernels(train.unit_s, std::max(0.0, over_s - start_s));
  }
  return std::max(0.0, free_s - over_s);
}

// What `alone_s` of a link takes beyond kernels of `over_s` that run beside it all the time.
double BeyondKernels(double alone_s, double over_s) {
  return SecondsBesideKernels(alone_s, over_s) <= over_s
             ? 0
             : SecondsBesideKernels(alone_s, over_s) - over_s;
}

class Composer {
 public:
  Composer(const LocalStep& step, const LayoutChoice& choice, const DeviceGroup& all,
           double wire_share)
      : step_(step),
        choice_(choice),
        wire_share_(wire_share),
        data_(StridedGroup(all, choice.tensor, choice.data)),
        neighbours_(StridedGroup(all, choice.tensor * choice.data, choice.pipeline)),
        stages_(SplitStages(step, choice.pipeline)) {}

  std::optional<LayoutCost> Compose() {
    if (stages_.empty()) return std::nullopt;
    LayoutCost cost;
    cost.choice = choice_;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const LayoutBytes bytes = BytesOf(s);
      if (bytes.all() > cost.bytes.all()) cost.bytes = bytes;
      const std::optional<LayoutSeconds> seconds = SecondsOf(stages_[s]);
      if (!seconds) return std::nullopt;
      if (seconds->all() <= cost.seconds.all()) continue;
      cost.seconds = *seconds;
      cost.turn_s = TurnSeconds(stages_[s]);
      cost.kernels = KernelsOf(stages_[s]);
    }
    cost.flops = static_cast<double>(step_.flops * choice_.micro_batches) /
                 static_cast<double>(choice_.pipeline);
    return cost;
  }

 private:
  LayoutBytes BytesOf(size_t index) const {
    const StageBlocks& stage = stages_[index];
    const int64_t in_flight =
        InFlight(choice_.pipeline, static_cast<int64_t>(index), choice_.micro_batches);
    LayoutBytes bytes;
    const auto part = [&](int64_t all, int least_zero) {
      const double share = step_.parameter_bytes > 0
                               ? static_cast<double>(stage.parameter_bytes) /
                                     static_cast<double>(step_.parameter_bytes)
                               : 0;
      const auto of_stage = static_cast<int64_t>(static_cast<double>(all) * share);
      return choice_.zero >= least_zero ? CeilDiv(of_stage, choice_.data) : of_stage;
    };
    bytes.parameters = part(step_.parameter_bytes, 3);
    bytes.gradients = part(step_.gradient_bytes, 2);
    bytes.optimizer = part(step_.optimizer_bytes, 1);
    if (choice_.zero == 3 && choice_.data > 1)
      bytes.gathered = std::min(stage.parameter_bytes, kGatheredUnits * LargestBlock(stage));
    bytes.activations = choice_.recompute ? RecomputedBytes(step_, stage, in_flight)
                                          : in_flight * stage.saved_bytes;
    bytes.transient = step_.transient_bytes;
    bytes.other = step_.other_bytes;
    bytes.runtime = step_.runtime_bytes;
    return bytes;
  }

  int64_t LargestBlock(const StageBlocks& stage) const {
    int64_t largest = 0;
    for (size_t b = stage.first; b < stage.last; ++b)
      largest = std::max(largest, step_.blocks[b].parameter_bytes);
    return largest;
  }

  double Again() const { return choice_.recompute ? 1 : 0; }
  double LineSeconds(const StageBlocks& stage) const {
    return (1 + Again()) * stage.forward_line_s + stage.share * step_.backward_line_s;
  }
  double TurnSeconds(const StageBlocks& stage) const {
    return (1 + Again()) * stage.forward_s + stage.share * step_.backward_s + LineSeconds(stage);
  }
  int64_t KernelsOf(const StageBlocks& stage) const {
    return static_cast<int64_t>((1 + Again()) * static_cast<double>(stage.forward_kernels) +
                                stage.share * static_cast<double>(step_.backward_kernels));
  }

  std::optional<LayoutSeconds> SecondsOf(const StageBlocks& stage) const {
    const double again = Again();
    const auto micro_batches = static_cast<double>(choice_.micro_batches);
    const double forward_s = stage.forward_s, backward_s = stage.share * step_.backward_s;
    const double line_s = LineSeconds(stage), turn_s = TurnSeconds(stage);
    LayoutSeconds seconds;
    seconds.kernels = micro_batches * (forward_s + backward_s);
    seconds.recompute = micro_batches * again * forward_s;
    seconds.tensor = micro_batches * line_s;
    seconds.pipeline = static_cast<double>(BubbleTurns(choice_.pipeline)) * turn_s;
    const std::optional<double> send_s = SendSeconds();
    const std::optional<double> data_s =
        DataSeconds(stage, stage.forward_s + stage.forward_line_s,
                    turn_s - stage.forward_s - stage.forward_line_s);
    if (!send_s || !data_s) return std::nullopt;
    seconds.send = *send_s;
    seconds.data = *data_s;
    const double share = ParameterShare(stage);
    seconds.update =
        step_.update_s * share / (choice_.zero > 0 ? static_cast<double>(choice_.data) : 1);
    seconds.stragglers = (StragglerFactor(choice_.devices()) - 1) *
                         (seconds.kernels + seconds.recompute + seconds.pipeline + seconds.update);
    return seconds;
  }

  double ParameterShare(const StageBlocks& stage) const {
    return step_.parameter_bytes > 0 ? static_cast<double>(stage.parameter_bytes) /
                                           static_cast<double>(step_.parameter_bytes)
                                     : 0;
  }

  // Each micro-batch goes to the next stage, and its gradient back.
  std::optional<double> SendSeconds() const {
    if (choice_.pipeline < 2) return 0;
    int64_t most = 0;
    for (const StageBlocks& stage : stages_) most = std::max(most, stage.received_bytes);
    const std::optional<double> one_s = CollectiveSeconds(neighbours_, CollectiveKind::kSend,
                                                          static_cast<double>(most) * wire_share_);
    if (!one_s) return std::nullopt;
    const int64_t turns = choice_.micro_batches + BubbleTurns(choice_.pipeline);
    return 2 * static_cast<double>(turns) * *one_s;
  }

  std::optional<Train> TrainOf(CollectiveKind kind, const StageBlocks& stage) const {
    Train train;
    const double bytes = static_cast<double>(stage.parameter_bytes) * wire_share_;
    train.units = std::max<int64_t>(1, stage.parameter_bytes / kBucketBytes);
    const auto blocks = static_cast<int64_t>(stage.last - stage.first);
    if (choice_.zero == 3) train.units = std::min(train.units, blocks);
    const std::optional<double> unit_s =
        CollectiveSeconds(data_, kind, bytes / static_cast<double>(train.units));
    if (!unit_s) return std::nullopt;
    train.unit_s = *unit_s;
    return train;
  }

  // Of gradients and parameters along the data axis, with the seconds of one micro-batch.
  std::optional<double> DataSeconds(const StageBlocks& stage, double forward_s,
                                    double backward_s) const {
    if (choice_.data < 2) return 0;
    const bool sums_whole = choice_.zero == 0;
    const std::optional<Train> sums =
        TrainOf(sums_whole ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter, stage);
    const std::optional<Train> gathers = TrainOf(CollectiveKind::kAllGather, stage);
    if (!sums || !gathers) return std::nullopt;
    const auto further = static_cast<double>(choice_.micro_batches - 1);
    const double last_s = LeftBehind(*sums, backward_s);
    if (choice_.zero == 3) {
      const double turn_s = BeyondKernels(gathers->all_s(), forward_s) +
                            BeyondKernels(gathers->all_s() + sums->all_s(), backward_s);
      const double ends_s = gathers->unit_s + sums->unit_s;  // the first and the last of a step
      return (further + 1) * turn_s + ends_s;
    }
    double seconds = last_s;
    if (choice_.zero == 2)
      seconds += further * BeyondKernels(sums->all_s(), forward_s + backward_s);
    if (!sums_whole) seconds += gathers->all_s();
    return seconds;
  }

  const LocalStep& step_;
  const LayoutChoice choice_;
  const double wire_share_;
  const DeviceGroup data_, neighbours_;
  const std::vector<StageBlocks> stages_;
};

}  // namespace

std::optional<LayoutCost> ComposeLayout(const LocalStep& step, const LayoutChoice& choice,
                                        const DeviceGroup& all, double wire_share) {
  return Composer(step, choice, all, wire_share).Compose();
}

int64_t LeastBytes(const LocalStep& whole, const LayoutChoice& choice) {
  const int64_t parts = choice.pipeline * choice.tensor;
  const auto part = [&](int64_t bytes, int least_zero) {
    return bytes / parts / (choice.zero >= least_zero ? choice.data : 1);
  };
  return part(whole.parameter_bytes, 3) + part(whole.gradient_bytes, 2) +
         part(whole.optimizer_bytes, 1);
}

}  // namespace ridge
