#include "ridge/runtime/lane_recorder.h"

namespace ridge {

void LaneRecorder::BeginRecording(Stream& stream, int lanes) {
  stream_ = &stream;
  count_ = stream.branches() ? lanes : 1;
  stream.BeginRecording();
  lanes_.reset();
  marks_.clear();
  if (count_ > 1) lanes_.emplace(count_);
}

void LaneRecorder::BeginWork(const MemoryUse& use) {
  if (!lanes_) return;
  if (marks_.empty()) start_ = stream_->Mark();
  stream_->RunBehind(MarksOf(lanes_->Add(use)));
}

void LaneRecorder::EndWork() {
  if (lanes_) marks_.push_back(stream_->Mark());
}

void LaneRecorder::Join() {
  if (marks_.empty()) return;
  stream_->RunBehind(MarksOf(lanes_->Tails()));
  lanes_.emplace(count_);
  marks_.clear();
}

std::vector<int> LaneRecorder::MarksOf(const std::vector<int>& works) const {
  std::vector<int> marks;
  for (const int work : works) marks.push_back(marks_[static_cast<size_t>(work)]);
  if (marks.empty()) marks.push_back(start_);
  return marks;
}

}  // namespace ridge
