// libnccl.so.2 whose ranks are threads or processes of one machine.
//
//   RIDGE_FAKE_NCCL_FAIL=ncclSend:2:1    the second call of the process fails with 1
//   RIDGE_FAKE_NCCL_FOLDER=/tmp/x        where groups are; else in /dev/shm
//
// A group is a folder there, named by its id.  A message is a file there, which the sender
// renames when it is whole and the receiver removes.  All sends and receives of a group call are
// one piece of work of their stream.  It refuses a message to oneself and calls outside of a group
// call.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ridge/backend/cuda/nccl/nccl_abi.h"
#include "tests/fake_cuda/fake_hooks.h"
#include "tests/fake_cuda/injected_error.h"

extern "C" ridge::cuda::DriverCode ridge_fake_cuda_launch(ridge::cuda::StreamHandle stream,
                                                          ridge::fake_cuda::HostKernel run,
                                                          void* argument,
                                                          ridge::fake_cuda::FreeArgument free);
extern "C" void* ridge_fake_cuda_inside(ridge::cuda::DevicePtr at);

namespace ridge::fake_cuda {
namespace {

using namespace cuda;

constexpr auto kPause = std::chrono::microseconds(50);
constexpr int kMostPauses = 20 * 20000;  // 20 s

struct Group {
  std::string folder;
  int rank = 0, ranks = 0;
  std::vector<int64_t> sent, received;  // messages, by peer
  std::atomic<bool> aborted{false};
};

struct Message {
  std::shared_ptr<Group> group;
  bool sends = false;
  int peer = 0;
  void* at = nullptr;  // of the device
  size_t bytes = 0;
  int64_t number = 0;
};

// What the calling thread has said since ncclGroupStart.
struct Call {
  int depth = 0;
  StreamHandle stream = nullptr;
  std::vector<Message> messages;
};
thread_local Call call;

InjectedError injected("RIDGE_FAKE_NCCL_FAIL");

// A handle is a pointer to one of these: work that is enqueued keeps the group.
std::shared_ptr<Group>& In(NcclHandle handle) {
  return *reinterpret_cast<std::shared_ptr<Group>*>(handle);
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool Await(const std::string& path, const Group& group) {
  for (int i = 0; i < kMostPauses && !group.aborted; ++i) {
    if (Exists(path)) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

void WriteWhole(const std::string& path, const void* bytes, size_t count) {
  const std::string part = path + ".part";
  std::ofstream(part, std::ios::binary)
      .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  std::rename(part.c_str(), path.c_str());
}

std::string FileOf(const Message& message) {
  const int from = message.sends ? message.group->rank : message.peer;
  const int to = message.sends ? message.peer : message.group->rank;
  return message.group->folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" +
         std::to_string(message.number);
}

// On the stream's thread: all sends first, so no order of calls can hang.
DriverCode Move(void* argument) {
  const auto& messages = *static_cast<const std::vector<Message>*>(argument);
  for (const Message& message : messages) {
    if (!message.sends) continue;
    const void* const from = ridge_fake_cuda_inside(reinterpret_cast<DevicePtr>(message.at));
    if (from == nullptr) return DriverCode::kIllegalAddress;
    WriteWhole(FileOf(message), from, message.bytes);
  }
  for (const Message& message : messages) {
    if (message.sends) continue;
    void* const to = ridge_fake_cuda_inside(reinterpret_cast<DevicePtr>(message.at));
    if (to == nullptr) return DriverCode::kIllegalAddress;
    const std::string path = FileOf(message);
    if (!Await(path, *message.group)) return DriverCode::kLaunchFailed;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (static_cast<size_t>(file.tellg()) != message.bytes) return DriverCode::kLaunchFailed;
    file.seekg(0);
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(message.bytes));
    std::remove(path.c_str());
  }
  return DriverCode::kSuccess;
}

NcclCode Say(bool sends, void* at, size_t count, int peer, NcclHandle handle, StreamHandle stream) {
  const std::shared_ptr<Group>& group = In(handle);
  if (call.depth == 0) return NcclCode::kInvalidUsage;
  if (peer < 0 || peer >= group->ranks || peer == group->rank) return NcclCode::kInvalidArgument;
  std::vector<int64_t>& numbers = sends ? group->sent : group->received;
  call.stream = stream;
  call.messages.push_back({group, sends, peer, at, count, numbers[static_cast<size_t>(peer)]++});
  return NcclCode::kSuccess;
}

NcclCode EndCall() {
  if (call.depth == 0) return NcclCode::kInvalidUsage;
  if (--call.depth > 0 || call.messages.empty()) return NcclCode::kSuccess;
  auto* messages = new std::vector<Message>(std::move(call.messages));
  call.messages.clear();
  const DriverCode launched = ridge_fake_cuda_launch(
      call.stream, Move, messages,
      [](void* argument) { delete static_cast<std::vector<Message>*>(argument); });
  return launched == DriverCode::kSuccess ? NcclCode::kSuccess : NcclCode::kUnhandledCuda;
}

}  // namespace
}  // namespace ridge::fake_cuda

using namespace ridge::cuda;       // NOLINT: the functions below are C's
using namespace ridge::fake_cuda;  // NOLINT

#define RIDGE_FAKE_NCCL_BEGIN(name)                         \
  do {                                                      \
    const auto fails = injected.Of<NcclCode>("nccl" #name); \
    if (fails != NcclCode::kSuccess) return fails;          \
  } while (false)

extern "C" {

NcclCode ncclGetVersion(int* version) {
  *version = 22803;
  return NcclCode::kSuccess;
}

const char* ncclGetErrorString(NcclCode code) {
  switch (code) {
    case NcclCode::kSuccess:
      return "no error";
    case NcclCode::kUnhandledCuda:
      return "unhandled cuda error";
    case NcclCode::kSystem:
      return "unhandled system error";
    case NcclCode::kInvalidArgument:
      return "invalid argument";
    case NcclCode::kInvalidUsage:
      return "invalid usage";
  }
  return "unknown result code";
}

NcclCode ncclGetUniqueId(NcclId* id) {
  RIDGE_FAKE_NCCL_BEGIN(GetUniqueId);
  static std::atomic<int> made{0};
  std::memset(id, 0, sizeof *id);
  const char* const folder = std::getenv("RIDGE_FAKE_NCCL_FOLDER");
  std::snprintf(id->bytes, sizeof id->bytes, "%s/ridge_fake_nccl-%d-%d",
                folder == nullptr ? "/dev/shm" : folder, ::getpid(), ++made);
  return ::mkdir(id->bytes, 0700) == 0 ? NcclCode::kSuccess : NcclCode::kSystem;
}

NcclCode ncclCommInitRank(NcclHandle* made, int ranks, NcclId id, int rank) {
  RIDGE_FAKE_NCCL_BEGIN(CommInitRank);
  if (rank < 0 || rank >= ranks) return NcclCode::kInvalidArgument;
  auto group = std::make_shared<Group>();
  group->folder = id.bytes;
  group->rank = rank;
  group->ranks = ranks;
  group->sent.resize(static_cast<size_t>(ranks));
  group->received.resize(static_cast<size_t>(ranks));
  WriteWhole(group->folder + "/here-" + std::to_string(rank), "", 0);
  for (int other = 0; other < ranks; ++other) {
    if (!Await(group->folder + "/here-" + std::to_string(other), *group)) return NcclCode::kSystem;
  }
  *made = reinterpret_cast<NcclHandle>(new std::shared_ptr<Group>(std::move(group)));
  return NcclCode::kSuccess;
}

// The last one removes the folder.
NcclCode ncclCommDestroy(NcclHandle handle) {
  const std::shared_ptr<Group> group = In(handle);
  delete &In(handle);
  std::remove((group->folder + "/here-" + std::to_string(group->rank)).c_str());
  (void)::rmdir(group->folder.c_str());
  return NcclCode::kSuccess;
}

NcclCode ncclCommAbort(NcclHandle handle) {
  In(handle)->aborted = true;
  return ncclCommDestroy(handle);
}

NcclCode ncclGroupStart() {
  RIDGE_FAKE_NCCL_BEGIN(GroupStart);
  ++call.depth;
  return NcclCode::kSuccess;
}

NcclCode ncclGroupEnd() {
  RIDGE_FAKE_NCCL_BEGIN(GroupEnd);
  return EndCall();
}

NcclCode ncclSend(const void* from, size_t count, int type, int peer, NcclHandle group,
                  StreamHandle stream) {
  RIDGE_FAKE_NCCL_BEGIN(Send);
  if (type != kNcclBytes) return NcclCode::kInvalidArgument;
  return Say(/*sends=*/true, const_cast<void*>(from), count, peer, group, stream);
}

NcclCode ncclRecv(void* to, size_t count, int type, int peer, NcclHandle group,
                  StreamHandle stream) {
  RIDGE_FAKE_NCCL_BEGIN(Recv);
  if (type != kNcclBytes) return NcclCode::kInvalidArgument;
  return Say(/*sends=*/false, to, count, peer, group, stream);
}

}  // extern "C"
