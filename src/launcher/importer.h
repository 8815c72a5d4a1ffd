// Unpacks what the server has fetched, in a process of its own: it takes long, and what it reads is
// hostile.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/launcher_messages.h"

namespace atl::launcher {

struct ImporterAccount {
  uid_t uid = 0;  // whom documents are read as
  gid_t gid = 0;
};

class Importer {
 public:
  static Result<Importer> start(uint32_t request_id, wire::ImportRequest request,
                                ImporterAccount account);
  Importer(Importer&& other) noexcept;
  Importer& operator=(Importer&&) = delete;
  ~Importer();

  int fd() const { return socket_.get(); }
  uint32_t request_id() const { return request_id_; }

  // The next frame for the server, to be called when fd() is readable; empty when the process has
  // ended without a last word.
  Result<std::string> next_frame();

 private:
  Importer(uint32_t request_id, pid_t pid, UniqueFd socket)
      : request_id_(request_id), pid_(pid), socket_(std::move(socket)) {}
  uint32_t request_id_;
  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace atl::launcher
