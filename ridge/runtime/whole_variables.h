// WholeVariables: the variables of a job whose ranks have parts of them, or some of them, put
// together piece by piece.
//
//   rank 0                                 the others
//   wholes.Read(index, take);              wholes.Serve();
//   wholes.Read(other, take);
//   wholes.Release();                      // Serve() returns
//
// No rank ever holds a whole variable.  Every element comes from one rank, the first that has it.
// Buffers are of 1 MiB each and made once.  Not thread-safe; between steps only.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "ridge/dist/communicator.h"
#include "ridge/partition/part_runs.h"
#include "ridge/runtime/executor.h"

namespace ridge {

class WholeVariables {
 public:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;
  static constexpr int64_t kMostBytes = 2 * kPieceBytes;  // of the memory that an object takes

  virtual ~WholeVariables() = default;

  // Rank 0.
  virtual bool leads() const = 0;

  // Sets this rank's parts to those of what the variables start with; call it behind
  // Transfers::Initialize.  Fails as that does.
  virtual Status Initialize(uint64_t seed) = 0;

  // Row-major bytes, and where they begin in the variable.
  using Take = std::function<Status(const void* data, int64_t bytes)>;
  using Fill = std::function<Status(int64_t begin, int64_t bytes, void* to)>;
  // Calls take() with the pieces of a whole variable, in order.  After an error of take() the
  // exchange goes on to its end.  REQUIRES: leads().
  virtual Status Read(size_t index, const Take& take) = 0;
  // Takes this rank's part out of pieces that fill() writes.
  virtual Status Write(size_t index, const Fill& fill) = 0;

  // Elements of a whole variable.
  struct Range {
    int64_t begin = 0, end = 0;
  };
  // Calls take() with the pieces of this rank's range, in order, at all ranks at the same time:
  // all of them call this, with equal ranges by rank.  After an error of take() the exchange goes
  // on to its end.
  virtual Status ReadRanges(size_t index, const std::vector<Range>& ranges, const Take& take) = 0;

  // Ranks that do not lead: sends what rank 0 reads until it releases them.
  virtual Status Serve() = 0;
  // Rank 0.
  virtual Status Release() = 0;

 protected:
  // Of each range at most so many elements a round, by round and rank.
  static std::vector<std::vector<Range>> RoundsOf(const std::vector<Range>& ranges, int64_t most);
};

// By index into the program's persistent values.
class MeshVariables final : public WholeVariables {
 public:
  // `communicator`: null for a job of one rank.  Both outlive this.
  // REQUIRES: the executor's program has a place.
  MeshVariables(Executor& executor, Communicator* communicator);

  bool leads() const override { return place_.device == 0; }
  Status Initialize(uint64_t seed) override;
  Status Read(size_t index, const Take& take) override;
  Status Write(size_t index, const Fill& fill) override;
  Status ReadRanges(size_t index, const std::vector<Range>& ranges, const Take& take) override;
  Status Serve() override;
  Status Release() override;

 private:
  struct Variable {
    TensorType type;  // of the whole
    Split split;
    PartRuns own;
    // Of the ranks whose parts make the whole.
    std::vector<std::pair<int, PartRuns>> sources;
  };
  Variable Describe(const PersistentValue& value) const;
  bool IsSource(const Split& split, int64_t device) const;
  template <typename F>
  Status ForEachPiece(const Variable& variable, const F& piece) const;
  Status Tell(int64_t index);
  std::vector<Range> AllToFirst(const Variable& variable) const;
  // Of each rank's range the piece of this round, by rank.
  Status Collect(const Variable& variable, const std::byte* part, const std::vector<Range>& pieces);
  void AskFor(const Variable& variable, Range piece);
  void PutTogether(const Variable& variable, const std::byte* part, Range piece);
  void PutIntoPiece(const Variable& variable, const PartRuns& runs, const std::byte* from,
                    int64_t begin, int64_t end);
  void TakePart(const Variable& variable, const std::byte* piece, int64_t begin, int64_t end,
                std::byte* part) const;

  Executor& executor_;
  Communicator* const communicator_;
  const MeshPlace& place_;
  std::map<size_t, Variable> variables_;  // by index into the program's persistent values
  std::vector<std::byte> piece_;          // of a whole variable
  std::vector<std::byte> received_;       // its elements, rank by rank
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

}  // namespace ridge
