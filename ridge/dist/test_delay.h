// TestDelay: a rank that is late on purpose, so that tests can see what the others do.
//
// RIDGE_TEST_DELAY=RANK:MS[:FREE[:NAME]] keeps that rank busy for so long before each exchange, or
// before those of one name (Communicator::Name), but for the first FREE of them.
#pragma once
#include <string>

#include "ridge/core/status.h"

namespace ridge {

class TestDelay {
 public:
  TestDelay() = default;
  // None where the variable is not set or means another rank.  Fails with kInvalidArgument.
  static Result<TestDelay> FromEnvironment(int rank);

  void Name(const char* collective);
  void Wait();

 private:
  double seconds_ = 0;
  int64_t free_ = 0;     // exchanges that are still undisturbed
  std::string name_;     // "": all
  bool applies_ = true;  // to the exchanges that are named now
};

}  // namespace ridge
