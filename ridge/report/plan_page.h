// A plan, or a choice of devices, as a page of HTML and as Markdown.
//
// Verdict first.  Every number in the page is one of the JSON that it holds (`plan-json`), shown
// with three digits; exact ones stand in `data-v` of the cells.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/plan_json.h"
#include "ridge/report/choose_report.h"

namespace ridge {

// A plan with what the page says of its device.
struct PlanOnPage {
  std::string title;  // "cnn, batch 128, adam, f32, on cpu (2 threads)"
  std::string note;   // what else to know of the numbers; may be empty
  PlanSummary plan;
  double peak_flops_per_s = 0;       // of products in the plan's precision; 0: not known
  double bytes_per_s = 0;            // of memory; 0: not known
  std::vector<std::string> sources;  // where the device's numbers are from
};

// REQUIRES: a plan.
std::string PlanPage(const std::vector<PlanOnPage>& plans);
std::string PlanMarkdown(const std::vector<PlanOnPage>& plans);

// REQUIRES: an offer.
std::string ChoosePage(const ChooseTable& table);
std::string ChooseMarkdown(const ChooseTable& table);

}  // namespace ridge
