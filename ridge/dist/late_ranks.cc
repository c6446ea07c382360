#include "ridge/dist/late_ranks.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

constexpr double kTimesPlanned = 10;
constexpr double kShareOfCore = 0.3;        // three times a step's plan, then
constexpr double kSlowestBytesPerS = 11e6;  // a tenth of 1 Gbit/s
constexpr double kMostBetweenLooks_s = 1;   // more: this process itself did not run
constexpr double kFirstNote_s = 60;
constexpr double kUnseen_s = 600;  // nobody knows what ranks of other machines do

}  // namespace

std::string WorkText(RankWork work) {
  switch (work) {
    case RankWork::kStart:
      return "loads data and plans";
    case RankWork::kStep:
      return "computes a step";
    case RankWork::kBetweenSteps:
      return "reads its next batch, or reports";
    case RankWork::kCheckpoint:
      return "writes a checkpoint";
    case RankWork::kEvaluation:
      return "evaluates";
  }
  return "works";
}

LateRanks::LateRanks(int own, int ranks, double limit_s, std::vector<std::string> elsewhere)
    : own_(static_cast<size_t>(own)),
      limit_s_(limit_s),
      elsewhere_(std::move(elsewhere)),
      seen_(static_cast<size_t>(ranks)),
      next_note_s_(kFirstNote_s) {}

void LateRanks::Note(const std::vector<RankLine>& lines, double elapsed_s) {
  const double passed_s = std::min(elapsed_s, kMostBetweenLooks_s);
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    Seen& seen = seen_[rank];
    const RankLine& line = lines[rank];
    seen.silent_s = line.beats == seen.line.beats ? seen.silent_s + passed_s : 0;
    const bool same = line.place == seen.line.place && line.doing.work == seen.line.doing.work &&
                      line.doing.step == seen.line.doing.step;
    seen.same_s = same ? seen.same_s + passed_s : 0;
    seen.worked_s = same ? seen.worked_s + line.worked_s - seen.line.worked_s : 0;
    seen.line = line;
  }
}

// A step that gets no core is slow and not lost: it has ten times as long again.
bool LateRanks::IsTooSlow(const Seen& seen) const {
  const double allowed_s = std::max(limit_s_, kTimesPlanned * seen.line.doing.planned_s);
  if (seen.same_s < allowed_s) return false;
  return seen.worked_s >= kShareOfCore * allowed_s || seen.same_s >= kTimesPlanned * allowed_s;
}

std::string LateRanks::Late(size_t rank) const {
  const std::string machine = ElsewhereOf(rank);
  return fmt::format("rank {} is late: {}at collective {}, its process {}{}", rank,
                     machine.empty() ? "" : "last seen ", seen_[rank].line.collective(),
                     seen_[rank].line.process, machine.empty() ? "" : " on " + machine);
}

// A rank whose second thread does not run either.
std::optional<std::string> LateRanks::Silent() const {
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    const Seen& seen = seen_[rank];
    if (rank == own_ || !seen.line.seen() || seen.silent_s < limit_s_) continue;
    return fmt::format("{} does not run{} (no heartbeat for {:.1f} s)", Late(rank),
                       ElsewhereOf(rank).empty() ? "" : ", or that machine is cut off",
                       seen.silent_s);
  }
  return std::nullopt;
}

// The rank that is furthest behind, within a step.
std::optional<std::string> LateRanks::SlowStep() const {
  std::optional<size_t> last;
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    const RankLine& line = seen_[rank].line;
    const bool behind = line.seen() && line.place < seen_[own_].line.place && !line.inside();
    if (!behind || line.doing.work != RankWork::kStep || line.doing.planned_s <= 0) continue;
    if (!IsTooSlow(seen_[rank])) continue;
    if (!last || line.place < seen_[*last].line.place) last = rank;
  }
  if (!last) return std::nullopt;
  return fmt::format(
      "{} runs, but has not reached the collective (it computes step {} for {:.1f} s; planned "
      "{:.3g} "
      "s)",
      Late(*last), seen_[*last].line.doing.step + 1, seen_[*last].same_s,
      seen_[*last].line.doing.planned_s);
}

// Nobody is behind, and bytes do not arrive.
std::optional<std::string> LateRanks::Transport(int64_t bytes) const {
  const uint64_t own = seen_[own_].line.place;
  const double allowed_s = std::max(limit_s_, static_cast<double>(bytes) / kSlowestBytesPerS);
  size_t inside = 0, unseen = 0;
  for (const Seen& seen : seen_) {
    if (!seen.line.seen()) {
      ++unseen;
      continue;
    }
    if (seen.line.place < own) return std::nullopt;
    if (seen.line.place == own) ++inside;
  }
  if (seen_[own_].same_s < (unseen > 0 ? std::max(allowed_s, kUnseen_s) : allowed_s))
    return std::nullopt;
  if (unseen > 0) {
    return fmt::format(
        "no rank of this machine is late: {} on other machines are, or the transport does not "
        "progress",
        unseen);
  }
  return fmt::format("all {} ranks {}: the transport does not progress", seen_.size(),
                     inside == seen_.size() ? "are inside it" : "have come to it");
}

// Of work that has no planned length, after a minute, two, four...
std::optional<std::string> LateRanks::WhomToWaitFor() {
  if (seen_[own_].same_s < next_note_s_) return std::nullopt;
  const auto place_of = [](const Seen& one) {
    return one.line.seen() ? one.line.place : UINT64_MAX;
  };
  const auto last = std::min_element(seen_.begin(), seen_.end(), [&](const Seen& a, const Seen& b) {
    return place_of(a) < place_of(b);
  });
  if (last->line.place >= seen_[own_].line.place) return std::nullopt;
  next_note_s_ *= 2;
  return fmt::format("it waits for rank {}, which {}", last - seen_.begin(),
                     WorkText(last->line.doing.work));
}

std::optional<WaitingFor> LateRanks::Look(const std::vector<RankLine>& lines, double elapsed_s,
                                          const char* name, int64_t bytes) {
  Note(lines, elapsed_s);
  const Seen& own = seen_[own_];
  if (own.same_s == 0) next_note_s_ = kFirstNote_s;
  if (!own.line.inside() || own.same_s < limit_s_) return std::nullopt;
  const auto say = [&](const std::string& what, bool ends) {
    return WaitingFor{fmt::format("waited {:.1f} s in {} (step {}, collective {}); {}", own.same_s,
                                  name, own.line.doing.step + 1, own.line.collective(), what),
                      ends};
  };
  if (const auto text = Silent()) return say(*text, true);
  if (const auto text = SlowStep()) return say(*text, true);
  if (const auto text = Transport(bytes)) return say(*text, true);
  if (const auto text = WhomToWaitFor()) return say(*text, false);
  return std::nullopt;
}

}  // namespace ridge
