#include "code/language.h"

#include <algorithm>

namespace atl::code {
namespace {

constexpr std::string_view kLabel = "kernel ";
constexpr std::string_view kFrom = " of ";
constexpr size_t kMaxSession = 64;

struct Name {
  std::string_view text;
  Language language;
};
// The first of each is its own.
constexpr Name kNames[] = {
    {"python", Language::Python},
    {"node", Language::Node},
    {"typescript", Language::TypeScript},
    {"bash", Language::Bash},
    {"python3", Language::Python},
    {"javascript", Language::Node},
    {"js", Language::Node},
    {"ts", Language::TypeScript},
    {"sh", Language::Bash},
};

bool is_session(std::string_view text) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxSession && std::all_of(text.begin(), text.end(), good);
}

}  // namespace

std::string_view name_of(Language language) {
  for (const Name& name : kNames) {
    if (name.language == language) return name.text;
  }
  return {};
}

Result<Language> parse_language(std::string_view text) {
  for (const Name& name : kNames) {
    if (name.text == text) return name.language;
  }
  return fail(Error(ErrorCode::NotSupported, "there is no kernel for '" + std::string(text) +
                                                 "': python, node (javascript), typescript or bash")
                  .with_field("language"));
}

Result<void> check_session(std::string_view session, std::string_view field) {
  if (is_session(session)) return {};
  return fail(Error(ErrorCode::InvalidArgument, "1 to 64 letters, digits, '.', '_' or '-'")
                  .with_field(field));
}

Result<ContextId> parse_context_id(std::string_view text) {
  for (Language language :
       {Language::Python, Language::Node, Language::TypeScript, Language::Bash}) {
    std::string start = std::string(name_of(language)) + "-";
    if (!text.starts_with(start) || !is_session(text.substr(start.size()))) continue;
    return ContextId{.language = language, .session = std::string(text.substr(start.size()))};
  }
  return fail(ErrorCode::NotFound, "no context '" + std::string(text.substr(0, 128)) + "'");
}

std::string label_of(const ContextId& id, std::string_view root) {
  std::string label = std::string(kLabel) + id.text();
  if (!root.empty()) label.append(kFrom).append(root);
  return label;
}

Result<KernelLabel> parse_label(std::string_view label) {
  if (!label.starts_with(kLabel)) return fail(ErrorCode::NotFound, "not a kernel");
  label.remove_prefix(kLabel.size());
  size_t from = label.find(kFrom);
  ATOLL_ASSIGN(ContextId id, parse_context_id(label.substr(0, from)));
  std::string root(from == label.npos ? "" : label.substr(from + kFrom.size()));
  return KernelLabel{.id = std::move(id), .root = std::move(root)};
}

}  // namespace atl::code
