#include "ridge/dist/local.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "ridge/dist/agreement.h"
#include "ridge/dist/gather.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

TEST(LocalCommunicatorTest, EveryRankGetsWhatTheOthersSendIt) {
  RunRanks(
      4,
      [](Communicator& communicator) {
        const int own = communicator.rank();
        std::array<int, 4> out{}, in{};
        std::vector<std::span<const std::byte>> sends;
        std::vector<std::span<std::byte>> receives;
        for (size_t other = 0; other < 4; ++other) {
          out[other] = 10 * own + static_cast<int>(other);
          sends.push_back(std::as_bytes(std::span(&out[other], 1)));
          receives.push_back(std::as_writable_bytes(std::span(&in[other], 1)));
        }
        for (int round = 0; round < 20; ++round) {
          in = {};
          ASSERT_TRUE(communicator.Exchange(sends, receives).ok());
          for (int other = 0; other < 4; ++other)
            EXPECT_EQ(in[static_cast<size_t>(other)], other == own ? 0 : 10 * other + own);
        }
        EXPECT_EQ(communicator.sent_bytes(), 20 * 3 * 4);
      },
      /*most_delay_us=*/200);
}

TEST(LocalCommunicatorTest, EveryRankGetsTheWholeTextOfTheFirst) {
  RunRanks(3, [](Communicator& communicator) {
    for (const size_t bytes : {size_t{0}, size_t{5}, size_t{100'000}}) {
      const bool leads = communicator.rank() == 0;
      const Result<std::string> text =
          TextOfFirst(communicator, leads ? std::string(bytes, 'x') : "mine");
      ASSERT_TRUE(text.ok()) << text.status().message();
      EXPECT_EQ(*text, std::string(bytes, 'x'));
    }
  });
}

// Rank 1 begins when rank 0 has begun and works.
TEST(LocalCommunicatorTest, ARankWorksBetweenTheHalvesOfAnExchange) {
  std::atomic<bool> works = false;
  RunRanks(2, [&](Communicator& ranks) {
    const auto own = static_cast<size_t>(ranks.rank()), other = 1 - own;
    std::array<int, 2> in{-1, -1};
    const int out = 5 + ranks.rank();
    std::vector<std::span<const std::byte>> sends(2);
    std::vector<std::span<std::byte>> receives(2);
    sends[other] = std::as_bytes(std::span(&out, 1));
    receives[other] = std::as_writable_bytes(std::span(&in[other], 1));
    while (ranks.rank() == 1 && !works) std::this_thread::yield();
    ASSERT_TRUE(ranks.Begin(sends, receives).ok());
    works = true;
    ASSERT_TRUE(ranks.Finish().ok());
    EXPECT_EQ(in[other], 5 + static_cast<int>(other));
    EXPECT_EQ(ranks.sent_bytes(), 4);
  });
}

TEST(LocalCommunicatorTest, ARankThatLeftEndsTheExchangesOfTheOthers) {
  RunRanks(3, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    Agreement agreement(&communicator);
    const Status status = agreement.Any(false).status();
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(status.message().substr(0, 5), "rank ");
  });
}

TEST(LocalCommunicatorTest, OtherBytesThanExpectedAreAnError) {
  RunRanks(2, [](Communicator& communicator) {
    std::array<std::byte, 8> bytes{};
    const std::span<std::byte> all(bytes);
    const auto own = static_cast<size_t>(communicator.rank());
    const Status status =
        communicator.Exchange(std::vector<std::span<const std::byte>>(2, all.first(4 * own)),
                              std::vector<std::span<std::byte>>(2, all.first(8)));
    EXPECT_EQ(status.message(), own == 0 ? "rank 1 sends 4 bytes to rank 0, which expects 8"
                                         : "rank 0 sends 0 bytes to rank 1, which expects 8");
  });
}

// Sends own + 1 to all ranks; whether everybody's number came.
Result<bool> ExchangeNumbers(Communicator& over) {
  const auto size = static_cast<size_t>(over.size());
  const int own = over.rank() + 1;
  std::vector<int> in(size);
  std::vector<std::span<std::byte>> receives;
  for (int& one : in) receives.push_back(std::as_writable_bytes(std::span(&one, 1)));
  RIDGE_RETURN_IF_ERROR(
      over.Exchange(std::vector(size, std::as_bytes(std::span(&own, 1))), receives));
  for (int other = 0; other < over.size(); ++other) {
    if (other != over.rank() && in[static_cast<size_t>(other)] != other + 1) return false;
  }
  return true;
}

// The last rank comes to the usual exchange when the urgent ones have ended.
TEST(LocalCommunicatorTest, UrgentExchangesPassTheOneThatIsUnderWay) {
  RunRanks(
      3,
      [](Communicator& ranks) {
        Result<bool> usual = false;
        const auto exchange = [&] { usual = ExchangeNumbers(ranks); };
        std::thread beside;
        if (ranks.rank() != 2) beside = std::thread(exchange);
        for (int round = 0; round < 20; ++round)
          EXPECT_TRUE(*ExchangeNumbers(*ranks.urgent())) << ranks.rank();
        if (ranks.rank() != 2) {
          beside.join();
        } else {
          exchange();
        }
        EXPECT_TRUE(*usual) << ranks.rank();
        EXPECT_EQ(ranks.sent_bytes(), 21 * 2 * 4);
      },
      /*most_delay_us=*/200);
}

TEST(LocalCommunicatorTest, ARankThatLeftEndsUrgentExchangesAndThoseBesideThem) {
  RunRanks(3, [](Communicator& ranks) {
    if (ranks.rank() == 1) return;
    Status usual;
    std::thread beside([&] { usual = ExchangeNumbers(ranks).status(); });
    EXPECT_EQ(ExchangeNumbers(*ranks.urgent()).status().code(), ErrorCode::kUnavailable);
    beside.join();
    EXPECT_EQ(usual.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(ExchangeNumbers(ranks).status().code(), ErrorCode::kUnavailable);  // and stays so
  });
}

using Part = std::span<const std::byte>;

// What a rank passes to another: one number a message.
Status SendNumber(Communicator& ranks, int to, int channel, const int& number, int64_t waiting) {
  const Part part = std::as_bytes(std::span(&number, 1));
  return ranks.Send(to, channel, {&part, 1}, waiting);
}
Result<int> ReceiveNumber(Communicator& ranks, int from, int channel) {
  int number = -1;
  const std::span<std::byte> part = std::as_writable_bytes(std::span(&number, 1));
  RIDGE_RETURN_IF_ERROR(ranks.Receive(from, channel, {&part, 1}));
  return number;
}

TEST(LocalMessages, ChannelsAreInOrderAndIndependent) {
  RunRanks(2, [](Communicator& ranks) {
    if (ranks.rank() == 0) {
      const std::vector<int> numbers = {1, 2, 3, 4};
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_TRUE(SendNumber(ranks, 1, static_cast<int>(i % 2), numbers[i], 2).ok());
      ASSERT_TRUE(ranks.FinishSends().ok());
      EXPECT_EQ(ranks.sent_bytes(), 16);
    } else {
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 1), 2);
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 1), 4);
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 0), 1);
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 0), 3);
    }
  });
}

TEST(LocalMessages, ASendReturnsWhenFewEnoughWait) {
  RunRanks(2, [](Communicator& ranks) {
    const int numbers[] = {1, 2};
    if (ranks.rank() == 0) {
      ASSERT_TRUE(SendNumber(ranks, 1, 0, numbers[0], 1).ok());  // though nobody receives yet
      ASSERT_TRUE(SendNumber(ranks, 1, 1, numbers[1], 0).ok());
      ASSERT_TRUE(ranks.FinishSends().ok());
    } else {
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 1), 2);
      EXPECT_EQ(*ReceiveNumber(ranks, 0, 0), 1);
    }
  });
}

TEST(LocalMessages, ARankThatHasLeftSendsNothing) {
  RunRanks(2, [](Communicator& ranks) {
    if (ranks.rank() == 0) return;
    EXPECT_EQ(ReceiveNumber(ranks, 0, 0).status().message(), "rank 0 has left the job");
  });
}

TEST(AgreementTest, AnyRankDecidesForAll) {
  RunRanks(3, [](Communicator& communicator) {
    Agreement agreement(&communicator);
    EXPECT_FALSE(*agreement.Any(false));
    EXPECT_TRUE(*agreement.Any(communicator.rank() == 2));
    EXPECT_EQ(agreement.leads(), communicator.rank() == 0);
  });
}

TEST(AgreementTest, WhatDiffersIsNamed) {
  RunRanks(3, [](Communicator& communicator) {
    Agreement agreement(&communicator);
    EXPECT_TRUE(agreement.Same("another plan", "a").ok());
    EXPECT_EQ(agreement.Same("another plan", communicator.rank() == 2 ? "b" : "a").message(),
              "rank 2 has another plan than rank 0");
    const std::vector<double> mine(static_cast<size_t>(communicator.rank()), 0.5);
    EXPECT_EQ(*agreement.All(mine), (std::vector<std::vector<double>>{{}, {0.5}, {0.5, 0.5}}));
  });
}

TEST(AgreementTest, TheFirstFailureIsThatOfAllRanks) {
  RunRanks(3, [](Communicator& communicator) {
    Agreement agreement(&communicator);
    Status mine;
    EXPECT_TRUE(agreement.ShareFailure(mine).ok());
    EXPECT_TRUE(mine.ok());
    const int rank = communicator.rank();
    if (rank > 0) mine = Status(ErrorCode::kUnavailable, rank == 1 ? "disk full" : "late");
    EXPECT_TRUE(agreement.ShareFailure(mine).ok());
    EXPECT_EQ(mine.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(mine.message(), "disk full (rank 1)");
  });
}

TEST(AgreementTest, AJobOfOneRankAgreesWithItself) {
  Agreement alone(nullptr);
  EXPECT_TRUE(*alone.Any(true));
  EXPECT_FALSE(*alone.Any(false));
  EXPECT_TRUE(alone.Same("another plan", "a").ok());
  EXPECT_EQ(*alone.All({7}), std::vector<std::vector<double>>{{7}});
  EXPECT_TRUE(alone.leads());
}

}  // namespace
}  // namespace ridge
