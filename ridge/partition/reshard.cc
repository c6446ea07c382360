#include "ridge/partition/reshard.h"

#include <algorithm>

namespace ridge {
namespace {

class Route {
 public:
  Route(const Dims& dims, const Split& have, const Split& want, const Mesh& mesh)
      : dims_(dims), want_(want), mesh_(mesh), now_(have) {}

  std::vector<Move> Run() {
    CutLocally();
    const Split start = now_;
    for (const PendingAxis& p : start.pending)
      if (want_.PendingBy(p.axis) == nullptr) Resolve(p);
    for (const Cut& cut : start.cuts) {
      const Cut* wanted = want_.CutBy(cut.axis);
      if (wanted == nullptr || *wanted != cut) Leave(cut);
    }
    CutLocally();
    RIDGE_CHECK(now_ == want_, "a value can't get from one split to another");
    return std::move(moves_);
  }

 private:
  void Take(Move move, Split after) {
    move.before = now_;
    move.after = after;
    now_ = std::move(after);
    moves_.push_back(std::move(move));
  }

  // The wanted cuts of axes that are free.
  void CutLocally() {
    for (const Cut& cut : want_.cuts) {
      if (!CanCut(dims_, now_, cut, mesh_)) continue;
      Split after = now_;
      after.Add(cut);
      Take({.kind = Move::Kind::kLocalPart, .axis = cut.axis, .to = cut}, std::move(after));
    }
  }

  void Resolve(const PendingAxis& p) {
    Move move{.kind = Move::Kind::kAllReduce, .axis = p.axis, .over = p.over};
    Split after = now_;
    after.Remove(p.axis);
    const Cut* wanted = want_.CutBy(p.axis);
    if (wanted != nullptr && CanCut(dims_, after, *wanted, mesh_)) {
      move.kind = Move::Kind::kReduceScatter;
      move.to = *wanted;
      after.Add(*wanted);
    }
    Take(move, std::move(after));
  }

  void Leave(const Cut& cut) {
    Move move{.kind = Move::Kind::kAllGather, .axis = cut.axis, .from = cut};
    Split after = now_;
    after.Remove(cut.axis);
    const Cut* wanted = want_.CutBy(cut.axis);
    if (wanted != nullptr && wanted->dim != cut.dim && CanCut(dims_, after, *wanted, mesh_)) {
      move.kind = Move::Kind::kAllToAll;
      move.to = *wanted;
      after.Add(*wanted);
    }
    Take(move, std::move(after));
  }

  const Dims& dims_;
  const Split& want_;
  const Mesh& mesh_;
  Split now_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> MovesBetween(const Dims& dims, const Split& have, const Split& want,
                               const Mesh& mesh) {
  return Route(dims, have, want, mesh).Run();
}

}  // namespace ridge
