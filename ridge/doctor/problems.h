// Problems: what is wrong with a machine, and the command that mends it.
//
// A function of a Probe and of compat.toml alone: a recorded machine is judged as this one.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/doctor/frameworks.h"
#include "ridge/doctor/probe.h"

namespace ridge {

enum class Severity {
  kBlocking,  // something that is installed cannot work
  kWarning,   // it works, slowly or in part
  kNote,      // worth knowing
};
const char* SeverityName(Severity severity);  // "blocking"

struct Problem {
  Severity severity = Severity::kNote;
  std::string subject;  // "driver", "torch 2.5.1+cu124"
  std::string text;     // what is, against what should be
  std::string mend;     // a command, or what to do
  std::string source;   // who says so; "" where it is seen on the machine itself
};

// By severity; of one severity GPUs first, then frameworks, then the host.
std::vector<Problem> FindProblems(const Probe& probe);

bool AnyBlocking(const std::vector<Problem>& problems);

// What the rules share: the machine, its frameworks, and where their findings go.
struct Judgement {
  const Probe& probe;
  std::vector<Framework> frameworks;
  std::vector<Problem> problems;

  void Add(Severity severity, std::string subject, std::string text, std::string mend,
           const CompatRow* row = nullptr);
};

// By severity, else in the order in which they were found.
std::vector<Problem> SortedProblems(Judgement judgement);

// The rules, by subject.
void JudgeNvidia(Judgement& judgement);
void JudgeAmd(Judgement& judgement);
void JudgeFrameworks(Judgement& judgement);
void JudgeHost(Judgement& judgement);
void JudgeCluster(Judgement& judgement);

// The network that ranks of several machines should use; null where there is none.
const Probe::Network* BestNetwork(const Probe::Cluster& cluster);

// "...: what is. hint: what to do" -> both parts.
std::pair<std::string, std::string> SplitHint(const std::string& message);

bool HasNvidia(const Probe& probe);
bool HasAmd(const Probe& probe);

// The command that brings a driver of at least `least`; "": any.
std::string DriverMend(const Probe& probe, const std::string& least);

}  // namespace ridge
