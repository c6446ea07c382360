#include "ridge/dist/mpi_communicator.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "ridge/core/process.h"

namespace ridge {
namespace {

constexpr int kTestsBeforePause = 256;            // about 10 us
constexpr std::chrono::microseconds kPause(200);  // 24 KiB of 1 Gbit/s
// A message that goes with its announcement, and one that waits for its receiver.
constexpr size_t kShortMessageBytes = 1024;
constexpr size_t kLongMessageBytes = size_t{256} << 10;

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
  std::array<char, 1024> text{};
  world_.api.library(text.data(), static_cast<int64_t>(text.size()));
  world_.library = MpiLibraryName(text.data());
  int32_t serialized = 0;
  if (const int32_t error = world_.api.join(&world_.rank, &world_.size, &serialized); error != 0)
    return Status(ErrorCode::kDevice, world_.Fail("cannot join the ranks", error).message());
  joined_ = true;
  if (serialized == 0) {
    return Status(ErrorCode::kDevice,
                  fmt::format("{} was built without threads; ridge calls it from several. hint: an "
                              "MPI with MPI_THREAD_SERIALIZED",
                              world_.library));
  }
  RIDGE_RETURN_IF_ERROR(CheckWorldSize(launcher, world_.library, world_.size));
  return MakeConnections();
}

Status MpiCommunicator::MakeConnections() {
  const auto count = static_cast<size_t>(world_.size);
  const std::vector<std::byte> sent(kLongMessageBytes);
  std::vector<std::byte> received(count * kLongMessageBytes);
  for (const size_t bytes : {kShortMessageBytes, kLongMessageBytes}) {
    std::vector<std::span<std::byte>> receives;
    for (size_t r = 0; r < count; ++r)
      receives.push_back(std::span(received).subspan(r * bytes, bytes));
    RIDGE_RETURN_IF_ERROR(Exchange(std::vector(count, std::span(sent).first(bytes)), receives));
  }
  sent_in_messages_ = -usual_.exchange.sent_bytes();
  return Status();
}

Status MpiCommunicator::Watch(double limit_s, std::function<void(const std::string&)> tell) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<RankBoard> board, RankBoard::Open(*this));
  RankWatcher::Options options;
  options.rank = world_.rank;
  options.limit_s = limit_s;
  options.tell = std::move(tell);
  options.end = [] { std::_Exit(kLateExitCode); };
  for (Channel* channel : {&usual_, &passing_}) {
    RIDGE_ASSIGN_OR_RETURN(channel->delay, TestDelay::FromEnvironment(world_.rank));
  }
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<FarBoard> far, FarBoard::Open(*this, *board));
  watcher_ = std::make_unique<RankWatcher>(std::move(board), std::move(far), std::move(options));
  return Status();
}

MpiCommunicator::~MpiCommunicator() {
  Name("the end of the job");
  if (watcher_ != nullptr) watcher_->Enter(/*bytes=*/0);
  if (joined_) (void)world_.api.leave();
}

int64_t MpiCommunicator::sent_bytes() const {
  const std::lock_guard lock(mutex_);
  return sent_in_messages_ + usual_.exchange.sent_bytes() + passing_.exchange.sent_bytes();
}

void MpiCommunicator::NameOf(Channel& channel, const char* collective) {
  channel.delay.Name(collective);
  if (watcher_ != nullptr) watcher_->Name(collective, channel.watched);
}

void MpiCommunicator::Abort(int exit_code) {
  world_.api.abort(exit_code);
  std::_Exit(exit_code);
}

Status MpiCommunicator::ExchangeIn(Channel& channel,
                                   const std::vector<std::span<const std::byte>>& sends,
                                   const std::vector<std::span<std::byte>>& receives) {
  RIDGE_RETURN_IF_ERROR(BeginIn(channel, sends, receives));
  return FinishIn(channel);
}

Status MpiCommunicator::BeginIn(Channel& channel,
                                const std::vector<std::span<const std::byte>>& sends,
                                const std::vector<std::span<std::byte>>& receives) {
  channel.delay.Wait();
  channel.bytes = PayloadBytes(sends, receives);
  const std::lock_guard lock(mutex_);
  if (failed_.ok()) failed_ = channel.exchange.Start(sends, receives, channel.patient);
  return failed_;
}

// A rank that has begun keeps nobody waiting: it enters the exchange when it waits itself.
Status MpiCommunicator::FinishIn(Channel& channel) {
  if (watcher_ == nullptr) return WaitFor(channel);
  watcher_->Enter(channel.bytes, channel.watched);
  RIDGE_RETURN_IF_ERROR(WaitFor(channel));
  watcher_->Leave(channel.watched);
  return Status();
}

Status MpiCommunicator::WaitFor(Channel& channel) {
  for (int looks = 0;; ++looks) {
    {
      const std::lock_guard lock(mutex_);
      RIDGE_ASSIGN_OR_RETURN(const bool moved, Look());
      if (channel.exchange.done()) return Status();
      if (moved) looks = 0;
    }
    if (looks > kTestsBeforePause && late()) return Late();
    if (channel.patient || shares_cores_) {
      std::this_thread::sleep_for(kPause);
    } else if (looks > kTestsBeforePause) {
      sched_yield();
    }
  }
}

// For both channels: whether a message has ended.
Result<bool> MpiCommunicator::Look() {
  bool moved = false;
  for (Channel* channel : {&usual_, &passing_}) {
    if (!failed_.ok()) return failed_;
    if (channel->exchange.done()) continue;
    const Result<bool> of = channel->exchange.Look();
    failed_ = of.status();
    moved = moved || (of.ok() && *of);
  }
  if (!failed_.ok()) return failed_;
  return moved;
}

// A late rank ends the job.
Status MpiCommunicator::Late() {
  const std::lock_guard lock(mutex_);
  if (failed_.ok()) failed_ = Status(ErrorCode::kUnavailable, watcher_->TakeVerdict());
  return failed_;
}

// --- messages ------------------------------------------------------------------------------------

// A place whose request has ended, or a new one.
size_t MpiCommunicator::FreeMessage() {
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].done) return i;
  }
  messages_.emplace_back();
  const size_t bytes = messages_.size() * static_cast<size_t>(world_.api.request_bytes);
  mpi_messages_.resize(bytes / sizeof(void*) + 1);
  return messages_.size() - 1;
}

// Lets MPI work, and notes what has ended.
Status MpiCommunicator::Progress(int& tests) {
  int32_t done = -1, received = 0;
  const int32_t error = world_.api.test(mpi_messages_.data(),
                                        static_cast<int32_t>(messages_.size()), &done, &received);
  if (error != 0) return world_.Fail("cannot pass a message", error);
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
  return message.receives ? world_.CheckReceived(message.rank, received, message.bytes) : Status();
}

Status MpiCommunicator::Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
                             int64_t most_waiting) {
  const int64_t number = sent_messages_++;
  for (std::span<const std::byte> part : parts) {
    RIDGE_RETURN_IF_ERROR(
        ForEachPiece(part, kMostMessageBytes, [&](std::span<const std::byte> piece) {
          const size_t at = FreeMessage();
          const auto count = static_cast<int32_t>(piece.size());
          messages_[at] = {to, channel, count, number, /*receives=*/false, /*done=*/false};
          sent_in_messages_ += count;
          const int32_t error = world_.api.send(piece.data(), count, to, kFirstChannelTag + channel,
                                                mpi_messages_.data(), static_cast<int32_t>(at));
          return error == 0 ? Status() : world_.Fail("cannot send", error);
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
    RIDGE_RETURN_IF_ERROR(ForEachPiece(part, kMostMessageBytes, [&](std::span<std::byte> piece) {
      const size_t at = FreeMessage();
      const auto count = static_cast<int32_t>(piece.size());
      messages_[at] = {from, channel, count, /*number=*/-1, /*receives=*/true, /*done=*/false};
      const int32_t error =
          world_.api.receive(piece.data(), count, from, kFirstChannelTag + channel,
                             mpi_messages_.data(), static_cast<int32_t>(at));
      return error == 0 ? Status() : world_.Fail("cannot receive", error);
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
