// RankWatcher: the second thread of a rank.  It shows that the process runs, and looks whether
// another rank keeps the first thread waiting.
//
// The first thread calls Enter, Leave, Tell and Name, which are a few stores, and asks ends() while
// it waits.  Once that is true it takes the verdict and ends the job; if it cannot (it is held
// within the MPI), the second thread does so in its place after a second.  Each channel may have a
// thread of its own; where both wait, it is the urgent exchange that the rank waits in.
#pragma once
#include <pthread.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "ridge/dist/far_board.h"
#include "ridge/dist/late_ranks.h"
#include "ridge/dist/rank_board.h"

namespace ridge {

class RankWatcher {
 public:
  struct Options {
    int rank = 0;
    double limit_s = 5;
    double look_s = 0.25;                          // between two looks
    std::function<void(const std::string&)> tell;  // a line for the user, from the second thread
    std::function<void()> end;                     // ends the job; need not return
  };
  // Of the thread that makes it.  `far`: brings the lines of other machines; null for none.
  RankWatcher(std::unique_ptr<RankBoard> board, std::unique_ptr<FarBoard> far, Options options);
  ~RankWatcher();
  RankWatcher(const RankWatcher&) = delete;
  RankWatcher& operator=(const RankWatcher&) = delete;

  using Channel = RankChannel;
  void Enter(int64_t bytes, Channel channel = Channel::kUsual);
  void Leave(Channel channel = Channel::kUsual);
  void Tell(const RankDoing& doing);
  void Name(const char* collective, Channel channel = Channel::kUsual);

  // Whether this rank waits for one that is late.
  bool ends() const { return ends_.load(std::memory_order_acquire); }
  // What is wrong: "rank 0: waited ...".  One rank of a machine speaks: the others wait here for
  // their end, for two seconds.  REQUIRES: ends().
  std::string TakeVerdict();

 private:
  void MoveOn(Channel channel);
  void Watch();
  void Beat();
  void Look(double elapsed_s);
  std::optional<WaitingFor> LookAt(Channel channel, double elapsed_s);
  void EndUnlessTaken(std::unique_lock<std::mutex>& lock);
  static std::vector<std::string> Elsewhere(const RankBoard& board, int rank);
  RankLine LineOf(int rank, Channel channel);

  // The exchange of a channel that this rank is in, and whom it waits for.
  struct Waiting {
    Waiting(const LateRanks& late, const char* name) : late(late), name(name) {}
    LateRanks late;
    std::atomic<const char*> name;
    std::atomic<int64_t> bytes{0};
  };
  Waiting& WaitingIn(Channel channel) { return channel == Channel::kUsual ? usual_ : urgent_; }

  const std::unique_ptr<RankBoard> board_;
  const std::unique_ptr<FarBoard> far_;
  const Options options_;
  BoardLine& own_;
  Waiting usual_, urgent_;
  std::vector<RankLine> lines_;  // room for a look
  std::atomic<bool> ends_{false}, taken_{false};
  std::string verdict_;  // written before ends_
  clockid_t first_thread_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace ridge
