// Seconds of a plan's nodes and steps.
//
// A node keeps apart what the cost model says and what was timed on this machine; the seconds that
// are planned are a function of both, and are computed here only.
#pragma once
#include <vector>

#include "ridge/lower/cost_model.h"
#include "ridge/plan/program.h"

namespace ridge {

Work WorkOf(const PlannedNode& node);

// Sets modelled_s, measured_s and bound of every node; resets corrections and calibration.
void EstimateTimes(const CostModel& device, Program& program);

// Seconds of one run of each node within its step, by index.  The nodes of a parallel region
// together take as long as its longest stream.
std::vector<double> ModelledNodeSeconds(const StepPlan& step);
// Where the kernel was timed its measured seconds, else modelled ones with their correction; all
// calibrated.
std::vector<double> PlannedNodeSeconds(const StepPlan& step);
// By another device's model; copies between the memories of `program` by its link.
std::vector<double> NodeSecondsBy(const CostModel& device, const Program& program,
                                  const StepPlan& step);

// Seconds of one execution of the step, all its slices, by the seconds of its nodes.
double SumOfRuns(const StepPlan& step, const std::vector<double>& node_s);
double ModelledSeconds(const StepPlan& step);
double PlannedSeconds(const StepPlan& step);

// Lower bound of a step: sum over its nodes of max(flops / peak, bytes / slowest memory).
double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s);

}  // namespace ridge
