#include "ridge/train/loop/stop_signal.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

struct sigaction ActionOf(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action;
}

stack_t StackOfHandlers() {
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  return stack;
}

TEST(StopSignalTest, TheHandlerTouchesNoStackOfAKernel) {
  const stack_t before = StackOfHandlers();
  {
    StopSignal signals;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
      EXPECT_NE(ActionOf(signal).sa_flags & SA_ONSTACK, 0) << signal;
    const stack_t during = StackOfHandlers();
    EXPECT_EQ(during.ss_flags & SS_DISABLE, 0);
    EXPECT_GE(during.ss_size, 64U << 10);
    EXPECT_NE(during.ss_sp, before.ss_sp);
  }
  EXPECT_EQ(StackOfHandlers().ss_sp, before.ss_sp);
  EXPECT_EQ(StackOfHandlers().ss_flags, before.ss_flags);
}

TEST(StopSignalTest, ASignalSetsTheFlagUntilTheLastIsGone) {
  {
    StopSignal first;
    StopSignal second;
    first.Ask();
    raise(SIGUSR1);
    EXPECT_TRUE(StopSignal::Requested());
  }
  EXPECT_FALSE(StopSignal::Requested());
}

}  // namespace
}  // namespace ridge
