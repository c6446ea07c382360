#include "ridge/pipeline/timeline.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr double kForwardS = 1.5;

PipelineSchedule Made(const std::string& kind, int devices, int micros) {
  return *MakeSchedule(*ParseScheduleKind(kind), devices, micros);
}

// Chunks of equal seconds whose transfers take none.
Timeline EqualChunks(const PipelineSchedule& schedule) {
  ChunkSeconds seconds;
  seconds.forward_s = kForwardS;
  seconds.backward_s = schedule.separates_weights ? kForwardS : 2 * kForwardS;
  seconds.weights_s = kForwardS;
  return TimeSchedule(schedule,
                      std::vector<ChunkSeconds>(static_cast<size_t>(schedule.chunks), seconds));
}

TEST(Timeline, HasTheBubbleOfTheClosedForm) {
  for (int p = 1; p <= 6; ++p) {
    for (int m : {1, 2, 5, 6, 8, 12, 20}) {
      for (const char* text : {"gpipe", "1f1b", "interleaved:2", "interleaved:3", "zero-bubble"}) {
        const ScheduleKind kind = *ParseScheduleKind(text);
        const Result<PipelineSchedule> schedule = MakeSchedule(kind, p, m);
        if (!schedule.ok() || (schedule->separates_weights && m < p)) continue;
        EXPECT_NEAR(EqualChunks(*schedule).bubble_share, EqualStagesBubble(kind, p, m), 1e-12)
            << text << " p=" << p << " m=" << m;
      }
    }
  }
}

// Qi et al., 2023, table 2: (p - 1) (F + B - W) of ZB-H1, (p - 1) (F + B + W) of 1F1B.
TEST(Timeline, HasTheIdleSecondsOfTheZeroBubblePaper) {
  const ChunkSeconds seconds{/*forward_s=*/2, /*backward_s=*/2.5, /*weights_s=*/1.5};
  const ChunkSeconds together{2, 4};
  for (int p = 2; p <= 6; ++p) {
    const auto chunks = static_cast<size_t>(p);
    for (int m : {p, p + 1, 2 * p, 4 * p}) {
      const double busy_s = 6.0 * m, more = p - 1;
      EXPECT_NEAR(TimeSchedule(Made("zero-bubble", p, m), std::vector(chunks, seconds)).makespan_s,
                  busy_s + more * 3, 1e-9)
          << p << " " << m;
      EXPECT_NEAR(TimeSchedule(Made("1f1b", p, m), std::vector(chunks, together)).makespan_s,
                  busy_s + more * 6, 1e-9)
          << p << " " << m;
    }
  }
}

TEST(Timeline, WaitsForTheSlowestStage) {
  const Timeline t = TimeSchedule(Made("1f1b", 2, 4), {{1, 2}, {2, 4}});
  EXPECT_DOUBLE_EQ(t.makespan_s, 1 + 4 * 6 + 2);
  EXPECT_DOUBLE_EQ(t.busy_s[0], 12);
  EXPECT_DOUBLE_EQ(t.busy_s[1], 24);
}

TEST(Timeline, WaitsForTransfersAndTheirLinks) {
  // One micro batch: forward, activations, forward, backward, gradients, backward.
  ChunkSeconds first{1, 2, 0, /*send_forward_s=*/10, 0}, second{1, 2, 0, 0, /*send_backward_s=*/20};
  EXPECT_DOUBLE_EQ(TimeSchedule(Made("gpipe", 2, 1), {first, second}).makespan_s,
                   1 + 10 + 1 + 2 + 20 + 2);
  // Three: the activations queue on the link.
  first.send_forward_s = 10;
  second.send_backward_s = 0;
  const Timeline t = TimeSchedule(Made("gpipe", 2, 3), {first, second});
  EXPECT_DOUBLE_EQ(t.ops[1][2].begin_s, 1 + 3 * 10);
}

TEST(Gantt, HasACharacterAUnitOfTime) {
  EXPECT_EQ(GanttText(EqualChunks(Made("1f1b", 2, 3)), 12),
            "  0 |01..aa2bb.cc|\n"
            "  1 |.0aa1bb2cc..|\n");
}

TEST(Gantt, ShowsGradientsOfWeightsApart) {
  EXPECT_EQ(GanttText(EqualChunks(Made("zero-bubble", 2, 3)), 10),
            "  0 |01.aA2bBcC|\n"
            "  1 |.0a1bA2cBC|\n");
}

}  // namespace
}  // namespace ridge
