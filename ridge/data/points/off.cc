// OFF (Geomview): corners and faces as text, also with the counts on the first line, as some files
// of ModelNet40 have them.
//
// Places on the surface are drawn by area.  They are numbers along the total area, sorted, so that
// a second walk over the faces meets them in order and no list of triangles is needed; a face of
// more corners is a fan of triangles.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ridge/core/random.h"
#include "ridge/data/points/formats.h"
#include "ridge/data/points/text_numbers.h"

namespace ridge {
namespace {

constexpr int64_t kMostCorners = 1 << 16;  // of a face

Status BadOff(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

struct Triangle {
  const double *a = nullptr, *b = nullptr, *c = nullptr;

  double Area() const {
    const double u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const double v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const double x = u[1] * v[2] - u[2] * v[1];
    const double y = u[2] * v[0] - u[0] * v[2];
    const double z = u[0] * v[1] - u[1] * v[0];
    return std::sqrt(x * x + y * y + z * z) / 2;
  }
};

// The triangles of all faces, in the order of the file.
template <typename F>
Status ForEachTriangle(std::string_view text, const CloudHeader& header, const double* corners,
                       const F& f) {
  TextNumbers faces(text, /*comments=*/true);
  for (int64_t face = 0; face < header.faces; ++face) {
    const auto count = faces.Number<int64_t>();
    if (!count || *count < 1 || *count > kMostCorners) {
      return BadOff(fmt::format("face {} of {} has no number of corners, or a wrong one", face,
                                header.faces));
    }
    Triangle triangle;
    for (int64_t i = 0; i < *count; ++i) {
      const auto corner = faces.Number<int64_t>();
      if (!corner || *corner < 0 || *corner >= header.points)
        return BadOff(
            fmt::format("face {} names a corner that is none of the {}", face, header.points));
      triangle.b = triangle.c;
      triangle.c = corners + 3 * *corner;
      if (i == 0) triangle.a = triangle.c;
      if (i >= 2) f(triangle);
    }
    faces.Line();  // colours
  }
  return Status();
}

struct Place {
  double along = 0;  // of the area before it
  int64_t index = 0;
};

RandomKey MeshKey() { return {.seed = 0, .stream = StableHash("points of a mesh"), .step = 0}; }

double Fraction(uint32_t word) { return (word + 0.5) * 0x1p-32; }

void PlaceIn(const Triangle& triangle, int64_t index, double* out) {
  const auto words = DrawBlock(MeshKey(), 0, static_cast<uint64_t>(index));
  const double root = std::sqrt(Fraction(words[2])), v = Fraction(words[3]);
  for (int d = 0; d < 3; ++d) {
    out[3 * index + d] =
        (1 - root) * triangle.a[d] + root * (1 - v) * triangle.b[d] + root * v * triangle.c[d];
  }
}

}  // namespace

Result<CloudHeader> ReadOffHeader(std::string_view start, int64_t file_bytes) {
  TextNumbers text(start.substr(3), /*comments=*/true);
  CloudHeader header;
  header.format = CloudFormat::kOff;
  const auto points = text.Number<int64_t>(), faces = text.Number<int64_t>();
  const auto edges = text.Number<int64_t>();
  if (!points || !faces || !edges || *faces < 0 || text.rest().empty())
    return BadOff("its OFF header has no numbers of corners, faces and edges");
  if (*points < 1 || *points > kMostCloudPoints) {
    return BadOff(fmt::format("its OFF header declares {} corners; 1 to {} are read", *points,
                              kMostCloudPoints));
  }
  header.points = *points;
  header.faces = *faces;
  header.is_text = true;
  header.columns = 3;
  header.places = {0, 1, 2};
  header.data_offset = static_cast<int64_t>(text.position()) + 3;
  const int64_t left = file_bytes - header.data_offset;
  if (*points > (left + 1) / 6 || *faces > (left + 1 - 6 * *points) / 4) {
    return BadOff(
        fmt::format("its OFF header declares {} corners and {} faces, and {} bytes follow", *points,
                    *faces, left));
  }
  return header;
}

Status SampleMesh(std::string_view faces, const CloudHeader& header, const double* corners,
                  std::span<char> scratch, double* out) {
  double total = 0;
  RIDGE_RETURN_IF_ERROR(
      ForEachTriangle(faces, header, corners, [&](const Triangle& t) { total += t.Area(); }));
  if (!(total > 0) || !std::isfinite(total)) return BadOff("the area of its faces is 0");
  const std::span places(reinterpret_cast<Place*>(scratch.data()), size_t{kMeshPoints});
  for (int64_t i = 0; i < kMeshPoints; ++i) {
    const auto words = DrawBlock(MeshKey(), 0, static_cast<uint64_t>(i));
    places[static_cast<size_t>(i)] = {total * Fraction(words[0]), i};
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.along != b.along ? a.along < b.along : a.index < b.index;
  });
  double before = 0;
  size_t next = 0;
  Triangle last;
  RIDGE_RETURN_IF_ERROR(ForEachTriangle(faces, header, corners, [&](const Triangle& t) {
    before += t.Area();
    for (; next < places.size() && places[next].along < before; ++next)
      PlaceIn(t, places[next].index, out);
    if (t.Area() > 0) last = t;
  }));
  for (; next < places.size(); ++next) PlaceIn(last, places[next].index, out);  // of rounding
  return Status();
}

}  // namespace ridge
