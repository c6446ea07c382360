#include "ridge/runtime/whole_variables.h"

#include <algorithm>
#include <cstring>

#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

constexpr int64_t kRelease = -1;

// Elements of a piece; FillInitialPiece wants multiples of its grain.
int64_t PieceElements(DType dtype) { return WholeVariables::kPieceBytes / BytesPerElement(dtype); }

}  // namespace

std::vector<std::vector<WholeVariables::Range>> WholeVariables::RoundsOf(
    const std::vector<Range>& ranges, int64_t most) {
  int64_t longest = 0;
  for (const Range& range : ranges) longest = std::max(longest, range.end - range.begin);
  std::vector<std::vector<Range>> rounds;
  for (int64_t done = 0; done < longest; done += most) {
    std::vector<Range>& pieces = rounds.emplace_back(ranges);
    for (Range& piece : pieces) {
      piece.begin = std::min(piece.begin + done, piece.end);
      piece.end = std::min(piece.begin + most, piece.end);
    }
  }
  return rounds;
}

MeshVariables::MeshVariables(Executor& executor, Communicator* communicator)
    : executor_(executor),
      communicator_(communicator),
      place_(*executor.program().place),
      piece_(static_cast<size_t>(kPieceBytes)),
      received_(static_cast<size_t>(kPieceBytes)) {
  const std::vector<PersistentValue>& values = executor.program().persistent;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].whole) variables_.emplace(i, Describe(values[i]));
  }
  const size_t ranks = communicator == nullptr ? 1 : static_cast<size_t>(communicator->size());
  sends_.resize(ranks);
  receives_.resize(ranks);
}

// Of those that have the same part the first one.
bool MeshVariables::IsSource(const Split& split, int64_t device) const {
  const std::vector<int64_t> coordinates = place_.mesh.CoordinatesOf(device);
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (coordinates[axis] > 0 && split.CutBy(static_cast<int>(axis)) == nullptr) return false;
  }
  return true;
}

MeshVariables::Variable MeshVariables::Describe(const PersistentValue& value) const {
  const auto& [type, init, split] = *value.whole;
  Variable variable = {type, split, PartRuns(type.dims, split, place_), {}};
  for (int64_t device = 0; device < place_.mesh.devices(); ++device) {
    if (!IsSource(split, device)) continue;
    variable.sources.emplace_back(static_cast<int>(device),
                                  PartRuns(type.dims, split, {place_.mesh, device}));
  }
  return variable;
}

// Calls piece(begin, end) for ranges of the whole's elements.
template <typename F>
Status MeshVariables::ForEachPiece(const Variable& variable, const F& piece) const {
  const int64_t elements = variable.type.elements(), most = PieceElements(variable.type.dtype);
  for (int64_t begin = 0; begin < elements; begin += most)
    RIDGE_RETURN_IF_ERROR(piece(begin, std::min(begin + most, elements)));
  return Status();
}

void MeshVariables::TakePart(const Variable& variable, const std::byte* piece, int64_t begin,
                             int64_t end, std::byte* part) const {
  const int64_t size = BytesPerElement(variable.type.dtype);
  variable.own.ForEachWithin(begin, end, [&](int64_t whole, int64_t own, int64_t count) {
    std::memcpy(part + own * size, piece + (whole - begin) * size,
                static_cast<size_t>(count * size));
  });
}

// `from`: the elements of the runs within the piece, side by side.
void MeshVariables::PutIntoPiece(const Variable& variable, const PartRuns& runs,
                                 const std::byte* from, int64_t begin, int64_t end) {
  const int64_t size = BytesPerElement(variable.type.dtype);
  const int64_t first = runs.FirstFrom(begin);
  runs.ForEachWithin(begin, end, [&](int64_t whole, int64_t part, int64_t count) {
    std::memcpy(piece_.data() + (whole - begin) * size, from + (part - first) * size,
                static_cast<size_t>(count * size));
  });
}

Status MeshVariables::Write(size_t index, const Fill& fill) {
  const Variable& variable = variables_.at(index);
  auto* part = static_cast<std::byte*>(executor_.transfers().Edit(index));
  const int64_t size = BytesPerElement(variable.type.dtype);
  RIDGE_RETURN_IF_ERROR(ForEachPiece(variable, [&](int64_t begin, int64_t end) -> Status {
    if (variable.own.CountWithin(begin, end) == 0) return Status();
    RIDGE_RETURN_IF_ERROR(fill(begin * size, (end - begin) * size, piece_.data()));
    TakePart(variable, piece_.data(), begin, end, part);
    return Status();
  }));
  return executor_.transfers().Commit(index);
}

Status MeshVariables::Initialize(uint64_t seed) {
  for (const auto& [index, variable] : variables_) {
    const PersistentValue& value = executor_.program().persistent[index];
    if (value.whole->init.kind == Init::Kind::kZeros) continue;  // the parts are zeros already
    ValueInfo info;
    info.name = value.name;
    info.type = variable.type;
    info.init = value.whole->init;
    const int64_t size = BytesPerElement(variable.type.dtype);
    RIDGE_RETURN_IF_ERROR(Write(index, [&](int64_t begin, int64_t bytes, void* to) {
      return FillInitialPiece(info, seed, begin / size, (begin + bytes) / size, to);
    }));
  }
  return Status();
}

Status MeshVariables::Tell(int64_t index) {
  if (communicator_ == nullptr) return Status();
  std::fill(sends_.begin(), sends_.end(), std::as_bytes(std::span(&index, 1)));
  return communicator_->Exchange(sends_, receives_);
}

Status MeshVariables::Release() { return Tell(kRelease); }

std::vector<WholeVariables::Range> MeshVariables::AllToFirst(const Variable& variable) const {
  std::vector<Range> ranges(sends_.size());
  ranges[0].end = variable.type.elements();
  return ranges;
}

// Where what the others send of this rank's piece is received.
void MeshVariables::AskFor(const Variable& variable, Range piece) {
  std::byte* to = received_.data();
  for (const auto& [rank, runs] : variable.sources) {
    if (rank == place_.device) continue;
    const int64_t count = runs.CountWithin(piece.begin, piece.end);
    const auto bytes = static_cast<size_t>(count * BytesPerElement(variable.type.dtype));
    receives_[static_cast<size_t>(rank)] = {to, bytes};
    to += bytes;
  }
}

void MeshVariables::PutTogether(const Variable& variable, const std::byte* part, Range piece) {
  const int64_t size = BytesPerElement(variable.type.dtype);
  for (const auto& [rank, runs] : variable.sources) {
    const std::byte* from = rank == place_.device ? part + runs.FirstFrom(piece.begin) * size
                                                  : receives_[static_cast<size_t>(rank)].data();
    PutIntoPiece(variable, runs, from, piece.begin, piece.end);
  }
}

// A rank's elements of a piece are neighbours in its part.
Status MeshVariables::Collect(const Variable& variable, const std::byte* part,
                              const std::vector<Range>& pieces) {
  sends_.assign(sends_.size(), {});
  receives_.assign(receives_.size(), {});
  const int64_t size = BytesPerElement(variable.type.dtype);
  const Range own = pieces[static_cast<size_t>(place_.device)];
  const bool sends = IsSource(variable.split, place_.device);
  for (size_t rank = 0; sends && rank < pieces.size(); ++rank) {
    const auto [begin, end] = pieces[rank];
    sends_[rank] = {part + variable.own.FirstFrom(begin) * size,
                    static_cast<size_t>(variable.own.CountWithin(begin, end) * size)};
  }
  AskFor(variable, own);
  const Status exchanged =
      communicator_ == nullptr ? Status() : communicator_->Exchange(sends_, receives_);
  if (exchanged.ok()) PutTogether(variable, part, own);
  receives_.assign(receives_.size(), {});
  return exchanged;
}

Status MeshVariables::ReadRanges(size_t index, const std::vector<Range>& ranges, const Take& take) {
  const Variable& variable = variables_.at(index);
  RIDGE_ASSIGN_OR_RETURN(const void* part, executor_.transfers().Read(index));
  const int64_t most = PieceElements(variable.type.dtype);
  const int64_t size = BytesPerElement(variable.type.dtype);
  Status taken;
  for (const std::vector<Range>& pieces : RoundsOf(ranges, most)) {
    RIDGE_RETURN_IF_ERROR(Collect(variable, static_cast<const std::byte*>(part), pieces));
    const Range own = pieces[static_cast<size_t>(place_.device)];
    if (taken.ok() && own.begin < own.end)
      taken = take(piece_.data(), (own.end - own.begin) * size);
  }
  return taken;
}

Status MeshVariables::Read(size_t index, const Take& take) {
  RIDGE_RETURN_IF_ERROR(Tell(static_cast<int64_t>(index)));
  return ReadRanges(index, AllToFirst(variables_.at(index)), take);
}

Status MeshVariables::Serve() {
  RIDGE_CHECK(!leads(), "rank 0 reads");
  while (true) {
    int64_t index = kRelease;
    sends_.assign(sends_.size(), {});
    receives_[0] = std::as_writable_bytes(std::span(&index, 1));
    const Status told = communicator_->Exchange(sends_, receives_);
    receives_[0] = {};
    RIDGE_RETURN_IF_ERROR(told);
    if (index == kRelease) return Status();
    const auto variable = static_cast<size_t>(index);
    RIDGE_RETURN_IF_ERROR(ReadRanges(variable, AllToFirst(variables_.at(variable)), nullptr));
  }
}

}  // namespace ridge
