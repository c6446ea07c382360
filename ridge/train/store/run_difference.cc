#include "ridge/train/store/run_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

std::string MeshOf(const TrainOptions& options) {
  if (options.mesh.empty()) return "no --mesh";
  if (options.mesh.starts_with("p=")) return "--mesh " + options.mesh;
  return fmt::format("--mesh {} --shard {}", options.mesh,
                     options.shard.empty() ? "none" : options.shard);
}

// Sums over other axes have other bits.
std::string MeshDifference(const CheckpointState& now, const CheckpointState& then) {
  const Result<TrainOptions> used = OptionsFromJson(then.options_json, "the checkpoint");
  const Result<TrainOptions> given = OptionsFromJson(now.options_json, "this run");
  if (!used.ok() || !given.ok()) return "";  // of another version, whose kernels tell
  if (MeshOf(*used) == MeshOf(*given)) return "";
  return fmt::format("{}; the run has used {}", MeshOf(*given), MeshOf(*used));
}

std::string WithoutThoseOf(const std::vector<std::string>& all,
                           const std::vector<std::string>& others) {
  std::vector<std::string> left;
  for (const std::string& one : all) {
    if (std::find(others.begin(), others.end(), one) == others.end()) left.push_back(one);
  }
  return left.empty() ? "no other library" : fmt::format("{}", fmt::join(left, ", "));
}

bool IsDriver(const std::string& library) { return library.starts_with(kDriverLibrary); }

std::string LibraryDifference(const CheckpointState& now, const CheckpointState& then) {
  std::vector<std::string> used = now.libraries;
  if (std::none_of(then.libraries.begin(), then.libraries.end(), IsDriver))
    std::erase_if(used, IsDriver);  // the checkpoint is of a version that did not name it
  if (then.libraries.empty() || then.libraries == used) return "";
  return fmt::format("{}; the run has used {}", WithoutThoseOf(used, then.libraries),
                     WithoutThoseOf(then.libraries, used));
}

struct NodeKernel {
  std::string step, node, kernel;
};

// In the plan's order; empty where the text is no plan.
std::vector<NodeKernel> KernelsOf(const std::string& plan_json) {
  std::vector<NodeKernel> kernels;
  try {
    const Json plan = Json::parse(plan_json);
    for (const Json& node : plan.at("nodes")) {
      kernels.push_back({node.at("step").get<std::string>(), node.at("name").get<std::string>(),
                         node.at("kernel").get<std::string>()});
    }
  } catch (const std::exception&) {  // of JSON, or of a shape
    return {};
  }
  return kernels;
}

std::string DataName(const CheckpointState& state) {
  const Result<TrainOptions> options = OptionsFromJson(state.options_json, "this run");
  return options.ok() ? options->data : "the data";
}

}  // namespace

std::string FirstOtherKernel(const std::string& now_plan_json, const std::string& then_plan_json) {
  std::map<std::pair<std::string, std::string>, std::string> then;
  for (NodeKernel& of : KernelsOf(then_plan_json))
    then[{std::move(of.step), std::move(of.node)}] = std::move(of.kernel);
  for (const NodeKernel& of : KernelsOf(now_plan_json)) {
    const auto before = then.find({of.step, of.node});
    if (before == then.end() || before->second == of.kernel) continue;
    return fmt::format("node '{}' of step '{}' on {}, on {} then", of.node, of.step, of.kernel,
                       before->second);
  }
  return "";
}

std::string RunDifference(const CheckpointState& now, const CheckpointState& then,
                          const std::string& other_kernel) {
  if (std::string other = DataDifference(DataName(now), now.data, then.data); !other.empty())
    return other;
  if (then.threads != now.threads)
    return fmt::format("{} threads; the run has used {}", now.threads, then.threads);
  if (then.cpu != now.cpu)
    return fmt::format("device '{}'; the run has used '{}'", now.cpu, then.cpu);
  if (std::string other = LibraryDifference(now, then); !other.empty()) return other;
  if (std::string mesh = MeshDifference(now, then); !mesh.empty()) return mesh;
  if (then.kernels_sha256 == now.kernels_sha256) return "";
  return fmt::format("other kernels than the run (ridge {} then, {} now){}{}", then.ridge_version,
                     now.ridge_version, other_kernel.empty() ? "" : ", ", other_kernel);
}

}  // namespace ridge
