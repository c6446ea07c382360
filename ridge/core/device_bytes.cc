#include "ridge/core/device_bytes.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json PartsJson(const DeviceParts& parts, int64_t staging) {
  return {{"context", parts.context},
          {"arena", parts.arena},
          {"kernels", parts.kernels},
          {"graphs", parts.graphs},
          {"staging", staging}};
}

void ReadParts(const Json& json, DeviceParts& parts) {
  parts.context = json.at("context");
  parts.arena = json.at("arena");
  parts.kernels = json.at("kernels");
  parts.graphs = json.at("graphs");
}

Json OptionalJson(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

std::optional<int64_t> OptionalOf(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<int64_t>(json.get<int64_t>());
}

}  // namespace

const char* BytesVerdictName(BytesVerdict verdict) {
  switch (verdict) {
    case BytesVerdict::kProven:
      return "proven";
    case BytesVerdict::kMoreThanPlanned:
      return "more_than_planned";
    case BytesVerdict::kLeak:
      return "leak";
    case BytesVerdict::kShared:
      return "shared";
  }
  return "";
}

DeviceParts DeviceBytes::measured() const {
  return {.context = used.context - used.before.value_or(0),
          .arena = used.arena - used.context,
          .kernels = used.kernels - used.arena,
          .graphs = used.graphs - used.kernels};
}

int64_t DeviceBytes::given_back() const {
  const std::array<int64_t, 6> readings = {
      used.before.value_or(0), used.context, used.arena, used.kernels, used.graphs, used.end};
  int64_t most = 0;
  for (size_t i = 1; i < readings.size(); ++i) most = std::max(most, readings[i - 1] - readings[i]);
  return most;
}

BytesVerdict DeviceBytes::verdict() const {
  if (others.count > 0 || given_back() > 0) return BytesVerdict::kShared;
  if (growth() > 0) return BytesVerdict::kLeak;
  return used.end > peak_bytes ? BytesVerdict::kMoreThanPlanned : BytesVerdict::kProven;
}

Json DeviceBytesToJson(const DeviceBytes& bytes) {
  const DeviceReadings& used = bytes.used;
  Json json = {{"device", bytes.device},
               {"verdict", BytesVerdictName(bytes.verdict())},
               {"peak_bytes", bytes.peak_bytes},
               {"used",
                {{"before", OptionalJson(used.before)},
                 {"context", used.context},
                 {"arena", used.arena},
                 {"kernels", used.kernels},
                 {"graphs", used.graphs},
                 {"end", used.end}}},
               {"planned", PartsJson(bytes.planned, bytes.planned_staging)},
               {"measured", PartsJson(bytes.measured(), bytes.staging)},
               {"growth", bytes.growth()},
               {"other_processes",
                {{"count", bytes.others.count}, {"bytes", OptionalJson(bytes.others.bytes)}}}};
  if (!bytes.no_before.empty()) json["no_before"] = bytes.no_before;
  return json;
}

DeviceBytes DeviceBytesFromJson(const Json& json) {
  DeviceBytes bytes;
  bytes.device = json.at("device");
  bytes.peak_bytes = json.at("peak_bytes");
  const Json& used = json.at("used");
  bytes.used = {.before = OptionalOf(used.at("before")),
                .context = used.at("context"),
                .arena = used.at("arena"),
                .kernels = used.at("kernels"),
                .graphs = used.at("graphs"),
                .end = used.at("end")};
  ReadParts(json.at("planned"), bytes.planned);
  bytes.planned_staging = json.at("planned").at("staging");
  bytes.staging = json.at("measured").at("staging");
  const Json& others = json.at("other_processes");
  bytes.others = {others.at("count"), OptionalOf(others.at("bytes"))};
  bytes.no_before = json.value("no_before", "");
  return bytes;
}

void DeviceBytesLog::SeeOthers() {
  const OtherProcesses now = ReadOthers();
  OtherProcesses& most = bytes_.others;
  const bool told = now.bytes && most.bytes;
  most.bytes = told ? std::optional(std::max(*now.bytes, *most.bytes)) : std::nullopt;
  most.count = std::max(most.count, now.count);
}

void DeviceBytesLog::End(int64_t used_bytes, int64_t peak_bytes) {
  bytes_.used.end = used_bytes;
  bytes_.peak_bytes = peak_bytes;
  SeeOthers();
}

}  // namespace ridge
