#include "ridge/dist/far_board.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "ridge/dist/gather.h"

namespace ridge {
namespace {

constexpr int kMostAddresses = 4;    // of a machine
constexpr int kLinesADatagram = 24;  // below 1,400 bytes: no network cuts it

struct Announcement {
  FarBoard::Key key{};                               // that of rank 0 counts
  std::array<uint32_t, kMostAddresses> addresses{};  // in network order; 0: none
  uint16_t port = 0;                                 // in network order; 0: it does not listen
};

struct Head {
  FarBoard::Key key;
  int32_t first = 0, count = 0;
};

struct Line {
  uint64_t place, urgent_place, beats;
  int64_t step, planned_us, worked_us;
  int32_t process;
  uint32_t work;
};

FarBoard::Key NewKey() {
  std::random_device random;
  FarBoard::Key key;
  for (std::byte& one : key) one = static_cast<std::byte>(random());
  return key;
}

// The machine's IPv4 addresses on networks that are up; the loopback where there is no other.
std::array<uint32_t, kMostAddresses> OwnAddresses() {
  std::array<uint32_t, kMostAddresses> found{};
  size_t count = 0;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr && count < found.size(); one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    found[count++] = address.sin_addr.s_addr;
  }
  freeifaddrs(all);
  if (count == 0) found[0] = htonl(INADDR_LOOPBACK);
  return found;
}

// Bound to any free port; -1 where the system refuses.
OwnedFd Listen(uint16_t& port) {
  OwnedFd descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (descriptor.get() < 0 || bind(descriptor.get(), generic, size) != 0 ||
      getsockname(descriptor.get(), generic, &size) != 0) {
    return OwnedFd();
  }
  port = address.sin_port;
  return descriptor;
}

Line Read(BoardLine& from) {
  return {from.place.load(),      from.urgent_place.load(), from.beats.load(),   from.step.load(),
          from.planned_us.load(), from.worked_us.load(),    from.process.load(), from.work.load()};
}

void Write(const Line& line, BoardLine& to) {
  to.step.store(line.step);
  to.planned_us.store(line.planned_us);
  to.worked_us.store(line.worked_us);
  to.process.store(line.process);
  to.work.store(static_cast<uint8_t>(line.work));
  to.beats.store(line.beats);
  to.urgent_place.store(line.urgent_place);
  to.place.store(line.place);
}

}  // namespace

Result<std::unique_ptr<FarBoard>> FarBoard::Open(Communicator& ranks, const RankBoard& board) {
  const int own = ranks.rank();
  const bool speaks = board.first_beside(own) == own;
  Announcement mine;
  OwnedFd descriptor;
  if (own == 0) mine.key = NewKey();
  if (speaks) {
    mine.addresses = OwnAddresses();
    descriptor = Listen(mine.port);
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Announcement> all, GatherFromAll(ranks, mine));
  if (!speaks || descriptor.get() < 0) return std::unique_ptr<FarBoard>();
  std::unique_ptr<FarBoard> far(new FarBoard(std::move(descriptor), all[0].key, own));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const Announcement& other = all[static_cast<size_t>(rank)];
    if (board.first_beside(rank) != rank || rank == own || other.port == 0) continue;
    for (const uint32_t address : other.addresses) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = other.port;
      to.sin_addr.s_addr = address;
      if (address != 0) far->others_.push_back(to);
    }
  }
  if (far->others_.empty()) return std::unique_ptr<FarBoard>();
  return far;
}

std::vector<std::byte> FarBoard::Pack(RankBoard& board, int first, int count) const {
  std::vector<std::byte> datagram(sizeof(Head) + sizeof(Line) * static_cast<size_t>(count));
  const Head head = {key_, first, count};
  std::memcpy(datagram.data(), &head, sizeof(head));
  for (int i = 0; i < count; ++i) {
    const Line line = Read(board.line(first + i));
    std::memcpy(datagram.data() + sizeof(Head) + sizeof(Line) * static_cast<size_t>(i), &line,
                sizeof(line));
  }
  return datagram;
}

bool FarBoard::Take(std::span<const std::byte> datagram, RankBoard& board) const {
  Head head;
  if (datagram.size() < sizeof(head)) return false;
  std::memcpy(&head, datagram.data(), sizeof(head));
  const bool in_range = head.first >= 0 && head.count >= 0 && head.count <= kLinesADatagram &&
                        head.first < board.ranks() && head.count <= board.ranks() - head.first;
  if (head.key != key_ || !in_range) return false;
  if (datagram.size() != sizeof(head) + sizeof(Line) * static_cast<size_t>(head.count))
    return false;
  for (int i = 0; i < head.count; ++i) {
    if (board.first_beside(head.first + i) == own_) return false;
  }
  for (int i = 0; i < head.count; ++i) {
    Line line;
    std::memcpy(&line, datagram.data() + sizeof(head) + sizeof(Line) * static_cast<size_t>(i),
                sizeof(line));
    BoardLine& to = board.line(head.first + i);
    // Datagrams may overtake each other.
    if (line.beats > to.beats.load()) Write(line, to);
  }
  return true;
}

void FarBoard::Exchange(RankBoard& board) {
  for (int first = own_; first < board.ranks(); ++first) {
    int count = 0;  // of neighbours in a row
    while (first + count < board.ranks() && count < kLinesADatagram &&
           board.first_beside(first + count) == own_) {
      ++count;
    }
    if (count == 0) continue;
    const std::vector<std::byte> datagram = Pack(board, first, count);
    for (const sockaddr_in& to : others_) {
      (void)sendto(socket_.get(), datagram.data(), datagram.size(), 0,
                   reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    }
    first += count - 1;
  }
  std::array<std::byte, 2048> received;
  for (;;) {
    const ssize_t got = recv(socket_.get(), received.data(), received.size(), 0);
    if (got < 0) return;
    (void)Take(std::span(received).first(static_cast<size_t>(got)), board);
  }
}

}  // namespace ridge
