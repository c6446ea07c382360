#include "ridge/data/image/transforms/box_moves.h"

#include <string_view>

namespace ridge {
namespace {

// [from, to] of an axis that turns round; boxes without an area stay.
void TurnRound(std::span<float> boxes, size_t side, int64_t extent) {
  const auto end = static_cast<float>(extent);
  for (size_t at = 0; at + 4 <= boxes.size(); at += 4) {
    if (!(boxes[at + 2] > boxes[at] && boxes[at + 3] > boxes[at + 1])) continue;
    const float from = boxes[at + side], to = boxes[at + side + 2];
    boxes[at + side] = end - to;
    boxes[at + side + 2] = end - from;
  }
}

void Flip(const PictureShape& shape, const TransformNumbers& numbers, TransformDraws& draws,
          std::span<float> boxes) {
  if (draws.Chance(numbers[0])) TurnRound(boxes, 0, shape.width);
}
void FlipVertically(const PictureShape& shape, const TransformNumbers& numbers,
                    TransformDraws& draws, std::span<float> boxes) {
  if (draws.Chance(numbers[0])) TurnRound(boxes, 1, shape.height);
}
void Keep(const PictureShape&, const TransformNumbers&, TransformDraws&, std::span<float>) {}

struct Row {
  std::string_view name;
  BoxMove move;
};
constexpr Row kMoves[] = {{"flip", Flip},   {"vflip", FlipVertically},
                          {"jitter", Keep}, {"grey", Keep},
                          {"blur", Keep},   {"erase", Keep}};

}  // namespace

BoxMove FindBoxMove(const PictureTransform& transform) {
  for (const Row& row : kMoves) {
    if (row.name == transform.name) return row.move;
  }
  return nullptr;
}

std::string BoxMoveNames() {
  std::string names;
  for (const Row& row : kMoves) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace ridge
