#include "ridge/cli/plan_history.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/output.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/train/store/receipts.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string ErrorText(double planned, double measured) {
  return measured > 0 ? FormatPercentChange(planned / measured - 1) : "-";
}

std::string BatchText(const Receipt& receipt) {
  if (receipt.accumulate == 1) return fmt::format("{}", receipt.batch);
  return fmt::format("{} x {}", receipt.batch, receipt.accumulate);
}

// "2 ranks of 1" thread; of one rank its threads.
std::string ThreadsText(const Receipt& receipt) {
  if (receipt.ranks == 1) return fmt::format("{}", receipt.threads);
  return fmt::format("{} ranks of {}", receipt.ranks, receipt.threads);
}

std::string ReceiptsText(const std::vector<Receipt>& receipts, const Terminal& terminal) {
  Table table({{"when"},
               {"model"},
               {"batch", Align::kRight},
               {"precision"},
               {"threads", Align::kRight},
               {"peak planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"step planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight}});
  for (const Receipt& receipt : receipts) {
    const RunFigures &planned = receipt.planned, &measured = receipt.measured;
    table.AddRow({receipt.made_at.substr(0, sizeof("2026-11-21T09:00") - 1), receipt.model,
                  BatchText(receipt), receipt.precision, ThreadsText(receipt),
                  FormatBytes(planned.peak_bytes), FormatBytes(measured.peak_bytes),
                  ErrorText(static_cast<double>(planned.peak_bytes),
                            static_cast<double>(measured.peak_bytes)),
                  FormatSeconds(planned.step_s), FormatSeconds(measured.step_s),
                  ErrorText(planned.step_s, measured.step_s)});
  }
  return table.ToText(terminal, /*indent=*/0);
}

std::string GroupsText(const std::vector<ReceiptGroup>& groups) {
  if (groups.empty()) {
    return fmt::format("\nThe next plan takes no scale: {} runs of a kind are too few.\n",
                       kLeastReceipts - 1);
  }
  std::string text = "\nThe next plan's expected seconds:\n";
  for (const ReceiptGroup& group : groups) {
    const std::string ranks = group.ranks > 1 ? fmt::format(" by {} ranks", group.ranks) : "";
    text += fmt::format("  {} in {} on {}{}: planned x {:.2f} ({:.2f} to {:.2f}, {} runs)\n",
                        group.model.empty() ? "other models" : group.model, group.precision,
                        group.device, ranks, group.scale, group.low, group.high, group.receipts);
  }
  return text;
}

Json HistoryJson(const std::vector<Receipt>& receipts, const std::vector<ReceiptGroup>& groups) {
  Json json = {{"file", ReceiptsPath()}, {"receipts", Json::array()}, {"scales", Json::array()}};
  for (const Receipt& receipt : receipts)
    json["receipts"].push_back(Json::parse(ReceiptToJson(receipt)));
  for (const ReceiptGroup& group : groups) {
    json["scales"].push_back({{"device", group.device},
                              {"precision", group.precision},
                              {"ranks", group.ranks},
                              {"model", group.model.empty() ? Json(nullptr) : Json(group.model)},
                              {"runs", group.receipts},
                              {"scale", group.scale},
                              {"scale_low", group.low},
                              {"scale_high", group.high}});
  }
  return json;
}

}  // namespace

Status PrintHistory(bool json, const Terminal& terminal) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Receipt> receipts, LoadReceipts());
  const std::vector<ReceiptGroup> groups = AllGroups(receipts);
  if (json) {
    PrintData(HistoryJson(receipts, groups).dump(1) + "\n");
  } else if (receipts.empty()) {
    PrintData(fmt::format("No run has left a receipt in {}.\n", ReceiptsPath()));
  } else {
    PrintData(ReceiptsText(receipts, terminal) + GroupsText(groups));
  }
  return Status();
}

}  // namespace ridge::cli
