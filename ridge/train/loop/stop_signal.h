// StopSignal: signals ask a run to stop where nothing is lost.
//
// SIGTERM and SIGINT; SIGHUP, when the terminal goes away; SIGUSR1, SIGUSR2 and SIGXCPU, by which
// batch systems tell that the time is nearly up.  One that is ignored at the start stays ignored
// (nohup).  A second SIGINT ends the process at once with exit code 130.
//
// While data load and the plan is made there is nothing to save, and no place that could ask: until
// Ask() a signal ends the process at once.
//
// One at a time in a process: the handlers that were there come back when it goes.
#pragma once
#include <array>
#include <csignal>

namespace ridge {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The run has a checkpoint: from now on what ends at once ends with exit code 75, go on with
  // --resume, rather than with 128 and the signal's number.
  void HasCheckpoint();
  // From now on signals only set a flag, for Requested().
  void Ask();

  // Whether a signal came.
  static bool Requested();

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace ridge
