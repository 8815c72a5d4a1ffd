// Who owns a data directory: one server, or one program that works on its files meanwhile.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::store {

// Held until the descriptor and all its copies are closed. Conflict where somebody has it.
Result<UniqueFd> lock_data_dir(const std::string& data_dir);

// Writes into a held lock where its server can be asked.
Result<void> name_holder(const UniqueFd& lock, const std::string& socket);
// What the present or the last holder wrote; empty where nobody did.
Result<std::string> holder_of(const std::string& data_dir);

}  // namespace atl::store
