// Jobs beside the thread that posts them: in order, each with its own result.
#include "ridge/dist/exchange_thread.h"

#include <gtest/gtest.h>

#include <atomic>

namespace ridge {
namespace {

struct Note : ExchangeThread::Job {
  Note(std::vector<int>& notes, int number) : notes(notes), number(number) {}
  Status Run() override {
    notes.push_back(number);
    return number % 2 == 0 ? Status() : Status(ErrorCode::kFailed, "odd");
  }
  std::vector<int>& notes;
  const int number;
};

TEST(ExchangeThread, JobsRunInTheOrderOfTheirPosts) {
  std::vector<int> notes;
  Note a(notes, 0), b(notes, 1), c(notes, 2);
  ExchangeThread thread(3);
  for (int round = 0; round < 100; ++round) {
    notes.clear();
    for (Note* note : {&a, &b, &c}) thread.Post(*note);
    EXPECT_TRUE(thread.Wait(c).ok());
    EXPECT_EQ(thread.Wait(b).message(), "odd");
    EXPECT_TRUE(thread.Wait(a).ok());
    EXPECT_EQ(notes, (std::vector<int>{0, 1, 2}));
  }
}

TEST(ExchangeThread, AWaitForWhatWasNotPostedReturns) {
  std::vector<int> notes;
  Note a(notes, 1);
  ExchangeThread thread(1);
  EXPECT_TRUE(thread.Wait(a).ok());
  thread.Post(a);
  thread.Drain();
  EXPECT_FALSE(thread.Wait(a).ok());
  EXPECT_TRUE(thread.Wait(a).ok());  // the result was taken
}

TEST(ExchangeThread, ItsEndWaitsForWhatIsPosted) {
  std::vector<int> notes;
  Note a(notes, 0), b(notes, 2);
  {
    ExchangeThread thread(2);
    thread.Post(a);
    thread.Post(b);
  }
  EXPECT_EQ(notes, (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace ridge
