#include "ridge/dist/rank_watcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <chrono>

#include "ridge/core/process.h"

namespace ridge {
namespace {

constexpr char kUnnamed[] = "an agreement";
constexpr auto kUntilTaken = std::chrono::seconds(1);
constexpr auto kUntilEnded = std::chrono::seconds(2);

// Signals are for the first thread.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

RankWatcher::RankWatcher(std::unique_ptr<RankBoard> board, std::unique_ptr<FarBoard> far,
                         Options options)
    : board_(std::move(board)),
      far_(std::move(far)),
      options_(std::move(options)),
      own_(board_->line(options_.rank)),
      usual_({options_.rank, board_->ranks(), options_.limit_s, Elsewhere(*board_, options_.rank)},
             kUnnamed),
      urgent_(usual_.late, kUnnamed),
      lines_(static_cast<size_t>(board_->ranks())) {
  own_.urgent_place.store(2);
  own_.place.store(2);  // seen, and behind an exchange
  (void)pthread_getcpuclockid(pthread_self(), &first_thread_);
  const NoSignals blocked;
  thread_ = std::thread([this] { Watch(); });
}

std::vector<std::string> RankWatcher::Elsewhere(const RankBoard& board, int rank) {
  std::vector<std::string> names;
  for (int other = 0; other < board.ranks(); ++other) {
    const bool here = board.first_beside(other) == board.first_beside(rank);
    names.push_back(here ? "" : board.machine_of(other));
  }
  return names;
}

RankWatcher::~RankWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// The own place in a channel is written by one thread only, so no addition can be lost.
void RankWatcher::Enter(int64_t bytes, Channel channel) {
  WaitingIn(channel).bytes.store(bytes, std::memory_order_relaxed);
  MoveOn(channel);
}

void RankWatcher::Leave(Channel channel) { MoveOn(channel); }

void RankWatcher::MoveOn(Channel channel) {
  std::atomic<uint64_t>& own = own_.PlaceIn(channel);
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void RankWatcher::Tell(const RankDoing& doing) {
  own_.step.store(doing.step, std::memory_order_relaxed);
  own_.planned_us.store(static_cast<int64_t>(doing.planned_s * 1e6), std::memory_order_relaxed);
  own_.work.store(static_cast<uint8_t>(doing.work), std::memory_order_release);
}

void RankWatcher::Name(const char* collective, Channel channel) {
  WaitingIn(channel).name.store(collective == nullptr ? kUnnamed : collective,
                                std::memory_order_relaxed);
}

std::string RankWatcher::TakeVerdict() {
  RIDGE_CHECK(ends(), "a verdict is there");
  taken_.store(true);
  if (!board_->ClaimWord()) std::this_thread::sleep_for(kUntilEnded);
  return verdict_;
}

void RankWatcher::Beat() {
  timespec worked{};
  if (clock_gettime(first_thread_, &worked) == 0) {
    own_.worked_us.store(worked.tv_sec * 1'000'000 + worked.tv_nsec / 1000,
                         std::memory_order_relaxed);
  }
  own_.beats.fetch_add(1, std::memory_order_release);
  if (far_ != nullptr) far_->Exchange(*board_);
}

RankLine RankWatcher::LineOf(int rank, Channel channel) {
  BoardLine& from = board_->line(rank);
  RankLine line;
  line.beats = from.beats.load(std::memory_order_acquire);
  line.doing.work = static_cast<RankWork>(from.work.load(std::memory_order_acquire));
  line.doing.step = from.step.load(std::memory_order_relaxed);
  line.doing.planned_s =
      static_cast<double>(from.planned_us.load(std::memory_order_relaxed)) * 1e-6;
  line.worked_s = static_cast<double>(from.worked_us.load(std::memory_order_relaxed)) * 1e-6;
  line.process = from.process.load(std::memory_order_relaxed);
  line.place = from.PlaceIn(channel).load(std::memory_order_acquire);
  return line;
}

std::optional<WaitingFor> RankWatcher::LookAt(Channel channel, double elapsed_s) {
  for (int rank = 0; rank < board_->ranks(); ++rank)
    lines_[static_cast<size_t>(rank)] = LineOf(rank, channel);
  Waiting& in = WaitingIn(channel);
  return in.late.Look(lines_, elapsed_s, in.name.load(std::memory_order_relaxed),
                      in.bytes.load(std::memory_order_relaxed));
}

void RankWatcher::Look(double elapsed_s) {
  const std::optional<WaitingFor> usual = LookAt(Channel::kUsual, elapsed_s);
  const std::optional<WaitingFor> urgent = LookAt(Channel::kUrgent, elapsed_s);
  const bool in_urgent = lines_[static_cast<size_t>(options_.rank)].inside();
  const std::optional<WaitingFor>& waiting = in_urgent ? urgent : usual;
  if (!waiting) return;
  const std::string text = fmt::format("rank {}: {}", options_.rank, waiting->text);
  if (!waiting->ends) return options_.tell(text);
  verdict_ = text;
  ends_.store(true, std::memory_order_release);
}

void RankWatcher::EndUnlessTaken(std::unique_lock<std::mutex>& lock) {
  const auto stops = [this] { return stops_; };
  if (changed_.wait_for(lock, kUntilTaken, stops)) return;
  if (!taken_ && board_->ClaimWord()) options_.tell(verdict_);
  if (changed_.wait_for(lock, kUntilEnded, stops)) return;
  options_.end();
}

void RankWatcher::Watch() {
  std::unique_lock lock(mutex_);
  double looked_s = MonotonicSeconds();
  Beat();  // at once: the others know of a rank that stops before its first look
  while (!changed_.wait_for(lock, std::chrono::duration<double>(options_.look_s),
                            [this] { return stops_; })) {
    const double now_s = MonotonicSeconds();
    Beat();
    Look(now_s - looked_s);
    looked_s = now_s;
    if (ends()) return EndUnlessTaken(lock);
  }
}

}  // namespace ridge
