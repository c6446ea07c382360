// Receipts: what runs on this machine were planned to take and what they took.
//
// STATE/receipts.jsonl, a line a completed run, the newest last; it never leaves the machine.  The
// error of earlier plans scales the seconds that the next one expects.  No choice of kernels,
// slices or places reads it: a program is the same with and without a history.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/plan_json.h"
#include "ridge/train/store/summary.h"

namespace ridge {

struct Receipt {
  std::string made_at;  // "2026-11-21T09:00:00Z"
  std::string ridge_version;
  std::string device;  // DeviceProfile::id: the CPU type and the threads
  std::string model;
  std::string precision;  // of products: "f32"
  int64_t batch = 0, accumulate = 1, threads = 1;
  int64_t ranks = 1;  // that trained together; the figures are the first one's
  int64_t steps = 0;  // of the run
  RunFigures planned, measured;

  double step_ratio() const { return measured.step_s / planned.step_s; }
};

// A scale from fewer is chance.
inline constexpr size_t kLeastReceipts = 3;
// Shorter runs leave no receipt: the first ten steps are not measured.
inline constexpr int64_t kLeastReceiptSteps = 20;

std::string ReceiptsPath();

std::string ReceiptToJson(const Receipt& receipt);  // a line without its newline

// Lines that are no receipts are skipped.
std::vector<Receipt> ReceiptsFromText(const std::string& text);

// The stored ones, the oldest first; none without a file.  Fails with kInvalidData when the file
// cannot be read.
Result<std::vector<Receipt>> LoadReceipts();

// Adds one; of more than 1,000 the oldest go.  Processes that end at the same time add one after
// another.  Fails with kUnavailable when the file cannot be written, or another process keeps it
// locked for a second.
Status AddReceipt(const Receipt& receipt);

// The runs that a plan is calibrated by: of one device, version, precision and number of ranks, and
// of one model (where `model` is not empty).
struct ReceiptGroup {
  std::string device, precision, model;
  int64_t ranks = 1;
  size_t receipts = 0;
  double scale = 1, low = 1, high = 1;  // median, least and largest measured over planned seconds
};

// Of the newest 20 runs of the model, else of any model; nullopt when both are fewer than
// kLeastReceipts.  `like` has the device, version, precision, ranks and model.
std::optional<ReceiptGroup> FindGroup(const std::vector<Receipt>& receipts, const Receipt& like);

// The groups that the next plans would find, by the models of `receipts`, in order of text.
std::vector<ReceiptGroup> AllGroups(const std::vector<Receipt>& receipts);

// What the group says of a plan's seconds.
ExpectedStep ExpectedBy(const ReceiptGroup& group, const PlanSummary& plan);

}  // namespace ridge
