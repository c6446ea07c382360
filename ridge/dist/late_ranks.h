// LateRanks: which rank keeps this one waiting, judged by the lines of the board.
//
// Late is a rank that has stopped, or that computes a step ten times as long as planned, and is not
// merely starved of a core; never one that works on something whose length nobody planned
// (docs/design/0040).  Pure but for its memory
// of earlier looks; time counts only while this process itself runs, so that a machine which slept
// blames nobody.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// A line of the board at one moment.
struct RankLine {
  uint64_t place = 0;  // as BoardLine; 0: before its first exchange
  uint64_t beats = 0;  // 0: not seen
  RankDoing doing;
  double worked_s = 0;  // of its first thread on a core
  int64_t process = 0;
  bool seen() const { return beats > 0; }
  bool inside() const { return place % 2 == 1; }
  uint64_t collective() const { return (place + 1) / 2; }
};

struct WaitingFor {
  std::string text;   // "waited 5.1 s in ...; rank 1 is late: ..."
  bool ends = false;  // the job: else it is only told
};

class LateRanks {
 public:
  // A rank is given `limit_s` seconds at least.  `elsewhere`: by rank the name of its machine, ""
  // of this one's; empty where all are here.
  LateRanks(int own, int ranks, double limit_s, std::vector<std::string> elsewhere = {});

  // The verdict of this moment, `elapsed_s` after the last one; nullopt when all is well, and
  // between two notes.  `name`: of the exchange that this rank is in, which moves `bytes`.
  std::optional<WaitingFor> Look(const std::vector<RankLine>& lines, double elapsed_s,
                                 const char* name, int64_t bytes);

 private:
  struct Seen {
    RankLine line;
    double silent_s = 0;  // without a beat
    double same_s = 0;    // in one place, doing one thing
    double worked_s = 0;  // of that on a core
  };
  void Note(const std::vector<RankLine>& lines, double elapsed_s);
  std::optional<std::string> Silent() const;
  std::optional<std::string> SlowStep() const;
  std::optional<std::string> Transport(int64_t bytes) const;
  std::optional<std::string> WhomToWaitFor();
  std::string Late(size_t rank) const;
  std::string ElsewhereOf(size_t rank) const { return elsewhere_.empty() ? "" : elsewhere_[rank]; }
  bool IsTooSlow(const Seen& seen) const;

  const size_t own_;
  const double limit_s_;
  const std::vector<std::string> elsewhere_;
  std::vector<Seen> seen_;  // by rank
  double next_note_s_;
};

// "computes a step", "writes a checkpoint".
std::string WorkText(RankWork work);

}  // namespace ridge
