// Order: which accesses to bytes are ordered by streams, events and synchronizations.
//
// Each stream has a clock: how far it and the others had come in what it waited for (vector clocks,
// Mattern 1989).  An access is compared with the last write and the last reads of its bytes when it
// is enqueued, so what it says depends on no thread and no time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ridge::fake {

using Clock = std::vector<int64_t>;  // by stream: the number of its last work

class Order {
 public:
  explicit Order(int streams);

  // The stream's next work.
  void Begin(int stream, const std::string& what);
  // The work that has begun touches these bytes.  Returns what is wrong: "'b' on stream 1 reads
  // bytes that 'a' on stream 0 writes, and no event orders them"; empty: nothing.
  std::string Touch(int stream, uintptr_t begin, int64_t bytes, bool writes);

  Clock Record(int stream) const { return clocks_[static_cast<size_t>(stream)]; }
  void Wait(int stream, const Clock& recorded);
  void Synchronize(int stream);                 // the host waits for the stream
  void Forget(uintptr_t begin, int64_t bytes);  // memory that is freed

 private:
  struct Access {
    int64_t at = 0;  // number of the work in its stream; 0: none
    std::string what;
  };
  struct Bytes {
    uintptr_t end;
    int writer = 0;
    Access write;
    std::vector<Access> reads;  // by stream
  };
  using Ranges = std::map<uintptr_t, Bytes>;  // by first byte; disjoint

  Ranges::iterator Cut(uintptr_t at);
  void Cover(uintptr_t begin, uintptr_t end);
  std::string Check(int stream, const Bytes& bytes, bool writes) const;
  std::string Wrong(int stream, const char* does, int other, const Access& access,
                    const char* did) const;
  bool Happened(int stream, int other, const Access& access) const;

  std::vector<Clock> clocks_;  // by stream
  Clock host_;
  std::vector<std::string> what_;  // by stream: its last work
  Ranges ranges_;
};

}  // namespace ridge::fake
