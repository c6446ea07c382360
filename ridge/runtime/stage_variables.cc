#include "ridge/runtime/stage_variables.h"

#include <algorithm>

#include "ridge/graph/interpret.h"
#include "ridge/runtime/pipeline_runner.h"

namespace ridge {
namespace {

constexpr int64_t kRelease = -1;

}  // namespace

StageVariables::StageVariables(Executor& executor, Communicator* communicator)
    : executor_(executor),
      communicator_(communicator),
      role_(*executor.program().pipeline),
      here_(role_.variables.size()),
      piece_(static_cast<size_t>(kPieceBytes)) {
  const std::vector<PersistentValue>& values = executor.program().persistent;
  for (size_t v = 0; v < here_.size(); ++v) {
    const StageVariable& variable = role_.variables[v];
    std::vector<std::string> names = {variable.name};
    names.insert(names.end(), variable.copies.begin(), variable.copies.end());
    for (const std::string& name : names) {
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].name == name && !values[i].of_micro_batch) here_[v].push_back(i);
    }
  }
}

bool StageVariables::leads() const { return role_.device == 0; }

// The others start by their own names already.
Status StageVariables::Initialize(uint64_t seed) {
  for (size_t v = 0; v < here_.size(); ++v) {
    const StageVariable& variable = role_.variables[v];
    if (variable.copies.empty() || here_[v].empty()) continue;
    ValueInfo info;
    info.name = variable.name;
    info.type = variable.type;
    info.init = variable.init;
    RIDGE_RETURN_IF_ERROR(Write(v, [&](int64_t, int64_t, void* to) {
      return FillInitialRange(info, seed, 0, info.type.elements(), to);
    }));
  }
  return Status();
}

Status StageVariables::Write(size_t index, const Fill& fill) {
  Transfers& transfers = executor_.transfers();
  for (const size_t value : here_[index]) {
    RIDGE_RETURN_IF_ERROR(fill(0, role_.variables[index].type.bytes(), transfers.Edit(value)));
    RIDGE_RETURN_IF_ERROR(transfers.Commit(value));
  }
  return Status();
}

Status StageVariables::TellRank(int rank, int64_t index) {
  const std::span<const std::byte> part = std::as_bytes(std::span(&index, 1));
  return communicator_->Send(rank, kVariableChannel, {&part, 1}, /*most_waiting=*/0);
}

Status StageVariables::Read(size_t index, const Take& take) {
  const StageVariable& variable = role_.variables[index];
  const int64_t bytes = variable.type.bytes();
  if (variable.device == role_.device) {
    RIDGE_ASSIGN_OR_RETURN(const void* data, executor_.transfers().Read(here_[index].front()));
    return take(data, bytes);
  }
  RIDGE_RETURN_IF_ERROR(TellRank(variable.device, static_cast<int64_t>(index)));
  Status taken;
  for (int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
    const std::span<std::byte> part =
        std::span(piece_).first(static_cast<size_t>(std::min(kPieceBytes, bytes - begin)));
    RIDGE_RETURN_IF_ERROR(communicator_->Receive(variable.device, kVariableChannel, {&part, 1}));
    if (taken.ok()) taken = take(part.data(), std::ssize(part));
  }
  return taken;
}

Status StageVariables::SendPieces(size_t index) {
  RIDGE_ASSIGN_OR_RETURN(const void* data, executor_.transfers().Read(here_[index].front()));
  const int64_t bytes = role_.variables[index].type.bytes();
  for (int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
    const std::span<const std::byte> part(
        static_cast<const std::byte*>(data) + begin,
        static_cast<size_t>(std::min(kPieceBytes, bytes - begin)));
    RIDGE_RETURN_IF_ERROR(communicator_->Send(0, kVariableChannel, {&part, 1}, 0));
  }
  return Status();
}

// The rank that has the variable sends each of the others a piece, then each the next one.
Status StageVariables::ReadRanges(size_t index, const std::vector<Range>& ranges,
                                  const Take& take) {
  const StageVariable& variable = role_.variables[index];
  const bool has = variable.device == role_.device;
  const std::byte* data = nullptr;
  if (has) {
    RIDGE_ASSIGN_OR_RETURN(const void* all, executor_.transfers().Read(here_[index].front()));
    data = static_cast<const std::byte*>(all);
  }
  const int64_t size = BytesPerElement(variable.type.dtype);
  Status taken;
  for (const std::vector<Range>& pieces : RoundsOf(ranges, kPieceBytes / size)) {
    for (size_t rank = 0; rank < pieces.size(); ++rank) {
      const int64_t bytes = (pieces[rank].end - pieces[rank].begin) * size;
      const bool own = static_cast<int64_t>(rank) == role_.device;
      if (bytes == 0 || !(own || has)) continue;
      const std::byte* piece = has ? data + pieces[rank].begin * size : piece_.data();
      if (!own) {
        const std::span<const std::byte> sent(piece, static_cast<size_t>(bytes));
        RIDGE_RETURN_IF_ERROR(
            communicator_->Send(static_cast<int>(rank), kVariableChannel, {&sent, 1}, 0));
        continue;
      }
      const std::span<std::byte> part = std::span(piece_).first(static_cast<size_t>(bytes));
      if (!has)
        RIDGE_RETURN_IF_ERROR(
            communicator_->Receive(variable.device, kVariableChannel, {&part, 1}));
      if (taken.ok()) taken = take(piece, bytes);
    }
  }
  return taken;
}

Status StageVariables::Serve() {
  RIDGE_CHECK(!leads(), "rank 0 reads");
  while (true) {
    int64_t index = kRelease;
    const std::span<std::byte> part = std::as_writable_bytes(std::span(&index, 1));
    RIDGE_RETURN_IF_ERROR(communicator_->Receive(0, kVariableChannel, {&part, 1}));
    if (index == kRelease) return Status();
    RIDGE_RETURN_IF_ERROR(SendPieces(static_cast<size_t>(index)));
  }
}

Status StageVariables::Release() {
  if (communicator_ == nullptr) return Status();
  for (int rank = 1; rank < communicator_->size(); ++rank)
    RIDGE_RETURN_IF_ERROR(TellRank(rank, kRelease));
  return Status();
}

std::unique_ptr<WholeVariables> MakeWholeVariables(Executor& executor, Communicator* communicator) {
  if (executor.program().pipeline != nullptr)
    return std::make_unique<StageVariables>(executor, communicator);
  return std::make_unique<MeshVariables>(executor, communicator);
}

}  // namespace ridge
