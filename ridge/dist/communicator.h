// Communicator: the ranks of a job, and how bytes move between them.
//
// It moves bytes and adds nothing: the order of additions is the program's (dist/tree_sum.h), so
// that sums do not depend on the library beneath.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// What a rank does between two exchanges, for those that wait for it (late_ranks.h).  Only a step
// has a planned length.
enum class RankWork : uint8_t { kStart, kStep, kBetweenSteps, kCheckpoint, kEvaluation };
struct RankDoing {
  RankWork work = RankWork::kStart;
  int64_t step = 0;      // updates done
  double planned_s = 0;  // kStep: its length; 0: nobody knows it
};

// One thread at a time uses it.  All ranks make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // 0 <= rank() < size()
  virtual int size() const = 0;

  // Sends sends[r] to rank r and fills receives[r] with what rank r sends here, for all other
  // ranks; entry rank() is ignored.  Returns when all of it is done.  An empty span moves nothing.
  // REQUIRES: size() entries each; sends[r] here is as long as receives[rank()] at rank r.
  virtual Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                          const std::vector<std::span<std::byte>>& receives) = 0;

  // An Exchange in two halves, between which the rank computes: what it sends leaves with the
  // first one where the library lets it.  All of it, the vectors too, stays until Finish() returns;
  // no other exchange of this communicator comes between them.
  virtual Status Begin(const std::vector<std::span<const std::byte>>& sends,
                       const std::vector<std::span<std::byte>>& receives) {
    return Exchange(sends, receives);
  }
  virtual Status Finish() { return Status(); }

  // From one rank to another; the other ranks take no part.  Messages of a channel arrive in the
  // order in which they were sent; channels are numbers below kChannels and independent of each
  // other.  A message is several parts, as many and as long on both sides.
  static constexpr int kChannels = 1 << 12;
  // Returns when at most `most_waiting` messages of the channel to this rank have not been
  // received, this one included.  Until then the bytes of a message must stay.
  virtual Status Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
                      int64_t most_waiting) {
    (void)to, (void)channel, (void)parts, (void)most_waiting;
    return Status(ErrorCode::kUnsupported, "these ranks send no messages to each other");
  }
  // Returns when the message is there.
  virtual Status Receive(int from, int channel, std::span<const std::span<std::byte>> parts) {
    (void)from, (void)channel, (void)parts;
    return Status(ErrorCode::kUnsupported, "these ranks send no messages to each other");
  }
  // Returns when all that was sent has been received.
  virtual Status FinishSends() { return Status(); }

  // Whether waits leave the core to others, at up to 200 us a message, and little is sent at a
  // time, so that what is urgent passes: for exchanges beside a step that computes
  // (dist/exchange_thread.h).  Alike at all ranks.
  virtual void SetPatient(bool /*patient*/) {}

  // The same ranks once more, for exchanges that wait for none of this communicator's, nor these
  // for them: each may be used by a thread of its own.  Of each all ranks make the same calls in
  // the same order.  Lives as long as this one; nullptr: there is none.
  virtual Communicator* urgent() { return nullptr; }

  // The same ranks, for exchanges of memory of the device that the host does not reach; nullptr:
  // nobody said.  It takes turns with this one, and stays as long as such memory is exchanged.
  Communicator* of_device_memory() const { return of_device_memory_; }
  void SetOfDeviceMemory(Communicator* ranks) { of_device_memory_ = ranks; }

  // Payload that this rank sent since it was made, over urgent() too.
  virtual int64_t sent_bytes() const = 0;

  // For the ranks that wait: what this one does from now on, and what its next exchanges are called
  // (nullptr: an agreement).  `collective` outlives the communicator.  Both cost a few stores.
  virtual void Tell(const RankDoing& /*doing*/) {}
  virtual void Name(const char* /*collective*/) {}
  // Between the two this rank waits in an exchange that moves `bytes` by other means than
  // Exchange(): a rank that is late then ends the job as it does there, or, where this one cannot
  // return, from another thread.  All ranks make the same calls in the same order.
  virtual void Enter(int64_t /*bytes*/) {}
  virtual void Leave() {}

 private:
  Communicator* of_device_memory_ = nullptr;
};

// Payload that an exchange sends and receives at this rank.
inline int64_t PayloadBytes(const std::vector<std::span<const std::byte>>& sends,
                            const std::vector<std::span<std::byte>>& receives) {
  int64_t bytes = 0;
  for (size_t r = 0; r < sends.size(); ++r) bytes += std::ssize(sends[r]) + std::ssize(receives[r]);
  return bytes;
}

}  // namespace ridge
