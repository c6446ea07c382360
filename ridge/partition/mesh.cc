#include "ridge/partition/mesh.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

namespace ridge {
namespace {

bool IsName(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

Status Refused(const std::string& text, const std::string& why) {
  return Status(
      ErrorCode::kInvalidArgument,
      fmt::format("mesh \"{}\": {}. hint: write names and sizes, such as d=2,t=4", text, why));
}

Result<MeshAxis> ParseAxis(const std::string& text, std::string_view part) {
  const size_t equals = part.find('=');
  const std::string_view name = part.substr(0, equals);
  if (equals == std::string_view::npos || !IsName(name)) {
    return Refused(text, fmt::format("\"{}\" is no axis; it must be NAME=SIZE, and the name must "
                                     "begin with a letter",
                                     part));
  }
  const std::string_view digits = part.substr(equals + 1);
  int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size() || size < 1 ||
      size > kMostDevices) {
    return Refused(text, fmt::format("the size of {} is \"{}\"; it must be a number from 1 to {}",
                                     name, digits, kMostDevices));
  }
  return MeshAxis{std::string(name), size};
}

}  // namespace

int64_t Mesh::devices() const {
  int64_t count = 1;
  for (const MeshAxis& axis : axes) count *= axis.size;
  return count;
}

int Mesh::Find(std::string_view name) const {
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].name == name) return static_cast<int>(a);
  }
  return -1;
}

std::vector<int64_t> Mesh::CoordinatesOf(int64_t device) const {
  std::vector<int64_t> coordinates(axes.size());
  for (size_t a = axes.size(); a-- > 0; device /= axes[a].size)
    coordinates[a] = device % axes[a].size;
  return coordinates;
}

int64_t Mesh::DeviceAt(const std::vector<int64_t>& coordinates) const {
  int64_t device = 0;
  for (size_t a = 0; a < axes.size(); ++a) device = device * axes[a].size + coordinates[a];
  return device;
}

std::vector<int64_t> Mesh::PeersOf(int64_t device, int axis) const {
  std::vector<int64_t> coordinates = CoordinatesOf(device), peers;
  for (int64_t i = 0; i < size(axis); ++i) {
    coordinates[static_cast<size_t>(axis)] = i;
    peers.push_back(DeviceAt(coordinates));
  }
  return peers;
}

Result<Mesh> ParseMesh(const std::string& text) {
  Mesh mesh;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    RIDGE_ASSIGN_OR_RETURN(MeshAxis axis,
                           ParseAxis(text, std::string_view(text).substr(begin, end - begin)));
    if (mesh.Find(axis.name) >= 0)
      return Refused(text, fmt::format("axis {} is there twice", axis.name));
    mesh.axes.push_back(std::move(axis));
    if (mesh.devices() > kMostDevices) {
      return Refused(text, fmt::format("it has {} devices; at most {} are possible", mesh.devices(),
                                       kMostDevices));
    }
    begin = end + 1;
  }
  return mesh;
}

std::string MeshText(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

}  // namespace ridge
