// An exchange has two meetings of all ranks: after the first every rank knows what the others send
// and copies it by itself; after the second the senders may change what they sent.
#include "ridge/dist/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace ridge {
namespace {

size_t Index(int rank) { return static_cast<size_t>(rank); }

// What the ranks share.
class Hall {
 public:
  explicit Hall(int ranks) : ranks_(ranks), sends_(Index(ranks)) {}

  int ranks() const { return ranks_; }

  void Show(int rank, const std::vector<std::span<const std::byte>>& sends) {
    const std::lock_guard lock(mutex_);
    sends_[Index(rank)] = &sends;
  }

  // What `from` shows to `to`.  REQUIRES: between the two meetings.
  std::span<const std::byte> Shown(int from, int to) const {
    return (*sends_[Index(from)])[Index(to)];
  }

  Status Meet() {
    std::unique_lock lock(mutex_);
    const int64_t meeting = meetings_;
    if (++waiting_ == ranks_) {
      waiting_ = 0;
      ++meetings_;
      changed_.notify_all();
      return Status();
    }
    changed_.wait(lock, [&] { return meetings_ != meeting || left_ >= 0; });
    if (meetings_ != meeting) return Status();
    return Left();
  }

  // --- messages: the receiver copies them from where the sender has them

  Status Send(int from, int to, int channel, std::span<const std::span<const std::byte>> parts,
              int64_t most_waiting) {
    std::unique_lock lock(mutex_);
    std::deque<Message>& box = boxes_[{from, to, channel}];
    box.emplace_back(parts.begin(), parts.end());
    changed_.notify_all();
    changed_.wait(lock, [&] { return std::ssize(box) <= most_waiting || left_ >= 0; });
    return std::ssize(box) <= most_waiting ? Status() : Left();
  }

  Status Receive(int from, int to, int channel, std::span<const std::span<std::byte>> parts) {
    std::unique_lock lock(mutex_);
    std::deque<Message>& box = boxes_[{from, to, channel}];
    changed_.wait(lock, [&] { return !box.empty() || left_ >= 0; });
    if (box.empty()) return Left();
    const Status taken = Take(box.front(), from, to, parts);
    box.pop_front();
    changed_.notify_all();
    return taken;
  }

  Status Finish(int from) {
    std::unique_lock lock(mutex_);
    const auto done = [&] {
      return std::all_of(boxes_.begin(), boxes_.end(), [&](const auto& box) {
        return std::get<0>(box.first) != from || box.second.empty();
      });
    };
    changed_.wait(lock, [&] { return done() || left_ >= 0; });
    return done() ? Status() : Left();
  }

  void Leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    changed_.notify_all();
  }

 private:
  using Message = std::vector<std::span<const std::byte>>;

  static Status Take(const Message& message, int from, int to,
                     std::span<const std::span<std::byte>> parts) {
    RIDGE_CHECK(message.size() == parts.size(), "a message has as many parts on both sides");
    for (size_t i = 0; i < parts.size(); ++i) {
      if (message[i].size() != parts[i].size())
        return Status(ErrorCode::kInternal,
                      fmt::format("rank {} sends {} bytes to rank {}, which expects {}", from,
                                  message[i].size(), to, parts[i].size()));
      std::copy(message[i].begin(), message[i].end(), parts[i].begin());
    }
    return Status();
  }

  Status Left() const {
    return Status(ErrorCode::kUnavailable, fmt::format("rank {} has left the job", left_));
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const std::vector<std::span<const std::byte>>*> sends_;
  // By sender, receiver and channel: the messages that wait.
  std::map<std::tuple<int, int, int>, std::deque<Message>> boxes_;
  int waiting_ = 0;
  int64_t meetings_ = 0;
  int left_ = -1;  // the first rank that left
};

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Hall> hall, int rank) : hall_(std::move(hall)), rank_(rank) {}
  ~LocalCommunicator() override { hall_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return hall_->ranks(); }
  int64_t sent_bytes() const override { return sent_bytes_; }

  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    hall_->Show(rank_, sends);
    RIDGE_RETURN_IF_ERROR(hall_->Meet());
    Status received;
    for (int from = 0; from < size(); ++from) {
      if (from == rank_) continue;
      const std::span<const std::byte> sent = hall_->Shown(from, rank_);
      const std::span<std::byte> to = receives[Index(from)];
      if (sent.size() != to.size()) {
        received = Status(ErrorCode::kInternal,
                          fmt::format("rank {} sends {} bytes to rank {}, which expects {}", from,
                                      sent.size(), rank_, to.size()));
      } else if (!sent.empty()) {
        std::memcpy(to.data(), sent.data(), sent.size());
      }
      sent_bytes_ += static_cast<int64_t>(sends[Index(from)].size());
    }
    RIDGE_RETURN_IF_ERROR(hall_->Meet());
    return received;
  }

  Status Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
              int64_t most_waiting) override {
    for (std::span<const std::byte> part : parts) sent_bytes_ += std::ssize(part);
    return hall_->Send(rank_, to, channel, parts, most_waiting);
  }
  Status Receive(int from, int channel, std::span<const std::span<std::byte>> parts) override {
    return hall_->Receive(from, rank_, channel, parts);
  }
  Status FinishSends() override { return hall_->Finish(rank_); }

 private:
  const std::shared_ptr<Hall> hall_;
  const int rank_;
  int64_t sent_bytes_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(int ranks) {
  const auto hall = std::make_shared<Hall>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank)
    communicators.push_back(std::make_unique<LocalCommunicator>(hall, rank));
  return communicators;
}

}  // namespace ridge
