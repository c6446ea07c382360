// Source: POSIX.1-2017 "pax", "ustar Interchange Format"; the GNU tar manual, "Basic Tar Format".
#include "ridge/data/container/tar_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ridge {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kMostExtension = 1 << 20;  // of a long name or a pax header

std::string_view Text(std::string_view block, size_t at, size_t bytes) {
  const std::string_view field = block.substr(at, bytes);
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces, or base-256 where the first bit is set.  Nothing when it is neither,
// negative, or above 2^62.
std::optional<int64_t> ReadNumber(std::string_view field) {
  const auto first = static_cast<uint8_t>(field[0]);
  int64_t value = 0;
  if ((first & 0x80) != 0) {
    value = first & 0x7F;
    for (char c : field.substr(1)) {
      if (value >= int64_t{1} << 54) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  size_t at = std::min(field.find_first_not_of(' '), field.size());
  for (; at < field.size() && field[at] >= '0' && field[at] <= '7'; ++at)
    value = value << 3 | (field[at] - '0');
  const bool ends = at == field.size() || field[at] == ' ' || field[at] == '\0';
  return ends ? std::optional(value) : std::nullopt;
}

bool IsZero(std::string_view block) {
  return std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
}

// The sum of a header's bytes, its own field taken as spaces; old writers took chars as signed.
bool ChecksumIsRight(std::string_view block) {
  constexpr size_t kAt = 148, kBytes = 8;
  int64_t sum = 0, signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const char c = i >= kAt && i < kAt + kBytes ? ' ' : block[i];
    sum += static_cast<uint8_t>(c);
    signed_sum += static_cast<signed char>(c);
  }
  const auto stored = ReadNumber(block.substr(kAt, kBytes));
  return stored == sum || stored == signed_sum;
}

std::string NameIn(std::string_view block) {
  const std::string name(Text(block, 0, 100));
  const bool ustar = block.substr(257, 6) == std::string_view("ustar\0", 6);
  const std::string_view prefix = ustar ? Text(block, 345, 155) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

// What headers before a member say of it.
struct Extension {
  std::optional<std::string> name;
  std::optional<int64_t> bytes;
  bool sparse = false;
};

// Records "LENGTH key=value\n"; false when one is not of that form.
bool ReadPax(std::string_view text, Extension& extension) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(rest - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3) return false;
    const std::string_view record = text.substr(digits, length - digits);
    const size_t equals = record.find('=');
    if (record[0] != ' ' || record.back() != '\n' || equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(1, equals - 1);
    const std::string_view value = record.substr(equals + 1, record.size() - equals - 2);
    if (key == "path") extension.name = value;
    if (key.starts_with("GNU.sparse.")) extension.sparse = true;
    if (key == "size") {
      int64_t bytes = 0;
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (bad != std::errc() || end != value.data() + value.size() || bytes < 0) return false;
      extension.bytes = bytes;
    }
    text.remove_prefix(length);
  }
  return true;
}

class TarWalk {
 public:
  TarWalk(const std::string& path, FileWindow& window) : path_(path), window_(window) {}

  Status Run(const std::function<Status(const TarMember&)>& found) {
    while (true) {
      const auto view = window_.At(at_, kBlock);
      if (!view.ok()) return Status(view.status().code(), path_ + ": " + view.status().message());
      if (static_cast<int64_t>(view->size()) < kBlock) return CutOff(view->size());
      const std::string block(*view);
      if (IsZero(block)) return CheckEnd();
      if (!ChecksumIsRight(block)) return NoHeader();
      RIDGE_RETURN_IF_ERROR(Step(block, found));
    }
  }

 private:
  Status Bad(const std::string& what) const {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: at byte {}: {}", path_, at_, what));
  }
  Status BadMember(const TarMember& member, const std::string& what) const {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: member '{}' at byte {}: {}", path_,
                                                       member.name, member.header, what));
  }
  Status NoHeader() const {
    if (at_ == 0) return Status(ErrorCode::kInvalidData, path_ + ": is no tar archive");
    return Bad("a member's header is damaged: its checksum is wrong");
  }
  Status CutOff(size_t left) const {
    if (at_ == 0) return Status(ErrorCode::kInvalidData, path_ + ": is no tar archive");
    return Bad(fmt::format("the archive is cut off: its end has no mark, {} bytes are left", left));
  }
  // The mark is two blocks of zeros; one is enough, as for GNU tar.  Zeros may follow.
  Status CheckEnd() {
    if (at_ == 0) return Status(ErrorCode::kInvalidData, path_ + ": is no tar archive");
    constexpr int64_t kLooked = 2 * kBlock;
    const auto rest = window_.At(at_ + kBlock, kLooked);
    if (!rest.ok()) return Bad(rest.status().message());
    if (IsZero(*rest)) return Status();
    return Bad("data follows the end of the archive: joined archives are not read");
  }

  // A header and its content.
  Status Step(const std::string& block, const std::function<Status(const TarMember&)>& found) {
    TarMember member{NameIn(block), at_, at_ + kBlock, 0};
    const char type = block[156];
    const bool extends = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    const auto bytes = ReadNumber(std::string_view(block).substr(124, 12));
    if (extension_.name && !extends) member.name = *extension_.name;
    if (!bytes) return BadMember(member, "its size is no number");
    member.bytes = extension_.bytes && !extends ? *extension_.bytes : *bytes;
    if (type >= '1' && type <= '6') member.bytes = 0;  // links, devices and folders have no content
    if (member.bytes > window_.size() - member.begin) {
      return BadMember(member, fmt::format("has {} bytes, but the archive ends after {} of them",
                                           member.bytes, window_.size() - member.begin));
    }
    at_ = member.begin + (member.bytes + kBlock - 1) / kBlock * kBlock;
    if (extends) return Extend(member, type);
    const bool sparse = std::exchange(extension_, Extension()).sparse;
    if (sparse || type == 'S') return BadMember(member, "is a sparse file, which is not read");
    if (type == '1' || type == '2') {
      return BadMember(member,
                       "is a link, which is not read. hint: tar with --dereference and "
                       "--hard-dereference");
    }
    const bool is_file = type == '0' || type == '\0' || type == '7';
    return is_file && !member.name.ends_with('/') ? found(member) : Status();
  }

  Status Extend(const TarMember& member, char type) {
    if (type == 'K' || type == 'g') return Status();
    if (member.bytes > kMostExtension)
      return BadMember(member, fmt::format("is a header of {} bytes, at most {} are read",
                                           member.bytes, kMostExtension));
    const auto text = window_.At(member.begin, member.bytes);
    if (!text.ok()) return BadMember(member, text.status().message());
    if (type == 'L') {
      extension_.name = std::string(text->substr(0, text->find('\0')));
      return Status();
    }
    return ReadPax(*text, extension_) ? Status() : BadMember(member, "its pax header is malformed");
  }

  const std::string& path_;
  FileWindow& window_;
  int64_t at_ = 0;
  Extension extension_;
};

}  // namespace

Status ForEachMember(const FileTable& files, int64_t file, FileWindow& window,
                     const std::function<Status(const TarMember&)>& found) {
  return TarWalk(files.path(file), window).Run(found);
}

}  // namespace ridge
