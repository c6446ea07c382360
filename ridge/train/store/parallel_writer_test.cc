#include "ridge/train/store/parallel_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Equal tensors at each rank: one of several pieces, small ones, and a scalar.
class ParallelWriterTest : public testing::Test {
 protected:
  ParallelWriterTest() : large_(700'001), small_(300) {
    std::iota(large_.begin(), large_.end(), 0.25F);
    std::iota(small_.begin(), small_.end(), 7);
    tensors_.parameters = {Tensor("a", {700'001}, large_), Tensor("b", {3, 100}, small_),
                           Tensor("c", {}, large_), Tensor("d", {10, 10}, small_)};
    tensors_.state = {Tensor("a.m", {100, 7'000}, large_)};
  }

  static PersistentTensor Tensor(const char* name, Dims dims, std::vector<float>& values) {
    return {name, {DType::kF32, std::move(dims)}, /*transfers=*/nullptr, 0, values.data()};
  }

  static CheckpointState State() {
    CheckpointState state;
    state.step = 5;
    state.options_json = "{}";
    return state;
  }

  // Step 5 by so many of four ranks.
  Status Save(const std::string& folder, std::vector<int> writers) {
    Status saved;
    RunRanks(4, [&](Communicator& communicator) {
      ParallelWriter writer(communicator, writers);
      if (communicator.rank() != 0) {
        EXPECT_TRUE(writer.Join(tensors_).ok());
        return;
      }
      saved = CheckpointWriter(folder, /*keep=*/2).Save(tensors_, State(), /*best=*/true, &writer);
    });
    return saved;
  }

  std::string Bytes(const std::string& path) { return *ReadFile(path, int64_t{1} << 30); }

  TempFolder folder_;
  std::vector<float> large_, small_;
  CheckpointTensors tensors_;
};

TEST_F(ParallelWriterTest, TheFilesAreThoseOfOneRank) {
  const Status alone = CheckpointWriter(folder_.File("one"), 2).Save(tensors_, State(), true);
  ASSERT_TRUE(alone.ok()) << alone.message();
  for (const std::vector<int>& writers :
       std::vector<std::vector<int>>{{0, 1}, {0, 2, 3}, {0, 1, 2, 3}}) {
    const std::string folder = folder_.File(std::to_string(writers.size()));
    const Status saved = Save(folder, writers);
    ASSERT_TRUE(saved.ok()) << saved.message();
    for (const char* file : {"parameters.safetensors", "state.safetensors", "state.json"}) {
      EXPECT_EQ(Bytes(folder + "/step-5/" + file), Bytes(folder_.File("one/step-5/") + file))
          << file << " of " << writers.size();
    }
    EXPECT_TRUE(Checkpoints(folder).Find("best").ok());
  }
}

TEST_F(ParallelWriterTest, AFolderThatCannotBeMadeIsAFailureAndNotAWait) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("file"), "").ok());
  const Status saved = Save(folder_.File("file"), {0, 1});
  EXPECT_EQ(saved.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(saved.message(), HasSubstr("Not a directory"));
}

TEST_F(ParallelWriterTest, AFileThatCannotBeMadeLeavesNoCheckpoint) {
  tensors_.parameters[0].type.dims = {int64_t{1} << 55};  // no disk has the room
  const Status saved = Save(folder_.File("run"), {0, 1});
  EXPECT_EQ(saved.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(saved.message(), HasSubstr("parameters.safetensors: cannot write: "));
  EXPECT_THAT(saved.message(), HasSubstr(" (rank 0)"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.File("run")));
}

TEST_F(ParallelWriterTest, ARankThatLeavesEndsTheJob) {
  RunRanks(3, [&](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    ParallelWriter writer(communicator, {0, 1});
    if (communicator.rank() == 2) {
      EXPECT_EQ(writer.Join(tensors_).code(), ErrorCode::kUnavailable);
      return;
    }
    const CheckpointWriter checkpoints(folder_.File("run"), 2);
    EXPECT_FALSE(checkpoints.Save(tensors_, State(), true, &writer).ok());
    EXPECT_EQ(writer.lost().code(), ErrorCode::kUnavailable);
  });
}

TEST_F(ParallelWriterTest, WritersAreSpreadOrOneForEachMachine) {
  RunRanks(4, [&](Communicator& communicator) {
    const auto writers = [&](const char* how) {
      const Result<std::vector<int>> chosen = ChooseWriters(&communicator, how, folder_.path());
      EXPECT_TRUE(chosen.ok()) << chosen.status().message();
      return *chosen;
    };
    EXPECT_THAT(writers("auto"), ElementsAre(0));  // all are here
    EXPECT_THAT(writers("1"), ElementsAre(0));
    EXPECT_THAT(writers("2"), ElementsAre(0, 2));
    EXPECT_THAT(writers("3"), ElementsAre(0, 1, 2));
    EXPECT_EQ(ChooseWriters(&communicator, "5", folder_.path()).status().message(),
              "--checkpoint-writers 5: 4 devices train. hint: --checkpoint-writers 4");
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace ridge
