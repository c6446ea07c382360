#include "ridge/data/container/parquet_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libridge_parquet.so";
constexpr int64_t kMostBytes = int64_t{4} << 30;  // that Arrow allocates for a file
using Text = std::array<char, 1024>;

std::vector<std::string> Places() {
  if (const char* given = std::getenv("RIDGE_PARQUET")) return {given};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> places;
  if (!error) places = {program.parent_path() / "lib/ridge" / kName, program / kName};
  places.emplace_back(kName);
  return places;
}

Result<const RidgeParquetApi*> LoadPlugin() {
  std::string reasons;
  for (const std::string& place : Places()) {
    std::error_code ignored;
    if (place != kName && !fs::exists(place, ignored)) continue;
    // Stays open: its functions are used as long as the program runs.
    void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (place != kName) reasons += fmt::format(" ({})", ::dlerror());
      continue;
    }
    const auto entry = reinterpret_cast<RidgeParquetEntry>(::dlsym(library, "ridge_parquet_api"));
    if (entry != nullptr && entry()->abi == RIDGE_PARQUET_ABI) return entry();
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{} has interface {}; this program has {}. hint: build it again with "
                              "scripts/build_parquet.sh",
                              place, entry == nullptr ? 0 : entry()->abi, RIDGE_PARQUET_ABI));
  }
  return Status(ErrorCode::kUnsupported,
                fmt::format("Parquet files are read by a plug-in, {}, which is not there{}. hint: "
                            "pip install pyarrow, then scripts/build_parquet.sh",
                            kName, reasons));
}

const Result<const RidgeParquetApi*>& Plugin() {
  static const auto* plugin = new Result<const RidgeParquetApi*>(LoadPlugin());
  return *plugin;
}

}  // namespace

Status ParquetFile::Bad(const std::string& what) const {
  return Status(ErrorCode::kInvalidData, path_ + ": " + what);
}

Result<ParquetFile> ParquetFile::Open(const std::string& path) {
  const auto& plugin = Plugin();
  if (!plugin.ok()) return Status(plugin.status().code(), path + ": " + plugin.status().message());
  ParquetFile file;
  file.api_ = *plugin;
  file.path_ = path;
  Text error{};
  void* opened =
      file.api_->open(path.c_str(), kMostBytes, error.data(), static_cast<int64_t>(error.size()));
  if (opened == nullptr) return file.Bad(error.data());
  file.file_ = std::shared_ptr<void>(opened, file.api_->close);
  for (int32_t i = 0; i < file.api_->columns(opened); ++i) {
    const RidgeParquetColumn column = file.api_->column(opened, i);
    file.columns_.push_back({column.name, column.type, static_cast<RidgeParquetKind>(column.kind)});
  }
  file.row_groups_ = file.api_->row_groups(opened);
  return file;
}

Status ParquetFile::Load(int32_t group) {
  Text error{};
  loaded_ = group;
  const int32_t failed =
      api_->load(file_.get(), group, error.data(), static_cast<int64_t>(error.size()));
  return failed == 0 ? Status() : Bad(fmt::format("row group {}: {}", group, error.data()));
}

Result<RidgeParquetChunk> ParquetFile::Chunk(int32_t column) {
  Text error{};
  RidgeParquetChunk chunk{};
  const int32_t failed =
      api_->chunk(file_.get(), column, &chunk, error.data(), static_cast<int64_t>(error.size()));
  const std::string& name = columns_[static_cast<size_t>(column)].name;
  if (failed != 0)
    return Bad(fmt::format("row group {}: column '{}' {}", loaded_, name, error.data()));
  if (chunk.rows == rows(loaded_)) return chunk;
  return Bad(fmt::format("row group {}: column '{}' has {} rows; the others have {}", loaded_, name,
                         chunk.rows, rows(loaded_)));
}

}  // namespace ridge
