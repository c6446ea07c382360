#include "ridge/cli/plan_mesh.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/output.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/train/job/mesh_job.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/load/forward.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

Json StateJson(const StateBytes& bytes) {
  return {{"parameters_bytes", bytes.parameters},
          {"gradients_bytes", bytes.gradients},
          {"optimizer_bytes", bytes.optimizer},
          {"other_bytes", bytes.other}};
}

int64_t RanksOf(const MeshJob& job, const std::string& axis) {
  return job.mesh.size(job.mesh.Find(axis));
}

Json CollectivesJson(const MeshJob& job) {
  Json list = Json::array();
  for (const MeshStep& step : job.steps) {
    for (const CollectiveSum& sum : step.collectives) {
      list.push_back({{"step", step.name},
                      {"op", sum.op},
                      {"axis", sum.axis},
                      {"ranks", RanksOf(job, sum.axis)},
                      {"count", sum.count},
                      {"bytes", sum.bytes},
                      {"sent_bytes", sum.sent_bytes}});
    }
  }
  return list;
}

void PrintJson(const TrainOptions& options, const MeshJob& job) {
  Json mesh = Json::object();
  for (const MeshAxis& axis : job.mesh.axes) mesh[axis.name] = axis.size;
  Json rank = StateJson(job.state);
  rank["peak_bytes"] = job.memory.needed_bytes();
  rank["arena_bytes"] = job.memory.arena_bytes;
  rank["kernel_s"] = job.kernel_s;
  const Json json = {{"model", options.model},
                     {"batch", options.batch},
                     {"mesh", std::move(mesh)},
                     {"shard", ShardingText(job.sharding)},
                     {"devices", job.mesh.devices()},
                     {"tensor_pairs", job.pairs},
                     {"rank", std::move(rank)},
                     {"one_device", StateJson(job.one_device)},
                     {"collectives", CollectivesJson(job)}};
  PrintData(json.dump(2) + "\n");
}

void PrintState(const MeshJob& job, const Terminal& terminal) {
  Table table(
      {{"kept from step to step"}, {"a rank", Align::kRight}, {"one device", Align::kRight}});
  const auto row = [&](const char* what, int64_t rank, int64_t one) {
    if (rank > 0 || one > 0) table.AddRow({what, FormatBytes(rank), FormatBytes(one)});
  };
  row("parameters", job.state.parameters, job.one_device.parameters);
  row("gradients", job.state.gradients, job.one_device.gradients);
  row("optimizer", job.state.optimizer, job.one_device.optimizer);
  row("other", job.state.other, job.one_device.other);
  PrintData(table.ToText(terminal));
}

void PrintCollectives(const MeshJob& job, const Terminal& terminal) {
  Table table({{"collectives"},
               {"axis"},
               {"ranks", Align::kRight},
               {"count", Align::kRight},
               {"bytes", Align::kRight},
               {"sent by a rank", Align::kRight}});
  for (const MeshStep& step : job.steps) {
    for (const CollectiveSum& sum : step.collectives) {
      table.AddRow({job.steps.size() == 1 ? sum.op : step.name + " " + sum.op, sum.axis,
                    std::to_string(RanksOf(job, sum.axis)), std::to_string(sum.count),
                    FormatBytes(sum.bytes), FormatBytes(sum.sent_bytes)});
    }
  }
  PrintData(table.ToText(terminal));
}

void PrintText(const TrainOptions& options, const MeshJob& job, const Terminal& terminal) {
  PrintData(fmt::format("{}, batch {}, {} devices: mesh {}, shard {}\n\n", options.model,
                        options.batch, job.mesh.devices(), MeshText(job.mesh),
                        ShardingText(job.sharding)));
  PrintState(job, terminal);
  PrintData(fmt::format("\n  peak memory of a rank {}, of which {} are planned\n",
                        FormatBytes(job.memory.needed_bytes()),
                        FormatBytes(job.memory.arena_bytes)));
  PrintData(fmt::format("  kernels of an update {}, beside its collectives\n\n",
                        FormatSeconds(job.kernel_s)));
  PrintCollectives(job, terminal);
}

}  // namespace

Status PrintMeshPlan(const TrainOptions& given, const MeshFlags& flags, const Machine& machine,
                     bool json, const Terminal& terminal) {
  TrainOptions options = given;
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options, &notes));
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(flags.mesh.value_or("")));
  RIDGE_ASSIGN_OR_RETURN(const Sharding sharding, ParseSharding(flags.shard.value_or("")));
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options));
  RIDGE_ASSIGN_OR_RETURN(const MeshJob job, PlanMeshJob(options, forward.graph, forward.facts, mesh,
                                                        sharding, machine));
  if (json) {
    PrintJson(options, job);
  } else {
    PrintText(options, job, terminal);
  }
  const int64_t needed = job.memory.needed_bytes();
  if (options.fit_bytes == 0 || needed <= options.fit_bytes) return Status();
  return Status(
      ErrorCode::kOutOfMemory,
      fmt::format("plan: a rank needs {}; --fit allows {}. hint: more devices on an axis, "
                  "or --shard zero3",
                  FormatBytes(needed), FormatBytes(options.fit_bytes)));
}

}  // namespace ridge::cli
