#include "image/archive_note.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

namespace atl::image {
namespace {

constexpr uint32_t kSkippableFrame = 0x184D2A5A;
constexpr size_t kMaxNote = 1u << 20;

// The last bytes of the file, and of the frame.
struct Trailer {
  uint32_t note_size = 0;  // little endian, as all of zstd's
  char mark[8] = {'a', 't', 'o', 'l', 'l', ' ', '1', '\n'};
};
static_assert(sizeof(Trailer) == 12);

void append_number(std::string& to, uint32_t number) {
  uint32_t bytes = htole32(number);
  to.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

}  // namespace

Result<void> append_note(int file, std::string_view note) {
  if (note.size() > kMaxNote) return fail(ErrorCode::TooLarge, "a note has at most 1 MiB");
  Trailer trailer;
  trailer.note_size = htole32(static_cast<uint32_t>(note.size()));
  std::string frame;
  append_number(frame, kSkippableFrame);
  append_number(frame, static_cast<uint32_t>(note.size() + sizeof trailer));
  frame.append(note);
  frame.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  if (lseek(file, 0, SEEK_END) < 0) return fail_errno("seek", "the archive");
  return os::write_all(file, frame);
}

Result<std::string> read_note(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return fail_errno("stat", "the archive");
  Trailer trailer, expected;
  off_t at = info.st_size - static_cast<off_t>(sizeof trailer);
  if (at < 0 || pread(file, &trailer, sizeof trailer, at) != sizeof trailer) return std::string();
  uint32_t size = le32toh(trailer.note_size);
  bool ours = memcmp(trailer.mark, expected.mark, sizeof trailer.mark) == 0;
  if (!ours || size > kMaxNote || static_cast<off_t>(size) > at) return std::string();
  std::string note(size, '\0');
  if (pread(file, note.data(), size, at - size) != static_cast<ssize_t>(size)) {
    return fail_errno("read", "the archive's note");
  }
  return note;
}

}  // namespace atl::image
