// The machine that planned graphs run on: the CPU backend on one thread.
#pragma once
#include <memory>

#include "ridge/train/options/machine.h"

namespace ridge {

class CpuMachine {
 public:
  CpuMachine();
  const Machine& get() const { return machine_; }

 private:
  std::unique_ptr<Backend> backend_;
  Machine machine_;
};

}  // namespace ridge
