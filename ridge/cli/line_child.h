// LineChild: another program that answers lines of its input with lines of its output.
//
// It ends with the object: killed where it still runs.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

class LineChild {
 public:
  LineChild() = default;
  ~LineChild() { End(); }
  LineChild(const LineChild&) = delete;
  LineChild& operator=(const LineChild&) = delete;

  // Starts words[0], a path, with the others as its arguments.  Fails with kUnavailable.
  Status Start(const std::vector<std::string>& words);

  // REQUIRES: Start() was good.  Fails with kUnavailable where the child has gone.
  Status Write(const std::string& line);
  // Its next line, without the end.  Fails with kUnavailable after so many seconds, and where it
  // ended before: then the message has the last line of its errors, or how it ended.
  Result<std::string> Read(double seconds);

 private:
  void End();
  Status Ended();  // how it ended

  pid_t pid_ = -1;
  int wire_ = -1;    // its input and output
  int errors_ = -1;  // what it writes to its stderr: a file in memory
  std::string unread_;
};

}  // namespace ridge::cli
