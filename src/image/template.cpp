#include "image/template.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/random_id.h"
#include "image/template_file.h"
#include "image/tree.h"

namespace atl::image {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr size_t kMaxFileBytes = size_t{8} << 20;
constexpr size_t kMaxVersions = 256;
constexpr const char* kHoldFile = ".layers-in-use";

Error bad(std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field("template");
}

Result<void> check_name(std::string_view name) {
  if (is_valid_id(name)) return {};
  return fail(
      bad("a template's name is 1 to 64 characters of a-z, 0-9 and '-', not starting with "
          "'-'"));
}

bool is_tag(std::string_view tag) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !tag.empty() && tag.size() <= 64 && tag.find_first_not_of(kAllowed) == tag.npos;
}

Error missing(const std::string& reference, const std::string& name) {
  std::string remedy = reference == name
                           ? fmt::format(
                                 "make one with 'atoll template import ROOTFS.tar.zst "
                                 "--name {}' ('./dev setup' makes 'base')",
                                 name)
                           : "'atoll template ls --all' lists versions and tags";
  return Error(ErrorCode::TemplateMissing,
               fmt::format("there is no template '{}'; {}", reference, remedy))
      .with_field("template");
}

Result<std::string> read_small_file(int fd, const std::string& name) {
  std::string content;
  std::array<char, 4096> buffer;
  for (;;) {
    ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", name);
    if (size == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(size));
    if (content.size() > kMaxFileBytes) {
      return fail(ErrorCode::Internal, name + " is too large for a template's manifest");
    }
  }
}

// One change of the directory's files at a time, across processes.
Result<UniqueFd> lock_templates(const std::string& dir) {
  ATOLL_ASSIGN(UniqueFd templates, open_or_create_directory(dir));
  while (flock(templates.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("flock", dir);
  }
  return templates;
}

Result<void> store_file(int templates, const TemplateFile& file) {
  return write_file_durably(templates, file.name + std::string(kSuffix),
                            encode_template_file(file));
}

Result<std::vector<TemplateFile>> load_all(const std::string& dir) {
  std::vector<TemplateFile> files;
  UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return files;
  if (!fd.valid()) return fail_errno("open", dir);
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(fd.get()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix) || name.front() == '.') continue;
    std::string stem = name.substr(0, name.size() - kSuffix.size());
    ATOLL_TRY(check_name(stem));
    Result<TemplateFile> file = load_template_file(dir, stem);
    // Removed meanwhile.
    if (!file && file.error().code() == ErrorCode::TemplateMissing) continue;
    if (!file) return fail(std::move(file).error());
    files.push_back(std::move(*file));
  }
  return files;
}

Result<UniqueFd> open_hold(const std::string& dir) {
  ATOLL_ASSIGN(UniqueFd templates, open_or_create_directory(dir));
  UniqueFd hold(
      openat(templates.get(), kHoldFile, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!hold.valid()) return fail_errno("openat", kHoldFile);
  return hold;
}

}  // namespace

Result<TemplateFile> load_template_file(const std::string& dir, const std::string& name) {
  std::string path = fmt::format("{}/{}{}", dir, name, kSuffix);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) return fail(missing(name, name));
  if (!fd.valid()) return fail_errno("open", path);
  ATOLL_ASSIGN(std::string content, read_small_file(fd.get(), path));
  Result<TemplateFile> file = parse_template_file(content);
  if (!file) return fail(std::move(file).error().context("reading " + path));
  if (file->name != name) {
    return fail(ErrorCode::Internal, fmt::format("{} is about '{}'", path, file->name));
  }
  return file;
}

Result<const Template*> select_version(const TemplateFile& file, const TemplateReference& wanted) {
  if (!wanted.version && wanted.tag.empty()) return &file.versions.back();
  uint32_t number = wanted.version.value_or(0);
  std::string text = fmt::format("{}@{}", wanted.name, number);
  if (!wanted.tag.empty()) {
    text = fmt::format("{}:{}", wanted.name, wanted.tag);
    auto tagged = file.tags.find(wanted.tag);
    if (tagged == file.tags.end()) return fail(missing(text, wanted.name));
    number = tagged->second;
  }
  const Template* found = file.version(number);
  if (found == nullptr) return fail(missing(text, wanted.name));
  return found;
}

std::string now_rfc3339() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Result<TemplateReference> parse_template_reference(std::string_view text) {
  TemplateReference reference;
  size_t mark = text.find_first_of("@:");
  reference.name = text.substr(0, mark);
  ATOLL_TRY(check_name(reference.name));
  if (mark == text.npos) return reference;
  std::string_view rest = text.substr(mark + 1);
  if (text[mark] == ':') {
    if (!is_tag(rest)) return fail(bad("a tag is 1 to 64 letters, digits, '.', '_' and '-'"));
    reference.tag = rest;
    return reference;
  }
  uint32_t number = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || end != rest.data() + rest.size() || number == 0) {
    return fail(bad("a template's version is a number: NAME@2"));
  }
  reference.version = number;
  return reference;
}

Result<uint32_t> save_template(const std::string& dir, const Template& manifest) {
  ATOLL_TRY(check_name(manifest.name));
  ATOLL_ASSIGN(UniqueFd templates, lock_templates(dir));
  // The unprivileged server reads the manifests. It may be the one who writes, in a directory that
  // was made for it.
  struct stat info {};
  if (fstat(templates.get(), &info) != 0) return fail_errno("fstat", dir);
  if ((info.st_mode & 0005) != 0005 && fchmod(templates.get(), info.st_mode | 0755) != 0) {
    return fail_errno("fchmod", dir);
  }
  Result<TemplateFile> file = load_template_file(dir, manifest.name);
  if (!file && file.error().code() != ErrorCode::TemplateMissing) {
    return fail(std::move(file).error());
  }
  if (!file) file = TemplateFile{.name = manifest.name, .versions = {}, .tags = {}};
  if (file->versions.size() >= kMaxVersions) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("'{}' has {} versions; remove some with 'atoll template rm {}@VERSION'",
                            manifest.name, kMaxVersions, manifest.name));
  }
  Template added = manifest;
  added.version = file->versions.empty() ? 1 : file->versions.back().version + 1;
  file->versions.push_back(added);
  ATOLL_TRY(store_file(templates.get(), *file));
  return added.version;
}

Result<Template> load_template(const std::string& dir, const std::string& reference) {
  ATOLL_ASSIGN(TemplateReference wanted, parse_template_reference(reference));
  ATOLL_ASSIGN(TemplateFile file, load_template_file(dir, wanted.name));
  ATOLL_ASSIGN(const Template* found, select_version(file, wanted));
  return *found;
}

Result<std::vector<Template>> list_templates(const std::string& dir) {
  ATOLL_ASSIGN(std::vector<TemplateFile> files, load_all(dir));
  std::vector<Template> newest;
  for (TemplateFile& file : files) newest.push_back(std::move(file.versions.back()));
  return newest;
}

Result<std::vector<Template>> list_template_versions(const std::string& dir) {
  ATOLL_ASSIGN(std::vector<TemplateFile> files, load_all(dir));
  std::vector<Template> all;
  for (TemplateFile& file : files) {
    for (auto it = file.versions.rbegin(); it != file.versions.rend(); ++it) {
      all.push_back(std::move(*it));
    }
  }
  return all;
}

Result<void> tag_template(const std::string& dir, const std::string& reference,
                          const std::string& tag) {
  if (!is_tag(tag)) return fail(bad("a tag is 1 to 64 letters, digits, '.', '_' and '-'"));
  ATOLL_ASSIGN(TemplateReference wanted, parse_template_reference(reference));
  ATOLL_ASSIGN(UniqueFd templates, lock_templates(dir));
  ATOLL_ASSIGN(TemplateFile file, load_template_file(dir, wanted.name));
  ATOLL_ASSIGN(const Template* found, select_version(file, wanted));
  file.tags[tag] = found->version;
  return store_file(templates.get(), file);
}

Result<std::vector<Template>> select_templates(const std::string& dir,
                                               const std::string& reference) {
  ATOLL_ASSIGN(TemplateReference wanted, parse_template_reference(reference));
  ATOLL_ASSIGN(TemplateFile file, load_template_file(dir, wanted.name));
  if (!wanted.version && wanted.tag.empty()) return std::move(file.versions);
  ATOLL_ASSIGN(const Template* found, select_version(file, wanted));
  return std::vector<Template>{*found};
}

Result<void> remove_template(const std::string& dir, const std::string& reference) {
  ATOLL_ASSIGN(TemplateReference wanted, parse_template_reference(reference));
  ATOLL_ASSIGN(UniqueFd templates, lock_templates(dir));
  ATOLL_ASSIGN(TemplateFile file, load_template_file(dir, wanted.name));
  if (wanted.version || !wanted.tag.empty()) {
    ATOLL_ASSIGN(const Template* found, select_version(file, wanted));
    uint32_t number = found->version;
    std::erase_if(file.versions, [&](const Template& item) { return item.version == number; });
    std::erase_if(file.tags, [&](const auto& item) { return item.second == number; });
    if (!file.versions.empty()) return store_file(templates.get(), file);
  }
  std::string name = wanted.name + std::string(kSuffix);
  if (unlinkat(templates.get(), name.c_str(), 0) != 0) return fail_errno("unlinkat", name);
  if (fsync(templates.get()) != 0) return fail_errno("fsync", dir);
  return {};
}

Result<UniqueFd> hold_layers(const std::string& dir) {
  ATOLL_ASSIGN(UniqueFd hold, open_hold(dir));
  while (flock(hold.get(), LOCK_SH) != 0) {
    if (errno != EINTR) return fail_errno("flock", kHoldFile);
  }
  return hold;
}

Result<std::optional<UniqueFd>> hold_layers_alone(const std::string& dir) {
  ATOLL_ASSIGN(UniqueFd hold, open_hold(dir));
  if (flock(hold.get(), LOCK_EX | LOCK_NB) == 0) return hold;
  if (errno == EWOULDBLOCK) return std::nullopt;
  return fail_errno("flock", kHoldFile);
}

}  // namespace atl::image
