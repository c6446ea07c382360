// MpiExchange: the messages of one exchange between all ranks after another, under a tag of its
// own.
//
// Receives are posted first, so that no message waits for a place; sends go to the next rank, then
// to the one after, piece by piece, so that not all begin with rank 0.  Order of messages between
// two ranks is what pairs them: one tag is enough, and an exchange may begin while another rank
// ends the last one.
//
// A transport sends in the order in which it is given bytes.  So an exchange that lets others pass
// gives it a few pieces at a time (core/wire_block.h): what is posted under another tag comes
// behind these.  Where all of them have ended between two looks, it gives it more.
//
// Nothing is allocated once the largest exchange has been made.  Not thread-safe.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/core/wire_block.h"
#include "ridge/dist/mpi_abi.h"

namespace ridge {

// The world that a process joined.
struct MpiWorld {
  const RidgeMpiApi& api;
  std::string library;  // "Open MPI 4.1.4"
  int rank = 0, size = 0;

  // kUnavailable: "rank 0: Open MPI 4.1.4 cannot send: ...".
  Status Fail(const char* what, int32_t error) const;
  // The same where a rank sent another number of bytes than was expected of it.
  Status CheckReceived(int from, int32_t received, int32_t expected) const;
};

// MPI counts in 32 bits.
inline constexpr int64_t kMostMessageBytes = int64_t{1} << 30;

// Calls post(piece) for each part of the bytes, of at most so many.
template <typename Span, typename Post>
Status ForEachPiece(Span bytes, int64_t most_bytes, const Post& post) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), static_cast<size_t>(most_bytes));
    RIDGE_RETURN_IF_ERROR(post(bytes.first(count)));
    bytes = bytes.subspan(count);
  }
  return Status();
}

class MpiExchange {
 public:
  using Sends = std::vector<std::span<const std::byte>>;  // by rank
  using Receives = std::vector<std::span<std::byte>>;

  // `world` outlives it.
  MpiExchange(const MpiWorld& world, int tag) : world_(world), tag_(tag) {}

  // Begins one, as Communicator::Exchange describes it.  All of it stays until done().  Whether it
  // lets others pass is the same at all ranks.  REQUIRES: done().
  Status Start(const Sends& sends, const Receives& receives, bool lets_pass);
  // Whether a message has ended since the last look.  Fails with kUnavailable; the exchange never
  // ends then.
  Result<bool> Look();
  bool done() const { return open_ == 0 && sends_ == nullptr; }
  // Payload since it was made.
  int64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Request {
    int rank = 0;
    int32_t bytes = 0;
    bool receives = false;
  };

  void Reserve(const Sends& sends, const Receives& receives);
  Status PostReceives(int from, std::span<std::byte> bytes);
  Status PostSends();
  Status PostSend(int to, std::span<const std::byte> piece);
  void Adapt(int64_t sent);
  // At least a piece to each rank.
  int64_t FewestSending() const { return std::max<int64_t>(kPiecesAhead, world_.size - 1); }

  const MpiWorld& world_;
  const int tag_;
  const Sends* sends_ = nullptr;  // null: all is posted
  bool lets_pass_ = false;
  int64_t piece_bytes_ = kMostMessageBytes;
  int64_t most_sending_ = 0;        // at a time, where it lets others pass
  int next_to_ = 0;                 // how many ranks after this one the next piece goes to
  size_t next_byte_ = 0;            // of what that rank gets
  size_t longest_ = 0;              // bytes that one rank gets
  int64_t open_ = 0, sending_ = 0;  // requests, and those of them that send
  int64_t sent_bytes_ = 0;
  std::vector<Request> requests_;
  std::vector<void*> mpi_requests_;  // room for theirs, as MPI has them
};

}  // namespace ridge
