#include "tests/generate/cpu_machine.h"

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/core/instructions.h"

namespace ridge {

CpuMachine::CpuMachine() {
  Result<std::unique_ptr<Backend>> made = MakeCpuBackend(/*threads=*/1);
  RIDGE_CHECK(made.ok(), made.status().message());
  backend_ = std::move(*made);
  machine_.backend = backend_.get();
  machine_.profile = NominalProfile(/*threads=*/1, UsedInstructions());
}

}  // namespace ridge
