// SPDX-License-Identifier: MIT
#pragma once

// os/text_file.hpp: files of /proc and /sys, read whole.

#include <string>

namespace ums::os {

// Returns the text of the file; empty if there is no such file, or this process may not read it.
// A process without a descriptor or memory left cannot tell, so then this throws
// std::system_error (too_many_files_open, too_many_files_open_in_system, not_enough_memory).
std::string read_text(const std::string& path);

// Returns the first line of the file, without its end. As read_text().
std::string first_line(const std::string& path);

}  // namespace ums::os
