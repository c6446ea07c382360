// FarBoard: carries lines of the board between machines, by datagrams.
//
// One rank of each machine sends the lines of its machine to those of the others at each look, and
// writes what it receives on its own page, where its neighbours see it too.  Nothing is answered,
// nothing is waited for; where datagrams do not arrive the others stay unseen.  The socket takes
// any free port, told over the communicator with a key of 128 bits; what lacks the key is dropped.
// Lines hold counters and process numbers; they are not encrypted.
#pragma once
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ridge/core/owned_fd.h"
#include "ridge/dist/rank_board.h"

namespace ridge {

class FarBoard {
 public:
  using Key = std::array<std::byte, 16>;

  // Called by all ranks.  Null where there is one machine, at ranks that do not speak for theirs,
  // and where the system gives no socket.  Fails as Exchange does.
  static Result<std::unique_ptr<FarBoard>> Open(Communicator& ranks, const RankBoard& board);

  // Sends and receives; never blocks.
  void Exchange(RankBoard& board);

  // The datagram with the lines of ranks [first, first + count), and what takes one: whether it was
  // good.
  std::vector<std::byte> Pack(RankBoard& board, int first, int count) const;
  bool Take(std::span<const std::byte> datagram, RankBoard& board) const;

 private:
  FarBoard(OwnedFd socket, const Key& key, int own)
      : socket_(std::move(socket)), key_(key), own_(own) {}

  const OwnedFd socket_;
  const Key key_;
  const int own_;                    // this rank, the first of its machine
  std::vector<sockaddr_in> others_;  // every address of every other machine
};

}  // namespace ridge
