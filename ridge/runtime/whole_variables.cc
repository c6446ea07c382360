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

// A rank's elements of a piece are neighbours in its part.
Status MeshVariables::Send(const Variable& variable, const std::byte* part, int64_t begin,
                           int64_t end) {
  const int64_t size = BytesPerElement(variable.type.dtype);
  const int64_t count = variable.own.CountWithin(begin, end);
  sends_.assign(sends_.size(), {});
  if (IsSource(variable.split, place_.device))
    sends_[0] = {part + variable.own.FirstFrom(begin) * size, static_cast<size_t>(count * size)};
  return communicator_->Exchange(sends_, receives_);
}

// Puts a piece together.
Status MeshVariables::Gather(const Variable& variable, const std::byte* part, int64_t begin,
                             int64_t end) {
  const int64_t size = BytesPerElement(variable.type.dtype);
  PutIntoPiece(variable, variable.own, part + variable.own.FirstFrom(begin) * size, begin, end);
  if (communicator_ == nullptr) return Status();
  sends_.assign(sends_.size(), {});
  std::byte* to = received_.data();
  for (const auto& [rank, runs] : variable.sources) {
    if (rank == 0) continue;
    const auto bytes = static_cast<size_t>(runs.CountWithin(begin, end) * size);
    receives_[static_cast<size_t>(rank)] = {to, bytes};
    to += bytes;
  }
  const Status exchanged = communicator_->Exchange(sends_, receives_);
  for (const auto& [rank, runs] : variable.sources) {
    if (rank == 0) continue;
    PutIntoPiece(variable, runs, receives_[static_cast<size_t>(rank)].data(), begin, end);
    receives_[static_cast<size_t>(rank)] = {};
  }
  return exchanged;
}

Status MeshVariables::Read(size_t index, const Take& take) {
  const Variable& variable = variables_.at(index);
  RIDGE_RETURN_IF_ERROR(Tell(static_cast<int64_t>(index)));
  RIDGE_ASSIGN_OR_RETURN(const void* part, executor_.transfers().Read(index));
  const int64_t size = BytesPerElement(variable.type.dtype);
  Status taken;
  RIDGE_RETURN_IF_ERROR(ForEachPiece(variable, [&](int64_t begin, int64_t end) -> Status {
    RIDGE_RETURN_IF_ERROR(Gather(variable, static_cast<const std::byte*>(part), begin, end));
    if (taken.ok()) taken = take(piece_.data(), (end - begin) * size);
    return Status();
  }));
  return taken;
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
    const Variable& variable = variables_.at(static_cast<size_t>(index));
    RIDGE_ASSIGN_OR_RETURN(const void* part,
                           executor_.transfers().Read(static_cast<size_t>(index)));
    RIDGE_RETURN_IF_ERROR(ForEachPiece(variable, [&](int64_t begin, int64_t end) {
      return Send(variable, static_cast<const std::byte*>(part), begin, end);
    }));
  }
}

}  // namespace ridge
