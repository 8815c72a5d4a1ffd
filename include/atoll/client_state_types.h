// What the client says of snapshots, checkpoints, copies and what differs between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atoll/types.h"

namespace atl {

struct SnapshotRequest {
  std::string message = {};
  std::vector<std::string> tags = {};
  std::optional<std::chrono::seconds> keep = {};  // none: until it is removed
};

struct SnapshotInfo {
  std::string id;
  std::string sandbox;
  std::string sandbox_name;
  std::string parent;
  std::string message;
  std::vector<std::string> tags;
  std::string created_at;
  uint64_t bytes = 0;
  uint64_t frozen_us = 0;
  uint64_t total_us = 0;
  std::string json;  // as the server sent it
};

// What to keep; at least one of the first two says so.
struct PruneRequest {
  std::string sandbox = {};  // empty: of all
  std::optional<uint32_t> newest = {};
  std::optional<std::chrono::seconds> younger_than = {};
  bool dry_run = false;
};

// A snapshot with the processes of that moment.
struct CheckpointInfo {
  std::string id;
  std::string sandbox;
  std::string sandbox_name;
  std::string message;
  std::vector<std::string> tags;
  std::string created_at;
  uint64_t bytes = 0;      // of the processes
  uint64_t frozen_us = 0;  // for how long they stood still
  uint64_t total_us = 0;
  std::string json;  // as the server sent it
};

struct HistoryPoint {
  std::string snapshot;
  uint32_t number = 0;
  std::string command;  // what ran next
  std::string created_at;
  std::string json;  // as the server sent it
};

struct FileDifference {
  std::string path;
  std::string kind;  // "added", "changed" or "removed"
  std::string type;  // "file", "directory", "symlink" or "other"
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string text;  // a unified diff, where there is one
};

struct DiffAnswer {
  std::vector<FileDifference> changes;  // by path
  bool complete = true;
  std::string json;  // as the server sent it
};

struct ForkRequest {
  unsigned count = 1;
  std::string name = {};  // of several copies: NAME-1, NAME-2, ...
  std::map<std::string, std::string> env = {};
  bool memory = false;          // with what runs in it
  std::string checkpoint = {};  // as it was then; empty: as it is now
};

}  // namespace atl
