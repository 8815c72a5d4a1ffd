// Blocking frames for the file worker.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/file_messages.h"
#include "wire/frame.h"

namespace atl::agent {

class FileChannel {
 public:
  FileChannel(UniqueFd socket, wire::FrameBuffer pending);

  template <class Message>
  Result<void> send(const Message& message) {
    std::string bytes;
    wire::append_frame(bytes, 0, message);
    return write_all(bytes);
  }
  Result<void> send_error(const Error& error);
  // A FileData frame with these bytes.
  Result<void> send_data(std::span<const char> bytes);
  // A FileData frame with the next `size` bytes of a file, without passing them through here.
  Result<size_t> send_file(int fd, size_t size);
  // Nothing at the end of the connection. The payload is valid until the next call.
  Result<std::optional<wire::Frame>> receive();
  // The next bytes of an upload, as they arrive: empty at its end (FileEnd). Valid until the next
  // call.
  Result<std::string_view> receive_data();
  int fd() const { return socket_.get(); }
  // A frame was begun and could not be finished.
  bool broken() const { return broken_; }

 private:
  Result<void> write_all(std::string_view bytes);
  Result<size_t> read_some(char* space, size_t size);

  UniqueFd socket_;
  wire::FrameBuffer in_;
  size_t data_left_ = 0;  // of the FileData frame that is being handed out
  std::string bulk_;
  bool broken_ = false;
};

}  // namespace atl::agent
