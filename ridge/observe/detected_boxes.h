// The boxes that a detector found: its answers of all places, thinned by non-maximum suppression.
//
// Limits, and what they mean, are those of Ultralytics' `non_max_suppression`; classes never
// suppress each other.  The result is a function of the set of answers: ties of scores go by class,
// then by x1, y1, x2, y2.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

struct DetectedBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // pixels
  double score = 0;
  int64_t label = 0;
};

inline constexpr int64_t kMostDetected = 300;  // boxes of a picture

struct DetectionLimits {
  double score = 0.25;   // a box is kept above it
  double overlap = 0.7;  // IoU with a better box of its class, above which a box is dropped
  int64_t most = kMostDetected;
  bool every_class = false;  // a place answers for each class above `score`, not its best alone

  // What a mean average precision is computed from.
  static DetectionLimits ForPrecision() { return {.score = 0.001, .every_class = true}; }
};

inline constexpr int64_t kMostCandidates = 30000;  // boxes of a picture before suppression

double Area(const DetectedBox& box);
// Shared area over the area of both; 0 where they share none.
double Overlap(const DetectedBox& a, const DetectedBox& b);

// `answers` [A, 4 + C]: x1, y1, x2, y2 and a probability a class, of each place.  Greatest score
// first.  Answers that are no finite numbers are left out.
// REQUIRES: C >= 1; answers.size() is a multiple of 4 + C.
std::vector<DetectedBox> DetectBoxes(std::span<const double> answers, int64_t classes,
                                     const DetectionLimits& limits);

// Host memory of DetectBoxes, its answers included.
int64_t DetectionBytes(int64_t places, int64_t classes);

// Drops each box that overlaps a better one of its class; greatest score first.
std::vector<DetectedBox> SuppressOverlaps(std::vector<DetectedBox> boxes,
                                          const DetectionLimits& limits);

// How a picture lies in a network's input: input = picture * scale + offset.
struct PictureFrame {
  double scale_x = 1, scale_y = 1;
  double left = 0, top = 0;      // pixels of the input
  double width = 0, height = 0;  // of the picture
};

// A box of the input in pixels of the picture, cut at its edges.
DetectedBox InPicture(const DetectedBox& box, const PictureFrame& frame);

}  // namespace ridge
