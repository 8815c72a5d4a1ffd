// A sandbox's files at one moment, kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

struct Snapshot {
  std::string id;      // also names the state in the backend
  Record source;       // the sandbox, as it was then
  std::string parent;  // the snapshot that the sandbox stood on; empty: its template
  std::string message;
  std::vector<std::string> tags;
  bool automatic = false;  // a point of the sandbox's history; `message` is the command after it
  uint32_t number = 0;     // of that command
  int64_t created_at_ms = 0;
  int64_t expires_at_ms = 0;  // 0: never
  uint32_t frozen_us = 0;     // for how long the sandbox stood still
  uint32_t total_us = 0;
  uint64_t bytes = 0;   // what the sandbox had written
  bool memory = false;  // a checkpoint: its processes are kept too, under the same name
  uint64_t memory_bytes = 0;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

struct SnapshotInput {
  std::string message;
  std::vector<std::string> tags;
  uint32_t keep_s = 0;     // 0: until it is removed
  bool automatic = false;  // for the history
};

// One of the sandbox as it is now, without what is known only when it has been taken.
Snapshot describe_snapshot(const Sandbox& sandbox, SnapshotInput input, std::string id);

Result<std::string> encode_snapshot(const Snapshot& snapshot, const PolicySeal& seal = {});
Result<Snapshot> decode_snapshot(std::string_view text, const PolicySeal& seal = {});

class SnapshotIndex {
 public:
  void add(SnapshotPtr snapshot) { by_id_[snapshot->id] = std::move(snapshot); }
  void remove(const std::string& id) { by_id_.erase(id); }
  bool contains(const std::string& id) const { return by_id_.contains(id); }
  // By id, or by a tag: then the newest that has it.
  SnapshotPtr find(const Caller& caller, const std::string& id_or_tag) const;
  // Oldest first; of one sandbox, or of all where `sandbox` is empty.
  std::vector<SnapshotPtr> list(const Caller& caller, const std::string& sandbox) const;
  std::vector<SnapshotPtr> expired(int64_t now_ms) const;
  uint64_t memory_bytes() const;  // of all checkpoints

 private:
  std::map<std::string, SnapshotPtr> by_id_;
};

}  // namespace atl::sandbox
