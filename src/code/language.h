// The languages that kernels speak, and how a kernel is named: "python-default" is the Python
// kernel of the session "default".
#pragma once

#include <string>
#include <string_view>

#include "atoll/result.h"

namespace atl::code {

enum class Language : uint8_t { Python, Node, TypeScript, Bash };

std::string_view name_of(Language language);
// Also by the names that other interpreters use ("javascript", "js", "ts"); NotSupported for
// others.
Result<Language> parse_language(std::string_view name);

inline constexpr std::string_view kDefaultSession = "default";

struct ContextId {
  Language language = Language::Python;
  std::string session{kDefaultSession};

  std::string text() const { return std::string(name_of(language)) + "-" + session; }
  bool operator==(const ContextId&) const = default;
  auto operator<=>(const ContextId&) const = default;
};
// NotFound where it cannot be one.
Result<ContextId> parse_context_id(std::string_view text);
// 1 to 64 of [A-Za-z0-9._-].
Result<void> check_session(std::string_view session, std::string_view field);

// How a kernel's process is shown in listings, which is also how a server finds it again. One that
// was branched off says from whom its tree of processes stems.
std::string label_of(const ContextId& id, std::string_view root = {});
struct KernelLabel {
  ContextId id;
  std::string root;  // empty: itself
};
Result<KernelLabel> parse_label(std::string_view label);

}  // namespace atl::code
