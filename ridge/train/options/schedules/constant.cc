// constant: factor = 1.
#include "ridge/train/options/schedules/schedule.h"

namespace ridge {
namespace {

double Factor(int64_t /*step*/, int64_t /*total*/) { return 1; }

}  // namespace

Schedule ConstantSchedule() { return {"constant", "the same rate all the time", Factor}; }

}  // namespace ridge
