#include "ridge/cli/plan_mesh.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/output.h"
#include "ridge/core/units.h"
#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/report/table.h"
#include "ridge/train/job/mesh_times.h"
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

// A mesh that was planned, and what its links say of it.
struct MeshPlan {
  MeshJob job;
  std::optional<MeshTimes> times;  // none: nothing is known of the links
  double peak_flops_per_s = 0;
};

int64_t RanksOf(const MeshJob& job, const std::string& axis) {
  return job.mesh.size(job.mesh.Find(axis));
}

Json CollectivesJson(const MeshPlan& plan) {
  Json list = Json::array();
  for (size_t i = 0; i < plan.job.steps.size(); ++i) {
    const MeshStep& step = plan.job.steps[i];
    for (size_t j = 0; j < step.collectives.size(); ++j) {
      const CollectiveSum& sum = step.collectives[j];
      list.push_back({{"step", step.name},
                      {"op", sum.op},
                      {"axis", sum.axis},
                      {"ranks", RanksOf(plan.job, sum.axis)},
                      {"count", sum.count},
                      {"bytes", sum.bytes},
                      {"sent_bytes", sum.sent_bytes},
                      {"s", plan.times ? Json(plan.times->sums_s[i][j]) : Json(nullptr)}});
    }
  }
  return list;
}

Json AxesJson(const MeshTimes& times) {
  Json list = Json::array();
  for (const AxisTime& axis : times.axes) {
    list.push_back({{"axis", axis.axis},
                    {"ranks", axis.ranks},
                    {"per_node", axis.group.per_node},
                    {"nodes", axis.group.nodes},
                    {"busy_s", axis.busy_s},
                    {"exposed_s", axis.exposed_s}});
  }
  return list;
}

void AddTimes(const MeshPlan& plan, int64_t samples, Json& json) {
  const MeshTimes& times = *plan.times;
  json["step_s"] = times.step_s;
  json["samples_s"] = times.samples_s(samples);
  json["mfu"] = times.mfu(plan.peak_flops_per_s);
  json["axes"] = AxesJson(times);
}

void PrintJson(const TrainOptions& options, const MeshPlan& plan) {
  const MeshJob& job = plan.job;
  Json mesh = Json::object();
  for (const MeshAxis& axis : job.mesh.axes) mesh[axis.name] = axis.size;
  Json rank = StateJson(job.state);
  rank["peak_bytes"] = job.memory.needed_bytes();
  rank["arena_bytes"] = job.memory.arena_bytes;
  rank["kernel_s"] = job.kernel_s;
  Json json = {{"model", options.model},
               {"batch", options.batch},
               {"mesh", std::move(mesh)},
               {"shard", ShardingText(job.sharding)},
               {"devices", job.mesh.devices()},
               {"tensor_pairs", job.pairs},
               {"rank", std::move(rank)},
               {"one_device", StateJson(job.one_device)},
               {"collectives", CollectivesJson(plan)}};
  if (job.offload) {
    json["offload"] = {{"host_bytes", job.offload->host_bytes},
                       {"window_bytes", job.offload->window_bytes},
                       {"transfer_s", job.offload->transfer_s}};
  }
  if (plan.times) AddTimes(plan, options.batch * options.accumulate, json);
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

void PrintCollectives(const MeshPlan& plan, const Terminal& terminal) {
  std::vector<Column> columns = {{"collectives"},          {"axis"},
                                 {"ranks", Align::kRight}, {"count", Align::kRight},
                                 {"bytes", Align::kRight}, {"sent by a rank", Align::kRight}};
  if (plan.times) columns.push_back({"alone", Align::kRight});
  Table table(std::move(columns));
  for (size_t i = 0; i < plan.job.steps.size(); ++i) {
    const MeshStep& step = plan.job.steps[i];
    for (size_t j = 0; j < step.collectives.size(); ++j) {
      const CollectiveSum& sum = step.collectives[j];
      std::vector<std::string> row = {
          plan.job.steps.size() == 1 ? sum.op : step.name + " " + sum.op,
          sum.axis,
          std::to_string(RanksOf(plan.job, sum.axis)),
          std::to_string(sum.count),
          FormatBytes(sum.bytes),
          FormatBytes(sum.sent_bytes)};
      if (plan.times) row.push_back(FormatSeconds(plan.times->sums_s[i][j]));
      table.AddRow(std::move(row));
    }
  }
  PrintData(table.ToText(terminal));
}

std::string PlaceText(const AxisTime& axis) {
  if (axis.group.nodes == 1) return "in a node";
  return fmt::format("{} in a node, {} nodes", axis.group.per_node, axis.group.nodes);
}

void PrintTimes(const MeshPlan& plan, int64_t samples, const Terminal& terminal) {
  const MeshTimes& times = *plan.times;
  Table table({{"an update"}, {""}, {"alone", Align::kRight}, {"of the step", Align::kRight}});
  table.AddRow({"kernels", "", "", FormatSeconds(times.kernel_s)});
  for (const AxisTime& axis : times.axes) {
    if (axis.busy_s > 0)
      table.AddRow({fmt::format("collectives of {}", axis.axis), PlaceText(axis),
                    FormatSeconds(axis.busy_s), FormatSeconds(axis.exposed_s)});
  }
  if (const std::optional<OffloadPlan>& offload = plan.job.offload)
    table.AddRow({"transfers of --offload", "host's link", FormatSeconds(offload->transfer_s), ""});
  table.AddRule();
  table.AddRow({"step", "", "", FormatSeconds(times.step_s)});
  PrintData(table.ToText(terminal));
  std::string rates = fmt::format("\n  {} samples/s", FormatCount(times.samples_s(samples)));
  if (plan.peak_flops_per_s > 0)
    rates += fmt::format(", {:.1f} % of the devices' peak", 100 * times.mfu(plan.peak_flops_per_s));
  PrintData(rates + "\n\n");
}

void PrintText(const TrainOptions& options, const MeshPlan& plan, const std::string& where,
               const Terminal& terminal) {
  const MeshJob& job = plan.job;
  PrintData(fmt::format("{}, batch {}, {} devices{}: mesh {}, shard {}\n\n", options.model,
                        options.batch, job.mesh.devices(), where, MeshText(job.mesh),
                        ShardingText(job.sharding)));
  PrintState(job, terminal);
  PrintData(fmt::format("\n  peak memory of a rank {}, of which {} are planned\n",
                        FormatBytes(job.memory.needed_bytes()),
                        FormatBytes(job.memory.arena_bytes)));
  if (job.offload) {
    PrintData(fmt::format("  offload: {} of a rank rest in the host's memory, {} for its devices\n",
                          FormatBytes(job.offload->host_bytes),
                          FormatBytes(job.offload->host_bytes * job.mesh.devices())));
  }
  if (plan.times) {
    PrintData("\n");
    PrintTimes(plan, options.batch * options.accumulate, terminal);
  } else {
    PrintData(fmt::format("  kernels of an update {}, beside its collectives\n\n",
                          FormatSeconds(job.kernel_s)));
  }
  PrintCollectives(plan, terminal);
}

// What a cluster's catalog has of it; the machine of one device has as many as are asked for.
constexpr int64_t kMostInMachine = 16;

}  // namespace

Result<MeshTarget> ParseMeshTarget(const std::string& on) {
  if (on.find(',') != std::string::npos) {
    return InvalidArgument(
        fmt::format("--on is '{}'; a mesh is of one kind of device. hint: name one", on));
  }
  const Result<Cluster> cluster = FindCluster(on);
  if (cluster.ok()) return MeshTarget{cluster->device, *cluster};
  return MeshTarget{on, std::nullopt};
}

Result<DeviceGroup> DevicesAt(const MeshTarget& place, const Hardware& hardware, int64_t devices) {
  if (!place.cluster) {
    if (devices <= kMostInMachine) return DeviceGroup{&hardware, devices};
    return InvalidArgument(
        fmt::format("--on {} is one machine; it has {} devices at most, the mesh has {}. hint: one "
                    "of `ridge devices clusters`",
                    place.device, kMostInMachine, devices));
  }
  const Cluster& cluster = *place.cluster;
  const int64_t per_node = cluster.per_node();
  if (devices <= per_node) return DeviceGroup{&hardware, devices, 1, cluster.node_bytes_per_s()};
  const int64_t nodes = devices / per_node;
  if (devices % per_node != 0) {
    return InvalidArgument(
        fmt::format("{} devices are no whole nodes of {}, which have {}. hint: {} devices", devices,
                    cluster.id, per_node, (nodes + 1) * per_node));
  }
  if (cluster.nodes && nodes > static_cast<int64_t>(*cluster.nodes)) {
    return InvalidArgument(fmt::format("{} devices are {} nodes; {} has {}. hint: fewer devices",
                                       devices, nodes, cluster.id, *cluster.nodes));
  }
  return DeviceGroup{&hardware, per_node, nodes, cluster.node_bytes_per_s()};
}

double WireShare(const Machine& machine, const std::string& precision) {
  const bool is_mixed = precision != "f32" && precision != "tf32";
  return machine.software.eager && is_mixed ? 0.5 : 1;
}

Status PrintMeshPlan(const TrainOptions& given, const MeshFlags& flags, const MeshTarget& place,
                     const Hardware* hardware, const Machine& machine, bool json,
                     const Terminal& terminal) {
  TrainOptions options = given;
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options, &notes));
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(flags.mesh.value_or("")));
  RIDGE_ASSIGN_OR_RETURN(const Sharding sharding, ParseSharding(flags.shard.value_or("")));
  MeshLinks links;
  if (hardware != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(links.all, DevicesAt(place, *hardware, mesh.devices()));
    links.wire_share = WireShare(machine, options.precision);
  }
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options));
  MeshPlan plan;
  RIDGE_ASSIGN_OR_RETURN(
      plan.job, PlanMeshJob(options, forward.graph, forward.facts, mesh, sharding, machine));
  plan.peak_flops_per_s = machine.peak_flops_per_s;
  if (hardware != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(plan.times, TimesOfMesh(plan.job, options.accumulate, links));
  }
  if (json) {
    PrintJson(options, plan);
  } else {
    const std::string where = hardware == nullptr ? "" : " of " + place.name();
    PrintText(options, plan, where, terminal);
  }
  const MeshJob& job = plan.job;
  const int64_t needed = job.memory.needed_bytes();
  if (options.fit_bytes == 0 || needed <= options.fit_bytes) return Status();
  return Status(
      ErrorCode::kOutOfMemory,
      fmt::format("plan: a rank needs {}; --fit allows {}. hint: more devices on an axis, "
                  "or --shard zero3",
                  FormatBytes(needed), FormatBytes(options.fit_bytes)));
}

}  // namespace ridge::cli
