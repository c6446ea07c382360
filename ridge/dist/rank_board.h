// RankBoard: a page of shared memory on which the ranks of one machine say where they are.
//
// Each rank writes its own line and reads those of the others; nobody waits for anybody.  Lines of
// ranks on other machines are there and stay unseen.  The page has a name in /dev/shm only until
// all ranks of the machine have opened it, so a crash leaves no file.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// Exchanges of one channel come in one order at all ranks: the usual ones, and those of
// Communicator::urgent().
enum class RankChannel : uint8_t { kUsual, kUrgent };

// Zeros mean: not seen yet.  Written by one rank only.
struct alignas(64) BoardLine {
  std::atomic<uint64_t> place;         // 2k - 1: inside of its k-th exchange; 2k: behind it
  std::atomic<uint64_t> urgent_place;  // the same of the urgent ones
  std::atomic<uint64_t> beats;  // of its second thread, which goes on while the first one computes
  std::atomic<int64_t> step;
  std::atomic<int64_t> planned_us;  // RankDoing::planned_s
  std::atomic<int64_t> worked_us;   // of its first thread on a core, at the last beat
  std::atomic<int32_t> process;
  std::atomic<uint8_t> work;  // RankWork

  std::atomic<uint64_t>& PlaceIn(RankChannel channel) {
    return channel == RankChannel::kUsual ? place : urgent_place;
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

class RankBoard {
 public:
  // Called by all ranks.  Where a machine has no shared memory its ranks see only themselves.
  // `machine`: for tests, ranks with different texts are on different machines.  Fails as Exchange
  // does.
  static Result<std::unique_ptr<RankBoard>> Open(Communicator& ranks,
                                                 const std::string& machine = "");
  ~RankBoard();
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  int ranks() const { return ranks_; }
  BoardLine& line(int rank) { return lines()[rank]; }
  const std::string& machine_of(int rank) const { return machines_[static_cast<size_t>(rank)]; }
  // The first rank that shares this one's page.
  int first_beside(int rank) const { return firsts_[static_cast<size_t>(rank)]; }

  // True for the first rank of the machine that calls it: one speaks for all.
  bool ClaimWord() { return head()->exchange(1) == 0; }

 private:
  RankBoard(void* page, int ranks) : page_(page), ranks_(ranks) {}
  static int64_t BytesFor(int ranks) {
    return static_cast<int64_t>(sizeof(BoardLine)) * (ranks + 1);
  }
  // The page is zeros and then a word, and a line a rank.
  std::atomic<uint32_t>* head() { return static_cast<std::atomic<uint32_t>*>(page_); }
  BoardLine* lines() { return static_cast<BoardLine*>(page_) + 1; }

  void* const page_;
  const int ranks_;
  std::vector<std::string> machines_;  // by rank: its name
  std::vector<int> firsts_;            // by rank
};

}  // namespace ridge
