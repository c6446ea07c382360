// The tables and sentences of a plan and of offers that a page and Markdown have in common.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/offer.h"
#include "ridge/plan/plan_json.h"
#include "ridge/report/grid.h"

namespace ridge {

std::string FitsText(const PlanSummary& plan);  // "fits: 193 MiB of 21.9 GiB available"
std::string StepText(const PlanSummary& plan);  // "12.1 ms a step, 2,640 samples/s, 5.6 s an epoch"
// Those given, then the evidence of the plan's ranges and of what earlier runs say.
std::vector<std::string> SourcesOf(std::vector<std::string> sources, const PlanSummary& plan);

Grid MemoryGrid(const PlanSummary& plan);                 // bytes by purpose
Grid PhasesGrid(const PlanSummary& plan);                 // the most that is live, by phase
Grid ClassesGrid(const PlanSummary& plan);                // seconds by class of operators
Grid NodesGrid(const PlanSummary& plan);                  // every node of an update
Grid CandidatesGrid(const PlanSummary& plan);             // the plans that were compared
Grid DevicesGrid(const std::vector<PlanSummary>& plans);  // a row a plan
Grid OffersGrid(const std::vector<Offer>& offers);

}  // namespace ridge
