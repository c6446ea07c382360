#include "ridge/pipeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ridge {
namespace {

class Clock {
 public:
  Clock(const PipelineSchedule& schedule, const std::vector<ChunkSeconds>& seconds)
      : schedule_(schedule),
        seconds_(seconds),
        at_(schedule.ops.size(), 0),
        now_(schedule.ops.size(), 0) {
    timeline_.ops.resize(schedule.ops.size());
    timeline_.busy_s.resize(schedule.ops.size());
  }

  // The device whose clock is earliest goes first, so a link takes messages in order of time.
  Timeline Run() {
    for (int d = NextDevice(); d >= 0; d = NextDevice()) Step(static_cast<size_t>(d));
    double busy_s = 0;
    for (size_t d = 0; d < now_.size(); ++d) {
      timeline_.makespan_s = std::max(timeline_.makespan_s, now_[d]);
      busy_s += timeline_.busy_s[d];
    }
    const double all_s = timeline_.makespan_s * static_cast<double>(schedule_.devices);
    timeline_.bubble_share = all_s > 0 ? 1 - busy_s / all_s : 0;
    return std::move(timeline_);
  }

 private:
  bool CanRun(const Operation& o) const {
    return o.is_compute() || o.is_send() || arrival_.contains(SendOf(o));
  }

  static Operation SendOf(const Operation& receive) {
    return {receive.op == PipelineOp::kReceiveForward ? PipelineOp::kSendForward
                                                      : PipelineOp::kSendBackward,
            PeerChunk(receive), receive.micro};
  }

  int NextDevice() const {
    int next = -1;
    for (size_t d = 0; d < at_.size(); ++d) {
      if (at_[d] == schedule_.ops[d].size() || !CanRun(schedule_.ops[d][at_[d]])) continue;
      if (next < 0 || now_[d] < now_[static_cast<size_t>(next)]) next = static_cast<int>(d);
    }
    return next;
  }

  void Step(size_t d) {
    const Operation& o = schedule_.ops[d][at_[d]++];
    const ChunkSeconds& chunk = seconds_[static_cast<size_t>(o.chunk)];
    if (o.is_compute()) {
      const double own_s = o.op == PipelineOp::kForward    ? chunk.forward_s
                           : o.op == PipelineOp::kBackward ? chunk.backward_s
                                                           : chunk.weights_s;
      timeline_.ops[d].push_back({o, now_[d], now_[d] + own_s});
      timeline_.busy_s[d] += own_s;
      now_[d] += own_s;
    } else if (o.is_send()) {
      double& link = link_[{static_cast<int>(d), schedule_.DeviceOf(PeerChunk(o))}];
      link = std::max(link, now_[d]) +
             (o.op == PipelineOp::kSendForward ? chunk.send_forward_s : chunk.send_backward_s);
      arrival_[o] = link;
    } else {
      now_[d] = std::max(now_[d], arrival_.at(SendOf(o)));
    }
  }

  const PipelineSchedule& schedule_;
  const std::vector<ChunkSeconds>& seconds_;
  std::vector<size_t> at_;
  std::vector<double> now_;
  std::map<std::pair<int, int>, double> link_;  // from, to: when it is free
  std::map<Operation, double> arrival_;         // by send
  Timeline timeline_;
};

char Letter(const Operation& o) {
  const auto micro = static_cast<char>(o.micro % 10);
  if (o.op == PipelineOp::kForward) return static_cast<char>('0' + micro);
  return static_cast<char>((o.op == PipelineOp::kBackward ? 'a' : 'A') + micro);
}

}  // namespace

Timeline TimeSchedule(const PipelineSchedule& schedule, const std::vector<ChunkSeconds>& seconds) {
  return Clock(schedule, seconds).Run();
}

double EqualStagesBubble(const ScheduleKind& kind, int devices, int micros) {
  const double p = devices, m = micros;
  switch (kind.order) {
    case ScheduleKind::Order::kInterleaved:
      return (p - 1) / (kind.chunks_a_device * m + p - 1);
    case ScheduleKind::Order::kZeroBubble:
      return (p - 1) / (3 * m + p - 1);
    default:
      return (p - 1) / (m + p - 1);
  }
}

std::string GanttText(const Timeline& timeline, int columns) {
  std::string text;
  const auto column = [&](double second) {
    return static_cast<size_t>(std::lround(second / timeline.makespan_s * columns));
  };
  for (size_t d = 0; d < timeline.ops.size(); ++d) {
    std::string line(static_cast<size_t>(columns), '.');
    for (const TimedOperation& timed : timeline.ops[d]) {
      for (size_t c = column(timed.begin_s); c < column(timed.end_s); ++c)
        line[c] = Letter(timed.operation);
    }
    text += fmt::format("{:>3} |{}|\n", d, line);
  }
  return text;
}

}  // namespace ridge
