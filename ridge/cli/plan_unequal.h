// `ridge plan MODEL --on a100-sxm4-40g:1,t4:1`: unequal devices that share a batch.
#pragma once
#include <string>
#include <vector>

#include "ridge/cli/plan_verb.h"
#include "ridge/report/terminal.h"

namespace ridge::cli {

// "t4:2" of --on.
struct DeviceCount {
  std::string device;
  int64_t count = 1;
};

// Of an --on in which a device has a count, "a100-sxm4-40g:1,t4"; empty: none has.
std::vector<DeviceCount> ParseTeam(const std::string& on);

// Plans and prints.  Fails with kInvalidArgument where a link is not known, and as DealUnequal.
Status PrintUnequal(const PlanVerb& verb, const std::vector<DeviceCount>& team,
                    const Terminal& terminal);

}  // namespace ridge::cli
