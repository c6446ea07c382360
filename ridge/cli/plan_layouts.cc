#include "ridge/cli/plan_layouts.h"

#include <fmt/format.h>

#include "ridge/cli/output.h"
#include "ridge/core/units.h"
#include "ridge/report/layout_report.h"
#include "ridge/train/job/layout_search.h"
#include "ridge/train/load/folder_options.h"

namespace ridge::cli {
namespace {

constexpr size_t kShown = 10;

std::string TitleOf(const TrainOptions& options, const MeshTarget& place, int64_t batch,
                    int64_t devices) {
  return fmt::format("{}, {} an update, {}, on {} devices of {}", options.model,
                     FormatCountOf(batch, "sample"), options.precision, FormatInteger(devices),
                     place.name());
}

// The choice that --mesh, --shard, --batch, --accumulate and --recompute say.
Result<LayoutChoice> ChoiceOf(const TrainOptions& options, const MeshFlags& flags) {
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(flags.mesh.value_or("")));
  RIDGE_ASSIGN_OR_RETURN(const Sharding sharding, ParseSharding(flags.shard.value_or("")));
  const std::string order[] = {kPipelineAxis, kDataAxis, kTensorAxis};
  LayoutChoice choice;
  int64_t* const sizes[] = {&choice.pipeline, &choice.data, &choice.tensor};
  size_t at = 0;
  for (const MeshAxis& axis : mesh.axes) {
    while (at < std::size(order) && order[at] != axis.name) ++at;
    if (at == std::size(order)) {
      return InvalidArgument(
          fmt::format("mesh {}: with stages the axes are p, d and t in this order. hint: --mesh "
                      "p=2,d=2,t=2",
                      MeshText(mesh)));
    }
    *sizes[at] = axis.size;
  }
  choice.zero = sharding.zero;
  choice.sequence = sharding.sequence;
  choice.recompute = options.recompute == "full" || options.recompute == "all";
  choice.micro_batches = options.accumulate;
  choice.samples = options.batch / choice.data;
  if (options.batch % choice.data == 0) return choice;
  return InvalidArgument(
      fmt::format("mesh {}: d={} does not divide the batch of {}. hint: --batch {}", MeshText(mesh),
                  choice.data, options.batch, choice.data * (choice.samples + 1)));
}

std::string CommandOf(const TrainOptions& options, const MeshTarget& place,
                      const LayoutChoice& choice) {
  std::string command = fmt::format("ridge plan {} --on {} --precision {} --mesh {} --batch {}",
                                    options.model, place.name(), options.precision,
                                    LayoutMeshText(choice), choice.data * choice.samples);
  if (choice.micro_batches > 1) command += fmt::format(" --accumulate {}", choice.micro_batches);
  if (const std::string shard = LayoutShardText(choice); shard != "none")
    command += " --shard " + shard;
  if (choice.recompute) command += " --recompute full";
  return command;
}

Status DoesNotFitMesh(const LayoutCost& cost, int64_t limit_bytes, const std::string& what) {
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("plan: {} needs {} of a device, which has {}. hint: more devices, or "
                            "--mesh auto",
                            what, FormatBytes(cost.bytes.all()), FormatBytes(limit_bytes)));
}

std::string CountsText(const LayoutsFound& found) {
  return fmt::format(
      "\n  {} layouts fit; of {} the variables alone are too large, {} do not fit "
      "with their activations; {} graphs were planned\n",
      FormatInteger(found.fit), FormatInteger(found.variables_too_large),
      FormatInteger(found.too_large), found.planned_steps);
}

Status PrintFound(const LayoutRequest& request, const MeshTarget& place, LayoutsFound found,
                  LayoutTable table, bool json, const Terminal& terminal) {
  const std::string counts = CountsText(found);
  if (found.fitting.empty() && !found.smallest) {
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("plan: the variables alone are too large for {} devices of {} each. "
                              "hint: more devices",
                              request.links.all.count(), FormatBytes(request.limit_bytes)));
  }
  if (found.fitting.empty())
    return DoesNotFitMesh(*found.smallest, request.limit_bytes,
                          "the smallest layout, " + LayoutMeshText(found.smallest->choice) + ",");
  table.layouts = std::move(found.fitting);
  if (table.layouts.size() > kShown) table.layouts.resize(kShown);
  if (json) {
    PrintData(LayoutsJson(table) + "\n");
    return Status();
  }
  PrintData(LayoutReport(table, terminal) + counts);
  if (!found.no_tensor.empty()) PrintData("  " + found.no_tensor + "\n");
  PrintData("\n  " + CommandOf(request.options, place, table.layouts.front().choice) + "\n");
  return Status();
}

}  // namespace

bool IsComposed(const MeshFlags& flags, const TrainOptions& options, const MeshTarget& target) {
  if (flags.mesh == "auto" || options.recompute == "full" || options.recompute == "all")
    return true;
  const Result<Mesh> mesh = ParseMesh(flags.mesh.value_or(""));
  if (!mesh.ok() || mesh->Find(kPipelineAxis) < 0) return false;
  return mesh->axes.size() > 1 || target.cluster;
}

Status PrintLayouts(const TrainOptions& given, const MeshFlags& flags, const MeshTarget& place,
                    const Hardware& hardware, int64_t devices, const Machine& machine, bool json,
                    const Terminal& terminal) {
  LayoutRequest request;
  request.options = given;
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(request.options, &notes));
  request.limit_bytes = given.fit_bytes > 0 ? given.fit_bytes : machine.memory_bytes;
  request.links.wire_share = WireShare(machine, given.precision);
  LayoutTable table;
  table.peak_flops_per_s = machine.peak_flops_per_s;
  table.limit_bytes = request.limit_bytes;
  if (flags.mesh == "auto") {
    RIDGE_ASSIGN_OR_RETURN(request.links.all, DevicesAt(place, hardware, devices));
    table.title = TitleOf(given, place, given.batch * given.accumulate, devices);
    RIDGE_ASSIGN_OR_RETURN(LayoutsFound found, SearchLayouts(request, machine));
    return PrintFound(request, place, std::move(found), std::move(table), json, terminal);
  }
  RIDGE_ASSIGN_OR_RETURN(const LayoutChoice choice, ChoiceOf(request.options, flags));
  RIDGE_ASSIGN_OR_RETURN(request.links.all, DevicesAt(place, hardware, choice.devices()));
  table.title = TitleOf(given, place, choice.batch(), choice.devices());
  RIDGE_ASSIGN_OR_RETURN(const LayoutCost cost, PlanLayout(request, choice, machine));
  table.layouts = {cost};
  PrintData(json ? LayoutJson(table) + "\n" : LayoutReport(table, terminal));
  if (cost.bytes.all() <= request.limit_bytes) return Status();
  return DoesNotFitMesh(cost, request.limit_bytes, "mesh " + LayoutMeshText(choice));
}

}  // namespace ridge::cli
