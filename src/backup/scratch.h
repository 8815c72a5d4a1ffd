#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::backup {

// A private directory for half-done work, gone with this object. Making one also removes those of
// the same prefix that a crash has left, so only one may be at work in `parent` at a time.
class Scratch {
 public:
  static Result<Scratch> make(const std::string& parent, const std::string& prefix);
  Scratch(Scratch&&) = default;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  Scratch(UniqueFd parent, std::string name, std::string path)
      : parent_(std::move(parent)), name_(std::move(name)), path_(std::move(path)) {}

  UniqueFd parent_;
  std::string name_;
  std::string path_;
  UniqueFd fd_;
};

}  // namespace atl::backup
