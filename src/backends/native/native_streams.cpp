#include "backends/native/native_streams.h"

#include "wire/file_messages.h"

namespace atl::native {

static constexpr size_t kStreamRead = 256u << 10;

NativeProcessStream::NativeProcessStream(std::unique_ptr<AgentLink> link, uint64_t input_bytes)
    : link_(std::move(link)), input_bytes_(input_bytes) {
  link_->set_read_size(kStreamRead);
}

Task<Result<OutputEvent>> NativeProcessStream::next() {
  ATOLL_CO_ASSIGN(wire::Frame frame, co_await link_->receive());
  OutputEvent event;
  switch (static_cast<wire::AgentType>(frame.type)) {
    case wire::AgentType::Output: {
      if (frame.payload.size() < wire::kOutputHeaderBytes) break;
      ATOLL_CO_ASSIGN(auto header, wire::decode<wire::OutputHeader>(
                                       frame.payload.substr(0, wire::kOutputHeaderBytes)));
      event.stream = header.stream;
      event.offset = header.offset;
      event.data = frame.payload.substr(wire::kOutputHeaderBytes);
      co_return event;
    }
    case wire::AgentType::OutputLost: {
      ATOLL_CO_ASSIGN(auto lost, wire::decode<wire::OutputLost>(frame.payload));
      event.kind = OutputEvent::Kind::Lost;
      event.stream = lost.stream;
      event.offset = lost.offset;
      event.lost = lost.bytes;
      co_return event;
    }
    case wire::AgentType::Exited: {
      ATOLL_CO_ASSIGN(auto exited, wire::decode<wire::Exited>(frame.payload));
      event.kind = OutputEvent::Kind::Exited;
      event.process = std::move(exited.process);
      co_return event;
    }
    default:
      break;
  }
  co_return fail(ErrorCode::Internal, "unexpected frame from the sandbox's agent");
}

Task<Result<void>> NativeProcessStream::write_input(std::string bytes) {
  co_return co_await link_->send_payload(wire::AgentType::Input, bytes);
}

Task<Result<void>> NativeProcessStream::end_input() {
  co_return co_await link_->send(0, wire::InputEnd{});
}

Task<Result<void>> NativeProcessStream::resize(uint16_t cols, uint16_t rows) {
  co_return co_await link_->send(0, wire::Resize{.cols = cols, .rows = rows});
}

NativeFileReader::NativeFileReader(std::unique_ptr<AgentLink> link, FileEntry entry,
                                   std::optional<uint64_t> size)
    : link_(std::move(link)), entry_(std::move(entry)), size_(size) {
  link_->set_read_size(kStreamRead);
}

Task<Result<std::string_view>> NativeFileReader::read() {
  if (ended_) co_return std::string_view();
  ATOLL_CO_ASSIGN(wire::Frame frame, co_await link_->receive());
  if (frame.type == static_cast<uint16_t>(wire::AgentType::FileData)) co_return frame.payload;
  ended_ = true;
  if (frame.type == static_cast<uint16_t>(wire::AgentType::FileEnd)) co_return std::string_view();
  co_return fail(ErrorCode::Internal, "unexpected frame from the sandbox's agent");
}

Task<Result<void>> NativeFileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, 1u << 20);
    bytes.remove_prefix(part.size());
    ATOLL_CO_TRY(co_await link_->send_payload(wire::AgentType::FileData, part));
  }
  co_return Result<void>();
}

Task<Result<FileEntry>> NativeFileWriter::finish() {
  ATOLL_CO_TRY(co_await link_->send(0, wire::FileEnd{}));
  if (kind_ == Kind::Tree) {
    ATOLL_CO_TRY(co_await link_->expect<wire::Done>());
    co_return FileEntry{};
  }
  ATOLL_CO_ASSIGN(auto reply, co_await link_->expect<wire::FileReply>());
  co_return std::move(reply.entry);
}

Task<Result<FileEvent>> NativeFileWatcher::next() {
  ATOLL_CO_ASSIGN(auto changed, co_await link_->expect<wire::FileChanged>());
  co_return std::move(changed.event);
}

}  // namespace atl::native
