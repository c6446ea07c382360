#include "ridge/train/loop/stop_signal.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

namespace ridge {
namespace {

constexpr int kResumable = 75;  // as cli/exit_codes.h

// Lock-free, so a handler may touch them.
std::atomic<bool> requested{false};
std::atomic<bool> at_once{false};
std::atomic<bool> has_checkpoint{false};
std::atomic<int> interrupts{0};

[[noreturn]] void EndAtOnce(int signal) {
  constexpr std::string_view kNothing = "ridge: stopped before the first step\n";
  constexpr std::string_view kGoOn =
      "ridge: stopped before the first step; the checkpoint is as it was, go on with --resume\n";
  const std::string_view text = has_checkpoint ? kGoOn : kNothing;
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  _exit(has_checkpoint ? kResumable : 128 + signal);
}

void Handle(int signal) {
  if (at_once) EndAtOnce(signal);
  if (signal == SIGINT && interrupts.fetch_add(1) > 0) _exit(130);
  requested.store(true);
}

}  // namespace

StopSignal::StopSignal() {
  requested.store(false);
  at_once.store(true);
  has_checkpoint.store(false);
  interrupts.store(0);
  struct sigaction action {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // interrupted file writes continue
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  requested.store(false);
}

void StopSignal::HasCheckpoint() { has_checkpoint.store(true); }

void StopSignal::Ask() { at_once.store(false); }

bool StopSignal::Requested() { return requested.load(); }

}  // namespace ridge
