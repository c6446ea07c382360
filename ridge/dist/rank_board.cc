// Ranks that see the same /dev/shm share a page: the machine's boot and the number of that file
// system say so, which holds for containers too.  The first of them makes the page and hands its
// name out over the communicator.  Every rank makes every exchange, whatever failed before.
#include "ridge/dist/rank_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "ridge/core/files.h"
#include "ridge/core/owned_fd.h"
#include "ridge/dist/gather.h"

namespace ridge {
namespace {

constexpr char kFolder[] = "/dev/shm";

struct Place {
  std::array<char, 64> boot{};
  std::array<char, 64> machine{};  // its name
  uint64_t file_system = 0;
  int32_t has_memory = 0;

  bool Shares(const Place& other) const {
    return has_memory != 0 && other.has_memory != 0 && boot == other.boot &&
           file_system == other.file_system;
  }
};
using PageName = std::array<char, 96>;

Place PlaceOfThisRank(const std::string& machine) {
  Place place;
  (void)gethostname(place.machine.data(), place.machine.size() - 1);
  const Result<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  struct stat shared {};
  if (!boot.ok() || stat(kFolder, &shared) != 0) return place;
  const std::string text = machine.empty() ? *boot : machine;
  std::copy_n(text.data(), std::min(text.size(), place.boot.size() - 1), place.boot.data());
  place.file_system = shared.st_dev;
  place.has_memory = 1;
  return place;
}

std::string NewName() {
  std::random_device random;
  return fmt::format("{}/ridge-ranks-{:08x}{:08x}", kFolder, random(), random());
}

// nullptr where the system refuses.  `flags` of open; O_CREAT makes room for it.
void* MapPage(const std::string& name, int flags, int64_t bytes) {
  const OwnedFd file(open(name.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return nullptr;
  // Not ftruncate: a write into a full file system would end the process.
  if ((flags & O_CREAT) != 0 && posix_fallocate(file.get(), 0, bytes) != 0) return nullptr;
  void* page =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return page == MAP_FAILED ? nullptr : page;
}

void* OwnPage(int64_t bytes) {
  void* page = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : page;
}

}  // namespace

Result<std::unique_ptr<RankBoard>> RankBoard::Open(Communicator& ranks,
                                                   const std::string& machine) {
  const auto own = static_cast<size_t>(ranks.rank());
  const int64_t bytes = BytesFor(ranks.size());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> places,
                         GatherFromAll(ranks, PlaceOfThisRank(machine)));
  const auto first_beside = [&](size_t rank) {
    size_t first = 0;
    while (first < rank && !places[first].Shares(places[rank])) ++first;
    return first;
  };
  const size_t first = first_beside(own);

  PageName name{};
  void* page = nullptr;
  if (first == own) {
    const std::string made = NewName();
    page = MapPage(made, O_CREAT | O_EXCL, bytes);
    if (page != nullptr) std::copy_n(made.data(), made.size(), name.data());
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<PageName> names, GatherFromAll(ranks, name));
  if (first != own && names[first][0] != '\0') page = MapPage(names[first].data(), 0, bytes);
  RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  if (name[0] != '\0') (void)unlink(name.data());

  if (page == nullptr) page = OwnPage(bytes);
  if (page == nullptr)
    return Status(ErrorCode::kUnavailable, "the system refused a page of memory");
  std::unique_ptr<RankBoard> board(new RankBoard(page, ranks.size()));
  for (size_t rank = 0; rank < places.size(); ++rank) {
    board->machines_.emplace_back(places[rank].machine.data());
    board->firsts_.push_back(static_cast<int>(first_beside(rank)));
  }
  board->line(ranks.rank()).process.store(getpid());
  return board;
}

RankBoard::~RankBoard() { (void)munmap(page_, static_cast<size_t>(BytesFor(ranks_))); }

}  // namespace ridge
