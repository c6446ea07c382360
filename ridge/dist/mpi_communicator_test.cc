// MpiCommunicator on an MPI of two ranks that is made up here: what it is asked, and how its
// answers are taken.
#include "ridge/dist/mpi_communicator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

namespace ridge {
namespace {

struct Message {
  char kind = ' ';  // s, r
  const void* bytes = nullptr;
  int32_t count = 0, rank = 0, tag = 0;
  const void* requests = nullptr;  // whose array it is in, at `index`
  int32_t index = 0;
  bool done = false;
};

// Of one test at a time.
struct World {
  int32_t size = 2, serialized = 1, join_error = 0, send_error = 0;
  int32_t missing = 0;         // bytes that each message is shorter by
  int silent_tests = 0;        // before anything has ended
  int32_t held_tag = 0;        // whose messages do not end
  int held_tests = 1'000'000;  // until they do, so that a test which waits for them ends
  int64_t most_sending = 0;    // sends under way at a time
  std::vector<Message> messages;
  int left = 0;  // times that the world was left
} world;

std::atomic_ref<int32_t> HeldTag() { return std::atomic_ref<int32_t>(world.held_tag); }

int32_t Join(int32_t* rank, int32_t* size, int32_t* serialized) {
  *rank = 0;
  *size = world.size;
  *serialized = world.serialized;
  return world.join_error;
}
int32_t Leave() { return ++world.left, 0; }
void Abort(int32_t) {}
int32_t Post(char kind, const void* bytes, int32_t count, int32_t rank, int32_t tag,
             const void* requests, int32_t index) {
  if (index == 0) std::erase_if(world.messages, [](const Message& m) { return m.done; });
  for (Message& other : world.messages) {  // the array has grown
    if (other.tag == tag) other.requests = requests;
  }
  world.messages.push_back({kind, bytes, count, rank, tag, requests, index});
  const auto sending = [](const Message& m) { return m.kind == 's' && !m.done; };
  world.most_sending = std::max(
      world.most_sending, std::count_if(world.messages.begin(), world.messages.end(), sending));
  return 0;
}
int32_t Send(const void* bytes, int32_t count, int32_t to, int32_t tag, void* requests,
             int32_t index) {
  return world.send_error != 0 ? world.send_error
                               : Post('s', bytes, count, to, tag, requests, index);
}
int32_t Receive(void* bytes, int32_t count, int32_t from, int32_t tag, void* requests,
                int32_t index) {
  return Post('r', bytes, count, from, tag, requests, index);
}
// The last one first.
int32_t Test(void* requests, int32_t count, int32_t* done, int32_t* received) {
  *done = -1;
  if (world.silent_tests-- > 0) return 0;
  const int32_t held = --world.held_tests > 0 ? HeldTag().load() : 0;
  for (auto i = static_cast<int32_t>(world.messages.size()) - 1; i >= 0; --i) {
    Message& message = world.messages[static_cast<size_t>(i)];
    if (message.done || message.requests != requests || message.tag == held) continue;
    EXPECT_LT(message.index, count);  // places of messages stay
    message.done = true;
    *done = message.index;
    *received = message.kind == 'r' ? message.count - world.missing : 0;
    return 0;
  }
  return 0;
}
void Library(char* text, int64_t bytes) {
  std::snprintf(text, static_cast<size_t>(bytes), "Open MPI v4.1.4, package");
}
void TextOf(int32_t error, char* text, int64_t bytes) {
  std::snprintf(text, static_cast<size_t>(bytes), "reason %d", error);
}

constexpr RidgeMpiApi kApi = {RIDGE_MPI_ABI, 8,       "openmpi", Join,    Leave, Abort,
                              Send,          Receive, Test,      Library, TextOf};

class MpiCommunicatorTest : public ::testing::Test {
 protected:
  MpiCommunicatorTest() { world = World(); }

  static Result<std::unique_ptr<MpiCommunicator>> JoinTwo() {
    return MpiCommunicator::Join({"mpirun of Open MPI", Mpi::kOpenMpi, 2}, kApi);
  }
  // "r1:3 s1:5": what was posted, in order.
  static std::string Posted() {
    std::string text;
    for (const Message& m : world.messages) {
      text += (text.empty() ? "" : " ") + std::string(1, m.kind) + std::to_string(m.rank) + ":" +
              std::to_string(m.count);
    }
    return text;
  }
};

TEST_F(MpiCommunicatorTest, TheWorldIsLeftAtTheEnd) {
  {
    const auto ranks = JoinTwo();
    ASSERT_TRUE(ranks.ok());
    EXPECT_EQ((*ranks)->size(), 2);
    EXPECT_EQ((*ranks)->library(), "Open MPI 4.1.4");
    EXPECT_EQ(world.left, 0);
  }
  EXPECT_EQ(world.left, 1);
}

TEST_F(MpiCommunicatorTest, AWorldOfAnotherSizeIsLeftAndRefused) {
  world.size = 1;
  EXPECT_EQ(JoinTwo().status().message(),
            "mpirun of Open MPI started 2 ranks; Open MPI 4.1.4 joined a world of 1: each would be "
            "a training of its own. hint: mpirun and library must be of one Open MPI; `ridge "
            "doctor cluster` shows both");
  EXPECT_EQ(world.left, 1);
}

TEST_F(MpiCommunicatorTest, AnMpiThatCannotIsRefused) {
  world.serialized = 0;
  EXPECT_EQ(JoinTwo().status().message(),
            "Open MPI 4.1.4 was built without threads; ridge calls it from several. hint: an MPI "
            "with MPI_THREAD_SERIALIZED");
  world = World();
  world.join_error = 7;
  EXPECT_EQ(JoinTwo().status().code(), ErrorCode::kDevice);
  EXPECT_EQ(JoinTwo().status().message(), "rank 0: Open MPI 4.1.4 cannot join the ranks: reason 7");
  EXPECT_EQ(world.left, 0);  // it was never joined
}

TEST_F(MpiCommunicatorTest, AMessageIsOfParts) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  std::array<std::byte, 5> out{}, in{};
  const std::array<std::span<const std::byte>, 2> sent = {std::span(out).first(2), std::span(out)};
  ASSERT_TRUE((*ranks)->Send(1, 3, sent, /*most_waiting=*/0).ok());
  EXPECT_EQ(Posted(), "s1:2 s1:5");
  EXPECT_EQ((*ranks)->sent_bytes(), 7);
  const std::span<std::byte> received(in);
  ASSERT_TRUE((*ranks)->Receive(1, 3, {&received, 1}).ok());
  world.missing = 1;
  EXPECT_EQ((*ranks)->Receive(1, 3, {&received, 1}).message(),
            "rank 0: rank 1 sent 4 bytes; 5 were expected");
}

TEST_F(MpiCommunicatorTest, ReceivesAreThereBeforeAnythingIsSent) {
  world.size = 3;
  auto ranks = MpiCommunicator::Join({"mpirun of Open MPI", Mpi::kOpenMpi, 3}, kApi);
  ASSERT_TRUE(ranks.ok());
  std::array<std::byte, 8> out{}, in{};
  const std::span<const std::byte> sent(out);
  const std::span<std::byte> received(in);
  world.silent_tests = 1000;
  ASSERT_TRUE((*ranks)
                  ->Exchange({sent, sent.first(1), sent.first(2)},
                             {received, received.first(3), received.first(4)})
                  .ok());
  EXPECT_EQ(Posted(), "r2:4 r1:3 s1:1 s2:2");
  EXPECT_EQ((*ranks)->sent_bytes(), 3);
}

TEST_F(MpiCommunicatorTest, WhatARankSendsLeavesWhenAnExchangeBegins) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  std::array<std::byte, 8> bytes{};
  const std::vector<std::span<const std::byte>> sends = {{}, bytes};
  const std::vector<std::span<std::byte>> receives = {{}, std::span(bytes).first(3)};
  for (Communicator* of : {static_cast<Communicator*>(ranks->get()), (*ranks)->urgent()}) {
    ASSERT_TRUE(of->Begin(sends, receives).ok());
    EXPECT_EQ(Posted().substr(Posted().size() - 9), "r1:3 s1:8");
    EXPECT_FALSE(world.messages.back().done);
    ASSERT_TRUE(of->Finish().ok());
    EXPECT_TRUE(world.messages.back().done);
  }
  EXPECT_EQ((*ranks)->sent_bytes(), 16);
}

// What MPI keeps for a pair of ranks is part of what the plan counts.
TEST_F(MpiCommunicatorTest, ConnectionsAreMadeWhenTheRanksJoin) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(Posted(), "r1:262144 s1:262144");
  EXPECT_EQ((*ranks)->sent_bytes(), 0);
}

TEST_F(MpiCommunicatorTest, AnEmptySpanMovesNothing) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  world.messages.clear();
  ASSERT_TRUE((*ranks)->Exchange({{}, {}}, {{}, {}}).ok());
  EXPECT_EQ(Posted(), "");
}

TEST_F(MpiCommunicatorTest, WhatMpiCannotCountGoesInPieces) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  const size_t bytes = (size_t{5} << 29) + 3;  // 2.5 GiB and 3 bytes; nobody touches them
  void* room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const std::span<std::byte> all(static_cast<std::byte*>(room), bytes);
  ASSERT_TRUE((*ranks)->Exchange({{}, all}, {{}, all.first(7)}).ok());
  EXPECT_EQ(Posted(), "r1:7 s1:1073741824 s1:1073741824 s1:536870915");
  EXPECT_EQ(static_cast<const std::byte*>(world.messages[3].bytes) - all.data(), int64_t{1} << 31);
  EXPECT_EQ((*ranks)->sent_bytes(), static_cast<int64_t>(bytes));
  munmap(room, bytes);
}

TEST_F(MpiCommunicatorTest, AMessageOfAnotherLengthIsNamed) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  std::array<std::byte, 8> bytes{};
  world.missing = 2;
  const Status status = (*ranks)->Exchange({{}, bytes}, {{}, bytes});
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 0: rank 1 sent 6 bytes; 8 were expected");
}

constexpr int32_t kUsualTag = 1, kUrgentTag = 2;

// An exchange of a byte with rank 1 on a thread; it is under way when this returns.
std::thread Begin(MpiCommunicator& ranks, Communicator& over, Status& ended) {
  const int64_t sent = ranks.sent_bytes();
  std::thread thread([&over, &ended] {
    std::array<std::byte, 1> out{}, in{};
    ended = over.Exchange({{}, out}, {{}, in});
  });
  while (ranks.sent_bytes() == sent) std::this_thread::yield();
  return thread;
}

TEST_F(MpiCommunicatorTest, AnUrgentExchangePassesTheOneThatIsUnderWay) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  HeldTag() = kUsualTag;
  Status usual(ErrorCode::kInternal, "under way");
  std::thread thread = Begin(**ranks, **ranks, usual);
  std::array<std::byte, 8> bytes{};
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE((*ranks)->urgent()->Exchange({{}, bytes}, {{}, bytes}).ok());
  EXPECT_GT(world.held_tests, 0);  // it is held all the time
  HeldTag() = 0;
  thread.join();
  EXPECT_TRUE(usual.ok()) << usual.message();
  EXPECT_EQ((*ranks)->sent_bytes(), 25);
}

TEST_F(MpiCommunicatorTest, WhatFailsForOneExchangeFailsForBoth) {
  for (const int32_t held : {kUsualTag, kUrgentTag}) {
    world = World();
    const auto ranks = JoinTwo();
    ASSERT_TRUE(ranks.ok());
    HeldTag() = held;
    Communicator *waits = ranks->get(), *fails = (*ranks)->urgent();
    if (held == kUrgentTag) std::swap(waits, fails);
    Status waiting;
    std::thread thread = Begin(**ranks, *waits, waiting);
    std::array<std::byte, 8> bytes{};
    const std::span<const std::byte> sent(bytes);
    world.missing = 2;  // nothing else ends before
    EXPECT_EQ(fails->Exchange({{}, sent}, {{}, bytes}).message(),
              "rank 0: rank 1 sent 6 bytes; 8 were expected");
    thread.join();
    EXPECT_EQ(waiting.message(), "rank 0: rank 1 sent 6 bytes; 8 were expected");
    EXPECT_EQ(waits->Exchange({{}, sent}, {{}, bytes}).code(), ErrorCode::kUnavailable);
  }
}

// What passes comes behind the pieces that MPI has.
TEST_F(MpiCommunicatorTest, WhatLetsOthersPassIsSentInAFewPiecesAtATime) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  std::vector<std::byte> out(static_cast<size_t>(8 * kPieceBytes + 1)), in(3);
  (*ranks)->SetPatient(true);
  world.most_sending = 0;
  ASSERT_TRUE((*ranks)->Exchange({{}, out}, {{}, in}).ok());
  std::string sends;
  for (int i = 0; i < 8; ++i) sends += " s1:131072";
  EXPECT_EQ(Posted(), "r1:3" + sends + " s1:1");
  EXPECT_EQ(world.most_sending, kPiecesAhead);
  // All had ended at one look: there may be more.
  ASSERT_TRUE((*ranks)->Exchange({{}, out}, {{}, in}).ok());
  EXPECT_EQ(world.most_sending, kPiecesAhead + 1);
}

TEST_F(MpiCommunicatorTest, AnErrorOfMpiIsNamed) {
  const auto ranks = JoinTwo();
  ASSERT_TRUE(ranks.ok());
  std::array<std::byte, 8> bytes{};
  world.send_error = 3;
  EXPECT_EQ((*ranks)->Exchange({{}, bytes}, {{}, bytes}).message(),
            "rank 0: Open MPI 4.1.4 cannot send: reason 3");
}

}  // namespace
}  // namespace ridge
