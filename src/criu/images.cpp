#include "criu/images.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include <memory>

#include "base/unique_fd.h"
#include "criu/protobuf.h"
#include "os/file.h"

namespace atl::criu {
namespace {

constexpr uint32_t kIdCount = 65536;

// A file of one message: two magic numbers, the size, the message. Some have one magic number only.
struct Image {
  std::string magic;
  std::string message;
};

Result<Image> read_image(int dir, const std::string& name) {
  constexpr size_t kHead = 8;
  ATOLL_ASSIGN(std::string bytes, os::read_file_at(dir, name.c_str()));
  uint32_t size = 0;
  if (bytes.size() < kHead + sizeof size) {
    return fail(ErrorCode::Internal, "the image " + name + " is too short");
  }
  memcpy(&size, bytes.data() + kHead, sizeof size);
  if (bytes.size() != kHead + sizeof size + size) {
    return fail(ErrorCode::Internal, "the image " + name + " is not one message");
  }
  return Image{bytes.substr(0, kHead), bytes.substr(kHead + sizeof size)};
}

// As a new file: the old one may have another name elsewhere.
Result<void> write_image(int dir, const std::string& name, const Image& image) {
  if (unlinkat(dir, name.c_str(), 0) != 0) return fail_errno("unlink", name);
  UniqueFd file(openat(dir, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return fail_errno("create", name);
  auto size = static_cast<uint32_t>(image.message.size());
  std::string bytes = image.magic;
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  return os::write_all(file.get(), bytes + image.message);
}

// { first = 1, lower_first = 2, count = 3 }
Result<void> check_extent(std::string_view bytes) {
  uint64_t values[4] = {};
  ProtoReader reader(bytes);
  for (;;) {
    ATOLL_ASSIGN(auto field, reader.next());
    if (!field) break;
    if (field->number > 3) return fail(ErrorCode::Internal, "an unknown field in an id map");
    values[field->number] = field->value;
  }
  if (values[1] == 0 && values[3] == kIdCount && values[2] != 0) return {};
  return fail(ErrorCode::Internal, "the dumped user namespace has another map than a sandbox's");
}

}  // namespace

Result<std::vector<std::string>> list_images(int dir) {
  std::vector<std::string> names;
  UniqueFd copy(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> handle(fdopendir(copy.get()), closedir);
  if (handle == nullptr) return fail_errno("open", "the images");
  (void)copy.release();
  while (dirent* item = readdir(handle.get())) {
    if (item->d_type == DT_REG) names.emplace_back(item->d_name);
  }
  return names;
}

Result<void> rewrite_id_maps(int dir, const std::string& name, uint32_t base) {
  ATOLL_ASSIGN(Image image, read_image(dir, name));
  ProtoReader reader(image.message);
  int maps = 0;
  for (;;) {
    ATOLL_ASSIGN(auto field, reader.next());
    if (!field) break;
    if (field->number > 2) return fail(ErrorCode::Internal, "an unknown field in " + name);
    ATOLL_TRY(check_extent(field->bytes));
    maps++;
  }
  if (maps != 2) return fail(ErrorCode::Internal, "not one map of users and one of groups");
  ProtoWriter extent;
  extent.number(1, 0);
  extent.number(2, base);
  extent.number(3, kIdCount);
  std::string one = extent.take();
  ProtoWriter both;
  both.bytes(1, one);
  both.bytes(2, one);
  image.message = both.take();
  return write_image(dir, name, image);
}

Result<void> rewrite_host_name(int dir, const std::string& name, const std::string& host_name) {
  ATOLL_ASSIGN(Image image, read_image(dir, name));
  ProtoReader reader(image.message);
  ProtoWriter writer;
  for (;;) {
    ATOLL_ASSIGN(auto field, reader.next());
    if (!field) break;
    if (field->number > 2) return fail(ErrorCode::Internal, "an unknown field in " + name);
    writer.bytes(field->number, field->number == 1 ? std::string_view(host_name) : field->bytes);
  }
  image.message = writer.take();
  return write_image(dir, name, image);
}

Result<uint32_t> frozen_us(int dir) {
  ATOLL_ASSIGN(Image image, read_image(dir, "stats-dump"));
  ProtoReader outer(image.message);
  for (;;) {
    ATOLL_ASSIGN(auto field, outer.next());
    if (!field) return 0u;
    if (field->number != 1) continue;
    ProtoReader inner(field->bytes);
    for (;;) {
      ATOLL_ASSIGN(auto value, inner.next());
      if (!value) return 0u;
      if (value->number == 2) return static_cast<uint32_t>(value->value);
    }
  }
}

}  // namespace atl::criu
