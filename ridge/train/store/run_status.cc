#include "ridge/train/store/run_status.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostBytes = 1 << 20;
constexpr std::array<const char*, 4> kStates = {"running", "done", "stopped", "failed"};

RunStatus Read(const Json& json) {
  RunStatus status;
  const std::string state = json.at("state").get<std::string>();
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (state == kStates[i]) status.state = static_cast<RunPhase>(i);
  }
  if (state != kStates[static_cast<size_t>(status.state)])
    throw Json::other_error::create(501, "state is '" + state + "'", nullptr);
  status.step = json.at("step").get<int64_t>();
  if (!json.at("checkpoint").is_null()) status.checkpoint = json.at("checkpoint").get<int64_t>();
  status.ranks = json.at("ranks").get<int64_t>();
  if (json.contains("slices")) status.slices = json["slices"].get<std::vector<int64_t>>();
  if (!json.at("why").is_null()) status.why = json.at("why").get<std::string>();
  status.may_retry = json.at("may_retry").get<bool>();
  return status;
}

}  // namespace

std::string RunStatusToJson(const RunStatus& status) {
  Json json = {{"state", kStates[static_cast<size_t>(status.state)]},
               {"step", status.step},
               {"checkpoint", status.checkpoint ? Json(*status.checkpoint) : Json()},
               {"ranks", status.ranks},
               {"why", status.why.empty() ? Json() : Json(status.why)},
               {"may_retry", status.may_retry}};
  if (!status.slices.empty()) json["slices"] = status.slices;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunStatus> RunStatusFromJson(const std::string& text, const std::string& file) {
  try {
    return Read(Json::parse(text));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the status of a run: {}", file, error.what()));
  }
}

Result<std::optional<RunStatus>> ReadRunStatus(const std::string& folder) {
  const std::string file = folder + "/" + kStatusFile;
  std::error_code error;
  if (!fs::exists(file, error)) return {std::nullopt};
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostBytes));
  RIDGE_ASSIGN_OR_RETURN(RunStatus status, RunStatusFromJson(text, file));
  return {std::move(status)};
}

Status WriteRunStatus(const std::string& folder, int rank, const RunStatus& status) {
  const std::string file = folder + "/" + kStatusFile;
  if (status.state == RunPhase::kFailed) {
    const Result<std::optional<RunStatus>> before = ReadRunStatus(folder);
    if (before.ok() && *before && (*before)->state == RunPhase::kFailed) return Status();
  }
  if (rank == 0) return WriteFileAtomically(file, RunStatusToJson(status));
  // Ranks on several machines may have one process number.
  const std::string own = fmt::format("{}.rank-{}", file, rank);
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(own, RunStatusToJson(status)));
  std::error_code error;
  fs::rename(own, file, error);
  if (!error) return Status();
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot be replaced: {}", file, error.message()));
}

}  // namespace ridge
