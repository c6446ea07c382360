#include "ridge/train/loop/stop_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <string_view>

namespace ridge {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
constexpr int kResumable = 75;            // as cli/exit_codes.h
constexpr size_t kStackBytes = 64 << 10;  // AMX's registers alone take 11 KiB of a frame

// Lock-free, so a handler may touch them.
std::atomic<bool> requested{false};
std::atomic<bool> at_once{false};
std::atomic<bool> has_checkpoint{false};
std::atomic<int> interrupts{0};

std::mutex installing;  // guards the two below
int installed = 0;
std::array<struct sigaction, kSignals.size()> handlers_before{};

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

void RestoreHandlers() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &handlers_before[i], nullptr);
  requested.store(false);
}

}  // namespace

StopSignal::StopSignal() : stack_(std::make_unique<char[]>(kStackBytes)) {
  const stack_t stack{.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStackBytes};
  sigaltstack(&stack, &stack_before_);
  const std::lock_guard lock(installing);
  if (installed++ > 0) return;
  requested.store(false);
  at_once.store(true);
  has_checkpoint.store(false);
  interrupts.store(0);
  struct sigaction action {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // interrupted file writes continue
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &handlers_before[i]);
    if (handlers_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  {
    const std::lock_guard lock(installing);
    if (--installed == 0) RestoreHandlers();
  }
  sigaltstack(&stack_before_, nullptr);
}

void StopSignal::HasCheckpoint() { has_checkpoint.store(true); }

void StopSignal::Ask() { at_once.store(false); }

bool StopSignal::Requested() { return requested.load(); }

}  // namespace ridge
