// What the server asks of the launcher: fixed verbs, ids of [a-z0-9-], numbers. One message is one
// SOCK_SEQPACKET datagram: a header, then the payload. No message carries a path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atoll/types.h"

namespace atl::wire {

enum class LauncherType : uint16_t {
  Failure = 1,
  Done,
  StatusRequest,
  Status,
  BuildRequest,
  Built,
  LimitsRequest,
  FreezeRequest,
  StopRequest,     // end the processes, keep the files
  DestroyRequest,  // end the processes, discard the files
  DiscardRequest,  // discard the files of a stopped sandbox
  ReserveRequest,  // how many blank slots to keep ready
  PublishRequest,  // the files of a stopped sandbox, or of a state, become a template layer
  KeepRequest,     // a sandbox's files as they are now become a state
  CopyRequest,     // a new sandbox gets the files of a state, or of another sandbox
  Kept,
  RestoreRequest,  // a stopped sandbox's files become those of a state
  DropRequest,     // a state is not needed any more
  DiffRequest,     // what changed between two states
  Difference,
  UsageRequest,
  Usage,
  Ended,  // unasked: a sandbox's PID 1 is gone
  ShutdownRequest,
  ImportRequest,  // what the server has fetched becomes layers
  ImportProgress,
  Imported,
  CollectRequest,  // layers that nobody needs are put out of the way
  SweepRequest,    // and removed, however long that takes
  ExportRequest,   // layers become an archive
  StorageRequest,  // how full the pool is; it may grow first
  Storage,
  CheckpointRequest,  // a sandbox's processes, and its files with them, are kept
  ReviveRequest,      // kept processes run again
  ForgetRequest,      // kept processes are not needed any more
  CriuRequest,        // whether processes can be kept here
  Criu,
  GateRequest,  // a sandbox gets a way out, whose sockets go to egress
  DialRequest,  // sockets of a sandbox's own network
  Dialable,
};

struct LauncherFailure {
  static constexpr LauncherType kType = LauncherType::Failure;
  uint8_t code = 0;
  std::string message;
  void visit(auto& v) { v(code, message); }
};

struct LauncherDone {
  static constexpr LauncherType kType = LauncherType::Done;
  void visit(auto&) {}
};

struct BuildRequest {
  static constexpr LauncherType kType = LauncherType::BuildRequest;
  std::string sandbox;              // names its files and its host name
  std::vector<std::string> layers;  // topmost first
  Limits limits;
  bool ephemeral = false;  // its files need not survive a host crash
  bool existing = false;   // it has files already, and must have
  bool gate = false;       // it has a way out
  void visit(auto& v) { v(sandbox, layers, limits, ephemeral, existing, gate); }
};

struct Built {
  static constexpr LauncherType kType = LauncherType::Built;
  std::string slot;
  int32_t pid = 0;
  bool slot_was_ready = false;
  uint32_t total_us = 0;
  uint32_t overlay_us = 0;
  uint32_t attach_us = 0;
  std::vector<std::string> degraded;
  void visit(auto& v) { v(slot, pid, slot_was_ready, total_us, overlay_us, attach_us, degraded); }
};

struct LimitsRequest {
  static constexpr LauncherType kType = LauncherType::LimitsRequest;
  std::string slot;
  std::string sandbox;
  Limits limits;
  void visit(auto& v) { v(slot, sandbox, limits); }
};

struct FreezeRequest {
  static constexpr LauncherType kType = LauncherType::FreezeRequest;
  std::string slot;
  bool frozen = true;
  void visit(auto& v) { v(slot, frozen); }
};

struct StopRequest {
  static constexpr LauncherType kType = LauncherType::StopRequest;
  std::string slot;
  void visit(auto& v) { v(slot); }
};

struct DestroyRequest {
  static constexpr LauncherType kType = LauncherType::DestroyRequest;
  std::string slot;
  std::string sandbox;
  void visit(auto& v) { v(slot, sandbox); }
};

struct DiscardRequest {
  static constexpr LauncherType kType = LauncherType::DiscardRequest;
  std::string sandbox;
  void visit(auto& v) { v(sandbox); }
};

struct ReserveRequest {
  static constexpr LauncherType kType = LauncherType::ReserveRequest;
  uint32_t slots = 0;
  void visit(auto& v) { v(slots); }
};

// How layers that were made here are called, beside the states that they live among.
inline constexpr const char* kLayerPrefix = "layer-";

struct PublishRequest {
  static constexpr LauncherType kType = LauncherType::PublishRequest;
  std::string sandbox;  // a stopped one, which has no files afterwards
  std::string state;    // where there is no sandbox; it stays
  std::string layer;
  void visit(auto& v) { v(sandbox, state, layer); }
};

struct KeepRequest {
  static constexpr LauncherType kType = LauncherType::KeepRequest;
  std::string slot;  // its processes stand still meanwhile; empty: it has none
  std::string sandbox;
  std::string state;
  void visit(auto& v) { v(slot, sandbox, state); }
};

struct CopyRequest {
  static constexpr LauncherType kType = LauncherType::CopyRequest;
  std::string state;    // the source, or:
  std::string slot;     // as above
  std::string sandbox;  // the source
  std::string copy;
  void visit(auto& v) { v(state, slot, sandbox, copy); }
};

struct Kept {
  static constexpr LauncherType kType = LauncherType::Kept;
  uint32_t frozen_us = 0;
  uint32_t total_us = 0;
  uint64_t bytes = 0;  // that the source had written
  void visit(auto& v) { v(frozen_us, total_us, bytes); }
};

struct RestoreRequest {
  static constexpr LauncherType kType = LauncherType::RestoreRequest;
  std::string sandbox;
  std::string state;
  void visit(auto& v) { v(sandbox, state); }
};

struct DropRequest {
  static constexpr LauncherType kType = LauncherType::DropRequest;
  std::string state;
  void visit(auto& v) { v(state); }
};

struct DiffRequest {
  static constexpr LauncherType kType = LauncherType::DiffRequest;
  std::string before;               // a state
  std::string after;                // a state, or:
  std::string sandbox;              // as it is now
  std::vector<std::string> layers;  // of both, topmost first
  bool with_texts = false;
  void visit(auto& v) { v(before, after, sandbox, layers, with_texts); }
};

struct FileChange {
  uint8_t kind = 0;
  uint8_t type = 0;
  std::string path;
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string text;
  void visit(auto& v) { v(kind, type, path, size_before, size_after, text); }
};

struct Difference {
  static constexpr LauncherType kType = LauncherType::Difference;
  std::vector<FileChange> changes;
  bool complete = true;
  void visit(auto& v) { v(changes, complete); }
};

struct UsageRequest {
  static constexpr LauncherType kType = LauncherType::UsageRequest;
  std::string slot;
  std::string sandbox;  // whose files are measured
  void visit(auto& v) { v(slot, sandbox); }
};

struct UsageReply {
  static constexpr LauncherType kType = LauncherType::Usage;
  Usage usage;
  uint64_t cache_bytes = 0;
  uint64_t disk_bytes = 0;
  void visit(auto& v) { v(usage, cache_bytes, disk_bytes); }
};

struct StorageRequest {
  static constexpr LauncherType kType = LauncherType::StorageRequest;
  uint64_t grow_to = 0;  // bytes; 0: it stays as it is
  void visit(auto& v) { v(grow_to); }
};

struct StorageReply {
  static constexpr LauncherType kType = LauncherType::Storage;
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t host_free_bytes = 0;  // where the pool's image lies
  bool growable = false;
  std::string lacking;  // why nothing can be copied or limited; empty where it can
  void visit(auto& v) { v(bytes, free_bytes, host_free_bytes, growable, lacking); }
};

struct StatusRequest {
  static constexpr LauncherType kType = LauncherType::StatusRequest;
  uint32_t from = 0;  // how many names of the lists below are known already
  void visit(auto& v) { v(from); }
};

struct LiveSlot {
  std::string slot;
  int32_t pid = 0;
  void visit(auto& v) { v(slot, pid); }
};

// Slots found alive that an earlier launcher built, and sandboxes that have files; the server
// destroys and discards those it does not know. Names come in parts, as one message holds only
// some.
struct Status {
  static constexpr LauncherType kType = LauncherType::Status;
  std::vector<LiveSlot> slots;
  std::vector<std::string> sandboxes;
  std::vector<std::string> states;
  std::vector<std::string> images;
  std::vector<std::string> degraded;
  std::string cgroup_mode;
  bool more = false;  // names beyond these
  void visit(auto& v) { v(slots, sandboxes, states, images, degraded, cgroup_mode, more); }
};

struct Ended {
  static constexpr LauncherType kType = LauncherType::Ended;
  std::string slot;
  int32_t status = 0;  // as waitid reports it; -1 where another process reaped it
  bool oom = false;
  void visit(auto& v) { v(slot, status, oom); }
};

// The directory in `incoming` holds the archive "upload", or the layers that the plan names.
struct ImportRequest {
  static constexpr LauncherType kType = LauncherType::ImportRequest;
  std::string staging;
  std::string plan;  // an encoded image::ImagePlan; empty: there is an upload
  void visit(auto& v) { v(staging, plan); }
};

// Unasked, while an import is under way.
struct ImportProgress {
  static constexpr LauncherType kType = LauncherType::ImportProgress;
  std::string staging;
  uint32_t layer = 0;
  uint32_t layers = 0;
  uint64_t bytes = 0;
  uint64_t total = 0;
  void visit(auto& v) { v(staging, layer, layers, bytes, total); }
};

struct Imported {
  static constexpr LauncherType kType = LauncherType::Imported;
  std::vector<std::string> layers;  // from the bottom up
  std::string digest;
  uint64_t template_bytes = 0;
  uint64_t entries = 0;  // that were unpacked now
  uint64_t bytes = 0;
  uint32_t reused_layers = 0;
  std::vector<std::string> env;  // NAME=VALUE
  std::string workdir;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  void visit(auto& v) {
    v(layers, digest, template_bytes, entries, bytes, reused_layers, env, workdir, user, entrypoint,
      cmd);
  }
};

struct ExportRequest {
  static constexpr LauncherType kType = LauncherType::ExportRequest;
  std::string staging;              // gets the archive, as kArchiveFile
  std::vector<std::string> layers;  // topmost first
  std::string state;                // on top of them; empty: none
  void visit(auto& v) { v(staging, layers, state); }
};
inline constexpr const char* kArchiveFile = "archive";

struct CollectRequest {
  static constexpr LauncherType kType = LauncherType::CollectRequest;
  std::vector<std::string> keep;
  void visit(auto& v) { v(keep); }
};

struct SweepRequest {
  static constexpr LauncherType kType = LauncherType::SweepRequest;
  void visit(auto&) {}
};

// Answered with Kept, whose bytes are the image's.
struct CheckpointRequest {
  static constexpr LauncherType kType = LauncherType::CheckpointRequest;
  std::string slot;
  std::string sandbox;
  std::string image;
  std::string state;     // its files at that moment; empty: not kept
  bool end = false;      // its processes do not go on
  bool durable = false;  // it must survive a crash of the host
  void visit(auto& v) { v(slot, sandbox, image, state, end, durable); }
};

// Answered with Built. The sandbox has its files already.
struct ReviveRequest {
  static constexpr LauncherType kType = LauncherType::ReviveRequest;
  std::string image;
  BuildRequest sandbox;
  void visit(auto& v) { v(image, sandbox); }
};

struct ForgetRequest {
  static constexpr LauncherType kType = LauncherType::ForgetRequest;
  std::string image;
  void visit(auto& v) { v(image); }
};

struct CriuRequest {
  static constexpr LauncherType kType = LauncherType::CriuRequest;
  void visit(auto&) {}
};

struct Criu {
  static constexpr LauncherType kType = LauncherType::Criu;
  bool available = false;
  std::string version;
  std::string reason;  // where it is not
  void visit(auto& v) { v(available, version, reason); }
};

struct GateRequest {
  static constexpr LauncherType kType = LauncherType::GateRequest;
  std::string slot;
  void visit(auto& v) { v(slot); }
};

// Answered with Dialable, which two descriptors come with: os::InnerSockets.
struct DialRequest {
  static constexpr LauncherType kType = LauncherType::DialRequest;
  std::string slot;
  void visit(auto& v) { v(slot); }
};

struct Dialable {
  static constexpr LauncherType kType = LauncherType::Dialable;
  void visit(auto&) {}
};

struct ShutdownRequest {
  static constexpr LauncherType kType = LauncherType::ShutdownRequest;
  void visit(auto&) {}
};

}  // namespace atl::wire
