// Greedy, over the curve of live bytes.  At the current peak it picks, among the candidates that
// need not be live there, the one that frees most bytes per second, unless that raises the peak
// elsewhere; then it repeats with the new peak.
//
// A pick changes live ranges.  The value is not live between its last reader before the peak and
// its copy.  The copy's sources must be live at the copy: a kept source lives until then; a source
// that is itself recomputed (the residual blocks of a stage: each the sum of a normalized
// convolution and the block before) is recomputed earlier, and so are its own sources.
//
// With products among the candidates a chain of copies may become the peak itself.  Then the pick
// whose loss lowers the peak most is given up for good.  Once enough is freed, picks that are not
// needed for it are given up, the slowest first, and slow picks are exchanged for faster ones.
// Chains through the sums of residual blocks are one way; to keep all such sums, and to make each
// block again from the one before, is the other.  The better of both is taken.
#include "ridge/plan/search/recompute_pick.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "ridge/plan/memory/live_curve.h"

namespace ridge {
namespace {

constexpr int kKept = -1;
// Of more candidates no single one makes a difference that is worth the time of the search.
constexpr size_t kMostToExchange = 64;

struct Picked {
  std::vector<bool> candidates;
  RecomputeEffect effect;
};

class Picker {
 public:
  Picker(const RecomputeFacts& facts, const std::vector<RematCandidate>& candidates, size_t values)
      : facts_(facts),
        candidates_(candidates),
        kept_curve_(std::max(1, facts.places())),
        kept_last_(values, -1),
        curve_(kept_curve_),
        number_(values, -1),
        refused_(candidates.size(), false),
        given_up_(candidates.size(), false),
        readers_(candidates.size()) {
    for (size_t v = 0; v < values; ++v) {
      const auto id = static_cast<ValueId>(v);
      kept_last_[v] = facts.last(id);
      if (facts.first(id) >= 0 && facts.IsScratch(id))
        kept_curve_.Add(facts.first(id), facts.last(id), facts.Bytes(id));
    }
    TakeAll({});
    for (size_t c = 0; c < candidates.size(); ++c)
      number_[static_cast<size_t>(candidates[c].value)] = static_cast<int>(c);
    for (size_t c = 0; c < candidates.size(); ++c) {
      for (ValueId source : candidates[c].sources) {
        if (const int s = Number(source); s >= 0) readers_[static_cast<size_t>(s)].push_back(c);
      }
    }
    SortByRate();
  }

  // Keeps the values that join others: sums of residual blocks, concatenations.
  void KeepJoins() {
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const std::vector<ValueId>& sources = candidates_[c].sources;
      given_up_[c] = std::count_if(sources.begin(), sources.end(),
                                   [this](ValueId id) { return Number(id) >= 0; }) > 1;
    }
    refused_ = given_up_;
  }

  Picked Run(const RecomputeLimits& limits) {
    const int64_t kept_bytes = kept_curve_.peak_bytes();
    while (static_cast<int64_t>(taken_.size()) < limits.most_values &&
           kept_bytes - curve_.peak_bytes() < limits.enough_bytes) {
      const int best = BestAt(curve_.peak_step());
      if (best < 0 || Rate(static_cast<size_t>(best)) < limits.least_bytes_per_s) {
        if (!limits.expensive || !GiveUpBest()) break;
      } else if (TryTake(static_cast<size_t>(best))) {
        taken_.push_back(static_cast<size_t>(best));
      }
    }
    if (limits.expensive) {
      const int64_t most_bytes = std::max(curve_.peak_bytes(), kept_bytes - limits.enough_bytes);
      GiveUpNeedless(most_bytes);
      if (candidates_.size() <= kMostToExchange) ExchangeForFaster(most_bytes);
    }
    Picked picked;
    picked.candidates.assign(candidates_.size(), false);
    for (const size_t c : taken_) picked.candidates[c] = true;
    picked.effect = Effect();
    return picked;
  }

  RecomputeEffect EffectOf(const std::vector<bool>& picked) {
    taken_.clear();
    for (size_t c = 0; c < picked.size(); ++c) {
      if (picked[c]) taken_.push_back(c);
    }
    TakeAll(taken_);
    return Effect();
  }

 private:
  struct Move {
    int* what;  // an entry of copied_at_ or last_
    int before;
  };
  struct Change {
    int from, to;
    int64_t bytes;
  };
  struct Demand {
    ValueId root;
    int place;  // where it must be live
  };

  int Number(ValueId id) const { return number_[static_cast<size_t>(id)]; }

  double Rate(size_t c) const {
    const RematCandidate& candidate = candidates_[c];
    return static_cast<double>(facts_.Bytes(candidate.value) - candidate.kept_bytes) /
           candidate.seconds;
  }

  void SortByRate() {
    by_rate_.resize(candidates_.size());
    std::iota(by_rate_.begin(), by_rate_.end(), size_t{0});
    std::stable_sort(by_rate_.begin(), by_rate_.end(),
                     [this](size_t a, size_t b) { return Rate(a) > Rate(b); });
  }

  // The best candidate that a pick would free at `place`; -1 for none.
  int BestAt(int place) const {
    for (const size_t c : by_rate_) {
      const ValueId id = candidates_[c].value;
      const bool gone = facts_.last_early(id) < place && place < facts_.first_late(id);
      if (gone && copied_at_[c] == kKept && !refused_[c]) return static_cast<int>(c);
    }
    return -1;
  }

  RecomputeEffect Effect() const {
    RecomputeEffect effect = {kept_curve_.peak_bytes() - curve_.peak_bytes(), 0};
    for (const size_t c : taken_) effect.seconds += candidates_[c].seconds;
    return effect;
  }

  // Starts again with these picks.
  void TakeAll(const std::vector<size_t>& picks) {
    curve_ = kept_curve_;
    last_ = kept_last_;
    copied_at_.assign(candidates_.size(), kKept);
    for (const size_t c : picks) Take(c);
    moves_.clear();
    changes_.clear();
  }

  std::vector<size_t> TakenWithout(size_t c) const {
    std::vector<size_t> others;
    std::copy_if(taken_.begin(), taken_.end(), std::back_inserter(others),
                 [c](size_t other) { return other != c; });
    return others;
  }

  // Gives up the pick whose loss lowers the peak most; false when none does.
  bool GiveUpBest() {
    int64_t least = curve_.peak_bytes();
    std::optional<size_t> best;
    for (const size_t c : taken_) {
      TakeAll(TakenWithout(c));
      if (curve_.peak_bytes() >= least) continue;
      least = curve_.peak_bytes();
      best = c;
    }
    if (best) {
      given_up_[*best] = true;
      taken_ = TakenWithout(*best);
      refused_ = given_up_;
    }
    TakeAll(taken_);
    return best.has_value();
  }

  void GiveUpNeedless(int64_t most_bytes) {
    std::vector<size_t> slowest = taken_;
    std::stable_sort(slowest.begin(), slowest.end(), [this](size_t a, size_t b) {
      return candidates_[a].seconds > candidates_[b].seconds;
    });
    for (const size_t c : slowest) {
      const std::vector<size_t> others = TakenWithout(c);
      TakeAll(others);
      if (curve_.peak_bytes() <= most_bytes) taken_ = others;
    }
    TakeAll(taken_);
  }

  // Takes a faster candidate in place of a pick while the peak stays within `most_bytes`.
  void ExchangeForFaster(int64_t most_bytes) {
    for (bool exchanged = true; exchanged;) {
      exchanged = false;
      for (size_t c = 0; c < candidates_.size() && !exchanged; ++c)
        exchanged = Exchange(c, most_bytes);
    }
    TakeAll(taken_);
  }

  // Takes `c` in place of the slowest pick that it can stand for.
  bool Exchange(size_t c, int64_t most_bytes) {
    if (std::find(taken_.begin(), taken_.end(), c) != taken_.end()) return false;
    std::optional<std::vector<size_t>> best;
    double slowest_s = candidates_[c].seconds;
    for (const size_t pick : taken_) {
      if (candidates_[pick].seconds <= slowest_s) continue;
      std::vector<size_t> others = TakenWithout(pick);
      others.push_back(c);
      TakeAll(others);
      if (curve_.peak_bytes() > most_bytes) continue;
      slowest_s = candidates_[pick].seconds;
      best = std::move(others);
    }
    if (best) taken_ = *std::move(best);
    return best.has_value();
  }

  bool TryTake(size_t c) {
    const int64_t before = curve_.peak_bytes();
    const int place = curve_.peak_step();
    Take(c);
    const bool same_place = curve_.peak_bytes() == before && curve_.peak_step() == place;
    if (curve_.peak_bytes() <= before && !same_place) {
      moves_.clear();
      changes_.clear();
      return true;
    }
    refused_[c] = true;
    Undo();
    return false;
  }

  void Take(size_t c) {
    const ValueId id = candidates_[c].value;
    int at = facts_.first_late(id);
    for (const size_t reader : readers_[c]) {
      if (copied_at_[reader] != kKept) at = std::min(at, copied_at_[reader]);
    }
    Set(copied_at_[c], at);
    AddToCurve(facts_.last_early(id) + 1, at - 1, -facts_.Bytes(id));
    std::vector<Demand> demands;
    AddDemands(c, at, demands);
    while (!demands.empty()) {
      const Demand demand = demands.back();
      demands.pop_back();
      Meet(demand, demands);
    }
  }

  void AddDemands(size_t c, int place, std::vector<Demand>& demands) const {
    for (ValueId source : candidates_[c].sources) {
      if (facts_.IsScratch(source)) demands.push_back({source, place});
    }
  }

  void Meet(const Demand& demand, std::vector<Demand>& demands) {
    const int64_t bytes = facts_.Bytes(demand.root);
    int& last = last_[static_cast<size_t>(demand.root)];
    AddToCurve(last + 1, demand.place, bytes);
    if (last < demand.place) Set(last, demand.place);
    const int number = Number(demand.root);
    if (number < 0) return;
    int& copied_at = copied_at_[static_cast<size_t>(number)];
    if (copied_at == kKept || copied_at <= demand.place) return;
    AddToCurve(demand.place, copied_at - 1, bytes);
    Set(copied_at, demand.place);
    AddDemands(static_cast<size_t>(number), demand.place, demands);
  }

  void Set(int& what, int to) {
    moves_.push_back({&what, what});
    what = to;
  }

  void AddToCurve(int from, int to, int64_t bytes) {
    if (from > to) return;
    curve_.Add(from, to, bytes);
    changes_.push_back({from, to, bytes});
  }

  void Undo() {
    for (; !moves_.empty(); moves_.pop_back()) *moves_.back().what = moves_.back().before;
    for (; !changes_.empty(); changes_.pop_back())
      curve_.Add(changes_.back().from, changes_.back().to, -changes_.back().bytes);
  }

  const RecomputeFacts& facts_;
  const std::vector<RematCandidate>& candidates_;
  LiveCurve kept_curve_;        // while nothing is recomputed
  std::vector<int> kept_last_;  // as last_
  LiveCurve curve_;
  std::vector<size_t> taken_;                 // the picks, in their order
  std::vector<int> number_;                   // by value: index of its candidate, or -1
  std::vector<int> last_;                     // by root: the last place where it is read
  std::vector<int> copied_at_;                // by candidate: the place before which, or kKept
  std::vector<bool> refused_, given_up_;      // by candidate
  std::vector<std::vector<size_t>> readers_;  // by candidate: those that have it as a source
  std::vector<size_t> by_rate_;
  std::vector<Move> moves_;  // of the current pick, for Undo
  std::vector<Change> changes_;
};

}  // namespace

std::vector<bool> PickRecomputed(const RecomputeFacts& facts,
                                 const std::vector<RematCandidate>& candidates,
                                 const RecomputeLimits& limits) {
  Picker chains(facts, candidates, facts.values());
  Picked best = chains.Run(limits);
  if (!limits.expensive) return best.candidates;
  Picker blocks(facts, candidates, facts.values());
  blocks.KeepJoins();
  const Picked other = blocks.Run(limits);
  const auto freed = [&](const Picked& p) {
    return std::min(p.effect.freed_bytes, limits.enough_bytes);
  };
  const bool better = freed(other) != freed(best) ? freed(other) > freed(best)
                                                  : other.effect.seconds < best.effect.seconds;
  return better ? other.candidates : best.candidates;
}

RecomputeEffect EffectOf(const RecomputeFacts& facts, const std::vector<RematCandidate>& candidates,
                         const std::vector<bool>& picked) {
  return Picker(facts, candidates, facts.values()).EffectOf(picked);
}

}  // namespace ridge
