// The verbs of `ridge`, one file each.
//
// A verb adds its options to its subcommand and returns the function that runs it.  That function
// returns the exit code, or a Status that the command line prints and maps to one.
#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

using VerbBody = std::function<Result<int>()>;

struct Verb {
  const char* name;
  const char* doc;       // one line, for the list of verbs
  const char* examples;  // lines below its --help
  VerbBody (*add)(CLI::App& app) = nullptr;
  std::vector<Verb> verbs = {};  // `bench step`, `bench device`
};

// In the order in which help lists them.
const std::vector<Verb>& Verbs();

VerbBody AddBenchCollective(CLI::App& app);
VerbBody AddBenchDevice(CLI::App& app);
VerbBody AddBenchMemory(CLI::App& app);
VerbBody AddBenchStep(CLI::App& app);
VerbBody AddBenchRun(CLI::App& app);
VerbBody AddBenchSuite(CLI::App& app);
VerbBody AddCompare(CLI::App& app);
VerbBody AddCompletion(CLI::App& app);
VerbBody AddData(CLI::App& app);
VerbBody AddChoose(CLI::App& app);
VerbBody AddDevices(CLI::App& app);
VerbBody AddDevicesShow(CLI::App& app);
VerbBody AddDevicesClusters(CLI::App& app);
VerbBody AddDoctor(CLI::App& app);
VerbBody AddDoctorCluster(CLI::App& app);
VerbBody AddEval(CLI::App& app);
VerbBody AddExport(CLI::App& app);
VerbBody AddGenerate(CLI::App& app);
VerbBody AddGrad(CLI::App& app);
VerbBody AddLaunch(CLI::App& app);
VerbBody AddModels(CLI::App& app);
VerbBody AddOpt(CLI::App& app);
VerbBody AddPlan(CLI::App& app);
VerbBody AddPredict(CLI::App& app);
VerbBody AddProfile(CLI::App& app);
VerbBody AddRun(CLI::App& app);
VerbBody AddRuns(CLI::App& app);
VerbBody AddTrain(CLI::App& app);
VerbBody AddWatch(CLI::App& app);

}  // namespace ridge::cli
