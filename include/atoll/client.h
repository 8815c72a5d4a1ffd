// The blocking C++ client of an Atoll server: sandboxes, commands, files.
//
//   auto client = atl::Client::connect();
//   auto sandbox = client->create({.name = "web"});
//   auto result = client->exec("web", {.argv = {"echo", "hi"}});   // result->stdout_data == "hi\n"
//
// A sandbox is addressed by its id or its name. Relative paths start at /workspace. Every failure
// is an Error with the server's code, message and field; one whose sys_errno() is set happened on
// this side of the connection.
//
// Threads: a Client may be shared between threads; each call has a connection to itself. What it
// hands out (Attachment, OutputReader, LogReader, ...) belongs to one thread at a time and
// may outlive the Client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/client_types.h"
#include "atoll/result.h"
#include "atoll/types.h"

namespace atl {

// Takes bytes as they come; a failure ends the transfer and is returned from it.
using ByteSink = std::function<Result<void>(std::string_view bytes)>;
// Fills the buffer and returns how much; 0 is the end.
using ByteSource = std::function<Result<size_t>(std::span<char> buffer)>;
// Called with the bytes moved so far and, where it is known, how many there will be.
using ProgressSink = std::function<void(uint64_t done, std::optional<uint64_t> total)>;

// One client of one process, over a WebSocket. A reader that does not read makes the process wait;
// dropping it leaves the process alone.
class Attachment {
 public:
  struct State;
  explicit Attachment(std::unique_ptr<State> state);
  Attachment(Attachment&&) noexcept;
  Attachment& operator=(Attachment&&) noexcept;
  ~Attachment();

  // The next event; zero waits for ever. After Exited there is none.
  Result<ProcessEvent> next(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  // For use after poll(): none when no whole event is there yet.
  Result<std::optional<ProcessEvent>> try_next();

  Result<void> write_input(std::string_view bytes);
  Result<void> end_input();
  Result<void> resize(uint16_t cols, uint16_t rows);
  Result<void> signal(std::string_view name);  // "SIGINT"

  int fd() const;
  // Call try_next() before the next poll().
  bool pending() const;

 private:
  std::unique_ptr<State> state_;
};

// The raw bytes of one of a process's streams.
class OutputReader {
 public:
  struct State;
  explicit OutputReader(std::unique_ptr<State> state);
  OutputReader(OutputReader&&) noexcept;
  OutputReader& operator=(OutputReader&&) noexcept;
  ~OutputReader();

  // At least a byte; 0 at the end.
  Result<size_t> read(std::span<char> into);

 private:
  std::unique_ptr<State> state_;
};

// A process's output as events, with times. The text is UTF-8: other bytes are replaced, so use
// Attachment or OutputReader where they matter.
class LogReader {
 public:
  struct State;
  explicit LogReader(std::unique_ptr<State> state);
  LogReader(LogReader&&) noexcept;
  LogReader& operator=(LogReader&&) noexcept;
  ~LogReader();

  // None at the end.
  Result<std::optional<ProcessEvent>> next();

 private:
  std::unique_ptr<State> state_;
};

// Changes below a path. Everything that happens after Client::watch() has returned is seen.
class WatchReader {
 public:
  struct State;
  explicit WatchReader(std::unique_ptr<State> state);
  WatchReader(WatchReader&&) noexcept;
  WatchReader& operator=(WatchReader&&) noexcept;
  ~WatchReader();

  // None when the server ended the watch.
  Result<std::optional<FileEvent>> next();

 private:
  std::unique_ptr<State> state_;
};

// What happens to sandboxes.
class EventReader {
 public:
  struct State;
  explicit EventReader(std::unique_ptr<State> state);
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) noexcept;
  ~EventReader();

  // None at the end, which is that of the server where it follows.
  Result<std::optional<SandboxEvent>> next();
  // Where to go on after a broken connection; empty: nothing has come yet.
  const std::string& position() const;

 private:
  std::unique_ptr<State> state_;
};

// A raw connection to a port inside a sandbox.
class PortConnection {
 public:
  struct State;
  explicit PortConnection(std::unique_ptr<State> state);
  PortConnection(PortConnection&&) noexcept;
  PortConnection& operator=(PortConnection&&) noexcept;
  ~PortConnection();

  // At least a byte; 0 at the end.
  Result<size_t> read(std::span<char> into);
  Result<void> write(std::string_view bytes);
  // For use after poll(): none where there is nothing yet, and how much was taken.
  Result<std::optional<size_t>> try_read(std::span<char> into);
  Result<size_t> try_write(std::string_view bytes);
  // The port sees the end of our bytes; its own may go on.
  void end_writing();

  int fd() const;
  // Call try_read() before the next poll().
  bool pending() const;

 private:
  std::unique_ptr<State> state_;
};

class Client {
 public:
  // Checks the options; the first call connects.
  static Result<Client> connect(ClientOptions options = ClientOptions::from_environment());
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  const std::string& url() const;

  // ---- sandboxes
  Result<Sandbox> create(const CreateRequest& request = CreateRequest());
  Result<std::vector<Sandbox>> list(const ListRequest& request = ListRequest());
  Result<Sandbox> get(std::string_view sandbox);
  Result<void> remove(std::string_view sandbox);
  Result<Sandbox> stop(std::string_view sandbox);
  Result<Sandbox> resume(std::string_view sandbox);
  Result<Sandbox> pause(std::string_view sandbox);
  // Its processes are kept in a file, and cost no memory until it is resumed.
  Result<Sandbox> pause_to_disk(std::string_view sandbox);
  Result<Sandbox> unpause(std::string_view sandbox);
  Result<Sandbox> update(std::string_view sandbox, const UpdateRequest& request);
  Result<SnapshotInfo> snapshot(std::string_view sandbox,
                                const SnapshotRequest& request = SnapshotRequest());
  // Oldest first; of one sandbox, or of all where `sandbox` is empty.
  Result<std::vector<SnapshotInfo>> snapshots(std::string_view sandbox = {});
  Result<void> remove_snapshot(std::string_view snapshot);
  // All of its files in one archive; returns the bytes of that. The other takes it, or the archive
  // of any root filesystem.
  Result<uint64_t> export_snapshot(std::string_view snapshot, const ByteSink& sink);
  Result<SnapshotInfo> import_snapshot(const ByteSource& source);
  // What was removed, or would be.
  Result<std::vector<SnapshotInfo>> prune_snapshots(const PruneRequest& request);
  // The state before that command of its history.
  Result<Sandbox> restore_before(std::string_view sandbox, uint32_t command);
  // Also to a checkpoint: then its processes go on from there.
  Result<Sandbox> restore(std::string_view sandbox, std::string_view snapshot);
  Result<CheckpointInfo> checkpoint(std::string_view sandbox,
                                    const SnapshotRequest& request = SnapshotRequest(),
                                    bool leave_running = true);
  Result<std::vector<CheckpointInfo>> checkpoints(std::string_view sandbox = {});
  Result<void> remove_checkpoint(std::string_view checkpoint);
  Result<std::vector<HistoryPoint>> history(std::string_view sandbox);  // oldest first
  Result<HistoryPoint> undo(std::string_view sandbox);
  // From a snapshot to another, or to what the sandbox is now where `to` is empty.
  Result<DiffAnswer> diff(std::string_view sandbox, std::string_view from, std::string_view to = {},
                          bool with_texts = false);
  Result<std::vector<Sandbox>> fork(std::string_view sandbox,
                                    const ForkRequest& request = ForkRequest());
  // What it may reach. Values in the answer are hidden; a change holds when the call returns.
  Result<std::string> network_json(std::string_view sandbox);
  Result<void> set_network(std::string_view sandbox, const NetworkPolicy& policy);
  Result<std::vector<NetworkEntry>> network_log(
      std::string_view sandbox, const NetworkLogRequest& request = NetworkLogRequest());
  Result<NetworkExplanation> explain_network(std::string_view sandbox, std::string_view url,
                                             std::string_view method = "GET");
  // Links to its ports, and connections to them.
  Result<PreviewInfo> open_port(std::string_view sandbox, const PreviewRequest& request);
  Result<std::vector<PreviewInfo>> preview_links(std::string_view sandbox);
  Result<void> remove_preview_link(std::string_view sandbox, std::string_view id);
  Result<PortConnection> connect_port(std::string_view sandbox, uint16_t port);
  // Zero waits for ever; else fails with Timeout. InvalidState where it has failed.
  Result<Sandbox> wait_for(std::string_view sandbox, std::string_view status,
                           std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  Result<SandboxUsage> usage(std::string_view sandbox);
  Result<EventReader> events(const EventsRequest& request = EventsRequest());

  // ---- keys (for administrators), secrets, tokens, usage
  Result<Identity> whoami();
  Result<CreatedKey> create_key(const CreateKeyRequest& request);
  Result<std::vector<KeyInfo>> keys();
  Result<void> remove_key(std::string_view id);
  // Makes it or replaces its value, which no answer ever holds.
  Result<SecretInfo> set_secret(std::string_view name, std::string_view value);
  Result<std::vector<SecretInfo>> secrets();
  Result<void> remove_secret(std::string_view name);
  Result<Token> create_token(std::string_view sandbox, const TokenRequest& request);
  Result<AccountUsage> account_usage();

  // ---- the server
  Result<std::vector<TemplateInfo>> templates(bool all_versions = false);
  // NAME, NAME@VERSION or NAME:TAG. Conflict while sandboxes are made from it.
  Result<void> remove_template(std::string_view reference);
  Result<void> tag_template(std::string_view reference, std::string_view tag);
  // Built of the same before, it is reused. `log` gets what the build writes, as it comes.
  Result<MadeTemplate> create_template(const TemplateRequest& request,
                                       const std::function<void(std::string_view)>& log = {});
  Result<uint64_t> export_template(std::string_view reference, const ByteSink& sink);
  // A new version with other settings; what is empty or 0 stays as it is.
  Result<MadeTemplate> update_template(std::string_view reference,
                                       const TemplateSettings& settings);
  Result<SystemInfo> system();
  // Grows to so many bytes first, unless they are 0.
  Result<StorageInfo> storage(uint64_t grow_to = 0);
  Result<void> health();
  // Whether processes can be kept and copied: by a trial.
  Result<MemorySupport> memory_support();
  // What the server knows, as an archive (`atoll backup`); returns its size.
  Result<uint64_t> backup(const ByteSink& sink);
  // Any request of the API with its JSON: for what has no method here.
  Result<std::string> call(std::string_view method, std::string_view target,
                           std::string_view json_body = {});

  // ---- commands
  // Waits for the end. Any exit code is a success.
  Result<ExecResult> exec(std::string_view sandbox, const ExecRequest& request);
  // A command that could not be started is an Error with field() "command": NotFound where there
  // is no such file.
  Result<ProcessInfo> spawn(std::string_view sandbox, const SpawnRequest& request);
  Result<std::vector<ProcessInfo>> processes(std::string_view sandbox);
  Result<ProcessInfo> process(std::string_view sandbox, int32_t pid);
  // Zero waits for ever; else fails with Timeout.
  Result<ProcessInfo> wait(std::string_view sandbox, int32_t pid,
                           std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  Result<void> kill(std::string_view sandbox, int32_t pid, std::string_view signal = "SIGKILL",
                    KillScope scope = KillScope::Tree);
  Result<Attachment> attach(std::string_view sandbox, int32_t pid,
                            const OutputOffsets& offsets = OutputOffsets(),
                            AttachInput input = AttachInput::Share);
  Result<OutputReader> output(std::string_view sandbox, int32_t pid, const OutputRequest& request);
  Result<LogReader> logs(std::string_view sandbox, int32_t pid,
                         const LogRequest& request = LogRequest());

  // ---- files, whole
  Result<std::string> read_file(std::string_view sandbox, std::string_view path);
  Result<FileEntry> write_file(std::string_view sandbox, std::string_view path,
                               std::string_view bytes, uint32_t mode = 0);
  Result<FileEntry> stat(std::string_view sandbox, std::string_view path);
  Result<bool> exists(std::string_view sandbox, std::string_view path);
  Result<DirectoryList> list_files(std::string_view sandbox, std::string_view path,
                                   const ListFilesRequest& request = ListFilesRequest());
  Result<void> make_directory(std::string_view sandbox, std::string_view path);
  Result<void> move(std::string_view sandbox, std::string_view from, std::string_view to);
  Result<void> remove_path(std::string_view sandbox, std::string_view path,
                           const RemovePathRequest& request = RemovePathRequest());
  Result<SearchAnswer> search(std::string_view sandbox, const SearchRequest& request);
  Result<WatchReader> watch(std::string_view sandbox, std::string_view path,
                            WatchScope scope = WatchScope::Recursive);

  // ---- files, streamed; each returns the bytes moved
  Result<uint64_t> download(std::string_view sandbox, std::string_view path, const ByteSink& sink,
                            const DownloadRequest& request = DownloadRequest());
  Result<FileEntry> upload(std::string_view sandbox, std::string_view path,
                           const ByteSource& source, const UploadRequest& request);
  // The local file appears whole or not at all, with the remote one's mode and time.
  Result<uint64_t> download_file(std::string_view sandbox, std::string_view path,
                                 const std::string& local_path,
                                 const ProgressSink& progress = nullptr);
  Result<uint64_t> upload_file(std::string_view sandbox, const std::string& local_path,
                               std::string_view path, const ProgressSink& progress = nullptr);

  // ---- directories, as tar streams
  Result<uint64_t> download_tar(std::string_view sandbox, std::string_view path,
                                const ByteSink& sink);
  Result<void> upload_tar(std::string_view sandbox, std::string_view path,
                          const ByteSource& source);
  // What is in one directory goes into the other, which is created where missing.
  Result<TransferReport> download_dir(std::string_view sandbox, std::string_view path,
                                      const std::string& local_path,
                                      const ProgressSink& progress = nullptr);
  Result<TransferReport> upload_dir(std::string_view sandbox, const std::string& local_path,
                                    std::string_view path, const ProgressSink& progress = nullptr);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
