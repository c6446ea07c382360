// Receives are posted first, so that no message waits for a place; sends go to the next rank, then
// to the one after, so that not all begin with rank 0.  Order of messages between two ranks is what
// pairs them: one tag is enough, and an exchange may begin while another rank ends the last one.
#include "ridge/dist/mpi_communicator.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kMostMessageBytes = int64_t{1} << 30;  // MPI counts in 32 bits
constexpr int kExchangeTag = 1, kFirstChannelTag = 2;
constexpr int kTestsBeforePause = 256;            // about 10 us
constexpr std::chrono::microseconds kPause(200);  // 24 KiB of 1 Gbit/s
// A message that goes with its announcement, and one that waits for its receiver.
constexpr size_t kShortMessageBytes = 1024;
constexpr size_t kLongMessageBytes = size_t{256} << 10;
using Text = std::array<char, 1024>;

// Calls post(piece) for each part that MPI can count.
template <typename Span, typename Post>
Status ForEachPiece(Span bytes, const Post& post) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), static_cast<size_t>(kMostMessageBytes));
    RIDGE_RETURN_IF_ERROR(post(bytes.first(count)));
    bytes = bytes.subspan(count);
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::Join(const Launcher& launcher) {
  RIDGE_ASSIGN_OR_RETURN(const RidgeMpiApi* api, LoadMpiPlugin(launcher.mpi));
  return Join(launcher, *api);
}

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::Join(const Launcher& launcher,
                                                               const RidgeMpiApi& api) {
  const int64_t before = ReadProcessMemory().resident_bytes;
  std::unique_ptr<MpiCommunicator> ranks(new MpiCommunicator(api));
  RIDGE_RETURN_IF_ERROR(ranks->JoinWorld(launcher));
  ranks->join_bytes_ = std::max<int64_t>(0, ReadProcessMemory().resident_bytes - before);
  return ranks;
}

Status MpiCommunicator::JoinWorld(const Launcher& launcher) {
  Text text{};
  api_.library(text.data(), static_cast<int64_t>(text.size()));
  library_ = MpiLibraryName(text.data());
  int32_t serialized = 0;
  if (const int32_t error = api_.join(&rank_, &size_, &serialized); error != 0)
    return Status(ErrorCode::kDevice, Fail("cannot join the ranks", error).message());
  joined_ = true;
  if (serialized == 0) {
    return Status(ErrorCode::kDevice,
                  fmt::format("{} was built without threads; ridge calls it from several. hint: an "
                              "MPI with MPI_THREAD_SERIALIZED",
                              library_));
  }
  RIDGE_RETURN_IF_ERROR(CheckWorldSize(launcher, library_, size_));
  return MakeConnections();
}

Status MpiCommunicator::MakeConnections() {
  const auto count = static_cast<size_t>(size_);
  const std::vector<std::byte> sent(kLongMessageBytes);
  std::vector<std::byte> received(count * kLongMessageBytes);
  for (const size_t bytes : {kShortMessageBytes, kLongMessageBytes}) {
    std::vector<std::span<std::byte>> receives;
    for (size_t r = 0; r < count; ++r)
      receives.push_back(std::span(received).subspan(r * bytes, bytes));
    RIDGE_RETURN_IF_ERROR(Exchange(std::vector(count, std::span(sent).first(bytes)), receives));
  }
  sent_bytes_ = 0;
  return Status();
}

Status MpiCommunicator::Watch(double limit_s, std::function<void(const std::string&)> tell) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<RankBoard> board, RankBoard::Open(*this));
  RankWatcher::Options options;
  options.rank = rank_;
  options.limit_s = limit_s;
  options.tell = std::move(tell);
  options.end = [] { std::_Exit(kLateExitCode); };
  RIDGE_ASSIGN_OR_RETURN(delay_, TestDelay::FromEnvironment(rank_));
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<FarBoard> far, FarBoard::Open(*this, *board));
  watcher_ = std::make_unique<RankWatcher>(std::move(board), std::move(far), std::move(options));
  return Status();
}

MpiCommunicator::~MpiCommunicator() {
  Name("the end of the job");
  if (watcher_ != nullptr) watcher_->Enter(/*bytes=*/0);
  if (joined_) (void)api_.leave();
}

void MpiCommunicator::Name(const char* collective) {
  delay_.Name(collective);
  if (watcher_ != nullptr) watcher_->Name(collective);
}

void MpiCommunicator::Abort(int exit_code) {
  api_.abort(exit_code);
  std::_Exit(exit_code);
}

Status MpiCommunicator::Fail(const char* what, int32_t error) const {
  Text text{};
  api_.text_of(error, text.data(), static_cast<int64_t>(text.size()));
  return Status(ErrorCode::kUnavailable,
                fmt::format("rank {}: {} {}: {}", rank_, library_, what, text.data()));
}

Status MpiCommunicator::Exchange(const std::vector<std::span<const std::byte>>& sends,
                                 const std::vector<std::span<std::byte>>& receives) {
  RIDGE_CHECK(static_cast<int>(sends.size()) == size_ && sends.size() == receives.size(),
              "a part for each rank");
  delay_.Wait();
  if (watcher_ == nullptr) return Move(sends, receives);
  int64_t bytes = 0;
  for (int r = 0; r < size_; ++r) bytes += std::ssize(sends[r]) + std::ssize(receives[r]);
  watcher_->Enter(bytes);
  RIDGE_RETURN_IF_ERROR(Move(sends, receives));
  watcher_->Leave();
  return Status();
}

Status MpiCommunicator::Move(const std::vector<std::span<const std::byte>>& sends,
                             const std::vector<std::span<std::byte>>& receives) {
  int64_t pieces = 0;
  for (int r = 0; r < size_; ++r)
    pieces += CeilDiv(std::ssize(sends[r]), kMostMessageBytes) +
              CeilDiv(std::ssize(receives[r]), kMostMessageBytes);
  Reserve(pieces);
  for (int shift = 1; shift < size_; ++shift) {
    const int from = (rank_ + size_ - shift) % size_;
    RIDGE_RETURN_IF_ERROR(PostReceives(from, receives[from]));
  }
  for (int shift = 1; shift < size_; ++shift) {
    const int to = (rank_ + shift) % size_;
    RIDGE_RETURN_IF_ERROR(PostSends(to, sends[to]));
  }
  return WaitForAll();
}

// For an exchange of at most so many requests.
void MpiCommunicator::Reserve(int64_t requests) {
  const int64_t bytes = requests * api_.request_bytes;
  const size_t words = static_cast<size_t>(bytes) / sizeof(void*) + 1;
  if (mpi_requests_.size() < words) mpi_requests_.resize(words);
  requests_.clear();
  requests_.reserve(static_cast<size_t>(requests));
}

Status MpiCommunicator::PostReceives(int from, std::span<std::byte> bytes) {
  return ForEachPiece(bytes, [&](std::span<std::byte> piece) {
    const auto count = static_cast<int32_t>(piece.size());
    const auto index = static_cast<int32_t>(requests_.size());
    requests_.push_back({from, count, /*receives=*/true});
    const int32_t error =
        api_.receive(piece.data(), count, from, kExchangeTag, mpi_requests_.data(), index);
    return error == 0 ? Status() : Fail("cannot receive", error);
  });
}

Status MpiCommunicator::PostSends(int to, std::span<const std::byte> bytes) {
  return ForEachPiece(bytes, [&](std::span<const std::byte> piece) {
    const auto count = static_cast<int32_t>(piece.size());
    const auto index = static_cast<int32_t>(requests_.size());
    requests_.push_back({to, count, /*receives=*/false});
    sent_bytes_ += count;
    const int32_t error =
        api_.send(piece.data(), count, to, kExchangeTag, mpi_requests_.data(), index);
    return error == 0 ? Status() : Fail("cannot send", error);
  });
}

Status MpiCommunicator::WaitForAll() {
  const auto count = static_cast<int32_t>(requests_.size());
  int tests = 0;
  for (int32_t left = count; left > 0;) {
    int32_t done = -1, received = 0;
    const int32_t error = api_.test(mpi_requests_.data(), count, &done, &received);
    if (error != 0) return Fail("cannot exchange", error);
    if (done < 0) {
      if (++tests > kTestsBeforePause && late())
        return Status(ErrorCode::kUnavailable, watcher_->TakeVerdict());
      if (patient_ || shares_cores_) {
        std::this_thread::sleep_for(kPause);
      } else if (tests > kTestsBeforePause) {
        sched_yield();
      }
      continue;
    }
    tests = 0;
    --left;
    const Request& request = requests_[static_cast<size_t>(done)];
    if (request.receives && received != request.bytes) {
      return Status(ErrorCode::kUnavailable,
                    fmt::format("rank {}: rank {} sent {} bytes; {} were expected", rank_,
                                request.rank, received, request.bytes));
    }
  }
  return Status();
}

// --- messages ------------------------------------------------------------------------------------

// A place whose request has ended, or a new one.
size_t MpiCommunicator::FreeMessage() {
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].done) return i;
  }
  messages_.emplace_back();
  const size_t bytes = messages_.size() * static_cast<size_t>(api_.request_bytes);
  mpi_messages_.resize(bytes / sizeof(void*) + 1);
  return messages_.size() - 1;
}

// Lets MPI work, and notes what has ended.
Status MpiCommunicator::Progress(int& tests) {
  int32_t done = -1, received = 0;
  const int32_t error =
      api_.test(mpi_messages_.data(), static_cast<int32_t>(messages_.size()), &done, &received);
  if (error != 0) return Fail("cannot pass a message", error);
  if (done < 0) {
    if (++tests > kTestsBeforePause) {
      if (late()) return Status(ErrorCode::kUnavailable, watcher_->TakeVerdict());
      sched_yield();
    }
    return Status();
  }
  tests = 0;
  Message& message = messages_[static_cast<size_t>(done)];
  message.done = true;
  if (!message.receives || received == message.bytes) return Status();
  return Status(ErrorCode::kUnavailable,
                fmt::format("rank {}: rank {} sent {} bytes; {} were expected", rank_, message.rank,
                            received, message.bytes));
}

Status MpiCommunicator::Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
                             int64_t most_waiting) {
  const int64_t number = sent_messages_++;
  for (std::span<const std::byte> part : parts) {
    RIDGE_RETURN_IF_ERROR(ForEachPiece(part, [&](std::span<const std::byte> piece) {
      const size_t at = FreeMessage();
      const auto count = static_cast<int32_t>(piece.size());
      messages_[at] = {to, channel, count, number, /*receives=*/false, /*done=*/false};
      sent_bytes_ += count;
      const int32_t error = api_.send(piece.data(), count, to, kFirstChannelTag + channel,
                                      mpi_messages_.data(), static_cast<int32_t>(at));
      return error == 0 ? Status() : Fail("cannot send", error);
    }));
  }
  for (int tests = 0; Waiting(to, channel) > most_waiting;) RIDGE_RETURN_IF_ERROR(Progress(tests));
  return Status();
}

// Messages, not requests.
int64_t MpiCommunicator::Waiting(int to, int channel) const {
  int64_t waiting = 0;
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& m = messages_[i];
    if (m.done || m.receives || m.rank != to || m.channel != channel) continue;
    const auto counted = [&](const Message& other) {
      return !other.done && !other.receives && other.number == m.number;
    };
    if (std::none_of(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(i),
                     counted))
      ++waiting;
  }
  return waiting;
}

Status MpiCommunicator::Receive(int from, int channel,
                                std::span<const std::span<std::byte>> parts) {
  for (std::span<std::byte> part : parts) {
    RIDGE_RETURN_IF_ERROR(ForEachPiece(part, [&](std::span<std::byte> piece) {
      const size_t at = FreeMessage();
      const auto count = static_cast<int32_t>(piece.size());
      messages_[at] = {from, channel, count, /*number=*/-1, /*receives=*/true, /*done=*/false};
      const int32_t error = api_.receive(piece.data(), count, from, kFirstChannelTag + channel,
                                         mpi_messages_.data(), static_cast<int32_t>(at));
      return error == 0 ? Status() : Fail("cannot receive", error);
    }));
  }
  const auto open = [](const Message& m) { return m.receives && !m.done; };
  for (int tests = 0; std::any_of(messages_.begin(), messages_.end(), open);)
    RIDGE_RETURN_IF_ERROR(Progress(tests));
  return Status();
}

Status MpiCommunicator::FinishSends() {
  const auto open = [](const Message& m) { return !m.done; };
  for (int tests = 0; std::any_of(messages_.begin(), messages_.end(), open);)
    RIDGE_RETURN_IF_ERROR(Progress(tests));
  return Status();
}

}  // namespace ridge
