#include "ridge/plan/choose/local_step.h"

#include <algorithm>
#include <cmath>

#include "ridge/plan/cost/times.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr int64_t kWindow = 6;  // forward nodes about a place that has the fewest crossing bytes

// By node: which pass it belongs to.
enum class Pass : uint8_t { kForward, kBackward, kUpdate };

bool UpdatesVariable(const Program& program, const StepPlan& step, const PlannedNode& node) {
  if (node.def != nullptr && node.def->cost_class == CostClass::kOptimizer) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](int output) {
    const int variable = step.values[static_cast<size_t>(output)].persistent_index;
    return variable >= 0 &&
           program.persistent[static_cast<size_t>(variable)].kind == ValueKind::kParameter;
  });
}

// The loss and all that it is made of is the forward pass.
std::vector<Pass> PassesOf(const Program& program, const StepPlan& step, const StepUses& uses) {
  std::vector<Pass> passes(step.nodes.size(), Pass::kBackward);
  const std::vector<int> shown = ShownValues(step, uses);
  std::vector<int> open = {step.outputs.at("loss")};
  while (!open.empty()) {
    const int producer = uses.ProducerOf(shown[static_cast<size_t>(open.back())]);
    open.pop_back();
    if (producer < 0 || passes[static_cast<size_t>(producer)] == Pass::kForward) continue;
    passes[static_cast<size_t>(producer)] = Pass::kForward;
    for (const int input : step.nodes[static_cast<size_t>(producer)].inputs) {
      if (input >= 0) open.push_back(input);
    }
  }
  for (size_t n = 0; n < passes.size(); ++n) {
    if (passes[n] == Pass::kBackward && UpdatesVariable(program, step, step.nodes[n]))
      passes[n] = Pass::kUpdate;
  }
  return passes;
}

// Bytes that are written in the forward pass, by places in it.
struct Written {
  int64_t bytes = 0;
  int64_t first = -1, last = -1;  // forward nodes: the first that writes, the last that reads
  bool is_saved = false;          // the backward pass reads them
  bool is_gradient = false;       // an update reads them
};

class LocalStepMaker {
 public:
  LocalStepMaker(const Program& program, const StepPlan& step, bool eager,
                 const std::function<double(const PlannedNode&)>& in_line_s)
      : program_(program),
        step_(step),
        uses_(step),
        passes_(PassesOf(program, step, uses_)),
        eager_(eager),
        in_line_s_(in_line_s),
        written_(step.values.size()) {}

  LocalStep Make(int64_t runtime_bytes) {
    Place();
    FindBlocks();
    TakeSeconds();
    TakeSaved();
    TakeParameters();
    TakeTransient();
    local_.runtime_bytes = runtime_bytes;
    return std::move(local_);
  }

 private:
  bool IsPersistent(size_t root) const { return step_.values[root].persistent_index >= 0; }
  size_t Root(int value) const { return static_cast<size_t>(uses_.bytes().RootOf(value)); }

  // Where values are written and read in the forward pass.
  void Place() {
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      const bool is_forward = passes_[n] == Pass::kForward;
      if (is_forward) forward_.push_back(static_cast<int>(n));
      const auto place = static_cast<int64_t>(forward_.size()) - 1;
      for (const int input : step_.nodes[n].inputs) {
        if (input < 0) continue;
        Written& written = written_[Root(input)];
        if (is_forward) written.last = place;
        if (passes_[n] == Pass::kBackward) written.is_saved = true;
        if (passes_[n] == Pass::kUpdate) written.is_gradient = true;
      }
      for (const int output : step_.nodes[n].outputs) {
        Written& written = written_[Root(output)];
        written.bytes = step_.values[Root(output)].size_bytes;
        if (is_forward && written.first < 0) written.first = place;
      }
    }
  }

  // By forward node: bytes that go from it and those before to those behind.
  std::vector<int64_t> Crossing() const {
    std::vector<int64_t> crossing(forward_.size() + 1, 0);
    for (size_t v = 0; v < written_.size(); ++v) {
      const Written& written = written_[v];
      if (IsPersistent(v) || written.first < 0 || written.last <= written.first) continue;
      crossing[static_cast<size_t>(written.first)] += written.bytes;
      crossing[static_cast<size_t>(written.last)] -= written.bytes;
    }
    for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    return crossing;
  }

  void FindBlocks() {
    const std::vector<int64_t> crossing = Crossing();
    const auto count = static_cast<int64_t>(forward_.size());
    int64_t before = -1;
    for (int64_t i = 0; i < count; ++i) {
      const auto from = crossing.begin() + std::max<int64_t>(0, i - kWindow);
      const auto to = crossing.begin() + std::min(count - 1, i + kWindow + 1);
      const int64_t here = crossing[static_cast<size_t>(i)];
      const bool is_least =
          here > 0 && i - before > kWindow / 2 && here <= *std::min_element(from, to);
      if (!is_least && i + 1 < count) continue;
      ends_.push_back(i);
      local_.blocks.push_back({.crossing_bytes = i + 1 < count ? here : 0});
      before = i;
    }
  }

  LocalBlock& BlockAt(int64_t place) {
    const auto at = std::lower_bound(ends_.begin(), ends_.end(), place);
    return local_.blocks[static_cast<size_t>(std::min(at, ends_.end() - 1) - ends_.begin())];
  }

  void TakeSeconds() {
    const std::vector<double> node_s = PlannedNodeSeconds(step_);
    int64_t place = -1;
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      const double line_s = in_line_s_(step_.nodes[n]);
      const double kernel_s = line_s < 0 ? node_s[n] : 0;
      if (passes_[n] == Pass::kUpdate) {
        local_.update_s += kernel_s;
        continue;
      }
      if (line_s < 0) local_.flops += step_.nodes[n].cost.flops;
      const int64_t kernels = KernelsOf(step_.nodes[n]);
      if (passes_[n] == Pass::kForward) {
        LocalBlock& block = BlockAt(++place);
        block.forward_s += kernel_s;
        block.forward_kernels += kernels;
        block.forward_line_s += std::max(0.0, line_s);
      } else {
        local_.backward_s += kernel_s;
        local_.backward_kernels += kernels;
        local_.backward_line_s += std::max(0.0, line_s);
      }
    }
  }

  int64_t KernelsOf(const PlannedNode& node) const {
    return eager_ && node.def != nullptr ? EagerKernels(*node.def, node.call) : 1;
  }

  void TakeSaved() {
    for (size_t v = 0; v < written_.size(); ++v) {
      const Written& written = written_[v];
      if (!IsPersistent(v) && written.first >= 0 && written.is_saved)
        BlockAt(written.first).saved_bytes += written.bytes;
    }
  }

  // By the first forward node that reads them.
  void TakeParameters() {
    std::vector<bool> seen(program_.persistent.size());
    for (size_t i = 0; i < forward_.size(); ++i) {
      for (const int input : step_.nodes[static_cast<size_t>(forward_[i])].inputs) {
        if (input < 0) continue;
        const int variable = step_.values[Root(input)].persistent_index;
        if (variable < 0 || seen[static_cast<size_t>(variable)]) continue;
        seen[static_cast<size_t>(variable)] = true;
        const PersistentValue& value = program_.persistent[static_cast<size_t>(variable)];
        if (value.kind == ValueKind::kParameter)
          BlockAt(static_cast<int64_t>(i)).parameter_bytes += value.size_bytes;
      }
    }
    for (const PersistentValue& value : program_.persistent) {
      if (value.kind == ValueKind::kParameter) {
        local_.parameter_bytes += value.size_bytes;
      } else if (value.purpose == Purpose::kOptimizer) {
        local_.optimizer_bytes += value.size_bytes;
      } else {
        local_.other_bytes += value.size_bytes;
      }
    }
    local_.gradient_bytes = local_.parameter_bytes;
  }

  void TakeTransient() {
    const std::vector<LiveRange> ranges = LiveRanges(step_, uses_.bytes());
    std::vector<int64_t> live(step_.nodes.size() + 1, 0);
    for (size_t v = 0; v < ranges.size(); ++v) {
      const bool counts =
          Root(static_cast<int>(v)) == v && !IsPersistent(v) && written_[v].bytes > 0;
      if (!counts || written_[v].is_gradient || ranges[v].first > ranges[v].last) continue;
      live[static_cast<size_t>(std::max(0, ranges[v].first))] += written_[v].bytes;
      live[static_cast<size_t>(ranges[v].last) + 1] -= written_[v].bytes;
    }
    int64_t now = 0, most = 0, saved = 0;
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      now += live[n];
      most = std::max(most, now + step_.nodes[n].choice.workspace_bytes);
    }
    for (const LocalBlock& block : local_.blocks) saved += block.saved_bytes;
    local_.transient_bytes = std::max<int64_t>(0, most - saved);
  }

  const Program& program_;
  const StepPlan& step_;
  const StepUses uses_;
  const std::vector<Pass> passes_;
  const bool eager_;
  const std::function<double(const PlannedNode&)>& in_line_s_;
  std::vector<Written> written_;  // by value that owns bytes
  std::vector<int> forward_;      // nodes, in order
  std::vector<int64_t> ends_;     // by block: its last place
  LocalStep local_;
};

}  // namespace

double LocalStep::forward_s() const {
  double seconds = 0;
  for (const LocalBlock& block : blocks) seconds += block.forward_s;
  return seconds;
}

double LocalStep::forward_line_s() const {
  double seconds = 0;
  for (const LocalBlock& block : blocks) seconds += block.forward_line_s;
  return seconds;
}

LocalStep LocalStepOf(const Program& program, int64_t runtime_bytes, bool eager,
                      const std::function<double(const PlannedNode&)>& in_line_s) {
  return LocalStepMaker(program, *program.Find("train"), eager, in_line_s).Make(runtime_bytes);
}

LocalStep Between(const LocalStep& a, const LocalStep& b, double share) {
  RIDGE_CHECK(a.blocks.size() == b.blocks.size(), "steps of one graph");
  const auto seconds = [share](double x, double y) { return std::max(0.0, x + share * (y - x)); };
  const auto whole = [share](int64_t x, int64_t y) {
    return std::max<int64_t>(
        0, std::llround(static_cast<double>(x) + share * static_cast<double>(y - x)));
  };
  LocalStep step = a;
  for (size_t i = 0; i < step.blocks.size(); ++i) {
    LocalBlock& block = step.blocks[i];
    const LocalBlock& other = b.blocks[i];
    block.forward_s = seconds(block.forward_s, other.forward_s);
    block.forward_line_s = seconds(block.forward_line_s, other.forward_line_s);
    block.saved_bytes = whole(block.saved_bytes, other.saved_bytes);
    block.crossing_bytes = whole(block.crossing_bytes, other.crossing_bytes);
  }
  step.backward_s = seconds(a.backward_s, b.backward_s);
  step.backward_line_s = seconds(a.backward_line_s, b.backward_line_s);
  step.flops = whole(a.flops, b.flops);
  step.other_bytes = whole(a.other_bytes, b.other_bytes);
  step.transient_bytes = whole(a.transient_bytes, b.transient_bytes);
  step.runtime_bytes = whole(a.runtime_bytes, b.runtime_bytes);
  return step;
}

LocalStep WithKernels(const LocalStep& step, double times) {
  LocalStep scaled = step;
  for (LocalBlock& block : scaled.blocks) block.forward_s *= times;
  scaled.backward_s *= times;
  scaled.update_s *= times;
  return scaled;
}

}  // namespace ridge
