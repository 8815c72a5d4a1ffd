// A directory for what one import fetches, gone with the import.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::image {

class Staging {
 public:
  // In <data_dir>/incoming, for the given account. Removes what imports that crashed left there.
  static Result<Staging> create(const std::string& data_dir, uid_t uid, gid_t gid);
  // One that another process made and keeps: stays where it is.
  static Result<Staging> open(const std::string& data_dir, const std::string& id);
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  ~Staging();

  int dir() const { return dir_.get(); }
  const std::string& id() const { return id_; }

 private:
  Staging(UniqueFd parent, std::string id, UniqueFd dir)
      : parent_(std::move(parent)), id_(std::move(id)), dir_(std::move(dir)) {}

  UniqueFd parent_;  // invalid for one that another process keeps
  std::string id_;
  UniqueFd dir_;  // locked, which shows that it is in use
};

}  // namespace atl::image
