// An exchange has two meetings of all ranks: after the first every rank knows what the others send
// and copies it by itself; after the second the senders may change what they sent.  Urgent
// exchanges meet elsewhere.
#include "ridge/dist/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace ridge {
namespace {

size_t Index(int rank) { return static_cast<size_t>(rank); }

enum class Room { kUsual, kUrgent };

// What the ranks share.
class Hall {
 public:
  explicit Hall(int ranks) : ranks_(ranks), rooms_{Meetings(ranks), Meetings(ranks)} {}

  int ranks() const { return ranks_; }

  void Show(Room room, int rank, const std::vector<std::span<const std::byte>>& sends) {
    const std::lock_guard lock(mutex_);
    In(room).sends[Index(rank)] = &sends;
  }

  // What `from` shows to `to`.  REQUIRES: between the two meetings.
  std::span<const std::byte> Shown(Room room, int from, int to) {
    return (*In(room).sends[Index(from)])[Index(to)];
  }

  // Returns the number of the meeting at which the rank has arrived.
  int64_t Arrive(Room room) {
    const std::lock_guard lock(mutex_);
    Meetings& in = In(room);
    const int64_t meeting = in.count;
    if (left_ < 0 && ++in.waiting == ranks_) {
      in.waiting = 0;
      ++in.count;
      changed_.notify_all();
    }
    return meeting;
  }

  // Returns when all ranks have arrived at this meeting.
  Status Await(Room room, int64_t meeting) {
    std::unique_lock lock(mutex_);
    Meetings& in = In(room);
    changed_.wait(lock, [&] { return in.count != meeting || left_ >= 0; });
    if (in.count != meeting) return Status();
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
  struct Meetings {
    explicit Meetings(int ranks) : sends(Index(ranks)) {}
    std::vector<const std::vector<std::span<const std::byte>>*> sends;
    int waiting = 0;
    int64_t count = 0;
  };
  Meetings& In(Room room) { return rooms_[room == Room::kUsual ? 0 : 1]; }

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
  std::array<Meetings, 2> rooms_;
  // By sender, receiver and channel: the messages that wait.
  std::map<std::tuple<int, int, int>, std::deque<Message>> boxes_;
  int left_ = -1;  // the first rank that left
};

class LocalCommunicator : public Communicator {
 public:
  // With an urgent one of its own.
  LocalCommunicator(std::shared_ptr<Hall> hall, int rank)
      : LocalCommunicator(std::move(hall), rank, Room::kUsual) {
    urgent_.reset(new LocalCommunicator(hall_, rank_, Room::kUrgent));
  }
  ~LocalCommunicator() override { hall_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return hall_->ranks(); }
  Communicator* urgent() override { return urgent_.get(); }
  int64_t sent_bytes() const override {
    return sent_bytes_ + (urgent_ == nullptr ? 0 : urgent_->sent_bytes());
  }

  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    RIDGE_RETURN_IF_ERROR(Begin(sends, receives));
    return Finish();
  }

  Status Begin(const std::vector<std::span<const std::byte>>& sends,
               const std::vector<std::span<std::byte>>& receives) override {
    hall_->Show(room_, rank_, sends);
    receives_ = &receives;
    for (int to = 0; to < size(); ++to)
      sent_bytes_ += to == rank_ ? 0 : std::ssize(sends[Index(to)]);
    began_ = hall_->Arrive(room_);
    return Status();
  }

  Status Finish() override {
    RIDGE_RETURN_IF_ERROR(hall_->Await(room_, began_));
    Status received;
    for (int from = 0; from < size(); ++from) {
      if (from == rank_) continue;
      const std::span<const std::byte> sent = hall_->Shown(room_, from, rank_);
      const std::span<std::byte> to = (*receives_)[Index(from)];
      if (sent.size() != to.size()) {
        received = Status(ErrorCode::kInternal,
                          fmt::format("rank {} sends {} bytes to rank {}, which expects {}", from,
                                      sent.size(), rank_, to.size()));
      } else if (!sent.empty()) {
        std::memcpy(to.data(), sent.data(), sent.size());
      }
    }
    RIDGE_RETURN_IF_ERROR(hall_->Await(room_, hall_->Arrive(room_)));
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
  LocalCommunicator(std::shared_ptr<Hall> hall, int rank, Room room)
      : hall_(std::move(hall)), rank_(rank), room_(room) {}

  const std::shared_ptr<Hall> hall_;
  const int rank_;
  const Room room_;
  int64_t sent_bytes_ = 0;
  const std::vector<std::span<std::byte>>* receives_ = nullptr;  // of the exchange that began
  int64_t began_ = 0;                                            // its first meeting
  std::unique_ptr<LocalCommunicator> urgent_;
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
