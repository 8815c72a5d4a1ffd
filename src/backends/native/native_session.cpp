#include "backends/native/native_session.h"

#include <algorithm>

#include "backends/native/native_streams.h"

namespace atl::native {
namespace {

// No agent keeps more of a stream.
constexpr uint64_t kMaxKept = 9u << 20;

wire::ExecRequest exec_request(const RunOptions& options) {
  wire::ExecRequest request;
  request.argv = options.argv;
  for (const auto& [name, value] : options.env) request.env.push_back(name + "=" + value);
  request.cwd = options.cwd;
  request.user = options.user;
  request.label = options.label;
  request.timeout_ms = static_cast<uint64_t>(options.timeout.count());
  request.clean_env = options.clean_env;
  return request;
}

wire::FileRequest file_request(wire::FileOp op, std::string path) {
  wire::FileRequest request;
  request.op = op;
  request.path = std::move(path);
  return request;
}

}  // namespace

NativeSession::NativeSession(boost::asio::any_io_executor executor, std::string id,
                             std::string socket_path, std::shared_ptr<AgentControl> control)
    : executor_(std::move(executor)),
      id_(std::move(id)),
      socket_path_(std::move(socket_path)),
      control_(std::move(control)),
      connecting_(executor_) {}

Task<Result<std::shared_ptr<AgentControl>>> NativeSession::control() {
  if (is_settled()) co_return control_;
  auto turn = co_await connecting_.lock();
  if (!is_settled()) ATOLL_CO_TRY(co_await settle());
  co_return control_;
}

Task<Result<void>> NativeSession::settle() {
  if (closed_) co_return fail(ErrorCode::Unavailable, "the sandbox has ended");
  uint64_t telling = assigned_;
  std::optional<wire::Configure> news;
  if (told_ != telling) news = configure_;
  if (control_ != nullptr && control_->alive()) {
    ATOLL_CO_TRY(co_await control_->call<wire::Done>(*news));
  } else {
    ATOLL_CO_ASSIGN(control_, co_await AgentControl::connect(executor_, socket_path_, news));
  }
  told_ = telling;
  co_return Result<void>();
}

void NativeSession::assign(wire::Configure request) {
  configure_ = std::move(request);
  assigned_++;
}

void NativeSession::close() {
  closed_ = true;
  if (control_ != nullptr) control_->close();
}

std::string NativeSession::resolve_path(std::string_view path) const {
  if (!path.empty() && path.front() == '/') return std::string(path);
  return path.empty() ? "/workspace" : "/workspace/" + std::string(path);
}

Task<Result<RunResult>> NativeSession::run(RunOptions options) {
  wire::ExecRequest request = exec_request(options);
  request.wait = true;
  ATOLL_CO_ASSIGN(auto reply, co_await call<wire::ExecReply>(std::move(request), kNoReplyLimit));
  RunResult result;
  result.process = std::move(reply.process);
  result.duration = std::chrono::microseconds(reply.duration_us);
  result.stdout_data = std::move(reply.stdout_data);
  result.stderr_data = std::move(reply.stderr_data);
  if (reply.output_inline) co_return result;
  const ProcessInfo& process = result.process;
  uint64_t kept =
      std::min(process.stdout_bytes, kMaxKept) + std::min(process.stderr_bytes, kMaxKept);
  if (!options.admit_output || options.admit_output(kept)) {
    ATOLL_CO_TRY(co_await collect_output(result));
  } else {
    result.stdout_lost = process.stdout_bytes;
    result.stderr_lost = process.stderr_bytes;
  }
  co_return result;
}

// Long output is read from the process's log, as a client that came later would.
Task<Result<void>> NativeSession::collect_output(RunResult& result) {
  AttachOptions options;
  options.follow = false;
  ATOLL_CO_ASSIGN(auto stream, co_await attach(result.process.pid, options));
  for (;;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream->next());
    bool is_stdout = event.stream == Stream::Stdout;
    switch (event.kind) {
      case OutputEvent::Kind::Exited:
        co_return Result<void>();
      case OutputEvent::Kind::Lost:
        (is_stdout ? result.stdout_lost : result.stderr_lost) += event.lost;
        break;
      case OutputEvent::Kind::Data:
        (is_stdout ? result.stdout_data : result.stderr_data).append(event.data);
        break;
    }
  }
}

Task<Result<ProcessInfo>> NativeSession::spawn(SpawnOptions options) {
  wire::ExecRequest request = exec_request(options);
  request.stdin_open = options.stdin_open;
  request.pty = options.pty;
  request.cols = options.cols;
  request.rows = options.rows;
  ATOLL_CO_ASSIGN(auto reply, co_await call<wire::ExecReply>(std::move(request)));
  co_return std::move(reply.process);
}

Task<Result<std::unique_ptr<ProcessStream>>> NativeSession::attach(int32_t pid,
                                                                   AttachOptions options) {
  ATOLL_CO_TRY(co_await control());  // it must know whose it is
  ATOLL_CO_ASSIGN(auto link, co_await AgentLink::connect(executor_, socket_path_));
  wire::AttachRequest request{.pid = pid,
                              .want_stdout = options.want_stdout,
                              .want_stderr = options.want_stderr,
                              .follow = options.follow,
                              .stdout_offset = options.stdout_offset,
                              .stderr_offset = options.stderr_offset,
                              .take_input = options.take_input};
  ATOLL_CO_TRY(co_await link->send(0, request));
  ATOLL_CO_ASSIGN(auto ready, co_await link->expect<wire::AttachReady>());
  co_return std::make_unique<NativeProcessStream>(std::move(link), ready.input_bytes);
}

Task<Result<std::vector<ProcessInfo>>> NativeSession::processes() {
  ATOLL_CO_ASSIGN(auto reply, co_await call<wire::ProcessList>(wire::ProcessListRequest{}));
  co_return std::move(reply.processes);
}

Task<Result<ProcessInfo>> NativeSession::process(int32_t pid) {
  wire::ProcessListRequest request{.pid = pid};
  ATOLL_CO_ASSIGN(auto reply, co_await call<wire::ProcessList>(request));
  if (reply.processes.empty()) co_return fail(ErrorCode::NotFound, "no such process");
  co_return std::move(reply.processes.front());
}

Task<Result<ProcessInfo>> NativeSession::wait(int32_t pid) {
  wire::WaitRequest request{.pid = pid};
  ATOLL_CO_ASSIGN(auto reply, co_await call<wire::WaitReply>(request, kNoReplyLimit));
  co_return std::move(reply.process);
}

Task<Result<void>> NativeSession::signal(int32_t pid, int signal, bool tree) {
  wire::SignalRequest request{.pid = pid, .signal = signal, .tree = tree};
  ATOLL_CO_TRY(co_await call<wire::Done>(request));
  co_return Result<void>();
}

Task<Result<std::unique_ptr<AgentLink>>> NativeSession::open_file_link(wire::FileRequest request) {
  ATOLL_CO_TRY(co_await control());
  ATOLL_CO_ASSIGN(auto link, co_await AgentLink::connect(executor_, socket_path_));
  ATOLL_CO_TRY(co_await link->send(0, std::move(request)));
  co_return std::move(link);
}

Task<Result<void>> NativeSession::simple_file_operation(wire::FileRequest request) {
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  ATOLL_CO_TRY(co_await link->expect<wire::Done>());
  co_return Result<void>();
}

Task<Result<std::unique_ptr<FileReader>>> NativeSession::read_file(std::string path,
                                                                   ReadOptions options) {
  wire::FileRequest request = file_request(wire::FileOp::Read, std::move(path));
  request.user = options.user;
  request.offset = options.offset;
  request.limit = options.limit;
  request.first_line = options.first_line;
  request.last_line = options.last_line;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  ATOLL_CO_ASSIGN(auto head, co_await link->expect<wire::FileReply>());
  std::optional<uint64_t> size;
  if (options.first_line == 0 && head.entry.size > 0) {
    uint64_t rest = head.entry.size - std::min(options.offset, head.entry.size);
    size = options.limit == 0 ? rest : std::min(options.limit, rest);
  }
  co_return std::make_unique<NativeFileReader>(std::move(link), std::move(head.entry), size);
}

Task<Result<std::unique_ptr<FileReader>>> NativeSession::read_tree(std::string path) {
  ATOLL_CO_ASSIGN(auto link,
                  co_await open_file_link(file_request(wire::FileOp::ReadTree, std::move(path))));
  ATOLL_CO_ASSIGN(auto head, co_await link->expect<wire::FileReply>());
  co_return std::make_unique<NativeFileReader>(std::move(link), std::move(head.entry),
                                               std::nullopt);
}

Task<Result<std::unique_ptr<FileWriter>>> NativeSession::write_file(std::string path,
                                                                    WriteOptions options) {
  wire::FileRequest request = file_request(wire::FileOp::Write, std::move(path));
  request.user = options.user;
  request.mode = options.mode;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  co_return std::make_unique<NativeFileWriter>(std::move(link), NativeFileWriter::Kind::File);
}

Task<Result<std::unique_ptr<FileWriter>>> NativeSession::write_tree(std::string path) {
  ATOLL_CO_ASSIGN(auto link,
                  co_await open_file_link(file_request(wire::FileOp::WriteTree, std::move(path))));
  co_return std::make_unique<NativeFileWriter>(std::move(link), NativeFileWriter::Kind::Tree);
}

Task<Result<FileEntry>> NativeSession::stat(std::string path, std::string user) {
  wire::FileRequest request = file_request(wire::FileOp::Stat, std::move(path));
  request.user = std::move(user);
  request.follow = false;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  ATOLL_CO_ASSIGN(auto reply, co_await link->expect<wire::FileEntries>());
  if (reply.entries.empty()) co_return fail(ErrorCode::Internal, "empty reply from the agent");
  co_return std::move(reply.entries.front());
}

Task<Result<bool>> NativeSession::exists(std::string path) {
  auto entry = co_await stat(std::move(path), {});
  if (entry) co_return true;
  if (entry.error().code() == ErrorCode::NotFound) co_return false;
  co_return fail(std::move(entry).error());
}

Task<Result<FileList>> NativeSession::list(std::string path, ListOptions options) {
  wire::FileRequest request = file_request(wire::FileOp::List, std::move(path));
  request.user = options.user;
  request.recursive = options.recursive;
  request.hidden = options.hidden;
  request.limit = options.limit;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  FileList list;
  for (bool last = false; !last;) {
    ATOLL_CO_ASSIGN(auto batch, co_await link->expect<wire::FileEntries>());
    for (FileEntry& entry : batch.entries) list.entries.push_back(std::move(entry));
    list.truncated |= batch.truncated;
    last = batch.last;
  }
  co_return list;
}

Task<Result<void>> NativeSession::make_directory(std::string path, bool recursive,
                                                 std::string user) {
  wire::FileRequest request = file_request(wire::FileOp::Mkdir, std::move(path));
  request.user = std::move(user);
  request.recursive = recursive;
  return simple_file_operation(std::move(request));
}

Task<Result<void>> NativeSession::move(std::string from, std::string to, std::string user) {
  wire::FileRequest request = file_request(wire::FileOp::Move, std::move(from));
  request.target = std::move(to);
  request.user = std::move(user);
  return simple_file_operation(std::move(request));
}

Task<Result<void>> NativeSession::remove_path(std::string path, RemoveOptions options) {
  wire::FileRequest request = file_request(wire::FileOp::Remove, std::move(path));
  request.force = options.force;
  request.user = options.user;
  request.recursive = options.recursive;
  return simple_file_operation(std::move(request));
}

Task<Result<SearchResult>> NativeSession::search(SearchOptions options) {
  wire::FileRequest request = file_request(wire::FileOp::Search, options.path);
  request.pattern = options.pattern;
  request.target = options.glob;
  request.limit = options.max_results;
  request.context = options.context;
  request.ignore_case = options.ignore_case;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  SearchResult result;
  for (;;) {
    ATOLL_CO_ASSIGN(wire::Frame frame, co_await link->receive());
    if (frame.type == static_cast<uint16_t>(wire::AgentType::FileEnd)) {
      ATOLL_CO_ASSIGN(auto end, wire::decode<wire::FileEnd>(frame.payload));
      result.truncated = end.truncated;
      co_return result;
    }
    ATOLL_CO_ASSIGN(auto match, wire::decode<wire::FileMatch>(frame.payload));
    result.matches.push_back(std::move(match.match));
  }
}

Task<Result<std::unique_ptr<FileWatcher>>> NativeSession::watch(std::string path, bool recursive,
                                                                std::string user) {
  wire::FileRequest request = file_request(wire::FileOp::Watch, std::move(path));
  request.user = std::move(user);
  request.recursive = recursive;
  ATOLL_CO_ASSIGN(auto link, co_await open_file_link(std::move(request)));
  ATOLL_CO_TRY(co_await link->expect<wire::Done>());
  co_return std::make_unique<NativeFileWatcher>(std::move(link));
}

}  // namespace atl::native
