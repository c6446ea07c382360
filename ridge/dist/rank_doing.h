// What ranks say of themselves while they exchange and between it (Communicator::Name, Tell).
#pragma once
#include <string>

#include "ridge/dist/communicator.h"

namespace ridge {

// The same text, kept until the process ends.
const char* KeptName(const std::string& name);

// The exchanges of a scope have this name.
class NamedExchanges {
 public:
  NamedExchanges(Communicator& ranks, const char* name) : ranks_(ranks) { ranks_.Name(name); }
  ~NamedExchanges() { ranks_.Name(nullptr); }
  NamedExchanges(const NamedExchanges&) = delete;
  NamedExchanges& operator=(const NamedExchanges&) = delete;

 private:
  Communicator& ranks_;
};

// In a scope the rank does this; behind it, it is between two steps.
class DoingScope {
 public:
  // `ranks`: nullptr for a process that is alone.
  DoingScope(Communicator* ranks, const RankDoing& doing) : ranks_(ranks), step_(doing.step) {
    if (ranks_ != nullptr) ranks_->Tell(doing);
  }
  ~DoingScope() {
    if (ranks_ != nullptr) ranks_->Tell({RankWork::kBetweenSteps, step_});
  }
  DoingScope(const DoingScope&) = delete;
  DoingScope& operator=(const DoingScope&) = delete;

 private:
  Communicator* const ranks_;
  const int64_t step_;
};

}  // namespace ridge
