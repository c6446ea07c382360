// For the tests of this folder: a machine on the reference backend, a folder of its own, and an
// observer that records.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/reference/reference_backend.h"
#include "ridge/train/trainer.h"

namespace ridge {

// Removed with everything in it at the end of the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ridge_train_XXXXXX").string();
    const char* made = mkdtemp(pattern.data());
    EXPECT_NE(made, nullptr);
    path_ = made == nullptr ? "" : made;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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

struct Recorder : TrainObserver {
  std::vector<double> losses;
  std::vector<EvaluationReport> evaluations;
  std::vector<int64_t> checkpoints;
  std::vector<std::string> warnings;
  RunStart start;

  void OnStart(const RunStart& s) override { start = s; }
  void OnStep(const StepReport& r) override { losses.push_back(r.loss); }
  void OnEvaluation(const EvaluationReport& r) override { evaluations.push_back(r); }
  void OnCheckpoint(int64_t step, const std::string&) override { checkpoints.push_back(step); }
  void OnWarning(const std::string& text) override { warnings.push_back(text); }
};

// A tiny network; the test says on which data.
inline TrainRequest TinyRequest(const std::string& out) {
  TrainRequest request;
  request.options.model = "mlp:hidden=8,layers=1,inputs=12,classes=3";
  request.options.batch = 8;
  request.options.out = out;
  request.rehearse_s = 0;
  return request;
}

}  // namespace ridge
