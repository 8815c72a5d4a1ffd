// The streaming parts of a session: each owns one connection to the agent.
#pragma once

#include "atoll/sandbox_session.h"
#include "backends/native/agent_link.h"

namespace atl::native {

class NativeProcessStream : public ProcessStream {
 public:
  NativeProcessStream(std::unique_ptr<AgentLink> link, uint64_t input_bytes);
  uint64_t input_bytes() const override { return input_bytes_; }
  Task<Result<OutputEvent>> next() override;
  Task<Result<void>> write_input(std::string bytes) override;
  Task<Result<void>> end_input() override;
  Task<Result<void>> resize(uint16_t cols, uint16_t rows) override;
  void cancel() override { link_->close(); }

 private:
  std::unique_ptr<AgentLink> link_;
  uint64_t input_bytes_;
};

class NativeFileReader : public FileReader {
 public:
  NativeFileReader(std::unique_ptr<AgentLink> link, FileEntry entry, std::optional<uint64_t> size);
  const FileEntry& entry() const override { return entry_; }
  std::optional<uint64_t> size() const override { return size_; }
  Task<Result<std::string_view>> read() override;

 private:
  std::unique_ptr<AgentLink> link_;
  FileEntry entry_;
  std::optional<uint64_t> size_;
  bool ended_ = false;
};

class NativeFileWriter : public FileWriter {
 public:
  enum class Kind { File, Tree };
  NativeFileWriter(std::unique_ptr<AgentLink> link, Kind kind)
      : link_(std::move(link)), kind_(kind) {}
  Task<Result<void>> write(std::string_view bytes) override;
  Task<Result<FileEntry>> finish() override;

 private:
  std::unique_ptr<AgentLink> link_;
  Kind kind_;
};

class NativeFileWatcher : public FileWatcher {
 public:
  explicit NativeFileWatcher(std::unique_ptr<AgentLink> link) : link_(std::move(link)) {}
  Task<Result<FileEvent>> next() override;
  void cancel() override { link_->close(); }

 private:
  std::unique_ptr<AgentLink> link_;
};

}  // namespace atl::native
