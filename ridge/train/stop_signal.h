// StopSignal: SIGTERM and SIGINT ask the training loop to stop after the current step.
//
// The handler only sets a flag; a second SIGINT ends the process at once with exit code 130.
// One at a time in a process: the handlers that were there come back when it goes.
#pragma once
#include <csignal>

namespace ridge {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Whether a signal came.
  static bool Requested();

 private:
  struct sigaction old_term_ {};
  struct sigaction old_int_ {};
};

}  // namespace ridge
