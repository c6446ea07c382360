#include "ridge/partition/split.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

const char* OverText(Factor::Over over) {
  switch (over) {
    case Factor::Over::kMax:
      return "max";
    case Factor::Over::kMin:
      return "min";
    default:
      return "sum";
  }
}

}  // namespace

const Cut* Split::CutBy(int axis) const {
  for (const Cut& cut : cuts) {
    if (cut.axis == axis) return &cut;
  }
  return nullptr;
}

const PendingAxis* Split::PendingBy(int axis) const {
  for (const PendingAxis& p : pending) {
    if (p.axis == axis) return &p;
  }
  return nullptr;
}

void Split::Add(Cut cut) {
  const auto order = [](const Cut& c) { return std::tuple(c.dim, c.blocks, c.axis); };
  cuts.insert(
      std::find_if(cuts.begin(), cuts.end(), [&](const Cut& c) { return order(cut) < order(c); }),
      cut);
}

void Split::Remove(int axis) {
  std::erase_if(cuts, [&](const Cut& c) { return c.axis == axis; });
  std::erase_if(pending, [&](const PendingAxis& p) { return p.axis == axis; });
}

void Split::AddPending(PendingAxis pending_axis) {
  pending.insert(std::lower_bound(pending.begin(), pending.end(), pending_axis), pending_axis);
}

bool CanCut(const Dims& dims, const Split& split, const Cut& cut, const Mesh& mesh) {
  if (cut.dim < 0 || static_cast<size_t>(cut.dim) >= dims.size() || split.Uses(cut.axis))
    return false;
  const int64_t extent = dims[static_cast<size_t>(cut.dim)];
  if (extent == 0 || extent % (cut.blocks * mesh.size(cut.axis)) != 0) return false;
  Split with = split;
  with.Add(cut);
  for (size_t i = 1; i < with.cuts.size(); ++i) {
    const Cut &coarse = with.cuts[i - 1], &fine = with.cuts[i];
    if (coarse.dim != cut.dim || fine.dim != cut.dim) continue;
    if (fine.blocks % (coarse.blocks * mesh.size(coarse.axis)) != 0) return false;
  }
  return true;
}

Dims LocalDims(const Dims& dims, const Split& split, const Mesh& mesh) {
  Dims local = dims;
  for (const Cut& cut : split.cuts) local[static_cast<size_t>(cut.dim)] /= mesh.size(cut.axis);
  return local;
}

int64_t LocalBlocks(const Split& split, const Cut& cut, const Mesh& mesh) {
  int64_t blocks = cut.blocks;
  for (const Cut& other : split.cuts) {
    if (other.dim == cut.dim && other.blocks < cut.blocks) blocks /= mesh.size(other.axis);
  }
  return blocks;
}

std::string SplitText(const Split& split, int rank, const Mesh& mesh) {
  const auto name = [&](int axis) { return mesh.axes[static_cast<size_t>(axis)].name; };
  std::vector<std::string> dims(static_cast<size_t>(rank));
  for (const Cut& cut : split.cuts) {
    std::string& text = dims[static_cast<size_t>(cut.dim)];
    if (!text.empty()) text += "*";
    text += cut.blocks == 1 ? name(cut.axis) : fmt::format("{}/{}", name(cut.axis), cut.blocks);
  }
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d)
    text += fmt::format("{}{}", d == 0 ? "" : ",", dims[d].empty() ? "-" : dims[d]);
  text += "]";
  for (const PendingAxis& p : split.pending)
    text += fmt::format(" + {} {}", OverText(p.over), name(p.axis));
  return text;
}

std::vector<int64_t> PlacesAlong(int dim, int64_t extent, const Split& split, const Mesh& mesh,
                                 const std::vector<int64_t>& coordinates) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < extent; ++i) {
    const bool here = std::all_of(split.cuts.begin(), split.cuts.end(), [&](const Cut& cut) {
      if (cut.dim != dim) return true;
      const int64_t parts = mesh.size(cut.axis);
      const int64_t part = extent / (cut.blocks * parts);
      return i / part % parts == coordinates[static_cast<size_t>(cut.axis)];
    });
    if (here) places.push_back(i);
  }
  return places;
}

std::vector<int64_t> PlacesOfPart(const Dims& dims, const Split& split, const Mesh& mesh,
                                  const std::vector<int64_t>& coordinates) {
  std::vector<int64_t> places = {0};
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::vector<int64_t> along =
        PlacesAlong(static_cast<int>(d), dims[d], split, mesh, coordinates);
    std::vector<int64_t> longer;
    longer.reserve(places.size() * along.size());
    for (int64_t place : places) {
      for (int64_t i : along) longer.push_back(place * dims[d] + i);
    }
    places = std::move(longer);
  }
  return places;
}

}  // namespace ridge
