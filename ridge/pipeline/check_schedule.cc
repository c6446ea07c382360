// Devices run one after the other as far as they can, in turns, until nothing moves; whether a
// schedule ends does not depend on the turns, because a message is read by one receive only.
#include "ridge/pipeline/check_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ridge {
namespace {

Status Wrong(const PipelineSchedule& schedule, const std::string& what) {
  return Status(ErrorCode::kInternal, fmt::format("schedule {}: {}", schedule.name, what));
}

std::string TextOf(const PipelineSchedule& schedule, const Operation& operation) {
  return OperationText(operation, schedule.chunks / schedule.devices);
}

// What has to stand before an operation on the same device.
std::vector<Operation> LocalNeeds(const PipelineSchedule& schedule, const Operation& o) {
  const auto apart = [&](int other) {
    return schedule.DeviceOf(other) != schedule.DeviceOf(o.chunk);
  };
  const auto of = [&](PipelineOp op, int chunk) { return Operation{op, chunk, o.micro}; };
  switch (o.op) {
    case PipelineOp::kForward:
      if (o.chunk == 0) return {};
      return {apart(o.chunk - 1) ? of(PipelineOp::kReceiveForward, o.chunk)
                                 : of(PipelineOp::kForward, o.chunk - 1)};
    case PipelineOp::kBackward:
      if (o.chunk + 1 == schedule.chunks) return {of(PipelineOp::kForward, o.chunk)};
      return {of(PipelineOp::kForward, o.chunk), apart(o.chunk + 1)
                                                     ? of(PipelineOp::kReceiveBackward, o.chunk)
                                                     : of(PipelineOp::kBackward, o.chunk + 1)};
    case PipelineOp::kWeights:
    case PipelineOp::kSendBackward:
      return {of(PipelineOp::kBackward, o.chunk)};
    case PipelineOp::kSendForward:
      return {of(PipelineOp::kForward, o.chunk)};
    default:
      return {};
  }
}

Status CheckDevice(const PipelineSchedule& schedule, int device, std::set<Operation>& all) {
  std::map<std::pair<PipelineOp, int>, int> last;  // micro batch of an operation and chunk
  for (const Operation& o : schedule.ops[static_cast<size_t>(device)]) {
    const std::string text = TextOf(schedule, o);
    if (schedule.DeviceOf(o.chunk) != device)
      return Wrong(schedule, fmt::format("{} of chunk {} is on device {}; it must be on {}", text,
                                         o.chunk, device, schedule.DeviceOf(o.chunk)));
    for (const Operation& need : LocalNeeds(schedule, o)) {
      if (!all.contains(need))
        return Wrong(schedule, fmt::format("device {} has {} before {}; it must come behind",
                                           device, text, TextOf(schedule, need)));
    }
    const auto [at, first] = last.try_emplace({o.op, o.chunk}, o.micro);
    if (!first && at->second >= o.micro)
      return Wrong(schedule,
                   fmt::format("device {} has {} behind micro batch {}; micro batches of a chunk "
                               "must be in increasing order",
                               device, text, at->second));
    at->second = o.micro;
    all.insert(o);
  }
  return Status();
}

std::set<Operation> ExpectedOps(const PipelineSchedule& schedule) {
  PipelineSchedule expected = schedule;
  for (int d = 0; d < schedule.devices; ++d) {
    std::vector<Operation>& ops = expected.ops[static_cast<size_t>(d)];
    ops.clear();
    for (int c = d; c < schedule.chunks; c += schedule.devices) {
      for (int i = 0; i < schedule.micros; ++i) {
        ops.push_back({PipelineOp::kForward, c, i});
        ops.push_back({PipelineOp::kBackward, c, i});
        if (schedule.separates_weights) ops.push_back({PipelineOp::kWeights, c, i});
      }
    }
  }
  InsertMessages(expected);
  std::set<Operation> all;
  for (const std::vector<Operation>& ops : expected.ops) all.insert(ops.begin(), ops.end());
  return all;
}

Status CheckComplete(const PipelineSchedule& schedule) {
  if (schedule.ops.size() != static_cast<size_t>(schedule.devices))
    return Wrong(schedule, fmt::format("has operations of {} devices; there are {}",
                                       schedule.ops.size(), schedule.devices));
  std::set<Operation> all;
  for (int d = 0; d < schedule.devices; ++d) RIDGE_RETURN_IF_ERROR(CheckDevice(schedule, d, all));
  const std::set<Operation> expected = ExpectedOps(schedule);
  for (const Operation& o : expected) {
    if (!all.contains(o))
      return Wrong(schedule, fmt::format("{} of chunk {} is missing on device {}",
                                         TextOf(schedule, o), o.chunk, schedule.DeviceOf(o.chunk)));
  }
  for (const Operation& o : all) {
    if (!expected.contains(o))
      return Wrong(schedule,
                   fmt::format("{} of chunk {} is too much", TextOf(schedule, o), o.chunk));
  }
  return Status();
}

// ---- blocking sends

class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, int capacity)
      : schedule_(schedule), capacity_(capacity), at_(schedule.ops.size(), 0) {}

  bool Ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t d = 0; d < at_.size(); ++d) moved |= RunDevice(d);
    }
    for (size_t d = 0; d < at_.size(); ++d)
      if (IsOpen(d)) return false;
    return true;
  }

  // The devices that wait for each other.  REQUIRES: Ends() was false.
  std::string Circle() const {
    size_t d = 0;
    while (!IsOpen(d)) ++d;
    std::vector<size_t> way;
    while (std::find(way.begin(), way.end(), d) == way.end()) {
      way.push_back(d);
      d = PeerOf(Next(d));
    }
    std::string text;
    for (auto it = std::find(way.begin(), way.end(), d); it != way.end(); ++it) {
      text +=
          fmt::format("{}device {} at operation {} ({}) for device {}", text.empty() ? "" : ", ",
                      *it, at_[*it], TextOf(schedule_, Next(*it)), PeerOf(Next(*it)));
    }
    return text;
  }

 private:
  using Channel = std::tuple<bool, int>;  // forward, the chunk that sends

  static Channel ChannelOf(const Operation& o) {
    const bool forward = o.op == PipelineOp::kSendForward || o.op == PipelineOp::kReceiveForward;
    return {forward, o.is_send() ? o.chunk : PeerChunk(o)};
  }
  bool IsOpen(size_t d) const { return at_[d] < schedule_.ops[d].size(); }
  const Operation& Next(size_t d) const { return schedule_.ops[d][at_[d]]; }
  size_t PeerOf(const Operation& o) const {
    return static_cast<size_t>(schedule_.DeviceOf(PeerChunk(o)));
  }
  bool PeerReceives(const Operation& send) const {
    const size_t peer = PeerOf(send);
    return IsOpen(peer) && !Next(peer).is_compute() && !Next(peer).is_send() &&
           ChannelOf(Next(peer)) == ChannelOf(send);
  }
  bool CanRun(const Operation& o) {
    if (o.is_compute()) return true;
    const int waiting = waiting_[ChannelOf(o)];
    if (o.is_send()) return waiting < capacity_ || (waiting == 0 && PeerReceives(o));
    return waiting > 0;
  }
  bool RunDevice(size_t d) {
    bool moved = false;
    for (; IsOpen(d) && CanRun(Next(d)); ++at_[d], moved = true) {
      if (!Next(d).is_compute()) waiting_[ChannelOf(Next(d))] += Next(d).is_send() ? 1 : -1;
    }
    return moved;
  }

  const PipelineSchedule& schedule_;
  const int capacity_;
  std::vector<size_t> at_;          // by device: the operation that it is at
  std::map<Channel, int> waiting_;  // messages that were sent and not received
};

}  // namespace

Status CheckSchedule(const PipelineSchedule& schedule, int capacity) {
  RIDGE_RETURN_IF_ERROR(CheckComplete(schedule));
  Simulation simulation(schedule, capacity);
  if (simulation.Ends()) return Status();
  return Wrong(schedule, fmt::format("with {} messages on their way devices wait for each other: "
                                     "{}. hint: a capacity of {}",
                                     capacity, simulation.Circle(), LeastCapacity(schedule)));
}

int LeastCapacity(const PipelineSchedule& schedule) {
  int capacity = 0;
  while (capacity < schedule.micros && !Simulation(schedule, capacity).Ends()) ++capacity;
  return capacity;
}

std::vector<int64_t> MostKeptBytes(const PipelineSchedule& schedule,
                                   const std::vector<int64_t>& bytes_by_chunk) {
  const PipelineOp last = schedule.separates_weights ? PipelineOp::kWeights : PipelineOp::kBackward;
  std::vector<int64_t> most;
  for (const std::vector<Operation>& ops : schedule.ops) {
    int64_t kept = 0, largest = 0;
    for (const Operation& o : ops) {
      const int64_t bytes = bytes_by_chunk[static_cast<size_t>(o.chunk)];
      if (o.op == PipelineOp::kForward) kept += bytes;
      largest = std::max(largest, kept);
      if (o.op == last) kept -= bytes;
    }
    most.push_back(largest);
  }
  return most;
}

std::vector<int64_t> MostKeptMicros(const PipelineSchedule& schedule) {
  return MostKeptBytes(schedule, std::vector<int64_t>(static_cast<size_t>(schedule.chunks), 1));
}

}  // namespace ridge
