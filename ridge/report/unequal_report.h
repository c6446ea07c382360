// A training on unequal devices, as `ridge plan --on a100-sxm4-40g:1,t4:1` shows it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/plan/choose/unequal.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct UnequalPlan {
  std::string title;  // "resnet50, batch 256, f16, on 1 x a100-sxm4-40g and 1 x t4"
  std::vector<UnequalMember> members;
  UnequalDeal deal, equal;
  std::vector<std::pair<std::string, double>> alone_s;  // each kind of device with the whole batch
  std::string command;                                  // that trains so
};

// How much faster than equal shares, and than the fastest device alone.
double TimesEqual(const UnequalPlan& plan);
double TimesAlone(const UnequalPlan& plan);

std::string UnequalReport(const UnequalPlan& plan, const Terminal& terminal);

// One object; without a newline.
std::string UnequalJson(const UnequalPlan& plan);

}  // namespace ridge
