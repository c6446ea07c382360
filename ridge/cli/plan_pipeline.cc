#include "ridge/cli/plan_pipeline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/output.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/train/job/pipeline_job.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/load/forward.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUsualSchedule[] = "1f1b";
constexpr int kGanttColumns = 88;

Json ChunkJson(const PipelineJob& job, size_t c) {
  const PipelineChunk& chunk = job.chunks[c];
  return {{"stage", c},
          {"device", job.schedule.DeviceOf(static_cast<int>(c))},
          {"kernels", chunk.kernels},
          {"parameters_bytes", chunk.parameters_bytes},
          {"gradients_bytes", chunk.gradients_bytes},
          {"optimizer_bytes", chunk.optimizer_bytes},
          {"other_bytes", chunk.other_bytes},
          {"kept_bytes", chunk.kept_bytes},
          {"sent_forward_bytes", chunk.forward_bytes},
          {"sent_backward_bytes", chunk.backward_bytes},
          {"exchange_bytes", chunk.exchange_bytes},
          {"forward_s", chunk.seconds.forward_s},
          {"backward_s", chunk.seconds.backward_s},
          {"weights_s", chunk.seconds.weights_s},
          {"send_forward_s", chunk.seconds.send_forward_s},
          {"send_backward_s", chunk.seconds.send_backward_s},
          {"update_s", chunk.update_s}};
}

void PrintJson(const TrainOptions& options, const PipelineJob& job) {
  Json stages = Json::array(), ranks = Json::array();
  for (size_t c = 0; c < job.chunks.size(); ++c) stages.push_back(ChunkJson(job, c));
  for (size_t d = 0; d < job.ranks.size(); ++d) {
    const PipelineRank& rank = job.ranks[d];
    ranks.push_back({{"device", d},
                     {"kept_micro_batches", rank.kept_micros},
                     {"kept_bytes", rank.kept_bytes},
                     {"arena_bytes", rank.arena_bytes},
                     {"peak_bytes", rank.peak_bytes},
                     {"busy_s", job.timeline.busy_s[d]},
                     {"update_s", rank.update_s}});
  }
  const Json json = {{"model", options.model},
                     {"batch", options.batch},
                     {"mesh", {{kPipelineAxis, job.mesh.devices()}}},
                     {"pipeline", ScheduleKindText(job.kind)},
                     {"micro_batches", job.schedule.micros},
                     {"devices", job.mesh.devices()},
                     {"stages", std::move(stages)},
                     {"ranks", std::move(ranks)},
                     {"waiting_messages", job.capacity},
                     {"makespan_s", job.timeline.makespan_s},
                     {"bubble", job.timeline.bubble_share},
                     {"equal_stages_bubble",
                      EqualStagesBubble(job.kind, job.schedule.devices, job.schedule.micros)},
                     {"exchange_s", job.exchange_s},
                     {"step_s", job.step_s},
                     {"one_device_s", job.one_device_s}};
  PrintData(json.dump(2) + "\n");
}

void PrintStages(const PipelineJob& job, const Terminal& terminal) {
  const bool interleaved = job.chunks.size() > job.ranks.size();
  std::vector<Column> columns = {{"stage", Align::kRight}};
  if (interleaved) columns.push_back({"device", Align::kRight});
  for (const char* title : {"kernels", "parameters", "with states", "keeps", "forward", "backward"})
    columns.push_back({title, Align::kRight});
  if (job.schedule.separates_weights) columns.push_back({"weights", Align::kRight});
  for (const char* title : {"sends", "returns"}) columns.push_back({title, Align::kRight});
  Table table(columns);
  for (size_t c = 0; c < job.chunks.size(); ++c) {
    const PipelineChunk& chunk = job.chunks[c];
    std::vector<std::string> cells = {std::to_string(c)};
    if (interleaved) cells.push_back(std::to_string(job.schedule.DeviceOf(static_cast<int>(c))));
    cells.push_back(std::to_string(chunk.kernels));
    cells.push_back(FormatBytes(chunk.parameters_bytes));
    cells.push_back(FormatBytes(chunk.state_bytes()));
    cells.push_back(FormatBytes(chunk.kept_bytes));
    cells.push_back(FormatSeconds(chunk.seconds.forward_s));
    cells.push_back(FormatSeconds(chunk.seconds.backward_s));
    if (job.schedule.separates_weights) cells.push_back(FormatSeconds(chunk.seconds.weights_s));
    for (int64_t bytes : {chunk.forward_bytes, chunk.backward_bytes})
      cells.push_back(bytes > 0 ? FormatBytes(bytes) : "");
    table.AddRow(std::move(cells));
  }
  PrintData(table.ToText(terminal));
}

void PrintRanks(const PipelineJob& job, const Terminal& terminal) {
  Table table({{"device", Align::kRight},
               {"micro batches kept", Align::kRight},
               {"their bytes", Align::kRight},
               {"peak memory", Align::kRight},
               {"busy", Align::kRight}});
  for (size_t d = 0; d < job.ranks.size(); ++d) {
    const PipelineRank& rank = job.ranks[d];
    table.AddRow({std::to_string(d), std::to_string(rank.kept_micros), FormatBytes(rank.kept_bytes),
                  FormatBytes(rank.peak_bytes),
                  fmt::format("{:.0f} %", 100 * job.timeline.busy_s[d] / job.timeline.makespan_s)});
  }
  PrintData(table.ToText(terminal));
}

void PrintText(const TrainOptions& options, const PipelineJob& job, const Terminal& terminal) {
  PrintData(fmt::format("{}, {} micro batches of {}, {} devices: mesh {}, pipeline {}\n\n",
                        options.model, job.schedule.micros, options.batch, job.mesh.devices(),
                        MeshText(job.mesh), ScheduleKindText(job.kind)));
  PrintStages(job, terminal);
  PrintData("\n");
  PrintRanks(job, terminal);
  PrintData(
      fmt::format("\n  an update takes {}, {} of it after the last micro batch; one device {}\n",
                  FormatSeconds(job.step_s), FormatSeconds(job.step_s - job.timeline.makespan_s),
                  FormatSeconds(job.one_device_s)));
  if (job.exchange_bytes > 0)
    PrintData(fmt::format("  stages exchange {} for it, {}\n", FormatBytes(job.exchange_bytes),
                          FormatSeconds(job.exchange_s)));
  PrintData(
      fmt::format("  bubble {:.1f} %; {:.1f} % if all stages took the same time\n\n",
                  100 * job.timeline.bubble_share,
                  100 * EqualStagesBubble(job.kind, job.schedule.devices, job.schedule.micros)));
  PrintData(GanttText(job.timeline, kGanttColumns));
  PrintData(
      fmt::format("      0-9 forward, a-j backward{}; each the last digit of its micro "
                  "batch\n",
                  job.schedule.separates_weights ? ", A-J gradients of weights" : ""));
}

}  // namespace

Status PrintPipelinePlan(const TrainOptions& given, const Mesh& mesh,
                         const std::optional<std::string>& pipeline, const Machine& machine,
                         bool json, const Terminal& terminal) {
  TrainOptions options = given;
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options, &notes));
  RIDGE_ASSIGN_OR_RETURN(const ScheduleKind kind,
                         ParseScheduleKind(pipeline.value_or(kUsualSchedule)));
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options));
  RIDGE_ASSIGN_OR_RETURN(const PipelineGraphs graphs,
                         PlainPipelineGraphs(options, forward.graph, forward.facts, machine));
  RIDGE_ASSIGN_OR_RETURN(const PipelineJob job,
                         PlanPipelineJob(options, graphs, mesh, kind, machine));
  if (json) {
    PrintJson(options, job);
  } else {
    PrintText(options, job, terminal);
  }
  const int64_t needed = job.largest_rank().peak_bytes;
  if (options.fit_bytes == 0 || needed <= options.fit_bytes) return Status();
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("plan: a device needs {}; --fit allows {}. hint: a larger p, or a "
                            "smaller --batch with more --accumulate",
                            FormatBytes(needed), FormatBytes(options.fit_bytes)));
}

}  // namespace ridge::cli
