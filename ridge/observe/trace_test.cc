#include "ridge/observe/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name; }

std::unique_ptr<TraceWriter> MustCreate(const std::string& path) {
  auto writer = TraceWriter::Create(path);
  RIDGE_CHECK(writer.ok(), writer.status().message());
  return std::move(*writer);
}

TEST(Trace, OfNoEventIsValidJson) {
  const std::string path = TestPath("empty.json");
  const auto trace = MustCreate(path);
  ASSERT_TRUE(trace->Close().ok());
  ASSERT_TRUE(trace->Close().ok());
  EXPECT_EQ(*ReadFile(path), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n]}\n");
}

TEST(Trace, WritesOneEventALine) {
  const std::string path = TestPath("text.json");
  const auto trace = MustCreate(path);
  ASSERT_TRUE(trace->NameProcess(0, "ridge").ok());
  ASSERT_TRUE(trace->NameThread({0, 2}, "input", 1).ok());
  const std::vector<TraceArg> args = {{"flops", int64_t{1200}}, {"note", "a \"b\""}, {"r", 0.5}};
  ASSERT_TRUE(trace->AddSpan({"conv1", "conv", {0, 1}, 1.0000005, 2e-6, args}).ok());
  const std::vector<TraceSeries> bytes = {{"planned", 1024}, {"measured", std::nan("")}};
  ASSERT_TRUE(trace->AddCounter("arena bytes", 0, 2, bytes).ok());
  ASSERT_TRUE(trace->Close().ok());
  EXPECT_EQ(*ReadFile(path),
            R"({"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"ridge"}},
{"name":"process_sort_index","ph":"M","pid":0,"tid":0,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"input"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":2,"args":{"sort_index":1}},
{"name":"conv1","cat":"conv","ph":"X","ts":1000000.500,"dur":2.000,"pid":0,"tid":1,)"
            R"("args":{"flops":1200,"note":"a \"b\"","r":0.5}},
{"name":"arena bytes","ph":"C","ts":2000000.000,"pid":0,"args":{"planned":1024,"measured":null}}
]}
)");
}

TEST(Trace, StaysValidForAnyNameAndTime) {
  const std::string path = TestPath("names.json");
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  const auto trace = MustCreate(path);
  const std::vector<TraceArg> args = {{every_byte, std::string_view(every_byte)},
                                      {"inf", std::numeric_limits<double>::infinity()}};
  ASSERT_TRUE(trace->AddSpan({every_byte, "", {}, std::nan(""), -1, args}).ok());
  ASSERT_TRUE(trace->NameProcess(0, every_byte).ok());
  ASSERT_TRUE(trace->Close().ok());
  const auto json = nlohmann::json::parse(*ReadFile(path), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["traceEvents"].size(), 3U);
}

TEST(Trace, WritesWhileItRuns) {
  const std::string path = TestPath("stream.json");
  const auto trace = MustCreate(path);
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(trace->AddSpan({fmt::format("n{}", i), "op", {}, i * 1e-3, 1e-3, {}}).ok());
  EXPECT_GT(ReadFile(path)->size(), 200'000U);
  ASSERT_TRUE(trace->Close().ok());
  const auto json = nlohmann::json::parse(*ReadFile(path), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["traceEvents"].size(), 5000U);
}

TEST(Trace, IsClosedWhenItsOwnerGoes) {
  const std::string path = TestPath("dropped.json");
  { const auto trace = MustCreate(path); }
  EXPECT_EQ(*ReadFile(path), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n]}\n");
}

TEST(Trace, EndsWhereTheDiskFillsUp) {
  const std::string path = TestPath("full.json");
  const auto trace = MustCreate(path);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  Status status;
  for (int i = 0; i < 5000 && status.ok(); ++i)
    status = trace->AddSpan({"node", "op", {}, i * 1e-3, 1e-3, {}});
  const Status later = trace->AddSpan({"node", "op", {}, 0, 0, {}});
  const Status closed = trace->Close();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.message(), path + ": cannot write: File too large");
  EXPECT_EQ(later.message(), status.message());
  EXPECT_EQ(closed.message(), status.message());
  EXPECT_TRUE(nlohmann::json::accept(*ReadFile(path)));
}

}  // namespace
}  // namespace ridge
