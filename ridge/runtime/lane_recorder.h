// LaneRecorder: what a stream records, in lanes that run at once (work_lanes.h).
#pragma once
#include <optional>
#include <vector>

#include "ridge/backend/device.h"
#include "ridge/runtime/work_lanes.h"

namespace ridge {

class LaneRecorder {
 public:
  // The stream, which outlives the recording, begins it.
  void BeginRecording(Stream& stream, int lanes);
  // What the stream is told until EndWork() reads and writes these bytes.
  void BeginWork(const MemoryUse& use);
  void EndWork();
  // What the stream is told next runs behind all that it was told.
  void Join();

 private:
  std::vector<int> MarksOf(const std::vector<int>& works) const;

  Stream* stream_ = nullptr;
  int count_ = 1;
  std::optional<WorkLanes> lanes_;  // none: one order
  int start_ = 0;                   // mark of what was told before the first work
  std::vector<int> marks_;          // by work
};

}  // namespace ridge
