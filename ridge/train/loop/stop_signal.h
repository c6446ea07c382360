// StopSignal: signals request a run to stop at a point where nothing is lost.
//
// SIGTERM and SIGINT; SIGHUP, when the terminal closes; SIGUSR1, SIGUSR2 and SIGXCPU, which batch
// systems send shortly before a time limit.  An ignored signal stays ignored (nohup).  A second
// SIGINT ends the process immediately with exit code 130.
//
// Until Ask() a signal ends the process immediately: while data load and the plan is made, nothing
// needs saving and nothing calls Requested().
//
// The handler runs on a stack of its own: oneDNN's f32 products let rsp point to the heap, where a
// handler's frame overwrites what lies before it
// (https://github.com/uxlfoundation/oneDNN/issues/4845). The kernel prefers the main thread for a
// signal to the process, so that is where to construct it.
//
// Several may live at a time, one a rank where ranks are threads of one process; the last one
// restores the previous handlers.
#pragma once
#include <csignal>
#include <memory>

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

 private:
  std::unique_ptr<char[]> stack_;  // of the handler, in the thread that constructed this
  stack_t stack_before_{};
};

}  // namespace ridge
