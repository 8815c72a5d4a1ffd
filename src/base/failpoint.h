// Places where a test has the process die, as it would if it were killed just there. The name of
// one in ATOLL_FAILPOINT arms it; a process that is started again finds it disarmed. With ":family"
// after the name the parent dies, too: for helpers that do a process's work.
#pragma once

namespace atl {

void failpoint(const char* name);

}  // namespace atl
