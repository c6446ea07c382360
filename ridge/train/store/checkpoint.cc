// Save is write, sync, verify, rename, sync the folder, and only then prune: at every moment a
// crash leaves at least one complete checkpoint of those that were there.
#include "ridge/train/store/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/pipeline/role.h"
#include "ridge/train/store/checkpoint_files.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kBest = "best";

// 120 of "step-120"; -1 for other names.
int64_t StepOf(const std::string& name) {
  if (!name.starts_with(kPrefix)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  return error == std::errc() && rest == end && step >= 0 ? step : -1;
}

bool IsNewest(const std::string& which) { return which == kNewestCheckpoint || which == "last"; }

// 120 of "120" and of "step-120"; -1 for other words.
int64_t NumberedStep(const std::string& which) {
  return std::max(StepOf(which), StepOf(std::string(kPrefix) + which));
}

bool HoldsCheckpoint(const std::string& folder) {
  std::error_code error;
  return fs::exists(fs::path(folder) / kCheckpointStateFile, error);
}

Status MoveFailure(const std::string& path, const std::error_code& error) {
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot move the checkpoint there: {}", path, error.message()));
}

// Renames `from` to `to`.  Moves an existing folder (damaged, or of the same step) aside first,
// since rename() does not replace a non-empty folder.
Status Replace(const std::string& from, const std::string& to) {
  std::error_code error;
  const std::string aside = fmt::format("{}.old-{}", to, getpid());
  const bool occupied = fs::exists(to, error);
  if (occupied) fs::rename(to, aside, error);
  if (error) return MoveFailure(to, error);
  fs::rename(from, to, error);
  if (error) {
    const Status status = MoveFailure(to, error);
    if (occupied) fs::rename(aside, to, error);
    return status;
  }
  if (occupied) fs::remove_all(aside, error);
  return Status();
}

}  // namespace

Status PersistentTensor::Read(const WholeVariables::Take& take) const {
  if (wholes != nullptr) return wholes->Read(index, take);
  if (transfers == nullptr) return take(data, type.bytes());
  RIDGE_ASSIGN_OR_RETURN(const void* bytes, transfers->Read(index));
  return take(bytes, type.bytes());
}

Status PersistentTensor::ReadRanges(const std::vector<WholeVariables::Range>& ranges, int rank,
                                    const WholeVariables::Take& take) const {
  if (wholes != nullptr) return wholes->ReadRanges(index, ranges, take);
  const auto [begin, end] = ranges[static_cast<size_t>(rank)];
  if (begin == end) return Status();
  const int64_t size = BytesPerElement(type.dtype), from = begin * size,
                bytes = (end - begin) * size;
  return Read([&](const void* all, int64_t) {
    return take(static_cast<const std::byte*>(all) + from, bytes);
  });
}

Status PersistentTensor::Write(const WholeVariables::Fill& fill) const {
  if (wholes != nullptr) return wholes->Write(index, fill);
  if (transfers == nullptr) return fill(0, type.bytes(), data);
  RIDGE_RETURN_IF_ERROR(fill(0, type.bytes(), transfers->Edit(index)));
  return transfers->Commit(index);
}

namespace {

void SortByName(CheckpointTensors& tensors) {
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(tensors.parameters.begin(), tensors.parameters.end(), by_name);
  std::sort(tensors.state.begin(), tensors.state.end(), by_name);
}

// Those of all stages.
CheckpointTensors CollectOfStages(Executor& executor, WholeVariables* wholes) {
  CheckpointTensors tensors;
  const std::vector<StageVariable>& variables = executor.program().pipeline->variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const StageVariable& variable = variables[i];
    auto& list = variable.kind == ValueKind::kParameter ? tensors.parameters : tensors.state;
    list.push_back(
        {variable.name, variable.type, &executor.transfers(), i, nullptr, wholes, variable.role});
  }
  SortByName(tensors);
  return tensors;
}

}  // namespace

CheckpointTensors CollectTensors(Executor& executor, WholeVariables* wholes) {
  if (executor.program().pipeline != nullptr) return CollectOfStages(executor, wholes);
  CheckpointTensors tensors;
  const std::vector<PersistentValue>& persistent = executor.program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    const PersistentValue& value = persistent[i];
    const bool variable = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
    if (!variable || value.role == ValueRole::kGradient) continue;
    auto& list = value.kind == ValueKind::kParameter ? tensors.parameters : tensors.state;
    PersistentTensor tensor = {value.name, value.type, &executor.transfers(), i};
    tensor.role = value.role;
    if (value.whole) {
      tensor.type = value.whole->type;
      tensor.wholes = wholes;
    }
    list.push_back(std::move(tensor));
  }
  SortByName(tensors);
  return tensors;
}

Status CheckCheckpointName(const std::string& which) {
  if (IsNewest(which) || which == kBest || NumberedStep(which) >= 0 || HoldsCheckpoint(which))
    return Status();
  return InvalidArgument(fmt::format(
      "--checkpoint is '{}'; it must be last, best, the number of a step, or a checkpoint's folder",
      which));
}

Status LoadStartValues(const std::string& folder, Executor& executor, WholeVariables* wholes) {
  CheckpointTensors tensors = CollectTensors(executor, wholes);
  std::erase_if(tensors.state, [](const PersistentTensor& tensor) {
    return tensor.role == ValueRole::kOptimizer;
  });
  return ReadCheckpointFiles(folder, tensors, LoadMode::kWeights);
}

std::string Checkpoints::PathOf(int64_t step) const {
  return fmt::format("{}/{}{}", folder_, kPrefix, step);
}

std::vector<int64_t> Checkpoints::Steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const int64_t step = StepOf(entry.path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

Result<CheckpointState> Checkpoints::LoadFolder(const std::string& path,
                                                const CheckpointTensors* tensors,
                                                LoadMode mode) const {
  RIDGE_ASSIGN_OR_RETURN(CheckpointState state, ReadCheckpointState(path));
  RIDGE_RETURN_IF_ERROR(VerifyCheckpointFiles(path, state));
  if (tensors != nullptr) RIDGE_RETURN_IF_ERROR(ReadCheckpointFiles(path, *tensors, mode));
  return state;
}

// The first undamaged checkpoint.
Result<LoadedCheckpoint> Checkpoints::LoadFirst(const std::vector<std::string>& paths,
                                                const CheckpointTensors* tensors,
                                                LoadMode mode) const {
  std::vector<std::string> warnings;
  for (const std::string& path : paths) {
    Result<CheckpointState> state = LoadFolder(path, tensors, mode);
    if (state.ok()) return LoadedCheckpoint{std::move(*state), path, std::move(warnings)};
    // No checkpoint is to blame for it, and none will load.
    if (IsOfDevice(state.status().code())) return state.status();
    warnings.push_back(state.status().message());
  }
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: no usable checkpoint: {}", folder_, fmt::join(warnings, "; ")));
}

std::string Checkpoints::List() const {
  std::vector<std::string> names;
  for (int64_t step : Steps()) {
    const bool is_best = StepOf(BestTarget()) == step;
    names.insert(names.begin(), fmt::format("{}{}", step, is_best ? " (best)" : ""));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// The folders of the matching checkpoints, in the order in which they are tried.
Result<std::vector<std::string>> Checkpoints::PathsOf(const std::string& which) const {
  RIDGE_RETURN_IF_ERROR(CheckCheckpointName(which));
  const int64_t numbered = which == kBest ? StepOf(BestTarget()) : NumberedStep(which);
  const bool is_word = IsNewest(which) || which == kBest || numbered >= 0;
  if (!is_word) return std::vector{which};
  const std::vector<int64_t> steps = Steps();
  if (steps.empty())
    return Status(ErrorCode::kInvalidData, folder_ + ": no checkpoint yet; train it first");
  std::vector<std::string> paths;
  for (int64_t step : steps) {
    if (IsNewest(which) || step == numbered) paths.push_back(PathOf(step));
  }
  if (!paths.empty()) return paths;
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: no checkpoint '{}'; there are {}", folder_, which, List()));
}

Result<LoadedCheckpoint> Checkpoints::Load(const std::string& which,
                                           const CheckpointTensors& tensors, LoadMode mode) const {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsOf(which));
  return LoadFirst(paths, &tensors, mode);
}

Result<LoadedCheckpoint> Checkpoints::Find(const std::string& which) const {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsOf(which));
  return LoadFirst(paths, /*tensors=*/nullptr, LoadMode::kWeights);
}

std::string Checkpoints::BestTarget() const {
  std::error_code error;
  return fs::read_symlink(folder_ + "/best", error).string();
}

Status CheckpointWriter::Save(const CheckpointTensors& tensors, CheckpointState state, bool best,
                              ParallelWriter* parallel) const {
  const std::string path = PathOf(state.step);
  const std::string draft = fmt::format("{}.tmp-{}", path, getpid());
  Status status = WriteCheckpointFiles(draft, tensors, state, parallel);
  if (status.ok() && parallel == nullptr) status = VerifyCheckpointFiles(draft, state);
  if (status.ok() && parallel != nullptr) status = ReadCheckpointState(draft).status();
  if (status.ok()) status = Replace(draft, path);
  if (!status.ok()) {
    std::error_code ignored;
    fs::remove_all(draft, ignored);
    return status;
  }
  RIDGE_RETURN_IF_ERROR(SyncPath(folder()));
  if (best) status = PointBest(state.step);
  RemoveOld();
  return status;
}

// Updates the link first: after a crash in between, the resumed run makes the same choice.
Status CheckpointWriter::Amend(CheckpointState state, bool best) const {
  const std::string path = PathOf(state.step);
  RIDGE_ASSIGN_OR_RETURN(const CheckpointState saved, ReadCheckpointState(path));
  state.parameters = saved.parameters;
  state.state = saved.state;
  if (best) RIDGE_RETURN_IF_ERROR(PointBest(state.step));
  RIDGE_RETURN_IF_ERROR(WriteCheckpointState(path, state));
  RemoveOld();
  return Status();
}

// A link under another name, renamed over the old one: `best` is never missing.
Status CheckpointWriter::PointBest(int64_t step) const {
  const std::string link = folder() + "/best", draft = fmt::format("{}.tmp-{}", link, getpid());
  std::error_code error;
  fs::remove(draft, error);
  fs::create_directory_symlink(fmt::format("{}{}", kPrefix, step), draft, error);
  if (!error) fs::rename(draft, link, error);
  if (!error) return Status();
  const Status status(ErrorCode::kUnavailable,
                      fmt::format("{}: cannot make the link: {}", link, error.message()));
  fs::remove(draft, error);
  return status;
}

// Under another name first: a process that is killed here leaves no checkpoint without its files.
void CheckpointWriter::RemoveOld() const {
  const std::string best = BestTarget();
  const std::vector<int64_t> steps = Steps();
  for (size_t i = static_cast<size_t>(keep_); i < steps.size(); ++i) {
    if (best == fmt::format("{}{}", kPrefix, steps[i])) continue;
    std::error_code error;
    const std::string aside = fmt::format("{}.old-{}", PathOf(steps[i]), getpid());
    fs::rename(PathOf(steps[i]), aside, error);
    if (!error) fs::remove_all(aside, error);
  }
}

void CheckpointWriter::RemoveTemporaries() const {
  std::error_code ignored;
  std::vector<fs::path> rests;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), ignored)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with(kPrefix) || name.starts_with("best.");
    const bool rest =
        name.find(".tmp-") != std::string::npos || name.find(".old-") != std::string::npos;
    if (ours && rest) rests.push_back(entry.path());
  }
  for (const fs::path& path : rests) fs::remove_all(path, ignored);
}

}  // namespace ridge
