// StopSignal: signals request a run to stop at a point where nothing is lost.
//
// SIGTERM and SIGINT; SIGHUP, when the terminal closes; SIGUSR1, SIGUSR2 and SIGXCPU, which batch
// systems send shortly before a time limit.  An ignored signal stays ignored (nohup).  A second
// SIGINT ends the process immediately with exit code 130.
//
// Until Ask() a signal ends the process immediately: while data load and the plan is made, nothing
// needs saving and nothing calls Requested().
//
// Several may live at a time, one a rank where ranks are threads of one process; the last one
// restores the previous handlers.
#pragma once
namespace ridge {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The run has a checkpoint: an immediate end then has exit code 75 (continue with --resume), not
  // 128 plus the signal's number.
  void HasCheckpoint();
  // From this call on signals only set a flag, for Requested().
  void Ask();

  // Whether a signal has arrived.
  static bool Requested();
};

}  // namespace ridge
