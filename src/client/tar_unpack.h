#pragma once

#include <string>
#include <string_view>

#include "atoll/client.h"

namespace atl::client {

// Unpacks a tar stream into `directory` (created where missing) and never outside it: a sandbox
// made the archive, so names that lead out are refused and no symbolic link is ever followed.
// Modes lose their set-id bits, owners are not taken over.
Result<TransferReport> unpack_tar(const ByteSource& source, const std::string& directory);

// "a/b" for "./a//b/"; empty for the directory itself. Fails for absolute names, "..", and NUL.
Result<std::string> safe_entry_path(std::string_view name);

}  // namespace atl::client
