// One file, read and written whole under a lock: at 400 bytes a receipt it stays below half a MiB.
// The median forgives single runs beside which something else ran.
#include "ridge/train/store/receipts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "ridge/core/file_lock.h"
#include "ridge/core/files.h"
#include "ridge/core/median.h"
#include "ridge/core/split.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostReceipts = 1000, kNewest = 20;

RunFigures ReadFigures(const Json& json) {
  RunFigures figures;
  figures.peak_bytes = json.at("peak_bytes");
  figures.arena_bytes = json.at("arena_bytes");
  figures.step_s = json.at("step_s");
  const auto optional = [&](const char* key, std::optional<double>& value) {
    if (json.contains(key) && !json[key].is_null()) value = json[key].get<double>();
  };
  optional("epoch_s", figures.epoch_s);
  optional("modelled_step_s", figures.modelled_step_s);
  return figures;
}

Receipt ReadReceipt(const Json& json) {
  Receipt receipt;
  receipt.made_at = json.at("made_at");
  receipt.ridge_version = json.at("ridge_version");
  receipt.device = json.at("device");
  receipt.model = json.at("model");
  receipt.precision = json.at("precision");
  receipt.batch = json.at("batch");
  receipt.accumulate = json.at("accumulate");
  receipt.threads = json.at("threads");
  if (json.contains("ranks")) receipt.ranks = json["ranks"];
  receipt.steps = json.at("steps");
  receipt.planned = ReadFigures(json.at("planned"));
  receipt.measured = ReadFigures(json.at("measured"));
  return receipt;
}

bool IsPlausible(const Receipt& receipt) {
  return receipt.planned.step_s > 0 && receipt.measured.step_s > 0 &&
         std::isfinite(receipt.step_ratio()) && receipt.step_ratio() > 0;
}

// Other processes have the lock for milliseconds.
Result<FileLock> WaitForLock(const std::string& path) {
  constexpr int kAttempts = 100;
  constexpr std::chrono::milliseconds kPause(10);
  LockHolder holder;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RIDGE_ASSIGN_OR_RETURN(std::optional<FileLock> lock, FileLock::Take(path, holder));
    if (lock) return std::move(*lock);
    std::this_thread::sleep_for(kPause);
  }
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: {} keeps it locked", path, HolderText(holder)));
}

// Of the newest that `is_like`; nullopt for too few.
template <typename Predicate>
std::optional<ReceiptGroup> GroupOf(const std::vector<Receipt>& receipts, Predicate is_like) {
  std::vector<double> ratios;
  for (auto it = receipts.rbegin(); it != receipts.rend() && ratios.size() < kNewest; ++it) {
    if (is_like(*it)) ratios.push_back(it->step_ratio());
  }
  if (ratios.size() < kLeastReceipts) return std::nullopt;
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  ReceiptGroup group;
  group.receipts = ratios.size();
  group.low = *low, group.high = *high;
  group.scale = Median(ratios);
  return group;
}

}  // namespace

std::string ReceiptsPath() { return StateFolder() + "/receipts.jsonl"; }

std::string ReceiptToJson(const Receipt& receipt) {
  const Json json = {{"made_at", receipt.made_at},
                     {"ridge_version", receipt.ridge_version},
                     {"device", receipt.device},
                     {"model", receipt.model},
                     {"precision", receipt.precision},
                     {"batch", receipt.batch},
                     {"accumulate", receipt.accumulate},
                     {"threads", receipt.threads},
                     {"ranks", receipt.ranks},
                     {"steps", receipt.steps},
                     {"planned", FiguresToJson(receipt.planned)},
                     {"measured", FiguresToJson(receipt.measured)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Receipt> ReceiptsFromText(const std::string& text) {
  std::vector<Receipt> receipts;
  for (const std::string_view line : SplitAt(text, '\n')) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) continue;
    try {
      Receipt receipt = ReadReceipt(json);
      if (IsPlausible(receipt)) receipts.push_back(std::move(receipt));
    } catch (const Json::exception&) {
      continue;
    }
  }
  return receipts;
}

Result<std::vector<Receipt>> LoadReceipts() {
  constexpr int64_t kMostBytes = 16 << 20;
  std::error_code error;
  if (!std::filesystem::exists(ReceiptsPath(), error)) return std::vector<Receipt>();
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(ReceiptsPath(), kMostBytes));
  return ReceiptsFromText(text);
}

Status AddReceipt(const Receipt& receipt) {
  if (receipt.steps < kLeastReceiptSteps || !IsPlausible(receipt)) return Status();
  RIDGE_RETURN_IF_ERROR(MakeFolders(StateFolder()));
  RIDGE_ASSIGN_OR_RETURN(const FileLock lock, WaitForLock(ReceiptsPath() + ".lock"));
  Result<std::vector<Receipt>> stored = LoadReceipts();
  std::vector<Receipt> receipts = stored.ok() ? std::move(*stored) : std::vector<Receipt>();
  receipts.push_back(receipt);
  const size_t first = receipts.size() > kMostReceipts ? receipts.size() - kMostReceipts : 0;
  std::string text;
  for (size_t i = first; i < receipts.size(); ++i) text += ReceiptToJson(receipts[i]) + "\n";
  return WriteFileAtomically(ReceiptsPath(), text);
}

std::optional<ReceiptGroup> FindGroup(const std::vector<Receipt>& receipts, const Receipt& like) {
  const auto same_machine = [&](const Receipt& receipt) {
    return receipt.device == like.device && receipt.ridge_version == like.ridge_version &&
           receipt.precision == like.precision && receipt.ranks == like.ranks;
  };
  std::optional<ReceiptGroup> group = GroupOf(receipts, [&](const Receipt& receipt) {
    return same_machine(receipt) && receipt.model == like.model;
  });
  const bool of_model = group.has_value();
  if (!of_model) group = GroupOf(receipts, same_machine);
  if (!group) return group;
  group->device = like.device;
  group->precision = like.precision;
  group->ranks = like.ranks;
  if (of_model) group->model = like.model;
  return group;
}

std::vector<ReceiptGroup> AllGroups(const std::vector<Receipt>& receipts) {
  std::map<std::tuple<std::string, std::string, int64_t, std::string>, ReceiptGroup> groups;
  for (const Receipt& like : receipts) {
    const std::optional<ReceiptGroup> group = FindGroup(receipts, like);
    if (group)
      groups.insert_or_assign({group->device, group->precision, group->ranks, group->model},
                              *group);
  }
  std::vector<ReceiptGroup> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

ExpectedStep ExpectedBy(const ReceiptGroup& group, const PlanSummary& plan) {
  ExpectedStep expected;
  expected.step_s = plan.step_s * group.scale;
  if (plan.epoch_s) expected.epoch_s = *plan.epoch_s * group.scale;
  expected.scale = group.scale, expected.low = group.low, expected.high = group.high;
  expected.runs = static_cast<int64_t>(group.receipts);
  expected.model = group.model;
  return expected;
}

}  // namespace ridge
