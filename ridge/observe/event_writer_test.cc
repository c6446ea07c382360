#include "ridge/observe/event_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ridge/core/crc32c.h"
#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/observe/tensorboard.pb.h"

namespace ridge {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return hex;
}

uint64_t Number(std::string_view bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::string NewFolder(const std::string& name) {
  const std::string folder = TestFolder() + "/" + name;
  EXPECT_TRUE(MakeFolders(folder).ok());
  return folder;
}

std::unique_ptr<EventWriter> MustCreate(const std::string& folder,
                                        EventWriterOptions options = {}) {
  auto writer = EventWriter::Create(folder, std::move(options));
  RIDGE_CHECK(writer.ok(), writer.status().message());
  return std::move(*writer);
}

// The events of a file; fails the test at a record that does not verify.
std::vector<tensorboard::Event> ReadEvents(const std::string& path) {
  const std::string content = *ReadFile(path);
  std::string_view rest = content;
  std::vector<tensorboard::Event> events;
  while (!rest.empty()) {
    const uint64_t length = Number(rest.substr(0, 8));
    EXPECT_EQ(Number(rest.substr(8, 4)), MaskCrc32c(Crc32c(rest.substr(0, 8))));
    const std::string_view payload = rest.substr(12, length);
    EXPECT_EQ(Number(rest.substr(12 + length, 4)), MaskCrc32c(Crc32c(payload)));
    EXPECT_TRUE(events.emplace_back().ParseFromArray(payload.data(), static_cast<int>(length)));
    rest.remove_prefix(length + 16);
  }
  return events;
}

EventWriterOptions AtSecond(double* clock) {
  EventWriterOptions options;
  options.wall_seconds = [clock] { return *clock; };
  return options;
}

TEST(FrameRecord, IsATfrecord) {
  EXPECT_EQ(Hex(FrameRecord("a")), "01000000000000000175de4161786ee428");
}

TEST(FrameRecord, FramesTheFirstEventAsTensorBoardDoes) {
  tensorboard::Event event;
  event.set_wall_time(1.0);
  event.set_file_version("brain.Event:2");
  EXPECT_EQ(Hex(FrameRecord(event.SerializeAsString())),
            "1800000000000000a37f4b22"
            "09000000000000f03f1a0d627261696e2e4576656e743a32"
            "86bf577a");
}

TEST(EventWriter, BeginsWithVersionAndWriter) {
  double clock = 1.0;
  const auto writer = MustCreate(NewFolder("first"), AtSecond(&clock));
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].wall_time(), 1.0);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].source_metadata().writer(), "ridge");
}

TEST(EventWriter, NamesFilesSoThatTheyNeverCollide) {
  double clock = 1700000000.9;
  const std::string folder = NewFolder("names");
  const auto a = MustCreate(folder, AtSecond(&clock));
  const auto b = MustCreate(folder, AtSecond(&clock));
  const std::string start = folder + "/events.out.tfevents.1700000000.";
  EXPECT_EQ(a->path().substr(0, start.size()), start);
  EXPECT_EQ(a->path().substr(a->path().size() - 2), ".0");
  EXPECT_EQ(b->path().substr(b->path().size() - 2), ".1");
}

TEST(EventWriter, FirstValueOfATagCarriesMetadata) {
  double clock = 5;
  const auto writer = MustCreate(NewFolder("tags"), AtSecond(&clock));
  const std::vector<ScalarValue> both = {{"train/loss", 0.5}, {"train/lr", 1e-3}};
  ASSERT_TRUE(writer->AddScalars(7, both).ok());
  clock = 6;
  ASSERT_TRUE(writer->AddScalar("train/loss", 8, std::nan("")).ok());
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());  // before any flush
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].summary().value_size(), 2);
  for (const auto& value : events[1].summary().value()) {
    EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "scalars");
    EXPECT_EQ(value.metadata().data_class(), tensorboard::SummaryMetadata::SCALAR);
  }
  EXPECT_EQ(events[1].summary().value(1).tag(), "train/lr");
  EXPECT_EQ(events[1].summary().value(1).simple_value(), 1e-3F);
  EXPECT_EQ(events[2].wall_time(), 6);
  EXPECT_FALSE(events[2].summary().value(0).has_metadata());
  EXPECT_TRUE(std::isnan(events[2].summary().value(0).simple_value()));
}

TEST(EventWriter, ResumedRunMakesReadersForgetLaterSteps) {
  EventWriterOptions options;
  options.resumed_step = 400;
  const auto writer = MustCreate(NewFolder("resume"), options);
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].step(), 401);
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
}

TEST(EventWriter, HistogramIsATensorOfLeftRightAndCount) {
  const auto writer = MustCreate(NewFolder("histogram"));
  const std::vector<HistogramBucket> buckets = {{-1, 0, 3}, {0, 2, 4}};
  ASSERT_TRUE(writer->AddHistogram("weights/w", 7, buckets).ok());
  ASSERT_TRUE(writer->AddHistogram("weights/w", 8, buckets).ok());
  ASSERT_TRUE(writer->AddHistogram("weights/w", 9, {}).ok());
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 3U);
  const auto& value = events[1].summary().value(0);
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "histograms");
  EXPECT_EQ(value.tensor().dtype(), tensorboard::TensorData::DOUBLE);
  ASSERT_EQ(value.tensor().tensor_shape().dim_size(), 2);
  EXPECT_EQ(value.tensor().tensor_shape().dim(0).size(), 2);
  EXPECT_EQ(value.tensor().tensor_shape().dim(1).size(), 3);
  std::vector<double> numbers(6);
  ASSERT_EQ(value.tensor().tensor_content().size(), 48U);
  std::memcpy(numbers.data(), value.tensor().tensor_content().data(), 48);
  EXPECT_EQ(numbers, (std::vector<double>{-1, 0, 3, 0, 2, 4}));
  EXPECT_FALSE(events[2].summary().value(0).has_metadata());
}

TEST(EventWriter, HyperparametersAndEndLieInMetadata) {
  double clock = 3;
  const auto writer = MustCreate(NewFolder("hparams"), AtSecond(&clock));
  const std::vector<Hyperparameter> given = {
      {"lr", 0.5}, {"model", std::string("m\xff")}, {"trace", true}};
  ASSERT_TRUE(writer->AddSessionStart(given).ok());
  clock = 4;
  ASSERT_TRUE(writer->AddSessionEnd(/*succeeded=*/false).ok());
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 3U);
  tensorboard::HparamsPluginData start, end;
  const auto& first = events[1].summary().value(0);
  EXPECT_EQ(first.tag(), "_hparams_/session_start_info");
  ASSERT_TRUE(start.ParseFromString(first.metadata().plugin_data().content()));
  const auto& hparams = start.session_start_info().hparams();
  EXPECT_EQ(hparams.at("lr").number_value(), 0.5);
  EXPECT_EQ(hparams.at("model").string_value(), "m\xff");
  EXPECT_TRUE(hparams.at("trace").bool_value());
  EXPECT_EQ(start.session_start_info().start_time_secs(), 3);
  ASSERT_TRUE(end.ParseFromString(events[2].summary().value(0).metadata().plugin_data().content()));
  EXPECT_EQ(end.session_end_info().status(), tensorboard::SessionEndInfo::FAILURE);
  EXPECT_EQ(end.session_end_info().end_time_secs(), 4);
}

TEST(EventWriter, FullDiskLeavesWholeRecords) {
  const auto writer = MustCreate(NewFolder("full"));
  const auto size = std::filesystem::file_size(writer->path());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{size + 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = writer->AddScalar("train/loss", 1, 0.5);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status.message(), writer->path() + ": cannot write: File too large");
  EXPECT_TRUE(writer->AddScalar("train/loss", 2, 0.25).ok());
  const std::vector<tensorboard::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].step(), 2);
  EXPECT_TRUE(events[1].summary().value(0).has_metadata());  // of the first value that is there
}

TEST(EventWriter, NamesTheFolderItCannotWriteIn) {
  const auto writer = EventWriter::Create("/no/such/folder");
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(writer.status().message().substr(0, 36), "/no/such/folder/events.out.tfevents.");
}

}  // namespace
}  // namespace ridge
