// Whatever arrives on a socket: frames cut anywhere, every message type, and a message that decodes
// must encode to the very same bytes.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "wire/agent_messages.h"
#include "wire/file_messages.h"
#include "wire/frame.h"
#include "wire/launcher_messages.h"

using namespace atl::wire;

template <class Message>
static void check(std::string_view bytes) {
  auto message = decode<Message>(bytes);
  if (!message) return;
  auto again = decode<Message>(encode(*message));
  // A bool may come as any non-zero byte and goes as 1, so compare the second generation.
  if (!again || encode(*again) != encode(*message)) abort();
}

template <class... Messages>
static void check_all(std::string_view bytes) {
  (check<Messages>(bytes), ...);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_all<Failure, Done, ControlHello, ControlReady, Configure, ExecRequest, ExecReply,
            SignalRequest, ProcessListRequest, ProcessList, WaitRequest, WaitReply, AttachRequest,
            AttachReady, OutputHeader, OutputLost, Exited, InputEnd, Resize, FileRequest, FileReply,
            FileEntries, FileEnd, FileMatch, FileChanged>(bytes);
  check_all<LauncherFailure, BuildRequest, Built, LimitsRequest, FreezeRequest, StopRequest,
            DestroyRequest, DiscardRequest, ReserveRequest, PublishRequest, UsageRequest,
            UsageReply, Status, Ended>(bytes);
  FrameBuffer buffer;
  size_t step = size == 0 ? 1 : data[0] % 64 + 1;
  for (size_t at = 0; at < size; at += step) {
    size_t part = std::min(step, size - at);
    memcpy(buffer.prepare(part), data + at, part);
    buffer.commit(part);
    for (;;) {
      auto frame = buffer.next();
      if (!frame) return 0;
      if (!*frame) break;
    }
  }
  return 0;
}
