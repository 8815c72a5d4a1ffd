// SandboxSession over an agent's socket.
#pragma once

#include <memory>
#include <string>

#include "atoll/sandbox_session.h"
#include "backends/native/agent_control.h"
#include "http/async_mutex.h"
#include "wire/file_messages.h"

namespace atl::native {

class NativeSession : public SandboxSession {
 public:
  NativeSession(boost::asio::any_io_executor executor, std::string id, std::string socket_path,
                std::shared_ptr<AgentControl> control);

  const std::string& id() const override { return id_; }
  std::string resolve_path(std::string_view path) const override;

  Task<Result<RunResult>> run(RunOptions options) override;
  Task<Result<ProcessInfo>> spawn(SpawnOptions options) override;
  Task<Result<std::unique_ptr<ProcessStream>>> attach(int32_t pid, AttachOptions options) override;
  Task<Result<std::vector<ProcessInfo>>> processes() override;
  Task<Result<ProcessInfo>> process(int32_t pid) override;
  Task<Result<ProcessInfo>> wait(int32_t pid) override;
  Task<Result<void>> signal(int32_t pid, int signal, bool tree) override;

  Task<Result<std::unique_ptr<FileReader>>> read_file(std::string path,
                                                      ReadOptions options) override;
  Task<Result<std::unique_ptr<FileWriter>>> write_file(std::string path,
                                                       WriteOptions options) override;
  Task<Result<FileEntry>> stat(std::string path, std::string user) override;
  Task<Result<bool>> exists(std::string path) override;
  Task<Result<FileList>> list(std::string path, ListOptions options) override;
  Task<Result<void>> make_directory(std::string path, bool recursive, std::string user) override;
  Task<Result<void>> move(std::string from, std::string to, std::string user) override;
  Task<Result<void>> remove_path(std::string path, RemoveOptions options) override;
  Task<Result<SearchResult>> search(SearchOptions options) override;
  Task<Result<std::unique_ptr<FileWatcher>>> watch(std::string path, bool recursive,
                                                   std::string user) override;
  Task<Result<std::unique_ptr<FileReader>>> read_tree(std::string path) override;
  Task<Result<std::unique_ptr<FileWriter>>> write_tree(std::string path) override;

  // Connects where there is no living connection: after a restart, or to a sandbox that was frozen.
  // The agent knows whose it is by then.
  Task<Result<std::shared_ptr<AgentControl>>> control();
  // Whose sandbox it is from now on.
  void assign(wire::Configure request);
  void close();

 private:
  template <class Reply, class Request>
  Task<Result<Reply>> call(Request request, ReplyLimit limit = kReplyLimit) {
    ATOLL_CO_ASSIGN(auto live, co_await control());
    co_return co_await live->template call<Reply>(std::move(request), limit);
  }

  bool is_settled() const { return control_ != nullptr && control_->alive() && told_ == assigned_; }
  Task<Result<void>> settle();
  Task<Result<std::unique_ptr<AgentLink>>> open_file_link(wire::FileRequest request);
  Task<Result<void>> simple_file_operation(wire::FileRequest request);
  Task<Result<void>> collect_output(RunResult& result);

  boost::asio::any_io_executor executor_;
  std::string id_;
  std::string socket_path_;
  std::shared_ptr<AgentControl> control_;
  wire::Configure configure_;
  uint64_t assigned_ = 0;  // times that it was given
  uint64_t told_ = 0;      // of them the agent knows
  http::AsyncMutex connecting_;
  bool closed_ = false;
};

}  // namespace atl::native
