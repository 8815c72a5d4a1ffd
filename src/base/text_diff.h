// The difference of two texts, line by line, as people and `patch` read it.
#pragma once

#include <string>
#include <string_view>

namespace atl {

// Whether it can be shown line by line: no NUL byte, and UTF-8.
bool is_text(std::string_view bytes);

// A unified diff without the two lines of file names; empty where the texts are the same. Texts
// that differ in more than `max_edits` lines become one hunk that replaces all.
std::string unified_diff(std::string_view before, std::string_view after, size_t context = 3,
                         size_t max_edits = 1000);

}  // namespace atl
