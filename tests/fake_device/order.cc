#include "tests/fake_device/order.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge::fake {
namespace {

void Join(const Clock& from, Clock& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

Order::Order(int streams)
    : clocks_(static_cast<size_t>(streams), Clock(static_cast<size_t>(streams), 0)),
      host_(static_cast<size_t>(streams), 0),
      what_(static_cast<size_t>(streams)) {}

void Order::Begin(int stream, const std::string& what) {
  const auto s = static_cast<size_t>(stream);
  Join(host_, clocks_[s]);
  ++clocks_[s][s];
  what_[s] = what;
}

void Order::Wait(int stream, const Clock& recorded) {
  Join(recorded, clocks_[static_cast<size_t>(stream)]);
}

void Order::Synchronize(int stream) { Join(clocks_[static_cast<size_t>(stream)], host_); }

std::string Order::Touch(int stream, uintptr_t begin, int64_t bytes, bool writes) {
  if (bytes == 0) return "";
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes);
  Cover(begin, end);
  std::string wrong;
  const auto s = static_cast<size_t>(stream);
  const Access now{clocks_[s][s], what_[s]};
  for (auto at = ranges_.find(begin); at != ranges_.end() && at->first < end; ++at) {
    if (wrong.empty()) wrong = Check(stream, at->second, writes);
    if (writes) {
      at->second.writer = stream;
      at->second.write = now;
      std::fill(at->second.reads.begin(), at->second.reads.end(), Access{});
    } else {
      at->second.reads[s] = now;
    }
  }
  return wrong;
}

void Order::Forget(uintptr_t begin, int64_t bytes) {
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes);
  Cover(begin, end);
  ranges_.erase(ranges_.find(begin), Cut(end));
}

// The range that begins at `at`, after one that holds it has been cut; else the next one.
Order::Ranges::iterator Order::Cut(uintptr_t at) {
  auto next = ranges_.lower_bound(at);
  if ((next != ranges_.end() && next->first == at) || next == ranges_.begin()) return next;
  Bytes& before = std::prev(next)->second;
  if (before.end <= at) return next;
  Bytes rest = before;
  before.end = at;
  return ranges_.emplace_hint(next, at, std::move(rest));
}

// Makes [begin, end) a row of ranges without gaps.
void Order::Cover(uintptr_t begin, uintptr_t end) {
  auto next = Cut(begin);
  Cut(end);
  while (begin < end) {
    next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first == begin) {
      begin = next->second.end;
      continue;
    }
    const uintptr_t gap_end = next == ranges_.end() ? end : std::min(end, next->first);
    Bytes unused{gap_end, 0, {}, std::vector<Access>(clocks_.size())};
    ranges_.emplace_hint(next, begin, std::move(unused));
    begin = gap_end;
  }
}

std::string Order::Check(int stream, const Bytes& bytes, bool writes) const {
  const char* does = writes ? "writes" : "reads";
  if (!Happened(stream, bytes.writer, bytes.write))
    return Wrong(stream, does, bytes.writer, bytes.write, "writes");
  for (int other = 0; writes && other < static_cast<int>(bytes.reads.size()); ++other) {
    const Access& read = bytes.reads[static_cast<size_t>(other)];
    if (!Happened(stream, other, read)) return Wrong(stream, does, other, read, "reads");
  }
  return "";
}

bool Order::Happened(int stream, int other, const Access& access) const {
  return access.at <= clocks_[static_cast<size_t>(stream)][static_cast<size_t>(other)];
}

std::string Order::Wrong(int stream, const char* does, int other, const Access& access,
                         const char* did) const {
  return fmt::format(
      "'{}' on stream {} {} bytes that '{}' on stream {} {}, and no event orders them",
      what_[static_cast<size_t>(stream)], stream, does, access.what, other, did);
}

}  // namespace ridge::fake
