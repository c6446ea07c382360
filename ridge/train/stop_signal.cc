#include "ridge/train/stop_signal.h"

#include <unistd.h>

#include <atomic>

namespace ridge {
namespace {

// Lock-free, so a handler may touch them.
std::atomic<bool> requested{false};
std::atomic<int> interrupts{0};

void Handle(int signal) {
  if (signal == SIGINT && interrupts.fetch_add(1) > 0) _exit(130);
  requested.store(true);
}

}  // namespace

StopSignal::StopSignal() {
  requested.store(false);
  interrupts.store(0);
  struct sigaction action {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // file writes go on
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGINT, &action, &old_int_);
}

StopSignal::~StopSignal() {
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGINT, &old_int_, nullptr);
}

bool StopSignal::Requested() { return requested.load(); }

}  // namespace ridge
