// An exchange has two meetings of all ranks: after the first every rank knows what the others send
// and copies it by itself; after the second the senders may change what they sent.
#include "ridge/dist/local.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

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
    return Status(ErrorCode::kUnavailable, fmt::format("rank {} has left the job", left_));
  }

  void Leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    changed_.notify_all();
  }

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const std::vector<std::span<const std::byte>>*> sends_;
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
