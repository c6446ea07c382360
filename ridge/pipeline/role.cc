#include "ridge/pipeline/role.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ridge {

std::string BatchState(const std::string& input) { return "batch/" + input; }
std::string ChunkState(int chunk, const std::string& value) {
  return fmt::format("{}/{}", chunk, value);
}
std::string ShareState(const std::string& value) { return "share/" + value; }
std::string EvalState(int chunk, const std::string& value) {
  return fmt::format("eval.{}/{}", chunk, value);
}
std::string EvalOutputState(const std::string& output) { return "eval/" + output; }
std::string ChunkStep(const char* what, int chunk) { return fmt::format("{}.{}", what, chunk); }

int64_t PipelineRole::message_bytes(int device) const {
  int64_t bytes = 0;
  for (int c = device; c < schedule.chunks; c += schedule.devices) {
    const Chunk& chunk = chunks[static_cast<size_t>(c)];
    bytes += schedule.micros * (chunk.forward_bytes + chunk.backward_bytes);
  }
  return bytes;
}

namespace {

// Positions in a device's list of operations.
struct Lifetime {
  size_t begin = 0, end = 0;
};

class Lifetimes {
 public:
  Lifetimes(const std::vector<Operation>& ops, int micros, int capacity)
      : count_(ops.size()), micros_(micros), capacity_(capacity) {
    for (size_t i = 0; i < ops.size(); ++i) at_[ops[i]] = i;
  }

  Lifetime Of(const StateLife& life, int micro) const {
    Lifetime span = {count_, 0};
    for (Operation o : life.from) {
      o.micro = micro;
      span.begin = std::min(span.begin, at_.at(o));
    }
    span.end = span.begin;
    for (Operation o : life.until) {
      o.micro = micro + (o.is_send() ? capacity_ : 0);
      span.end = std::max(span.end, o.micro < micros_ ? at_.at(o) : count_);
    }
    return span;
  }

 private:
  const size_t count_;
  const int micros_, capacity_;
  std::map<Operation, size_t> at_;
};

}  // namespace

int64_t CopiesOf(const PipelineSchedule& schedule, int device, int capacity,
                 const StateLife& life) {
  const Lifetimes lifetimes(schedule.ops[static_cast<size_t>(device)], schedule.micros, capacity);
  std::vector<Lifetime> spans;
  for (int i = 0; i < schedule.micros; ++i) spans.push_back(lifetimes.Of(life, i));
  const auto fits = [&](size_t copies) {
    for (size_t i = 0; i < spans.size(); ++i) {
      for (size_t j = i + copies; j < spans.size(); j += copies)
        if (spans[i].end >= spans[j].begin) return false;
    }
    return true;
  };
  size_t copies = 1;
  while (!fits(copies)) ++copies;
  return static_cast<int64_t>(copies);
}

}  // namespace ridge
