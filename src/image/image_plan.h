// What an import has to do, as found out by a process without rights from documents that strangers
// wrote. Who acts on it has rights and parses nothing: digests, places of bytes, plain settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::image {

struct PlannedLayer {
  std::string diff_id;  // 64 hex digits, like the next
  std::string blob;     // in a directory of blobs: its name
  uint64_t offset = 0;  // in an archive: where its bytes are
  uint64_t size = 0;
  void visit(auto& v) { v(diff_id, blob, offset, size); }
};

enum class PlanOrigin : uint8_t {
  Layout,   // blobs of an OCI layout's directory
  Archive,  // ranges of one file
  Staged,   // files that were fetched into the import's own directory
};

struct ImagePlan {
  PlanOrigin origin = PlanOrigin::Layout;
  std::string digest;                // of what describes the image: 64 hex digits
  std::vector<PlannedLayer> layers;  // from the bottom up
  std::vector<std::string> env;      // NAME=VALUE
  std::string workdir;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  void visit(auto& v) { v(origin, digest, layers, env, workdir, user, entrypoint, cmd); }
};

// Digests that are digests, and as many layers as there may be: for plans from another process.
Result<void> check_plan(const ImagePlan& plan);

}  // namespace atl::image
