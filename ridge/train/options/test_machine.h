// TestMachine: a machine on the reference backend.  Only for tests.
#pragma once
#include <memory>

#include "ridge/backend/reference/reference_backend.h"
#include "ridge/train/options/machine.h"

namespace ridge {

class TestMachine {
 public:
  TestMachine() : backend_(MakeReferenceBackend()) {
    machine_.backend = backend_.get();
    machine_.profile.id = "test";
    machine_.profile.name = "test machine";
    machine_.profile.peak_flops_per_s = {{"f32", 1e9}, {"f64", 1e9}};
    machine_.profile.memory = {{"DRAM", int64_t{1} << 40, 1e10}};
    machine_.profile.launch_s = 1e-6;
  }
  const Machine& get() const { return machine_; }

 private:
  std::unique_ptr<Backend> backend_;
  Machine machine_;
};

}  // namespace ridge
